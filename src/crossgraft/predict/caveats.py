"""How far predictions can be trusted, what limits them, and what to type next."""

from __future__ import annotations

from crossgraft.metrics.looks_words import NOT_SEEN, looks_in_words
from crossgraft.metrics.words import guessing, metric_in_words, overall
from crossgraft.options.models import CodeOptions
from crossgraft.options.typed_command import DATA, RUN, TypedCommand
from crossgraft.report.source import Source
from crossgraft.report.verdict import Caveat, CaveatOf, Following
from crossgraft.tasks import recorded_task
from crossgraft.tune.prediction_record import PredictionRecord
from crossgraft.words.formatting import counted

FEWEST_WAYS = 5
"""Classes of an episode of the usual sampler, unless it is told another number."""

OTHER_IMAGES = (
    "Whether these images are like those of training (scanner, hospital, patients) was not checked. The model also answers for "
    "pictures that show none of its classes."
)
SAME_IMAGES = (
    "These rows are a part of the data that the model was fine-tuned on, and of the same kind (scanner, hospital): on other "
    "images it may do worse, and they say no more than the report of the fine-tuning."
)
NOT_KNOWN = (
    "Whether the model has learned from some of these images is not known: it was handed over without its run. Give the run "
    "directory to have them found."
)
_TEST_ROWS = ("--use-split", "test")
_LABELLED = "LABELLED_IMAGES"


def worth_in_words(record: PredictionRecord) -> str:
    """The best evidence of how far to trust the answers."""
    here, before = _told(record)
    is_too_high = any(NOT_SEEN in text for text in record.warnings)
    where = "On the images that it had not seen" if record.num_seen and not is_too_high else "On these images"
    told = [f"{where}: {each.rstrip('.')}." for each in here]
    told += [f"When it was fine-tuned: {each.rstrip('.')}." for each in before]
    return (
        " ".join(told)
        or "How good such predictions are was not measured: neither here nor on test images of the model."
    )


def _told(record: PredictionRecord) -> tuple[list[str], list[str]]:
    """The primary metric in words: here, and on test images of the model."""
    task = recorded_task(record)
    headline = task.primary_metric  # as where it was fine-tuned
    guess = guessing(headline, len(record.class_names) if task.partitions else 2)
    here = [metric_in_words(row, guess=guess) for row in overall(record.metrics) if row.metric == headline]
    before = [
        metric_in_words(row, guess=guess, which=f"of {row.split}")
        for row in overall(record.training_metrics)
        if row.split in ("test", "out of fold") and row.metric == headline
    ]
    return here, before


def _warned(source: Source[PredictionRecord]) -> Caveat | None:
    """What the command warned of, images of the fine-tuning above all."""
    record = source.record
    if not record.warnings:
        return None
    seen = next((text for text in record.warnings if NOT_SEEN in text), None)
    if seen is None:
        return Caveat(" ".join(record.warnings))
    typed = source.typed
    has_test = _TEST_ROWS[0] in seen and typed.verb == "predict" and typed.value(_TEST_ROWS[0]) != _TEST_ROWS[1]
    line = typed.again(_TEST_ROWS) if has_test else _of_others(typed)
    return Caveat(seen, Following(line, "to predict images that had no part in it"))


def _not_measured(source: Source[PredictionRecord]) -> Caveat | None:
    """The true classes are not known."""
    here, before = _told(source.record)
    if here:
        return None
    text = "The true classes of these images are not known, so how good these predictions are was not measured"
    carried = "; the result of the fine-tuning carries over only to images of the same kind" if before else ""
    measure = Following(_of_others(source.typed, _LABELLED), "to measure it on images whose classes are known")
    return Caveat(f"{text}{carried}.", measure)


def _unreadable(source: Source[PredictionRecord]) -> Caveat | None:
    number = source.record.num_unreadable
    return Caveat(f"{counted(number, 'image')} could not be read and left out.") if number else None


def _looked_at_before(source: Source[PredictionRecord]) -> Caveat | None:
    """Which model is the best was seen on these images."""
    text = looks_in_words(source.record.looks, recorded_task(source.record).primary_metric)
    return None if text is None else Caveat(text)


def _same_images(source: Source[PredictionRecord]) -> Caveat | None:
    """The test images of the fine-tuning tell nothing that its report does not."""
    record = source.record
    if not record.is_of_run or any(NOT_SEEN in text for text in record.warnings):
        return None
    return Caveat(SAME_IMAGES, Following(_of_others(source.typed, _LABELLED), "to measure it on images from elsewhere"))


def _other_images(source: Source[PredictionRecord]) -> Caveat | None:
    return None if source.record.is_of_run else Caveat(OTHER_IMAGES)


def seen_is_unknown(record: PredictionRecord) -> bool:
    """Whether some of the images may be among those that the model has learned from."""
    return record.num_seen is None and not record.is_of_run and not any(NOT_SEEN in text for text in record.warnings)


def _perhaps_seen(source: Source[PredictionRecord]) -> Caveat | None:
    """Metrics may be too high."""
    return Caveat(NOT_KNOWN) if source.record.metrics and seen_is_unknown(source.record) else None


def _not_calibrated(source: Source[PredictionRecord]) -> Caveat | None:
    """What the probabilities of a few-shot head are not."""
    record = source.record
    if record.head is None:
        return None
    images = counted(record.num_support or 0, "image")
    return Caveat(
        f"The head learned from {images}, and its probabilities are not calibrated: they say an order and no risk."
    )


PREDICTION_CAVEATS: tuple[CaveatOf[PredictionRecord], ...] = (
    *(_warned, _not_measured, _perhaps_seen, _unreadable),
    *(_not_calibrated, _looked_at_before, _same_images, _other_images),
)
"""The most severe first, in the order of ``sections._verdict``."""


def after_prediction(source: Source[PredictionRecord]) -> Following:
    """To hand the model on, or to measure the head on many tasks."""
    typed = source.typed
    record = source.record
    if record.head is not None:
        heads = ",".join(dict.fromkeys([typed.value("--head") or record.head, "ncc", "logistic"]))
        flags = [("--heads", heads), ("--model", typed.value("--model") or record.model.name)]
        if len(record.class_names) < FEWEST_WAYS:
            flags.append(("--sampler", f"meta_dataset:min_ways={len(record.class_names)}"))
        line = typed.then("fewshot", typed.value("--support") or DATA, flags=flags)
        return Following(line, "to measure such heads on many tasks drawn from labelled images, if there are more")
    return Following(typed.then("export", _run(typed)), "to hand the model on without crossgraft")


def _of_others(typed: TypedCommand, images: str = "OTHER_IMAGES") -> str:
    if typed.has("--support"):
        return typed.again(("--query", images))
    return typed.then("predict", _run(typed), images, carried=[CodeOptions])


def _run(typed: TypedCommand) -> str:
    return typed.inputs[0] if typed.verb == "predict" and len(typed.inputs) > 1 else RUN
