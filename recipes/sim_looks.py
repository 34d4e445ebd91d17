"""What the study of docs/results/sim.md keeps of a training beside its row: what it cost, and how its gradients were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from study_rows import as_csv, read_rows

from crossgraft.storage.atomic import write_atomically
from crossgraft.tune import FineTuningResult
from crossgraft.tune.engine.gradient_norms import SPIKE


@dataclass(frozen=True, kw_only=True)
class LookRow:
    """One finished training.

    Attributes:
        model: Network.
        variant: What was trained how.
        seed: Of everything.
        num_own_parameters: Of regularisers, beside the network.
        peak_bytes: Of a step, as the plan has measured it.
        nll: Negative log-likelihood of test; with a temperature where there are validation rows.
        num_steps: Steps of which norms are known; None where they were not logged, as in all that follows.
        median_norm: Norm of the gradient of a block, median over steps, mean over blocks.
        largest_norm: The largest over steps, mean over blocks.
        num_spikes: Steps with more than twice the moving average of the step before, mean over blocks.
        roughness: Standard deviation over steps of ln(norm / moving average of the step before), mean over blocks.
    """

    model: str
    variant: str
    seed: int
    num_own_parameters: int | None = None
    peak_bytes: int | None = None
    nll: float | None = None
    num_steps: int | None = None
    median_norm: float | None = None
    largest_norm: float | None = None
    num_spikes: float | None = None
    roughness: float | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        """That of the training."""
        return self.model, self.variant, self.seed


@dataclass(frozen=True, kw_only=True)
class StepRow:
    """One step of a training.

    Attributes:
        model: Network.
        variant: What was trained how.
        step: From 1.
        norm: Of the gradient of all blocks together.
    """

    model: str
    variant: str
    step: int
    norm: float


def look_at(tuned: FineTuningResult, **known: str | int) -> LookRow:
    """Costs from the plan, and numbers of the gradients where they were logged."""
    plan, norms, averages = tuned.record.plan, *_by_block(tuned)
    nll = tuned.record.metric("negative_log_likelihood")
    costs = {"num_own_parameters": plan.num_own_parameters, "peak_bytes": plan.peak_bytes}
    found = LookRow(**known, **costs, nll=None if nll is None else _digits(nll.value))  # type: ignore[arg-type]
    if len(norms) < 2:
        return found
    relative = norms[1:] / averages[:-1]
    return LookRow(
        **{
            **vars(found),
            "num_steps": len(norms),
            "median_norm": _digits(np.median(norms, axis=0).mean()),
            "largest_norm": _digits(norms.max(axis=0).mean()),
            "num_spikes": _digits((relative > SPIKE).sum(axis=0).mean()),
            "roughness": _digits(np.log(relative).std(axis=0).mean()),
        }
    )


def steps_of(tuned: FineTuningResult, *, model: str, variant: str) -> list[StepRow]:
    """Norm of the gradient of all blocks together in each step; nothing where it was not logged."""
    norms, _ = _by_block(tuned)
    together = np.sqrt(np.square(norms).sum(axis=1))
    return [
        StepRow(model=model, variant=variant, step=step, norm=_digits(norm)) for step, norm in enumerate(together.tolist(), 1)
    ]


def read_looks(folder: Path, name: str) -> list[LookRow]:
    """What is there of one set."""
    return read_rows(folder / f"{name}-looks.csv", LookRow)


def read_steps(folder: Path, name: str) -> list[StepRow]:
    """What is there of one set."""
    return read_rows(folder / f"{name}-steps.csv", StepRow)


def keep_look(folder: Path, name: str, row: LookRow) -> None:
    """An older row of the same training goes."""
    others = [each for each in read_looks(folder, name) if each.key != row.key]
    rows = sorted([*others, row], key=lambda each: each.key)
    write_atomically(folder / f"{name}-looks.csv", as_csv(LookRow, rows))


def keep_steps(folder: Path, name: str, rows: Sequence[StepRow]) -> None:
    """Older steps of the same training go."""
    new = {(row.model, row.variant) for row in rows}
    others = [each for each in read_steps(folder, name) if (each.model, each.variant) not in new]
    kept = sorted([*others, *rows], key=lambda each: (each.model, each.variant, each.step))
    write_atomically(folder / f"{name}-steps.csv", as_csv(StepRow, kept))


def _by_block(tuned: FineTuningResult) -> tuple[np.ndarray, np.ndarray]:
    """Norms and averages (steps, blocks) of the training; (0, 0) where nothing was logged."""
    norms = next(iter(tuned.norms.values()), None)
    return (np.zeros((0, 0)), np.zeros((0, 0))) if norms is None else (norms.values, norms.averages)


def _digits(value: float) -> float:
    return float(f"{float(value):.5g}")
