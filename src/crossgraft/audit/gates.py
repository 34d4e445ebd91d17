"""``--fail-on``: conditions on the numbers of an audit that end a command with an exit code."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from crossgraft.audit.record import AuditEntry, AuditMetric, AuditOutcome, GateRecord
from crossgraft.errors import UnknownNameError, UsageError

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
VERDICTS: dict[str, tuple[AuditOutcome, ...]] = {"relies": ("relies",), "sensitive": ("relies", "sensitive")}
"""Verdicts that a condition may name, and the outcomes that each of them is."""
_OF_ANY_MODEL = frozenset({"clean_auc", "iid_auc"})
"""Metrics that say nothing of the artefact: what a model that is only sensitive has of the others is no failure."""
_FORM = re.compile(r"\s*(?:(sensitive)\s*:)?\s*([a-z_]+)\s*(>=|<=|>|<)\s*([^\s<>=]+)\s*")


class Gate(NamedTuple):
    """A condition that fails an audit where it holds: a number, or a verdict.

    Attributes:
        metric: Name of the number; or ``relies``, or ``sensitive``, which is at least that.
        comparison: How it is compared with the limit; empty for a verdict.
        limit: The limit.
        of_sensitive: Whether a number also counts for models that are only sensitive to the artefact.
    """

    metric: str
    comparison: str = ""
    limit: float = 0.0
    of_sensitive: bool = False

    def __str__(self) -> str:
        if not self.comparison:
            return self.metric
        return f"{'sensitive:' if self.of_sensitive else ''}{self.metric}{self.comparison}{self.limit:g}"

    def counts(self, entry: AuditEntry) -> bool:
        """Whether a model is asked: one that is only sensitive answers for the artefact where that was asked for."""
        free = not self.comparison or self.of_sensitive or self.metric in _OF_ANY_MODEL
        return free or entry.outcome != "sensitive"


def read_gates(conditions: str | Sequence[str]) -> list[Gate]:
    """Read ``shortcut_reliance_index>0.1``, ``relies`` or ``sensitive:auc_drop>0.1``; several with commas, or as a list.

    Raises:
        UsageError: A condition has another form.
        UnknownNameError: There is no such metric; the message gives the nearest names.

    >>> [str(gate) for gate in read_gates("relies, auc_drop >= 0.05, sensitive: auc_drop > 0.2")]
    ['relies', 'auc_drop>=0.05', 'sensitive:auc_drop>0.2']
    """
    texts = [conditions] if isinstance(conditions, str) else list(conditions)
    return [_read(part) for text in texts for part in text.split(",") if part.strip()]


def _read(text: str) -> Gate:
    if text.strip() in VERDICTS:
        return Gate(text.strip())
    found = _FORM.fullmatch(text)
    try:
        limit = float(found[4]) if found else math.nan
    except ValueError:
        limit = math.nan
    if found is None or not math.isfinite(limit):
        raise UsageError(
            f"{text.strip()!r} is no condition. Write relies, sensitive or METRIC>NUMBER, such as shortcut_reliance_index>0.1."
        )
    if found[2] not in METRICS:
        raise UnknownNameError("metric", found[2], METRICS)
    return Gate(found[2], found[3], limit, found[1] is not None)


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
    assessable = [entry for entry in entries if entry.is_assessable]
    asked = [entry for entry in assessable if gate.counts(entry)]
    if gate.comparison:
        named = f"{gate.metric} {gate.comparison} {gate.limit:g}"
        known = [(entry, value) for entry in asked if (value := _value(entry.metric(gate.metric))) is not None]
        failing = [
            f"{entry.model} with {entry.confounder} ({value:.3f})"
            for entry, value in known
            if OPERATORS[gate.comparison](value, gate.limit)
        ]
        silent = len(entries) - len(known) - (len(assessable) - len(asked))
    else:
        named, silent = gate.metric, len(entries) - len(assessable)
        failing = [
            f"{entry.model} with {entry.confounder}" for entry in asked if entry.outcome in VERDICTS[gate.metric]
        ]
    left = f" {silent} of {len(entries)} could not be assessed." if silent else ""
    spared = len(assessable) - len(asked)
    if spared:
        left += f" {spared} of {len(entries)} only sensitive, which counts with sensitive:{gate}."
    if failing:
        return GateRecord(condition=str(gate), state="failed", said=f"{named}: {'; '.join(failing)}.{left}")
    if silent == len(entries):
        return GateRecord(condition=str(gate), state="not assessable", said=f"{named}: nothing could be assessed.")
    return GateRecord(condition=str(gate), state="passed", said=f"{named}: no model.{left}")
