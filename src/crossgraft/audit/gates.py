"""``--fail-on``: conditions on the numbers of an audit that end a command with an exit code."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.records.audit import AuditEntry, AuditMetric, GateRecord

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
METRICS = {
    "shortcut_reliance_index": "SRI of a sweep",
    "ood_drop_area": "area that the o.o.d. AUC loses over the shares",
    "early_gap": "gap at the smallest share above 0",
    "flip_share": "share at which the o.o.d. AUC crosses chance",
    "auc_drop": "clean minus o.o.d. AUC of a trained model",
    "reverse_drop": "clean minus aligned AUC of a trained model: above 0 the artefact speaks for the negative class",
    "clean_auc": "AUC without the artefact",
    "iid_auc": "AUC on images like those of training, at the largest share",
    "ood_auc": "AUC where the artefact goes against the class, at the largest share",
    "flip_effect": "change of the logit when an image gets the artefact, of a sweep",
    "flip_effect_positives": "the same of positives",
    "flip_effect_negatives": "the same of negatives: above 0 the artefact speaks for the positive class",
    "worst_group_accuracy": "accuracy of the worst of four cells",
    "true_positive_gap": "true positive rate with the artefact minus without",
    "false_positive_gap": "false positive rate with the artefact minus without",
    "positive_gap": "share decided positive with the artefact minus without",
}
"""Metrics that a condition may name, in words."""
_FORM = re.compile(r"\s*([a-z_]+)\s*(>=|<=|>|<)\s*([^\s<>=]+)\s*")


class Gate(NamedTuple):
    """A condition that fails an audit where it holds."""

    metric: str
    comparison: str
    limit: float

    def __str__(self) -> str:
        return f"{self.metric}{self.comparison}{self.limit:g}"


def read_gates(conditions: str | Sequence[str]) -> list[Gate]:
    """Read ``shortcut_reliance_index>0.1``; several with commas, or as a list.

    Raises:
        UsageError: A condition has another form.
        UnknownNameError: There is no such metric; the message gives the nearest names.

    >>> str(read_gates("auc_drop >= 0.05")[0])
    'auc_drop>=0.05'
    """
    texts = [conditions] if isinstance(conditions, str) else list(conditions)
    return [_read(part) for text in texts for part in text.split(",") if part.strip()]


def _read(text: str) -> Gate:
    found = _FORM.fullmatch(text)
    try:
        limit = float(found[3]) if found else math.nan
    except ValueError:
        limit = math.nan
    if found is None or not math.isfinite(limit):
        raise UsageError(
            f"{text.strip()!r} is no condition. Write METRIC>NUMBER, for example shortcut_reliance_index>0.1."
        )
    if found[1] not in METRICS:
        raise UnknownNameError("metric", found[1], METRICS)
    return Gate(found[1], found[2], limit)


def judge(gates: Iterable[Gate], entries: Sequence[AuditEntry]) -> list[GateRecord]:
    """Whether each condition holds for a model without mitigation; one that cannot be looked at anywhere does not pass.

    Args:
        gates: Conditions.
        entries: What was found.
    """
    plain = [entry for entry in entries if entry.mitigation == "erm"]
    return [_judged(gate, plain) for gate in gates]


def _value(found: AuditMetric | None) -> float | None:
    """A curve that never crosses chance would do so beyond every share."""
    if found is not None and found.name == "flip_share" and found.value is None:
        return math.inf
    return None if found is None else found.value


def _judged(gate: Gate, entries: Sequence[AuditEntry]) -> GateRecord:
    named = f"{gate.metric} {gate.comparison} {gate.limit:g}"
    values = [(entry, entry.metric(gate.metric)) for entry in entries if entry.is_assessable]
    known = [(entry, value) for entry, found in values if (value := _value(found)) is not None]
    failing = [
        f"{entry.model} with {entry.confounder} ({value:.3f})"
        for entry, value in known
        if OPERATORS[gate.comparison](value, gate.limit)
    ]
    silent = len(entries) - len(known)
    left = f" {silent} of {len(entries)} could not be assessed." if silent else ""
    if failing:
        return GateRecord(condition=str(gate), state="failed", said=f"{named}: {'; '.join(failing)}.{left}")
    if not known:
        return GateRecord(condition=str(gate), state="not assessable", said=f"{named}: nothing could be assessed.")
    return GateRecord(condition=str(gate), state="passed", said=f"{named}: no model.{left}")
