"""How long the gradient of each building block is in each step; looking at it changes no number of the training.

It is the gradient that the step follows: of the task and all terms of regularisers, over all parts and processes, before it is
clipped, and without the factor of float16's scaler.

Reference: Cai, Zhu, Fu, Miao, Yao: Self Identity Mapping, figure 5, which does not say how its average is taken.
"""

from __future__ import annotations

import csv as csv_module
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.errors import DataError
from crossgraft.models.classifier import Classifier
from crossgraft.tune.protocols import Selection
from crossgraft.tune.record import BlockGradientRecord, GradientNormsRecord
from crossgraft.words.visible import csv_rows, csv_text

SMOOTHING = 0.95
"""What a step counts for in the moving average, over what the step after it counts for."""
SPIKE = 2.0
"""How many times the moving average of the step before a norm must be to count as a spike."""
FILE_NAME = "gradient_norms.csv"
_MOST_STEPS = 200
_HEADER = ("step", "block", "norm", "ema")


@dataclass(frozen=True, eq=False)
class GradientNorms:
    """L2 norm of the gradient of each block in each step of a training.

    Attributes:
        blocks: Names in the network of the blocks with a trained parameter, first to last.
        values: Norms; infinite where the gradient overflowed, as float16's scaler lets it do now and then.
    """

    blocks: tuple[str, ...]
    values: Float[np.ndarray, "num_steps num_blocks"]

    @property
    def averages(self) -> Float[np.ndarray, "num_steps num_blocks"]:
        """Exponential moving average, see ``moving_average``."""
        return moving_average(self.values)

    def rows(self) -> list[tuple[int, str, float, float]]:
        """Step (from 1), block, norm and average, step by step."""
        return [
            (step, *cells)
            for step, (norms, averages) in enumerate(zip(self.values.tolist(), self.averages.tolist(), strict=True), 1)
            for cells in zip(self.blocks, norms, averages, strict=True)
        ]

    @property
    def csv(self) -> str:
        """A file with one row per step and block, about 60 bytes each."""
        return csv_text(_HEADER, self.rows())

    def record(self, job: str) -> GradientNormsRecord:
        """Medians, extremes and spikes of each block, and its moving average in at most 200 steps of the training ``job``."""
        num_steps, averages = len(self.values), self.averages
        listed = np.unique(np.linspace(0, num_steps - 1, min(num_steps, _MOST_STEPS)).round().astype(int))
        spikes = (self.values[1:] > SPIKE * averages[:-1]).sum(axis=0)
        blocks: list[BlockGradientRecord] = []
        for place, block in enumerate(self.blocks):
            finite = self.values[np.isfinite(self.values[:, place]), place]
            blocks.append(
                BlockGradientRecord(
                    block=block,
                    median=float(np.median(finite)) if len(finite) else None,
                    largest=float(finite.max()) if len(finite) else None,
                    num_spikes=int(spikes[place]),
                    averages=[None if math.isnan(each) else each for each in averages[listed, place].tolist()],
                )
            )
        return GradientNormsRecord(job=job, num_steps=num_steps, smoothing=SMOOTHING, steps=(listed + 1).tolist(), blocks=blocks)


def read_gradient_norms(path: Path) -> GradientNorms:
    """What ``GradientNorms.csv`` gave.

    Raises:
        DataError: The file is gone or damaged.
    """
    try:
        _, rows = csv_rows(path.read_bytes().decode("utf-8"))
        blocks = tuple(dict.fromkeys(row["block"] for row in rows))
        values = np.array([float(row["norm"] or "nan") for row in rows])
        return GradientNorms(blocks, values.reshape(-1, max(len(blocks), 1)))
    except (OSError, KeyError, ValueError, csv_module.Error) as error:
        raise DataError(f"Cannot read {path.name}: {error}. Use --overwrite to train again.") from error


def moving_average(values: Float[np.ndarray, "num_steps num_blocks"]) -> Float[np.ndarray, "num_steps num_blocks"]:
    """Weighted mean of each column up to each row; the row k rows before counts ``SMOOTHING`` to the k.

    The weights sum to 1 from the first row on, so that the average does not begin at 0. What is not finite does not count.

    >>> moving_average(np.array([[1.0], [3.0], [np.inf]])).round(4).ravel().tolist()
    [1.0, 2.0256, 2.0256]
    """
    averages = np.full(values.shape, np.nan)
    total, weight = np.zeros(values.shape[1:]), np.zeros(values.shape[1:])
    for step, row in enumerate(values):
        counts = np.isfinite(row)
        total = SMOOTHING * total + np.where(counts, row, 0.0)
        weight = SMOOTHING * weight + counts
        np.divide(total, weight, out=averages[step], where=weight > 0)
    return averages


class GradientLog:
    """Reads the norms of a network under training, step by step.

    Args:
        classifier: Network that is trained.
        selection: What is trained of it; blocks without a trained parameter are left out, as are frozen parameters of others.
    """

    def __init__(self, classifier: Classifier, selection: Selection) -> None:
        parameters = {name: each for name, each in classifier.named_parameters() if name in selection.trained}
        self._parameters = {
            block.removeprefix("body."): [parameters[name] for name in names]
            for block, names in trained_blocks(classifier, selection).items()
        }
        self._steps: list[list[float]] = []
        self._not_looked_at: list[tuple[list[int], Tensor | None, float | Tensor]] = []

    @property
    def norms(self) -> GradientNorms:
        """What was noted so far."""
        self.look()
        return GradientNorms(tuple(self._parameters), np.array(self._steps).reshape(-1, len(self._parameters)))

    def add(self, scale: float | Tensor) -> None:
        """Note the gradients of a step, which are ``scale`` times too large; a parameter without one counts as 0."""
        gradients = [[each.grad for each in of_block if each.grad is not None] for of_block in self._parameters.values()]
        norms = [torch.linalg.vector_norm(gradient) for of_block in gradients for gradient in of_block]
        kept = scale.clone() if isinstance(scale, Tensor) else scale  # float16's scaler changes it in place
        self._not_looked_at.append(([len(of_block) for of_block in gradients], torch.stack(norms) if norms else None, kept))

    def look(self) -> None:
        """Read the norms of the steps since the last look from the device; sums are in double precision."""
        for counts, norms, scale in self._not_looked_at:
            following = iter([] if norms is None else norms.tolist())
            of_blocks = [float(np.linalg.norm([next(following) for _ in range(count)])) for count in counts]
            self._steps.append([each / float(scale) for each in of_blocks])
        self._not_looked_at = []

    def state(self) -> Tensor:
        """Norms so far, for a checkpoint."""
        return torch.from_numpy(self.norms.values)

    def load_state(self, state: Tensor, num_steps: int) -> None:
        """Go on from what ``state`` gave after ``num_steps`` steps.

        Raises:
            TypeError: It is of other blocks, or of another number of steps.
        """
        if state.shape != (num_steps, len(self._parameters)):
            raise TypeError(f"gradient norms of the shape {tuple(state.shape)} after step {num_steps}")
        self._steps = state.tolist()


def trained_blocks(classifier: Classifier, selection: Selection) -> dict[str, Sequence[str]]:
    """Trained parameters of each building block that has any, by name, first to last."""
    parameters = {
        block: [name for name, _ in classifier.named_parameters() if name.startswith(f"{block}.")] for block in classifier.blocks
    }
    trained = {block: [name for name in names if name in selection.trained] for block, names in parameters.items()}
    return {block: names for block, names in trained.items() if names}
