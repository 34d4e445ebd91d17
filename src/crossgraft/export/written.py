"""What every format says after it has written its files and loaded them again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, NamedTuple

from crossgraft import optional
from crossgraft.export.checking import Answer
from crossgraft.export.source_model import SourceModel

DESCRIPTION = "description.json"
"""Name of the file beside the model, and of the same document inside it."""


class Written(NamedTuple):
    """Files that are there, and how to use them.

    Attributes:
        answer: Answer of the model that was loaded from the files.
        checked_with: The package that loaded them, with its version.
        loads_with: The package in a word.
        how_to_load: One line of Python.
        how_to_use: Instructions for the card, in Markdown.
        card_name: File of the card.
        card_header: Header in front of the card.
        notes: Notes to the reader.
        holds_adapters: The adapters are files of their own, and not part of weights.
    """

    answer: Answer
    checked_with: str
    loads_with: str
    how_to_load: str
    how_to_use: str
    card_name: str = "MODEL_CARD.md"
    card_header: str = ""
    notes: tuple[str, ...] = ()
    holds_adapters: bool = False


class Format(ABC):
    """One way to write a model.

    Attributes:
        name: As ``--format`` takes it.
        as_graph: Whether the file includes normalisation and probabilities.
        packages: Packages that are needed and may be missing.
    """

    name: ClassVar[str]
    as_graph: ClassVar[bool] = False
    packages: ClassVar[tuple[str, ...]] = ()

    def require(self) -> None:
        """Import what is needed before any work is done.

        Raises:
            MissingExtraError: A package is not installed.
        """
        for package in self.packages:
            optional.require(package, extra="export", needed_for=f"--format {self.name}")

    @abstractmethod
    def write(self, source: SourceModel, folder: Path) -> Written:
        """Write the model into ``folder`` and load it again.

        Raises:
            ExportError: It cannot be written in this format; the message says why.
            StorageError: Disk full, no permission …
        """


def python_block(code: str) -> str:
    """Code for a card."""
    return f"```python\n{code.strip()}\n```"
