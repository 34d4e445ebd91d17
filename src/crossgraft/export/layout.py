"""What a folder of exported weights is made of, whichever library loads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor, nn

from crossgraft.export.source_model import SourceModel

FILE = "model.safetensors"


@dataclass(frozen=True, eq=False)
class Layout:
    """A network with its new head, and how somebody else gets the same from the folder.

    Attributes:
        network: Its state dict is written.
        load: Function that does what a reader of the folder would do.
        checked_with: The package that ``load`` uses, with its version.
        loads_with: The package in a word.
        how_to_load: One line of Python.
        how_to_use: Instructions for the card, in Markdown.
        more_files: Name → text.
        more_tensors: Name of a file → its tensors.
        notes: Notes to the reader.
    """

    network: nn.Module
    load: Callable[[Path], nn.Module]
    checked_with: str
    loads_with: str
    how_to_load: str
    how_to_use: str
    more_files: Mapping[str, str] = field(default_factory=dict)
    more_tensors: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def probabilities_line(source: SourceModel) -> str:
    """Python for the last step, which is not in the weights."""
    activation = {"sigmoid": "torch.sigmoid(logits{})", "softmax": "torch.softmax(logits{}, dim=1)"}[source.task.activation]
    divided = "" if source.facts.temperature is None else f" / {source.facts.temperature!r}"
    return f"probabilities = {activation.format(divided)}  # of {len(source.facts.class_names)} classes in description.json"
