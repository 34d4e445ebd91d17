"""What a preset is: the settings of a published training, under one name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Literal, Protocol, runtime_checkable

from crossgraft.conflicts import Situation


@runtime_checkable
class Preset(Protocol):
    """A published training; a frozen dataclass whose fields are what the publication varies.

    A class that inherits from this one needs no more than its name, title, citation, ``differs`` and ``settings``.

    Attributes:
        name: Name on the command line and in tables.
        title: Title in print.
        citation: Where the settings stand.
        differs: One sentence: what is done otherwise than in the publication.
        command: The command whose options it sets.
        networks: Kind of network that was trained so; None: of any kind.
        multi_label: Whether images may have several labels.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    differs: ClassVar[str]
    command: ClassVar[Literal["tune", "fewshot"]] = "tune"
    networks: ClassVar[Literal["convolutional"] | None] = None
    multi_label: ClassVar[bool] = False

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, object]:
        """Name and value of the options that the publication gives."""
        ...

    def conflicts(self, situation: Situation) -> str | None:
        """Another kind of network or of labels than the publication had."""
        instead = "Leave --preset out and give the settings that you want one by one (crossgraft list presets)."
        if not self.multi_label and situation.task == "multi-label":
            return f"--preset {self.name} is a training on images with one label each; these may have several. {instead}"
        if self.networks == "convolutional" and not situation.is_convolutional:
            return f"--preset {self.name} is a training of convolutional networks, and this network is none. {instead}"
        return None

    def remarks(self, situation: Situation) -> list[str]:
        """What is done otherwise than in the publication."""
        return [f"--preset {self.name}: {self.differs}"]
