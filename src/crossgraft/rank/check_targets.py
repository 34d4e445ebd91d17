"""What a ranking makes of labels that are no plain classes: several per image, or classes in an order."""

from collections.abc import Mapping

from crossgraft.data import Dataset
from crossgraft.records import CheckRecord

_MOST_LABELS = 20


def check_targets(dataset: Dataset, labels_left_out: Mapping[str, str]) -> list[CheckRecord]:
    """Labels that were not scored, and classes whose order no score uses.

    Args:
        dataset: The images that were used.
        labels_left_out: Label → why it was not scored.
    """
    checks: list[CheckRecord] = []
    if not dataset.task.partitions:
        checks.append(_check_labels(dataset, labels_left_out))
    if dataset.task.in_order:
        text = (
            "The classes were said to be in an order, and the scores do not use it: to them a mistake by one grade is as bad "
            "as any other."
        )
        checks.append(CheckRecord(title="Order of the classes", severity="notice", text=text))
    return checks


def _check_labels(dataset: Dataset, left_out: Mapping[str, str]) -> CheckRecord:
    number = len(dataset.class_names)
    text = f"Scores are computed for one label at a time; shown is the mean over {number - len(left_out)} of {number} labels."
    if not left_out:
        return CheckRecord(title="Labels that were scored", severity="passed", text=text)
    listed = "; ".join(f"{label}: {why.rstrip('.')}" for label, why in list(left_out.items())[:_MOST_LABELS])
    more = f"; and {len(left_out) - _MOST_LABELS} more" if len(left_out) > _MOST_LABELS else ""
    return CheckRecord(title="Labels that were scored", severity="notice", text=f"{text} Not scored: {listed}{more}.")
