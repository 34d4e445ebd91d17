"""What limits the result of a fine-tuning, each in one function, and what to type next."""

from __future__ import annotations

from crossgraft.data.checks.record import copies_are_known
from crossgraft.data.page import unreadable_files
from crossgraft.edit.page import edited_caveat
from crossgraft.metrics.harms import missed_class_caveat, sensitivities, wrong_risks
from crossgraft.metrics.page import looked_at_before
from crossgraft.metrics.record import MetricRecord
from crossgraft.metrics.subgroups import with_interval
from crossgraft.metrics.words import metric_format, too_few_in_words
from crossgraft.options.models import CodeOptions
from crossgraft.report.source import Source
from crossgraft.report.verdict import (
    PREDICT_IMAGES,
    Caveat,
    CaveatOf,
    Following,
    Gravity,
    leakage_not_checked,
    unsound_data,
    warned_of_data,
)
from crossgraft.statistics import independent_difference
from crossgraft.tasks import num_choices, recorded_task
from crossgraft.tune.record import TuningRecord
from crossgraft.words.formatting import NumberFormat, counted, joined

UNSEEN = ("test", "out of fold", "unseen domains")
WIDEST_TOLD = 0.5
"""An interval of a class that is wider says next to nothing: it is wider than half of what is possible."""

_SHARE = NumberFormat(decimals=2)
_ENOUGH_FOLDS = 5
_NOT_WITH_FOLDS = ("--compare", "--split", "--edit-parts")
_GIVEN = "given"  # begins the origin of a part that came with the data


def headline(record: TuningRecord) -> MetricRecord | None:
    """The primary metric on images that selection did not see; on others where there are none."""
    if record.unseen_domains is not None and record.unseen_domains.is_each:
        return record.headline
    for split in (*UNSEEN, None):
        primary = record.metric(record.primary_metric, split=split)
        if primary is not None:
            return primary
    return None


def is_new(record: TuningRecord, row: MetricRecord) -> bool:
    """Whether its images had no part in training or in picking the model, and no copy of one is known to have had."""
    return row.split in UNSEEN and not copies_are_known(record.checks)


def seen_images(source: Source[TuningRecord]) -> Caveat | None:
    """There are no images that selection did not see."""
    primary = headline(source.record)
    if primary is None or primary.split in UNSEEN:
        return None
    return Caveat("These images took part in picking the model, so the value is too high; there were no others.", Gravity.WRONG)


def too_few_images(source: Source[TuningRecord]) -> Caveat | None:
    """The interval contains what guessing gives, or there is none."""
    record, primary = source.record, headline(source.record)
    if primary is None or primary.value is None:
        return None
    if primary.low is None:
        reason = (primary.no_interval_reason or "not stated why").removeprefix("No interval: ").rstrip(".")
        return Caveat(
            f"There is no interval ({reason}), so nothing tells how far chance goes.", Gravity.EMPTY, _more_test_images(source)
        )
    doubt = too_few_in_words(primary, num_choices(record.dataset))
    return None if doubt is None else Caveat(doubt, Gravity.EMPTY, _more_test_images(source))


def _more_test_images(source: Source[TuningRecord]) -> Following | None:
    """Folds, which test every image once, where the split is not one that came with the data."""
    typed = source.typed
    is_given = any(split.origin.startswith(_GIVEN) for split in source.record.splits if split.name == "test")
    if (unseen := source.record.unseen_domains) is not None:
        if typed.verb != "tune" or unseen.is_each or typed.has("--compare"):
            return None
        line = typed.again(("--leave-out", "each"))
        return Following(line, f"to test on every {unseen.column} once, with as many models")
    if typed.verb != "tune" or source.record.folds or is_given or any(map(typed.has, _NOT_WITH_FOLDS)):
        return None
    if not _fill_folds(source.record):
        return None
    line = typed.again(("--folds", str(_ENOUGH_FOLDS)), without=("--holdout",))
    seconds = _ENOUGH_FOLDS * source.record.seconds or None
    return Following(line, "to test on every image once, with five models", seconds)


def _fill_folds(record: TuningRecord) -> bool:
    """Whether each class has an image for each fold; one that was not drawn into test is of one patient or one image."""
    if not recorded_task(record.dataset).partitions:
        return True
    of_class = zip(*(split.class_counts for split in record.splits), strict=True)
    return all(sum(counts) >= _ENOUGH_FOLDS for counts in of_class) and not _not_in_test(record)


def _not_in_test(record: TuningRecord) -> list[str]:
    """Classes (labels) that no test image has."""
    test = next((split for split in record.splits if split.name == "test"), None)
    if test is None:
        return []
    return [name for name, count in zip(record.dataset.class_names, test.class_counts, strict=True) if not count]


