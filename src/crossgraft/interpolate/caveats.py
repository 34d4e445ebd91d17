"""What limits the networks between two, and what to type next."""

from __future__ import annotations

from crossgraft.interpolate.record import InterpolationRecord
from crossgraft.metrics.page import looked_at_before
from crossgraft.metrics.words import doubt_in_words, guessing, metric_format
from crossgraft.options.models import CodeOptions
from crossgraft.options.typed_command import RUN
from crossgraft.report.source import Source
from crossgraft.report.verdict import PREDICT_IMAGES, Caveat, CaveatOf, Following
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import counted


def groups_in_two_parts(source: Source[InterpolationRecord]) -> Caveat | None:
    """Images of one patient trained and tested."""
    record = source.record
    return Caveat(record.leakage) if record.num_shared_groups and record.leakage is not None else None


def picked_may_be_guessing(source: Source[InterpolationRecord]) -> Caveat | None:
    """The interval of the network that val picks contains what guessing gives, or there is none."""
    record = source.record
    found = None if record.picked is None else record.picked.metric(record.primary_metric)
    if found is None or found.value is None:
        return None
    if found.low is None:
        return Caveat("There is no interval, so nothing tells how far chance goes.")
    choices = num_choices(record)
    doubt = None if choices is None else doubt_in_words(found, choices)
    return None if doubt is None else Caveat(f"{counted(found.num_images, 'image')} are too few to tell. {doubt}")


def num_choices(record: InterpolationRecord) -> int | None:
    """Among how many answers guessing chooses; None where the images are not described."""
    if record.images is None:
        return None
    return len(record.images.class_names) if recorded_task(record.images).partitions else 2


def guess_of(record: InterpolationRecord) -> float | None:
    """What guessing gives of the primary metric, where that is known."""
    choices = num_choices(record)
    return None if choices is None else guessing(record.primary_metric, choices)


def head_of_the_end(source: Source[InterpolationRecord]) -> Caveat | None:
    """Without a linear probe, the head at the start never saw the features below it."""
    if source.record.has_probe is not False:
        return None
    return Caveat(
        "There is no linear probe (--linear), so every network has the head of the fine-tuned one, which never saw pretrained "
        "features: those near the share 0 look worse than they need."
    )


def end_may_be_as_good(source: Source[InterpolationRecord]) -> Caveat | None:
    """The fine-tuned network lies inside the interval of the one that val picks."""
    record = source.record
    end = next((point for point in record.points if point.alpha == 1), None)
    if record.picked is None or end is None or record.picked is end:
        return None
    found, last = (point.metric(record.primary_metric) for point in (record.picked, end))
    if found is None or last is None or found.low is None or found.high is None or last.value is None:
        return None
    if not found.low <= last.value <= found.high:
        return None
    value = metric_format([found])(last.value)
    return Caveat(
        f"The fine-tuned network has {value}, inside this interval. The two were not compared image by image, so which of them "
        "is better is not known."
    )


def statistics_jump(source: Source[InterpolationRecord]) -> Caveat | None:
    """BatchNorm between the ends has statistics that neither end has."""
    record = source.record
    between = any(0 < point.alpha < 1 for point in record.points)
    if not (between and record.num_batch_norms and record.batch_norm == "estimate"):
        return None
    return Caveat(
        f"{counted(record.num_batch_norms, 'layer')} of BatchNorm have statistics of the training images between the ends and "
        "their own at the ends, so the curve may jump there."
    )


def patients_not_known(source: Source[InterpolationRecord]) -> Caveat | None:
    """Without groups, images of one patient may be in two parts."""
    record = source.record
    has_groups = record.images is None or record.images.num_groups is not None
    return None if has_groups or record.leakage is None else Caveat(record.leakage)


INTERPOLATION_CAVEATS: tuple[CaveatOf[InterpolationRecord], ...] = (
    groups_in_two_parts,
    picked_may_be_guessing,
    head_of_the_end,
    end_may_be_as_good,
    looked_at_before,
    statistics_jump,
    patients_not_known,
)
"""The most severe first, in the order of ``sections._verdict``."""


def after_interpolation(source: Source[InterpolationRecord]) -> Following:
    """To predict with the end that val picks; a network in between is not kept, so then with the fine-tuned one."""
    typed, picked = source.typed, source.record.picked_alpha
    run = next(iter(typed.inputs), RUN) if typed.verb == "interpolate" else RUN
    purpose = "to use the fine-tuned network, because mixed ones are not kept"
    if picked == 1:
        purpose = "to use it"
    elif picked == 0 and (probe := typed.value("--linear")) is not None:
        run, purpose = probe, "to use the linear probe"
    line = typed.then("predict", run, PREDICT_IMAGES, carried=[CodeOptions])
    return Following(line, purpose)
