"""A small preset: little changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from crossgraft.tune.presets import Preset


@dataclass(frozen=True)
class Gentle(Preset):
    """A small learning rate that is halved again and again.

    Args:
        every: Steps until it is halved.
    """

    name: ClassVar[str] = "gentle"
    title: ClassVar[str] = "Gentle"
    citation: ClassVar[str] = "Example of a third-party preset; no paper"
    differs: ClassVar[str] = "nobody trained so before."

    every: int = 3

    @property
    def settings(self) -> Mapping[str, object]:
        """Two options of ``tune``."""
        return {"learning_rate": 2e-4, "schedule": f"halving:{self.every}", "warmup_epochs": 0}
