"""How good models are on domains that they never saw: each domain, their mean, the worst, and the gap to seen ones.

All of it is about these domains and other images of them. Nothing here says how far another domain would be off; the spread over
the domains is a hint of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from crossgraft.data import Dataset
from crossgraft.data.domains import Domains
from crossgraft.errors import NotApplicable
from crossgraft.metrics import METRICS, MetricValue, auc, auc_combination, balanced_accuracy, balanced_accuracy_combination
from crossgraft.metrics._intervals import CONFIDENCE
from crossgraft.metrics.words import overall
from crossgraft.tune.measuring.evaluation import Evaluation, FoldPredictions
from crossgraft.tune.parts import FoldRows, LeftOut
from crossgraft.tune.record import DomainMetricRecord, GridPointRecord, UnseenDomainRecord, UnseenDomainsRecord, WorstDomainRecord
from crossgraft.words.formatting import joined

Rows = Bool[np.ndarray, " num_rows"]


@dataclass(frozen=True, eq=False)
class Term:
    """The metric of one model on some images, times a number.

    Attributes:
        coefficient: That number.
        answers: (n,) decisions or (n, C) probabilities of all rows; what stands at other rows does not count.
        images: (n,) whether the row counts.
    """

    coefficient: float
    answers: np.ndarray
    images: Rows

    def times(self, factor: float) -> Term:
        """The same with another coefficient."""
        return Term(self.coefficient * factor, self.answers, self.images)


@dataclass(frozen=True, eq=False)
class MeasuredDomain:
    """What one model says of the domain that it was trained without, and of images of the others.

    Attributes:
        domain: Its name.
        unseen: The metric there; None where it is not defined.
        unseen_reason: Reason why it is not.
        seen: The metric on images of all domains that it saw; None where nothing was set apart, or it is not defined.
        seen_reason: Reason why it is not.
    """

    domain: str
    unseen: Term | None
    unseen_reason: str | None
    seen: Term | None
    seen_reason: str | None

    @property
    def gap(self) -> tuple[Term, ...]:
        """Seen minus unseen; empty where one of them is missing."""
        return () if self.unseen is None or self.seen is None else (self.seen, self.unseen.times(-1.0))


@dataclass(frozen=True, eq=False)
class DomainMeasure:
    """The metric, and the images that it is measured on.

    Attributes:
        dataset: All rows.
        domains: Where each comes from.
        metric: ``balanced_accuracy`` or ``auc``.
    """

    dataset: Dataset
    domains: Domains
    metric: str

    def on(self, term: Term, *, confidence: float = CONFIDENCE) -> MetricValue:
        """The metric of one term, whatever its coefficient.

        Raises:
            NotApplicable: It is not defined on these images.
        """
        data, here = self.dataset, term.images
        compute = auc if self.metric == "auc" else balanced_accuracy
        groups = None if data.groups is None else data.groups[here]
        return compute(term.answers[here], data.targets[here], groups, class_names=data.class_names, confidence=confidence)

    def total(self, terms: Sequence[Term]) -> MetricValue:
        """Σ c · metric, each on its own images, with an interval that knows which of them are the same or of one patient."""
        data = self.dataset
        used = np.any([term.images for term in terms], axis=0)
        pairs = [(term.coefficient, term.answers[used]) for term in terms]
        among = [term.images[used] for term in terms]
        targets, groups = data.targets[used], None if data.groups is None else data.groups[used]
        if self.metric == "auc":
            return auc_combination(pairs, targets, groups, among=among)
        return balanced_accuracy_combination(pairs, targets, groups, among=among, class_names=data.class_names)

    def measure(self, parts: FoldRows, rows: np.ndarray, answers: np.ndarray) -> MeasuredDomain:
        """What one model says; ``answers`` are those for ``rows``, which are its test and seen rows."""
        of_all = np.zeros((len(self.dataset), *answers.shape[1:]), dtype=answers.dtype)
        of_all[rows] = answers
        return MeasuredDomain(str(parts.domain), *self._defined(of_all, parts.test), *self._defined(of_all, parts.seen))

    def _defined(self, answers: np.ndarray, rows: np.ndarray) -> tuple[Term | None, str | None]:
        """The metric on some rows, or why there is none."""
        if rows.size == 0:
            return None, "no images were set apart"
        images = np.zeros(len(self.dataset), dtype=bool)
        images[rows] = True
        term = Term(1.0, answers, images)
        try:
            self.on(term)
        except NotApplicable as refusal:
            return None, refusal.reason
        return term, None

    def mean_of_unseen(self, measured: Sequence[MeasuredDomain]) -> tuple[Term, ...]:
        """Terms of the mean over the domains in which the metric is defined."""
        terms = [each.unseen for each in measured if each.unseen is not None]
        return tuple(term.times(1 / len(terms)) for term in terms)

    def mean_of_gaps(self, measured: Sequence[MeasuredDomain]) -> tuple[Term, ...]:
        """Terms of the mean gap."""
        gaps = [each.gap for each in measured if each.gap]
        return tuple(term.times(1 / len(gaps)) for gap in gaps for term in gap)

    def mean_of_seen(self, measured: Sequence[MeasuredDomain]) -> tuple[Term, ...]:
        """Terms of the mean of seen, of the domains that have a gap."""
        seen = [each.seen for each in measured if each.gap and each.seen is not None]
        return tuple(term.times(1 / len(seen)) for term in seen)

    def worst(self, measured: Sequence[MeasuredDomain]) -> WorstDomainRecord | None:
        """The lowest of K values, with an interval that holds the lowest true value of any of the K domains.

        Each domain has an interval of 1 − 0.05 / K, so that all K hold at once with 95 % (Bonferroni). Then the lowest true value
        lies between the lowest of their lower ends and the lowest of their upper ends, whichever domain it is.
        """
        known = [each for each in measured if each.unseen is not None]
        if len(known) < 2:
            return None
        confidence = 1 - (1 - CONFIDENCE) / len(known)
        values = [self.on(each.unseen, confidence=confidence) for each in known if each.unseen is not None]
        lowest = int(np.argmin([value.value for value in values]))
        without = next((value for value in values if value.low is None), None)
        ends = (
            {"reason": f"{known[values.index(without)].domain} has no interval"}
            if without is not None
            else {
                "low": min(v.low for v in values if v.low is not None),
                "high": min(v.high for v in values if v.high is not None),
            }
        )
        return WorstDomainRecord.model_validate(
            {"domain": known[lowest].domain, "value": values[lowest].value, "num_images": values[lowest].num_images, **ends}
        )

    def record(self, terms: Sequence[Term], *, limits: tuple[float, float], note: str | None = None) -> DomainMetricRecord | None:
        """Value and interval, cut off at ``limits``; None without terms."""
        if not terms:
            return None
        total = self.total(terms)
        ends: dict[str, object] = {"reason": total.note}
        if total.low is not None and total.high is not None:
            ends = {"low": max(limits[0], total.low), "high": min(limits[1], total.high)}
        return DomainMetricRecord.model_validate({"value": total.value, "num_images": total.num_images, "note": note, **ends})

    def record_of(self, term: Term | None, reason: str | None) -> DomainMetricRecord:
        """The metric on the images of one term, or the reason why there is none."""
        if term is None:
            return DomainMetricRecord(value=None, reason=reason)
        value = self.on(term)
        return DomainMetricRecord(
            value=value.value,
            low=value.low,
            high=value.high,
            num_images=value.num_images,
            reason=value.note if value.low is None else None,
            note=f"without {joined(list(value.left_out))}, of which there are no images" if value.left_out else None,
        )


SHARES, DIFFERENCES = (0.0, 1.0), (-1.0, 1.0)
"""What a metric, and a difference of two, can be."""


def describe_unseen_domains(
    measure: DomainMeasure,
    left_out: LeftOut,
    parts: Sequence[FoldRows],
    predictions: Mapping[str, FoldPredictions],
    picked: Mapping[str, GridPointRecord],
    alone: Mapping[str, Evaluation],
    picked_by: Mapping[str, str],
) -> UnseenDomainsRecord:
    """Every domain that was left out, and what they say together.

    Args:
        measure: The metric and the images.
        left_out: What was asked.
        parts: Parts of each training.
        predictions: Domain → what the model without it says; not of those that failed.
        picked: Domain → the point of the grid that was picked.
        alone: Domain → everything that was measured there.
        picked_by: Domain → metric that picked the model.
    """
    task = measure.dataset.task
    measured = {name: measure.measure(each.parts, *each.answers(task)) for name, each in predictions.items()}
    known = [measured[str(part.domain)] for part in parts if part.domain in measured]
    values = [measure.on(each.unseen).value for each in known if each.unseen is not None]
    several = left_out.is_each
    return UnseenDomainsRecord(
        column=left_out.column,
        names=list(left_out.names),
        metric=measure.metric,
        title=METRICS[measure.metric].title,
        is_each=several,
        is_oracle=left_out.is_oracle,
        domains=[_domain(measure, part, measured.get(str(part.domain)), picked, alone, picked_by) for part in parts],
        mean=measure.record(measure.mean_of_unseen(known), limits=SHARES, note=_missing(known)) if several else None,
        worst=measure.worst(known) if several else None,
        seen=measure.record(measure.mean_of_seen(known), limits=SHARES) if several else None,
        gap=measure.record(measure.mean_of_gaps(known), limits=DIFFERENCES, note=not_in_gap(known)) if several else None,
        spread=float(np.std(values, ddof=1)) if several and len(values) > 1 else None,
    )


def _missing(known: Sequence[MeasuredDomain]) -> str | None:
    missing = [each.domain for each in known if each.unseen is None]
    return f"without {joined(missing)}" if missing else None


def not_in_gap(known: Sequence[MeasuredDomain]) -> str | None:
    """Domains of the mean that are not in the mean gap, so that the two means may differ by another number."""
    missing = [each.domain for each in known if each.unseen is not None and not each.gap]
    return f"without {joined(missing)}, of which nothing is known on images that were seen" if missing else None


def _domain(
    measure: DomainMeasure,
    parts: FoldRows,
    measured: MeasuredDomain | None,
    picked: Mapping[str, GridPointRecord],
    alone: Mapping[str, Evaluation],
    picked_by: Mapping[str, str],
) -> UnseenDomainRecord:
    name, groups = str(parts.domain), measure.dataset.groups
    point = picked.get(name)
    return UnseenDomainRecord(
        domain=name,
        num_train=len(parts.train),
        num_val=len(parts.val),
        num_unseen=len(parts.test),
        num_seen=len(parts.seen),
        num_groups=None if groups is None else len(np.unique(groups[parts.test])),
        num_excluded=parts.num_excluded,
        picked={} if point is None else point.values,
        picked_by=picked_by.get(name),
        best_epoch=None if point is None else point.best_epoch,
        val_metric=None if point is None else point.val_metric,
        unseen=None if measured is None else measure.record_of(measured.unseen, measured.unseen_reason),
        seen=None if measured is None or not parts.seen.size else measure.record_of(measured.seen, measured.seen_reason),
        gap=None if measured is None else measure.record(measured.gap, limits=DIFFERENCES),
        metrics=[row for row in overall(alone[name].metrics) if row.split == "test"] if name in alone else [],
        reason=None if measured is not None else "no training without it ended with a model",
    )
