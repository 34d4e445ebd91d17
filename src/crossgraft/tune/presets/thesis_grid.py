"""The 120 trainings by which the thesis judges scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from crossgraft.errors import UsageError
from crossgraft.tune.presets._preset import Preset

_BATCHES = ((32, 64), (64, 128), (128, 256))


@dataclass(frozen=True)
class ThesisGrid(Preset):
    """Chapter 6: SGD over 6 learning rates, 5 weight decays, 2 momenta and 2 batch sizes, 100 images per class.

    Args:
        batch_sizes: Those of the target in Table 6.1: [32,64], [64,128] or [128,256].
        per_class: Training images per class: 100, or fewer where a class has no more.
        val_per_class: Images of val per class: 25, or fewer where a class has no more.

    Raises:
        UsageError: No target of Table 6.1 has these.
    """

    name: ClassVar[str] = "thesis_grid"
    title: ClassVar[str] = "Training of the thesis, chapter 6"
    citation: ClassVar[str] = "Juodelyte, thesis on cross-domain transfer in medical imaging, sections 6.4.1 and 6.4.2, Table 6.1"
    differs: ClassVar[str] = (
        "the augmentation fills in what the thesis leaves open with torchvision's defaults; the thesis names no schedule, here "
        "it is constant."
    )

    batch_sizes: tuple[int, ...] = (32, 64)
    per_class: int = 100
    val_per_class: int = 25

    def __post_init__(self) -> None:
        if tuple(self.batch_sizes) not in _BATCHES:
            raise UsageError("The batch sizes of --preset thesis_grid are [32,64], [64,128] or [128,256] (thesis, Table 6.1).")

    @property
    def settings(self) -> Mapping[str, object]:
        """Section 6.4."""
        return {
            "method": "full",
            "optimizer": "sgd",
            "schedule": "constant",
            "warmup_epochs": 0,
            "epochs": 400,
            "patience": 50,
            "stop_by": "auc",
            "select_by": "loss",
            "image_size": 224,
            "per_class": self.per_class,
            "val_per_class": self.val_per_class,
            "augmentation": "thesis:6",
            "grid": (
                "learning_rate=1,1e-1,1e-2,1e-3,1e-4,1e-5",
                "weight_decay=1e-3,1e-4,1e-5,1e-6,0",
                "momentum=0.9,0",
                f"batch_size={','.join(map(str, self.batch_sizes))}",
            ),
        }
