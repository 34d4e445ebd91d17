"""Which rows make which batch of which epoch: a pure function of the seed, so that a resumed run saves nothing."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from crossgraft.errors import UsageError
from crossgraft.seeding import torch_generator

Sampler = Literal["shuffle", "balanced"]
Rows = Int64[Tensor, " batch"]


class BatchPlan:
    """The batches of every epoch.

    ``shuffle`` shows every row once an epoch, in a new order. ``balanced`` draws n rows an epoch with replacement so that
    every class is drawn equally often on average: a row's weight is 1 / (rows of its class). With several labels an
    image, a row's weight is that of its rarest label (the rule of repeat factors: Gupta, Dollár and Girshick, *LVIS*,
    CVPR 2019, §4), and rows without a label count as a class of their own.

    Neither sampler makes a batch of one image out of a longer list, because BatchNorm cannot train on it: a last batch
    of one joins the batch before. A batch size above n gives one batch of all rows.

    Args:
        targets: (n, C) one-hot or 0/1.
        batch_size: Images a batch, of all processes together.
        sampler: How rows are drawn.
        seed: Random seed of the whole run.
        drop_last: Leave out a last batch that is not full, unless it is the only one.

    Raises:
        UsageError: There is no row, or the batch size is below 1.
    """

    def __init__(
        self,
        targets: Float[Tensor, "num_samples num_classes"],
        *,
        batch_size: int,
        sampler: Sampler = "shuffle",
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if batch_size < 1:
            raise UsageError(f"A batch has at least one image, not {batch_size}. Change --batch-size.")
        if len(targets) == 0:
            raise UsageError("There is no row to train on.")
        self.num_samples = len(targets)
        self.batch_size = batch_size
        self.sampler: Sampler = sampler
        self.seed = seed
        self.drop_last = drop_last
        self._weights = _row_weights(targets) if sampler == "balanced" else None

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches an epoch."""
        return len(self._sizes())

    def epoch(self, epoch: int) -> list[Rows]:
        """The rows of each batch, in order; O(n) a call."""
        generator = torch_generator(self.seed, "batches", self.sampler, epoch)
        if self._weights is None:
            rows = torch.randperm(self.num_samples, generator=generator)
        else:
            rows = torch.multinomial(self._weights, self.num_samples, replacement=True, generator=generator)
        sizes = self._sizes()
        return list(rows[: sum(sizes)].split(sizes))

    def _sizes(self) -> list[int]:
        full, rest = divmod(self.num_samples, self.batch_size)
        sizes = [self.batch_size] * full
        if full == 0:
            return [rest]
        if rest == 0 or self.drop_last:
            return sizes
        if rest == 1:
            return [*sizes[:-1], self.batch_size + 1]
        return [*sizes, rest]


def _row_weights(targets: Tensor) -> Tensor:
    """One over the number of rows with the rarest label of each row; all labels alike in float64."""
    labels = targets.to(torch.float64)
    counts = labels.sum(0).clamp(min=1)
    without_label = labels.sum(1) == 0
    weights = (labels / counts).amax(1)
    weights[without_label] = 1 / max(1, int(without_label.sum()))
    return weights
