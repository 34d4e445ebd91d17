"""What a fine-tuning was to keep, and what it kept."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.records.base import Record

BatchNormMode = Literal["train", "frozen", "adapt"]


class BatchNormRecord(Record):
    """What BatchNorm normalised with while the network was trained."""

    mode: BatchNormMode = Field(
        description="The mean and variance of each batch, which move the kept ones; the pretrained ones; or those of each "
        "batch, from a network whose kept ones were first estimated on the training images."
    )
    reason: str = Field(default="", description="Why, where nobody asked for it.")
    num_layers: int = Field(description="Layers with kept means and variances; 0: there was nothing to decide.")
    num_moving: int | None = Field(
        default=None, description="Those whose kept ones moved while the network was trained; None: not counted."
    )

    @property
    def effective_mode(self) -> BatchNormMode:
        """The mode, by what became of the statistics: a method that moves none of them keeps them frozen, too."""
        return "frozen" if self.mode == "train" and self.num_moving == 0 else self.mode


class KeepRecord(Record):
    """The similarity that training was to end at, and where it ended. One entry per fold; one without folds."""

    target: float = Field(description="Debiased CKA on val to the network that training started from.")
    found: list[float | None] = Field(description="That of the epochs that were kept; None where it is not defined.")
    factors: list[float] = Field(description="Factors of the regularisers' terms in the trainings that were picked.")
    tolerance: float = Field(description="Distance from the target that counts as reached.")

    @property
    def is_reached(self) -> bool:
        """Whether all of them are within the tolerance."""
        return all(value is not None and abs(value - self.target) <= self.tolerance for value in self.found)
