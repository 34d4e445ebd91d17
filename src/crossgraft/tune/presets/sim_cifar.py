"""SIM's training from scratch on CIFAR and SVHN."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from crossgraft.tune.presets._preset import Preset

_OF_DATA = {
    "cifar10": {"weight_decay": 1e-4, "schedule": "step:at=[100,150],factor=0.1"},
    "cifar100": {"weight_decay": 5e-4, "schedule": "step:at=[60,120,160],factor=0.2"},
    "svhn": {"weight_decay": 1e-4, "schedule": "step:at=[100,150],factor=0.1", "flip": False},
}


@dataclass(frozen=True)
class SimCifar(Preset):
    """ResNets from scratch: SGD at 0.1, 200 epochs in batches of 128, the rate falls in steps.

    Args:
        data: ``cifar10``, ``cifar100`` (stronger decay, three steps) or ``svhn`` (digits are not mirrored).
    """

    name: ClassVar[str] = "sim_cifar"
    title: ClassVar[str] = "SIM's training from scratch"
    citation: ClassVar[str] = "Self Identity Mapping, appendix E"
    differs: ClassVar[str] = "val picks the epoch, where the paper does not say which it took; its augmentation is not said."
    networks: ClassVar[Literal["convolutional"] | None] = "convolutional"

    data: Literal["cifar10", "cifar100", "svhn"] = "cifar10"

    @property
    def settings(self) -> Mapping[str, object]:
        """Appendix E."""
        return {
            "method": "scratch",
            "optimizer": "sgd",
            "learning_rate": 0.1,
            "momentum": 0.9,
            "warmup_epochs": 0,
            "epochs": 200,
            "batch_size": 128,
            "image_size": 32,
            "select_by": "accuracy",
            **_OF_DATA[self.data],
        }
