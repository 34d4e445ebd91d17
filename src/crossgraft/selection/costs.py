"""What everything costs, measured before the first trial by as many processes as later train at the same time."""

from __future__ import annotations

import time
from dataclasses import dataclass

from crossgraft.errors import OutOfMemoryError
from crossgraft.records import FidelityCost, PlanRecord
from crossgraft.records.base import Record
from crossgraft.runs.jobs import Job, Work
from crossgraft.selection.study import SelectionStudy
from crossgraft.selection.trials import FULL, curve_kind
from crossgraft.tune.forecast import cost_of_measuring
from crossgraft.tune.measuring.look_cost import num_looks_after
from crossgraft.tune.planning.plan import make_plan

SIZES = (("low:size=0.286", 2 / 7), ("low:size=0.5", 0.5))
"""Shares of the resolution: 64 and 112 of 224 pixels."""
CURVES = (0.2, 0.5)
"""Shares of the epochs after which the training pauses."""
LEAST_PIXELS = 28
SCORE = "score:logme"
LEAST_LOADING_SECONDS = 0.5
"""Added to every trial at least: to read a network from the disk and build it, and to write what was trained."""


@dataclass(frozen=True)
class Timing:
    """One training to time: ``kind`` is ``full`` or ``low:size=…``, with the side of its input where it is another."""

    model: str
    kind: str
    share: float | None = None


class TimedModel(Record):
    """What was found of one training."""

    model: str
    kind: str
    num_parameters: int
    size_pixels: int
    costs: list[FidelityCost]
    loading_seconds: float = 0.0
    plan: PlanRecord | None = None
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class TimingWork(Work[Timing, TimedModel]):
    """Makes a few steps of each training, as ``fine_tune`` does for its plan; costs are those without loading."""

    study: SelectionStudy
    base_pixels: dict[str, int]

    def do(self, job: Job[Timing]) -> TimedModel:
        """Costs of one training, and of all that its epochs are good for."""
        timing, study = job.spec, self.study
        pixels = None if timing.share is None else round(timing.share * self.base_pixels[timing.model])
        start = time.perf_counter()
        prepared = study.prepare(timing.model, pixels)
        loading = time.perf_counter() - start
        side = prepared.backbone.preprocessing.height_pixels
        try:
            plan = make_plan(prepared, run=None, reporter=study.reporter).record
        except OutOfMemoryError as error:
            return self._refused(timing, prepared.backbone.num_parameters, side, loading, str(error))
        if plan.expected_seconds is None:
            reason = plan.expected_reason or "not timed"
            return self._refused(timing, prepared.backbone.num_parameters, side, loading, reason)
        seconds = plan.expected_seconds
        costs = [FidelityCost(kind=timing.kind, seconds=seconds, size_pixels=side)]
        if timing.kind == FULL:
            measuring = cost_of_measuring(prepared)
            parts = study.rows.parts[0]
            after = measuring.look * num_looks_after(parts, adapts=prepared.compares_adapted) + measuring.metrics
            whole = FidelityCost(kind=FULL, seconds=seconds + after, size_pixels=side)
            curves = [] if plan.settings.get("head first") else self._curves(plan, side)
            looking = FidelityCost(kind=SCORE, seconds=measuring.look * len(parts.train))
            has_classes = study.rows.dataset.task.partitions  # a score looks at one class per image
            costs = [*([looking] if has_classes else []), *curves, whole]
        return TimedModel(
            model=timing.model,
            kind=timing.kind,
            num_parameters=prepared.backbone.num_parameters,
            size_pixels=side,
            costs=costs,
            loading_seconds=loading,
            plan=plan if timing.kind == FULL else None,
        )

    @staticmethod
    def _curves(plan: PlanRecord, side: int) -> list[FidelityCost]:
        epochs = sorted({max(1, round(share * plan.epochs)) for share in CURVES} - {plan.epochs})
        of_epoch = (plan.expected_seconds or 0.0) / plan.epochs
        return [FidelityCost(kind=curve_kind(epoch), seconds=epoch * of_epoch, size_pixels=side) for epoch in epochs]

    @staticmethod
    def _refused(timing: Timing, num_parameters: int, side: int, loading: float, reason: str) -> TimedModel:
        return TimedModel(
            model=timing.model,
            kind=timing.kind,
            num_parameters=num_parameters,
            size_pixels=side,
            costs=[],
            loading_seconds=loading,
            reason=" ".join(reason.split()),
        )
