"""SIM's fine-tuning on birds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from crossgraft.conflicts import Situation
from crossgraft.tune.presets._preset import Preset

_OF_NETWORK = {
    "resnet50": {
        "optimizer": "sgd",
        "learning_rate": 0.01,
        "momentum": 0.9,
        "nesterov": True,
        "schedule": "cosine:final_share=0",
        "warmup_epochs": 5,
    },
    "swin": {"optimizer": "adamw", "learning_rate": 5e-6, "clip_norm": 5.0},
}


@dataclass(frozen=True)
class SimCub(Preset):
    """100 epochs in batches of 64; a ResNet-50 with Nesterov's momentum and a cosine, a Swin transformer with AdamW.

    Args:
        network: ``resnet50`` or ``swin``.
    """

    name: ClassVar[str] = "sim_cub"
    title: ClassVar[str] = "SIM's fine-tuning on CUB"
    citation: ClassVar[str] = "Self Identity Mapping, appendix E"
    differs: ClassVar[str] = (
        "val picks the epoch, where the paper does not say which it took; warm-up rises from near 0 (the paper's is from 0.01 to "
        "0.01); image size, augmentation and, for swin, schedule and the rates of single layers are not said."
    )

    network: Literal["resnet50", "swin"] = "resnet50"

    @property
    def settings(self) -> Mapping[str, object]:
        """Appendix E."""
        return {
            "method": "full",
            "weight_decay": 5e-4,
            "epochs": 100,
            "batch_size": 64,
            "select_by": "accuracy",
            **_OF_NETWORK[self.network],
        }

    def conflicts(self, situation: Situation) -> str | None:
        """A Swin transformer is no convolutional network, a ResNet is one."""
        if situation.is_convolutional == (self.network == "swin"):
            other = "swin" if self.network == "resnet50" else "resnet50"
            kind = "a convolutional" if self.network == "resnet50" else "no convolutional"
            return f"--preset sim_cub:{self.network} is for {kind} network, and this is another kind. Say sim_cub:{other}."
        return super().conflicts(situation)
