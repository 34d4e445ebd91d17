"""What ``compare_fine_tunings`` returns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from crossgraft.data import Dataset
from crossgraft.errors import NotApplicable
from crossgraft.metrics import MetricValue, auc, auc_combination, balanced_accuracy, balanced_accuracy_combination
from crossgraft.metrics._intervals import CONFIDENCE
from crossgraft.records.base import Record
from crossgraft.result import EXIT_PARTIAL, Result
from crossgraft.variants.record import ComparisonPlanRecord, DifferenceRecord, FineTuningComparisonRecord
from crossgraft.variants.study import Answers, DoneTraining, plans_in_words
from crossgraft.variants.variant import Variant
from crossgraft.variants.words import answer_in_words

if TYPE_CHECKING:
    import pandas as pd


# Differences of two variants on the same test images with the same seeds, and how sure they are.
#
# Two sources of chance count: which test images there are, by the interval of the metric's difference on the same images (groups
# stay together), and which seed was drawn, by the spread over seeds. Their variances add up, because a seed says nothing about
# the test images.


@dataclass(frozen=True, eq=False)
class OnImages:
    """A network on the test images, or something between two in a straight line of their metrics.

    Attributes:
        value: The metric; nan where it has no meaning.
        terms: Share and answers of each network; shares sum to 1.
    """

    value: float
    terms: tuple[tuple[float, Answers], ...]

    def towards(self, other: OnImages, share: float) -> OnImages:
        """What lies ``share`` of the way to another."""
        terms = [((1 - share) * weight, answers) for weight, answers in self.terms]
        terms += [(share * weight, answers) for weight, answers in other.terms]
        return OnImages((1 - share) * self.value + share * other.value, tuple(terms))


@dataclass(frozen=True, eq=False)
class MeasuredImages:
    """The images that all variants are measured on.

    Attributes:
        data: These images alone.
        metric: The primary metric: ``balanced_accuracy`` or ``auc``.
        domains: Domain → (n,) whether an image is of it; the metric is the mean over them. Empty: of all images at once.
    """

    data: Dataset
    metric: str
    domains: Mapping[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])

    def of_domain(self, name: str) -> MeasuredImages:
        """The images of one domain alone."""
        return replace(self, domains={name: self.domains[name]})

    @property
    def _parts(self) -> list[np.ndarray]:
        """Images that the metric is the mean over, each with a metric of its own."""
        return list(self.domains.values()) or [np.ones(len(self.data), dtype=bool)]

    def measure(self, answers: Answers) -> OnImages:
        """The metric of ``answers``, the mean over the domains where there are some."""
        compute = auc if self.metric == "auc" else balanced_accuracy
        names = list(self.data.class_names)
        try:
            values = [compute(answers[here], self.data.targets[here], class_names=names).value for here in self._parts]
        except NotApplicable:
            values = [math.nan]
        return OnImages(float(np.mean(values)), ((1.0, answers),))

    def combination(self, terms: Sequence[tuple[float, OnImages]], *, confidence: float = CONFIDENCE) -> MetricValue:
        """Σ c · metric, with the interval of the test images.

        Raises:
            NotApplicable: The metric has no meaning on these images.
        """
        flat = [(c * share, answers) for c, measured in terms for share, answers in measured.terms]
        parts = self._parts
        split = [((c / len(parts), answers), here) for c, answers in flat for here in parts]
        pairs, among = [pair for pair, _ in split], [here for _, here in split]
        targets, groups = self.data.targets, self.data.groups
        if self.metric == "auc":
            return auc_combination(pairs, targets, groups, among=among, confidence=confidence)
        names = list(self.data.class_names)
        return balanced_accuracy_combination(pairs, targets, groups, among=among, class_names=names, confidence=confidence)

    def mean(self, measured: Sequence[OnImages]) -> MetricValue:
        """Mean over seeds, with the interval of the test images."""
        return self.combination([(1 / len(measured), each) for each in measured])


@dataclass(frozen=True, eq=False)
class Measured:
    """The trainings of one variant that are done, with what each says of the test images."""

    variant: Variant
    trainings: list[DoneTraining]
    values: list[OnImages]
    num_failed: int

    def of_seeds(self, seeds: set[int]) -> list[OnImages]:
        """Values of these seeds, in their order."""
        by_seed = {each.seed: value for each, value in zip(self.trainings, self.values, strict=True)}
        return [by_seed[seed] for seed in sorted(seeds)]

    @property
    def seeds(self) -> set[int]:
        """That are done."""
        return {each.seed for each in self.trainings}


def difference(
    ones: Sequence[OnImages], others: Sequence[OnImages], images: MeasuredImages, *, confidence: float = CONFIDENCE
) -> DifferenceRecord:
    """Mean over seeds of one minus the other, with its 95 % interval.

    Each end is t √(r² / 1.96² + s² / S) away, with r how far the interval of the test images reaches, s² the variance over S
    seeds and t Student's quantile with Satterthwaite's degrees of freedom, of which the seeds have S − 1. With one seed the
    interval is that of test images alone. ``ones`` and ``others`` are two variants with the same seeds.
    """
    if not ones:
        return DifferenceRecord(value=None, reason="no seed was trained in both")
    by_seed = np.array([one.value - other.value for one, other in zip(ones, others, strict=True)])
    if not np.isfinite(by_seed).all():
        return DifferenceRecord(value=None, reason="the metric has no meaning on these test images")
    share = 1 / len(by_seed)
    total = images.combination([(share, each) for each in ones] + [(-share, each) for each in others], confidence=confidence)
    value = float(by_seed.mean())
    if total.low is None or total.high is None:
        return DifferenceRecord(value=value, reason=total.note)
    of_seeds = float(by_seed.var(ddof=1)) * share if len(by_seed) > 1 else 0.0
    ends = (total.value - total.low, total.high - total.value)
    below, above = (reach_with_seeds(end, of_seeds, len(by_seed), confidence) for end in ends)
    return DifferenceRecord(value=value, low=max(-1.0, value - below), high=min(1.0, value + above))


def reach_with_seeds(of_images: float, of_seeds: float, num_seeds: int, confidence: float = CONFIDENCE) -> float:
    """How far an interval reaches with both: ``of_images`` alone, and the variance ``of_seeds`` of the mean over the seeds."""
    if of_seeds == 0:
        return of_images
    share = (1 + confidence) / 2
    total = (of_images / float(special.ndtri(share))) ** 2 + of_seeds
    return float(special.stdtrit((num_seeds - 1) * (total / of_seeds) ** 2, share)) * math.sqrt(total)


_OF_BATCH_NORM = ("cka_adapted", "cka_debiased_adapted", "batch_norm")
"""Columns that are left out where the network has no BatchNorm."""


@dataclass(frozen=True, eq=False, repr=False)
class FineTuningComparison(Result[FineTuningComparisonRecord]):
    """Several fine-tunings of one model on the same images: ``record`` holds every number.

    Attributes:
        plan: What was planned; all there is after ``plan=True``.
    """

    plan: ComparisonPlanRecord = field(kw_only=True)

    @property
    def comparison(self) -> FineTuningComparisonRecord | None:
        """The record; None where only a plan was made."""
        return self.found

    @property
    def shown(self) -> Record:
        """The record, or the plan."""
        return self.found or self.plan

    @property
    def exit_code(self) -> int:
        """6 where some trainings failed."""
        return EXIT_PARTIAL if self.found and any(row.state == "failed" for row in self.found.trainings) else 0

    def summary(self) -> str:
        """The answer in a few sentences, or the plan."""
        return plans_in_words(self.plan) if self.found is None else answer_in_words(self.found)

    @property
    def primary(self) -> Mapping[str, object]:
        """The primary metric, of the best variant."""
        best = self.record.variants[0].metric
        return {"metric": "metric", "value": best.value, "low": best.low, "high": best.high}

    def to_frame(self) -> pd.DataFrame:
        """One row per variant, the best first: metric, similarity, time, differences, each with its interval."""
        import pandas as pd

        variants = self.record.variants
        absent = {name for name in _OF_BATCH_NORM if all(getattr(row, name) is None for row in variants)}
        has_forms = any(row.form is not None for row in variants)
        first = [{"variant": row.variant} | ({"form": row.form} if has_forms else {}) for row in variants]
        rows = [_flat(row.model_dump(exclude=absent)) for row in variants]
        return pd.DataFrame([begin | row for begin, row in zip(first, rows, strict=True)])

    def trainings(self) -> pd.DataFrame:
        """One row a training: variant, seed, every metric on test, similarity, seconds."""
        import pandas as pd

        rows: list[dict[str, object]] = []
        for row in self.record.trainings:
            flat: dict[str, object] = row.model_dump(exclude={"metrics", "similarity", "picked"})
            flat |= {name: row.similarity.get(name) for name in ("cka", "cka_debiased")} | row.similarity
            for metric in row.metrics:
                flat |= {metric.metric: metric.value, f"{metric.metric}_low": metric.low, f"{metric.metric}_high": metric.high}
            flat["picked"] = ",".join(f"{name}={value}" for name, value in row.picked.items())
            rows.append(flat)
        return pd.DataFrame(rows)

    def _most_important(self) -> pd.DataFrame:
        columns = ["variant", "metric", "metric_low", "metric_high", "cka", "cka_debiased", "time_ratio", "difference"]
        return self.to_frame().reindex(columns=columns)


def _flat(row: dict[str, object]) -> dict[str, object]:
    """Values with an interval become three columns."""
    flat: dict[str, object] = {}
    for name, value in row.items():
        if value is None and name in _OF_BATCH_NORM[:2]:
            flat |= dict.fromkeys((name, f"{name}_low", f"{name}_high"))
        elif isinstance(value, dict) and "low" in value:
            flat |= {name: value["value"], f"{name}_low": value["low"], f"{name}_high": value["high"]}  # pyright: ignore[reportUnknownArgumentType]
        elif name == "settings" and isinstance(value, dict):
            flat[name] = "; ".join(f"{key} {text}" for key, text in value.items())  # pyright: ignore[reportUnknownVariableType]
        elif name == "not_separable_from" and isinstance(value, list):
            flat[name] = "; ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
        elif name == "unseen" and isinstance(value, dict):
            flat |= _flat_domains(value)  # pyright: ignore[reportUnknownArgumentType]
        elif name not in ("sweep", "unseen"):
            flat[name] = value
    return flat


def _flat_domains(unseen: dict[str, Any]) -> dict[str, object]:
    """Each domain, the worst, seen and gap, each with its interval and its difference to the first variant."""
    flat: dict[str, object] = {}
    named: dict[str, Any] = {f"domain {each['domain']}": each for each in unseen["domains"]}
    if unseen["worst"] is not None:
        flat["worst_domain"] = unseen["worst"]["domain"]
        named["worst"] = unseen["worst"]
    for name, each in named.items():
        flat |= _flat({name: each["value"]})
        flat |= _flat({f"{name} minus first": each["difference"] or _NO_DIFFERENCE})
    flat |= _flat({"mean": unseen["mean"]})
    flat |= _flat({"minus_first": unseen["difference"] or _NO_DIFFERENCE})
    for name in ("seen", "gap"):
        flat |= _flat({name: unseen[name] or _NO_DIFFERENCE})
    return flat


_NO_DIFFERENCE = {"value": None, "low": None, "high": None}
