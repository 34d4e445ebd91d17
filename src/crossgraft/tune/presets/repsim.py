"""The training of RepSim's tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from crossgraft.tune.presets._preset import Preset

_WAYS = {
    "full": {"method": "full"},
    "repsim": {"method": "full", "regularizer": "repsim:preset=paper"},
    "lora": {"method": "lora:r=4"},
    "lora_repsim": {"method": "lora:r=4", "regularizer": "repsim:preset=paper"},
}


@dataclass(frozen=True)
class RepSimPreset(Preset):
    """ViT-B/16, 50 epochs in batches of 128 at a rate of 6·10⁻⁴.

    Args:
        way: ``repsim`` (Table 1, Q learned), ``full``, ``lora`` (Table 4, r = 4) or ``lora_repsim``.
    """

    name: ClassVar[str] = "repsim"
    title: ClassVar[str] = "RepSim's training"
    citation: ClassVar[str] = "RepSim, appendix A and Tables 1 and 4"
    differs: ClassVar[str] = (
        "the paper names no schedule, weight decay or augmentation, so those are the command's; it does not say which epoch it "
        "took, here val picks it."
    )
    multi_label: ClassVar[bool] = True

    way: Literal["repsim", "full", "lora", "lora_repsim"] = "repsim"

    @property
    def settings(self) -> Mapping[str, object]:
        """Appendix A."""
        return {**_WAYS[self.way], "learning_rate": 6e-4, "batch_size": 128, "epochs": 50, "image_size": 224}
