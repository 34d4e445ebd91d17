"""The trainings by which ITM judges its scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from crossgraft.tune.presets._preset import Preset


@dataclass(frozen=True)
class ItmGroundTruth(Preset):
    """AdamW on everything, at the best of six points of learning rate and weight decay."""

    name: ClassVar[str] = "itm_ground_truth"
    title: ClassVar[str] = "ITM's ground truth"
    citation: ClassVar[str] = "ITM, section 4.1"
    differs: ClassVar[str] = (
        "the paper keeps the epoch and the point with the highest accuracy on test, here val picks both; it names neither "
        "epochs nor batch size."
    )

    @property
    def settings(self) -> Mapping[str, object]:
        """Section 4.1."""
        return {
            "method": "full",
            "optimizer": "adamw",
            "select_by": "accuracy",
            "grid": ("learning_rate=1e-5,2e-5,5e-5", "weight_decay=1e-2,1e-4"),
        }
