"""What an audit concludes, one of seven outcomes, so that silence never looks like a pass; and how many images that needs."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from crossgraft.audit.attribute_sweep import TrainedAttributeAudit
from crossgraft.audit.attributes import CELLS, BinaryAttribute, by_cell, cell_in_words
from crossgraft.audit.detectability import LEAST_DETECTABILITY, Detectability
from crossgraft.audit.record import AuditEntry, AuditMetric, AuditMode, AuditOutcome, GateRecord, ImagesNeeded
from crossgraft.audit.result import Reliance
from crossgraft.audit.trained import LARGEST_DROP, LEAST_AUC, TrainedAudit
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.metrics import MetricValue
from crossgraft.types import Groups

UNCHANGED = math.floor(math.log(0.025) / math.log(1 - LARGEST_DROP)) + 1
"""Patients, or images, of each class from which on a drop of 0 is told from ``LARGEST_DROP``: where none of n changes its place,
``auc_difference`` says that up to 1 − 0.025^(1/n) of all such may."""
SUPPOSED_AUC = 0.8
_Z_INTERVAL, _Z_OF_80_PERCENT = 1.959964, 1.281552
_MOST_TIMES = 100.0


def cell_size(auc: float = SUPPOSED_AUC) -> int:
    """Images of each cell of class and attribute with which 80 % of models that pay no heed to the attribute pass.

    Half the difference of two areas of m positives and m negatives lies within ± ``LARGEST_DROP``, with its interval of 95 %, if
    (1.96 + 1.28) · SE(m) / √2 does.

    Args:
        auc: Supposed area of each, in [0.5, 1].

    Source: Hanley and McNeil, Radiology 143, 1982, for SE(m).

    >>> cell_size(0.8), cell_size(0.95)
    (207, 55)
    """
    q1, q2 = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    for m in range(2, 100_000):
        variance = (auc * (1 - auc) + (m - 1) * (q1 + q2 - 2 * auc**2)) / m**2
        if (_Z_INTERVAL + _Z_OF_80_PERCENT) * math.sqrt(variance / 2) <= LARGEST_DROP:
            return m
    return 100_000


def needed_of_artefact(confounder: str, is_positive: np.ndarray, groups: Groups | None, positive: str) -> list[ImagesNeeded]:
    """Images of each class, as patients where these are known.

    Args:
        confounder: The artefact as it was written.
        is_positive: (n,) of the images that are measured on.
        groups: Patient of each.
        positive: The class in question.
    """
    unit = np.arange(len(is_positive)) if groups is None else groups
    what = "images" if groups is None else "groups"
    sides = ((f"{what} of {positive}", is_positive), (f"{what} of other classes", ~is_positive))
    return [
        ImagesNeeded(confounder=confounder, what=which, available=len(np.unique(unit[side])), needed=UNCHANGED)
        for which, side in sides
    ]


def needed_of_attribute(confounder: str, is_positive: np.ndarray, attribute: BinaryAttribute) -> list[ImagesNeeded]:
    """Images of each cell of class and attribute.

    Args:
        confounder: The attribute as it was written.
        is_positive: (n,) of the images that are measured on.
        attribute: Who of these has it, and of whom that is known.
    """
    cells = by_cell(is_positive, attribute.flags.astype(bool), attribute.known)
    return [
        ImagesNeeded(
            confounder=confounder,
            what=cell_in_words(cell, attribute.in_words),
            available=int(cells[cell].sum()),
            needed=cell_size(),
        )
        for cell in CELLS
    ]


def times_as_many(measured: MetricValue, *, both_sides: bool) -> float | None:
    """How many times as many images would decide, if the value stayed what it is: half-widths shrink as 1 / √n.

    None without an interval, or where it cannot be told: the value is at a limit, or more than a hundred times are needed.

    Args:
        measured: The number and its interval, of which 0 or the limit lies inside.
        both_sides: Whether the limits are ± ``LARGEST_DROP``; else only above 0 counts.
    """
    if measured.low is None or measured.high is None:
        return None
    size = abs(measured.value) if both_sides else measured.value
    below = LARGEST_DROP - size
    above = size if not both_sides or size > LARGEST_DROP else 0.0
    margin, half = max(below, above), (measured.high - measured.low) / 2
    times = (half / margin) ** 2 if margin > 0 else math.inf
    return times if times <= _MOST_TIMES else None


def more_images(measured: MetricValue, fewest: int, *, both_sides: bool, what: str) -> str:
    """A sentence for an undecided verdict.

    Args:
        measured: The number that does not decide.
        fewest: Patients or images of the smallest class or cell.
        both_sides: As of ``times_as_many``.
        what: What ``fewest`` counts: "patients of each class".
    """
    least = fewest + 1 if both_sides else max(UNCHANGED, fewest + 1)
    if measured.low is None or (measured.value == 0 and not both_sides):  # the width of the latter shrinks as 1 / n
        return f"About {least} {what} are needed; there are {fewest}."
    times = times_as_many(measured, both_sides=both_sides)
    if times is None:
        return f"The value is so near to a limit that more than {_MOST_TIMES:g} times as many images would be needed."
    return f"About {max(math.ceil(times * fewest), least)} {what} are needed; there are {fewest}."


OPERATORS: dict[str, Callable[[float, float], bool]] = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
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
    matched = _FORM.fullmatch(text)
    try:
        limit = float(matched[4]) if matched else math.nan
    except ValueError:
        limit = math.nan
    if matched is None or not math.isfinite(limit):
        raise UsageError(
            f"{text.strip()!r} is no condition. Write relies, sensitive or METRIC>NUMBER, such as shortcut_reliance_index>0.1."
        )
    if matched[2] not in METRICS:
        raise UnknownNameError("metric", matched[2], METRICS)
    return Gate(matched[2], matched[3], limit, matched[1] is not None)


def judge(gates: Iterable[Gate], entries: Sequence[AuditEntry]) -> list[GateRecord]:
    """Whether each condition holds for a model without mitigation; one that cannot be looked at anywhere does not pass."""
    plain = [entry for entry in entries if entry.mitigation == "erm"]
    return [_judged(gate, plain) for gate in gates]


def _value(metric: AuditMetric | None) -> float | None:
    """A curve that never crosses chance would do so beyond every share."""
    if metric is not None and metric.name == "flip_share" and metric.value is None:
        return math.inf
    return None if metric is None else metric.value


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
        failing = [f"{entry.model} with {entry.confounder}" for entry in asked if entry.outcome in VERDICTS[gate.metric]]
    left = f" {silent} of {len(entries)} could not be assessed." if silent else ""
    spared = len(assessable) - len(asked)
    if spared:
        left += f" {spared} of {len(entries)} only sensitive, which counts with sensitive:{gate}."
    if failing:
        return GateRecord(condition=str(gate), state="failed", said=f"{named}: {'; '.join(failing)}.{left}")
    if silent == len(entries):
        return GateRecord(condition=str(gate), state="not assessable", said=f"{named}: nothing could be assessed.")
    return GateRecord(condition=str(gate), state="passed", said=f"{named}: no model.{left}")


LARGEST_RELIANCE = 0.05
"""A model passes where both intervals of its SRI lie below this; one that sees nothing but the artefact has 0.725."""


class Concluded(NamedTuple):
    """An outcome and its reason in a sentence."""

    outcome: AuditOutcome
    reason: str


def conclude(
    reliance: Reliance,
    reach: Detectability | None,
    *,
    mode: AuditMode = "quick",
    too_small: str | None = None,
    larger: int | None = None,
    strength: float = 1.0,
) -> Concluded:
    """The outcome of a sweep.

    Args:
        reliance: What the models do.
        reach: Whether a probe sees the artefact in the features of the frozen network; None where it is no drawn artefact.
        mode: In full mode networks are trained, and may rely on what the probe does not see; they do not pass for that reason.
        too_small: Reason that the artefact cannot be seen at the input of the network; None where it can.
        larger: Side of an input in pixels that more of the artefact reaches; None where there is none.
        strength: Multiple of what the edit changes; with 0 there is nothing to detect.
    """
    if reliance.clean.mean < LEAST_AUC:
        reason = f"Without the artefact the AUC is {reliance.clean.mean:.2f}, below {LEAST_AUC}: a model that learned nothing"
        return Concluded("untrained", f"{reason} looks robust.")
    if strength and too_small is not None:
        return Concluded("undetectable", too_small + _seen_all_the_same(reach))
    unseen = _unseen(reach, mode, larger) if strength else None
    if unseen is not None and mode == "quick":
        return unseen
    known = (reliance.shortcut_reliance_index, reliance.over_patients)
    ends = [(each.low, each.high) for each in known if each.low is not None and each.high is not None]
    if ends and all(low > 0 for low, _ in ends) and not all(high < LARGEST_RELIANCE for _, high in ends):
        return Concluded("relies", f"{_intervals(ends)} of the shortcut reliance index {_lie(ends)} above 0.")
    return unseen or _sound(ends)


def _unseen(reach: Detectability | None, mode: AuditMode, larger: int | None) -> Concluded | None:
    """The outcome of an artefact that hardly reaches the network; None where a probe sees it."""
    if reach is None or reach.is_detectable:
        return None
    reason = (
        f"A probe tells images with the artefact from those without it with an AUC of {reach.auc.value:.2f}, below "
        f"{LEAST_DETECTABILITY}: it hardly reaches these features."
    )
    then = " Fine-tuning may see more: --mode full." if mode == "quick" else " Fine-tuning did not come to rely on it."
    if larger is not None:
        then = f" More of it reaches inputs of {larger} pixels: --image-size {larger}."
    return Concluded("undetectable", reason + then)


def _seen_all_the_same(reach: Detectability | None) -> str:
    """What a probe says of an artefact that is too small to be what it is called."""
    if reach is None or not reach.is_detectable:
        return ""
    return f" A probe sees that spot (AUC {reach.auc.value:.2f}), which may be relied on: draw the letters larger."


def _sound(ends: Sequence[tuple[float, float]]) -> Concluded:
    """``passes``, or too few images to say."""
    if not ends:
        return Concluded("undecided", "There are too few folds and patients for an interval.")
    if all(high < LARGEST_RELIANCE for _, high in ends):
        small = " It is above 0, but small." if all(low > 0 for low, _ in ends) else ""
        reason = f"{_intervals(ends)} of the shortcut reliance index {_lie(ends)} below {LARGEST_RELIANCE}.{small}"
        return Concluded("passes", reason)
    lie, both = ("intervals of the SRI lie", "both ") if len(ends) > 1 else ("interval of the SRI lies", "")
    reason = f"The {lie} neither {both}above 0 nor {both}below {LARGEST_RELIANCE}: more images are needed."
    return Concluded("undecided", reason)


def _intervals(ends: Sequence[tuple[float, float]]) -> str:
    return "Both intervals" if len(ends) > 1 else "The interval"


def _lie(ends: Sequence[tuple[float, float]]) -> str:
    return "lie" if len(ends) > 1 else "lies"


def conclude_trained(result: TrainedAudit, *, positive: str, too_small: str | None = None, strength: float = 1.0) -> Concluded:
    """The outcome of an audit of one trained model, with its reason.

    Args:
        result: What the model says without the artefact and with it.
        positive: The class in question.
        too_small: Reason that the artefact cannot be seen at the input of the network; None where it can.
        strength: Multiple of what the edit changes.
    """
    if result.outcome != "untrained" and strength and too_small is not None:
        return Concluded("undetectable", too_small + _seen_all_the_same(result.detectability))
    is_above_0 = any(each.low is not None and each.low > 0 for each in (result.drop, result.reverse_drop))
    reasons: dict[AuditOutcome, str] = {
        "untrained": f"Without the artefact the AUC is {result.clean.value:.2f}, below {LEAST_AUC}: a model that learned nothing "
        "looks robust.",
        "undetectable": "A probe on the features of the network hardly tells images with the artefact from those without it."
        if result.edit.rms
        else "It changes nothing in these images.",
        "relies": f"{_moves(result, positive)} {_compared(result)} {_cost(result, positive)}",
        "sensitive": f"{_moves(result, positive)} {_cost(result, positive)} {_compared(result)}",
        "passes": f"What the AUC loses where the artefact goes against the class, or with it, is below {LARGEST_DROP}, all of "
        "both intervals." + (" It is above 0, but small." if is_above_0 else ""),
        "undecided": f"The intervals of what the AUC loses are neither above 0 nor below {LARGEST_DROP}. {_more(result)}"
        if result.drop.value != 0 or result.reverse_drop.value != 0
        else f"No image changed its place, which of so few images says little. {_more(result)}",
    }
    return Concluded(result.outcome, reasons[result.outcome].strip())


def _more(result: TrainedAudit) -> str:
    """By the drop that is nearer to being undecided."""
    wider = max((result.drop, result.reverse_drop), key=lambda each: each.value)
    return more_images(wider, result.fewest, both_sides=False, what="patients, or images, of each class")


def _moves(result: TrainedAudit, positive: str) -> str:
    """How far, and for whom."""
    positives, negatives = result.decided_otherwise
    decisions = f"It changes the decision of {positives:.0%} of the positives and {negatives:.0%} of the negatives"
    if result.pull is None:
        return f"{decisions}."
    side = "towards" if result.pull.direction > 0 else "away from"
    return (
        f"It moves answers {side} {positive} by {abs(result.pull.of_model.value):.2f} standard deviations (positives "
        f"{result.pull.of_positives:+.2f}, negatives {result.pull.of_negatives:+.2f}); {decisions[0].lower()}{decisions[1:]}."
    )


def _cost(result: TrainedAudit, positive: str) -> str:
    """What it would cost if the artefact went with a class."""
    worse, where = max(
        (result.drop, f"images without {positive} alone carry it"), (result.reverse_drop, f"images of {positive} alone carry it")
    )
    return f"The AUC is {worse.value:.2f} lower where {where}."


def _compared(result: TrainedAudit) -> str:
    """Whether the starting network or shams do the same."""
    pull = result.pull
    if pull is None or not pull.may_rely:
        return ""
    if pull.over_start is None:
        beyond = pull.over_shams
        beside = "" if beyond is None else f" Beyond shams it is {_with_ends(beyond)}, which does not tell."
        return f"Whether it learned the artefact cannot be told. {result.start}{beside}"
    than = _with_ends(pull.over_start)
    if not pull.is_beyond_start:
        return f"Heads on the network that it started from do so, too (difference {than})."
    sentence = f"That is beyond heads on the network that it started from ({than})"
    if pull.over_shams is None:
        return f"{sentence}, but whether shams do the same cannot be told. {result.shams}"
    if pull.relies:
        return f"{sentence}, and beyond shams ({_with_ends(pull.over_shams)})."
    return f"{sentence}, but shams do so, too (difference {_with_ends(pull.over_shams)})."


def _with_ends(difference: MetricValue) -> str:
    if difference.low is None or difference.high is None:
        return f"{difference.value:+.2f}"
    return f"{difference.value:+.2f} [{difference.low:+.2f}, {difference.high:+.2f}]"


def conclude_attribute(result: TrainedAttributeAudit) -> Concluded:
    """The outcome of an audit of one trained model and one attribute, with its reason."""
    side = "positive" if result.drop.value > 0 else "negative"
    fewest = min(cell.num_images for cell in result.groups.cells)
    reasons: dict[AuditOutcome, str] = {
        "untrained": f"The AUC of all images is {result.overall.value:.2f}, below {LEAST_AUC}: a model that learned nothing "
        "looks robust.",
        "sensitive": f"The attribute goes with answers for the {side} class: the AUC is {result.aligned.value:.2f} where it goes "
        f"with the class and {result.ood.value:.2f} where it goes against it. It may be clinical signal: the same people without "
        "it do not exist, so that nobody can tell whether the model relies on it.",
        "passes": f"Half the difference of the AUC where the attribute goes with the class and against it is within "
        f"±{LARGEST_DROP}, all of its interval.",
        "undecided": f"{_undecided(result.drop)} "
        f"{more_images(result.drop, fewest, both_sides=True, what='images of each class with and without it')}",
    }
    return Concluded(result.outcome, reasons[result.outcome])


def _undecided(half: MetricValue) -> str:
    """Why an attribute is neither passed nor told of."""
    name = "half the difference of both AUCs"
    if half.low is None or half.high is None:
        return f"There is no interval of {name}, {half.value:+.2f}."
    why = "and contains 0" if half.low <= 0 <= half.high else "though the difference itself does not"
    return f"The interval of {name}, {_with_ends(half)}, reaches beyond ±{LARGEST_DROP}, {why}."
