"""From what the tokens of a forward pass are drawn, and for which images: however a batch is cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor


class BatchRows(NamedTuple):
    """Which images the rows of a block's batch axis are of.

    Attributes:
        places: (rows,) place of each row in the whole batch.
        batch_size: Rows of the whole batch.
        per_image: Rows of one image; several where a block folds patches into the batch.
    """

    places: Int[Tensor, " rows"]
    batch_size: int
    per_image: int


@dataclass(frozen=True)
class Drawing:
    """What the tokens of a forward pass are drawn from.

    Attributes:
        generator: On the CPU.
        places: Place of each image in the whole batch; None: not known, and rows count as images.
        batch_size: Images of the whole batch.
    """

    generator: torch.Generator
    places: Int[Tensor, " images"] | None = None
    batch_size: int = 0

    def rows(self, number: int) -> BatchRows:
        """For so many rows; those of an image follow each other, as where maps are cut into patches (MobileViT, TNT)."""
        per_image, rest = (0, 0) if self.places is None else divmod(number, len(self.places))
        if self.places is None or rest or not per_image:
            return BatchRows(torch.arange(number), number, 1)
        places = self.places[:, None] * per_image + torch.arange(per_image)
        return BatchRows(places.flatten(), self.batch_size * per_image, per_image)
