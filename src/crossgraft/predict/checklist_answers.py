"""What predictions answer of what checklists of reporting guidelines ask; a topic that they did not deal with has no answer."""

from __future__ import annotations

from collections.abc import Mapping

from crossgraft.data.page import software
from crossgraft.metrics.words import metric_in_words, overall
from crossgraft.report.checklists import AnswerOf, Topic
from crossgraft.report.source import Source
from crossgraft.tasks import recorded_task
from crossgraft.tune.checklist_answers import describe_network
from crossgraft.tune.record import PredictionRecord
from crossgraft.words.formatting import counted, short_fingerprint


def _data(source: Source[PredictionRecord]) -> str:
    return f"{counted(source.record.num_images, 'image')} from {source.record.data_name}"


def _unreadable(source: Source[PredictionRecord]) -> str:
    number = source.record.num_unreadable
    return f"{counted(number, 'image')} without a prediction, as unreadable" if number else "every image was read"


def _are_new(record: PredictionRecord) -> bool:
    """Measured, on images of which it is known that the model learned from none of them."""
    return bool(overall(record.metrics)) and record.num_seen == 0


def _elsewhere(source: Source[PredictionRecord]) -> str | None:
    record = source.record
    if not _are_new(record) or record.is_of_run:
        return None
    return f"{counted(record.num_images, 'image')} from {record.data_name}, none of which the model learned from"


def _performance(source: Source[PredictionRecord]) -> str | None:
    record = source.record
    name = recorded_task(record).primary_metric
    rows = [row for row in overall(record.metrics) if row.metric == name and row.value is not None]
    return metric_in_words(rows[0]) if rows and _are_new(record) else None


def _uncertainty(source: Source[PredictionRecord]) -> str | None:
    return "intervals of 95 %" if any(row.low is not None for row in source.record.metrics) else None


def _calculated(source: Source[PredictionRecord]) -> str:
    record = source.record
    head = "" if record.head is None else f" with the head {record.head}"
    scaled = "no temperature" if record.temperature is None else f"temperature {record.temperature:.3g}"
    return f"the weights {short_fingerprint(record.model_fingerprint)}{head}, the preprocessing of training, {scaled}"


def _output(source: Source[PredictionRecord]) -> str:
    record = source.record
    fitted = [f"{row.class_name} from {row.threshold:.3g} on" for row in record.thresholds if row.threshold is not None]
    return f"a probability of each class; {', '.join(fitted) or recorded_task(record).default_decision}"


PREDICTION_ANSWERS: Mapping[Topic, AnswerOf] = {
    "source of the data": _data,
    "unreadable images": _unreadable,
    "preprocessing": lambda source: source.record.model.preprocessing.description,
    "model": lambda source: describe_network(source.record.model),
    "software": software,
    "test on images from elsewhere": _elsewhere,
    "performance": _performance,
    "uncertainty": _uncertainty,
    "output": _output,
    "how predictions are made": _calculated,
}
