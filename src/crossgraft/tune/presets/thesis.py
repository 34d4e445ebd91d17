"""The trainings of the thesis on cross-domain transfer, chapter by chapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from crossgraft.errors import UsageError
from crossgraft.tune.presets._preset import Preset


@dataclass(frozen=True)
class ThesisPreset(Preset):
    """Chapter 3 (ImageNet or RadImageNet) and 4 (shortcuts): Adam at 10⁻⁵ until the loss on val stops falling.

    ``--head-first`` may be added: the thesis' "freeze".

    Args:
        chapter: 3 (five folds) or 4.

    Raises:
        UsageError: The chapter is another one.
    """

    name: ClassVar[str] = "thesis"
    title: ClassVar[str] = "Training of the thesis, chapters 3 and 4"
    citation: ClassVar[str] = "Juodelyte, thesis on cross-domain transfer in medical imaging, sections 3.4.2, 3.4.3 and 4.2.2"
    differs: ClassVar[str] = (
        "five folds have 20 % of the images for test and 5 % for val, where the thesis has 15 % and 5 %; batches are those of "
        "the command, since the thesis names one for each data set."
    )

    chapter: int = 3

    def __post_init__(self) -> None:
        if self.chapter not in (3, 4):
            raise UsageError(f"--preset thesis has the chapters 3 and 4, not {self.chapter}. Chapter 6 is thesis_grid.")

    @property
    def settings(self) -> Mapping[str, object]:
        """Sections 3.4.2 and 4.2.2."""
        folds = {"folds": 5, "val_fraction": 0.0625} if self.chapter == 3 else {}
        return {
            "method": "full",
            "optimizer": "adam",
            "learning_rate": 1e-5,
            "weight_decay": 0.0,
            "dropout": 0.5,
            "schedule": "constant",
            "warmup_epochs": 0,
            "epochs": 200,
            "patience": 30,
            "select_by": "loss",
            "augmentation": f"thesis:{self.chapter}",
            **folds,
        }