def unmeasured_class(source: Source[TuningRecord]) -> Caveat | None:
    """A class that the test images have none of."""
    record = source.record
    missing = _not_in_test(record)
    if not missing:
        return None
    noun = recorded_task(record.dataset).noun if len(missing) == 1 else recorded_task(record.dataset).nouns
    return Caveat(
        f"No test image has the {noun} {joined(missing)}: how well it is recognised is not known. Collect more images of it, of "
        "several patients, or leave it out.",
        Gravity.HARM,
    )


def missed_class(source: Source[TuningRecord]) -> Caveat | None:
    """A class that is missed, or taken for another, more often than the others."""
    record = source.record
    return missed_class_caveat(recorded_task(record.dataset), record.confusion, record.metrics, splits=UNSEEN)


def probabilities_are_off(source: Source[TuningRecord]) -> Caveat | None:
    """The calibration error is larger than chance makes it."""
    return wrong_risks(source.record.calibration, recorded_task(source.record.dataset))


def val_above_test(source: Source[TuningRecord]) -> Caveat | None:
    """Val is better than test by more than the two intervals allow; of other domains than test, it says nothing of this."""
    record, test = source.record, headline(source.record)
    if record.unseen_domains is not None:
        return None
    val = record.metric(record.primary_metric, split="val")
    if test is None or val is None or test.split not in UNSEEN:
        return None
    ends = with_interval(val), with_interval(test)
    if ends[0] is None or ends[1] is None:
        return None
    difference = independent_difference(ends[0], ends[1])
    if difference.low <= 0:
        return None
    as_text = metric_format([val, test])
    return Caveat(
        f"{test.title} is {as_text(val.value)} on val and {as_text(test.value)} on test: {as_text(difference.value)} less "
        f"(95\N{NO-BREAK SPACE}% interval {as_text(difference.low)} to {as_text(difference.high)}), more than chance allows. The "
        "epoch was picked on val; the two parts may differ, too. Only the value of test counts.",
        Gravity.FLATTERED,
    )


def few_images_of_a_class(source: Source[TuningRecord]) -> Caveat | None:
    """The sensitivity of a class has an interval of more than half of what is possible."""
    record = source.record
    task = recorded_task(record.dataset)
    measured = [row for row in record.metrics if row.split in UNSEEN and row.attribute is None]
    wide = [
        (name, row)
        for name, row in sensitivities(record.dataset.class_names, measured).items()
        if row.low is not None and row.high is not None and row.high - row.low > WIDEST_TOLD
    ]
    if not wide:
        return None
    name, row = min(wide, key=lambda pair: pair[1].num_images)
    return Caveat(
        f"Only {counted(row.num_images, 'test image')} {task.of} {name}: its sensitivity may be anything from {_SHARE(row.low)} "
        f"to {_SHARE(row.high)}.",
        Gravity.LIMITED,
        _more_test_images(source),
    )


def edited_images(source: Source[TuningRecord]) -> Caveat | None:
    """Images were edited."""
    return edited_caveat(source.record.edits)


TUNING_CAVEATS: tuple[CaveatOf[TuningRecord], ...] = (
    unsound_data,
    seen_images,
    too_few_images,
    missed_class,
    unmeasured_class,
    probabilities_are_off,
    unreadable_files,
    warned_of_data,
    looked_at_before,
    val_above_test,
    edited_images,
    few_images_of_a_class,
    leakage_not_checked,
)
"""The most severe first, in the order of ``report.verdict``."""


def after_tuning(source: Source[TuningRecord]) -> Following | None:
    """To predict with the model; with folds, which leave none of all images, to train one."""
    record, typed = source.record, source.typed
    if record.saved_model is not None:
        run = typed.then("predict", _run_of(source), PREDICT_IMAGES, carried=[CodeOptions])
        return Following(run, "to use it")
    if record.folds and typed.verb == "tune":
        seconds = record.seconds / len(record.folds) or None
        return Following(typed.again(without=("--folds", "--fold")), "to get one model, of all training images", seconds)
    if record.unseen_domains is not None and typed.verb == "tune":
        line = typed.again(without=("--leave-out", "--oracle", "--holdout"))  # without the first, --holdout is another share
        return Following(line, f"to get one model, of images of every {record.unseen_domains.column}")
    return None


def _run_of(source: Source[TuningRecord]) -> str:
    """The run directory, where it is the one that was typed: each training of a comparison has a folder of its own."""
    typed = source.typed
    return "RUN" if typed.verb != "tune" or typed.has("--compare") else typed.out
