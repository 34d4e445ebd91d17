"""``model.safetensors`` with the names of the network's own library, laid out as on the hub of Hugging Face."""

from __future__ import annotations

import re
from pathlib import Path

import safetensors.torch

from crossgraft.export.checking import logits_of_network
from crossgraft.export.own_layout import own_layout
from crossgraft.export.source_model import SourceModel
from crossgraft.export.timm_layout import timm_layout
from crossgraft.export.torchvision_layout import torchvision_layout
from crossgraft.export.weights_layout import FILE, Layout
from crossgraft.export.whole_network import refuse_adapters
from crossgraft.export.written import Format, Written
from crossgraft.models.spec import is_factory_source, library_name
from crossgraft.storage.atomic import write_atomically

_OF_LIBRARY = {"timm": timm_layout, "torchvision": torchvision_layout}
_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9.-]*")
_LIBRARIES = ("timm",)  # names that the hub knows


class SafetensorsLayout(Format):
    """For timm, torchvision, or whoever has the code of the network."""

    name = "safetensors"

    def write(self, source: SourceModel, folder: Path) -> Written:
        """Weights under their original names, what the library needs beside them, and a network loaded from both."""
        layout = _layout(source)
        state = {name: tensor.contiguous().clone() for name, tensor in layout.network.state_dict().items()}
        write_atomically(folder / FILE, safetensors.torch.save(state, metadata={"format": "pt"}))
        for name, text in layout.more_files.items():
            write_atomically(folder / name, text)
        return Written(
            answer=logits_of_network(layout.load(folder).eval(), source.classifier.preprocessing),
            checked_with=layout.checked_with,
            loads_with=layout.loads_with,
            how_to_load=layout.how_to_load,
            how_to_use=layout.how_to_use,
            card_name="README.md",
            card_header=hub_header(source, library=layout.loads_with),
            notes=layout.notes,
        )


def _layout(source: SourceModel) -> Layout:
    refuse_adapters(source)
    recipe = source.classifier.recipe.network
    if recipe is None or is_factory_source(recipe.source):
        return own_layout(source)
    return _OF_LIBRARY[library_name(recipe.source)](source, recipe)


def hub_header(source: SourceModel, *, library: str) -> str:
    """YAML between dashes; a licence only where that of the pretrained weights is known and is one word, as the hub has them."""
    licence = source.licence
    lines = [
        "---",
        *([f"library_name: {library}"] if library in _LIBRARIES else []),
        "pipeline_tag: image-classification",
        *([f"license: {licence}"] if licence is not None and _IDENTIFIER.fullmatch(licence) else []),
        "tags:",
        "- image-classification",
        *([f"- {library}"] if library in ("timm", "torchvision") else []),
        "- crossgraft",
        "---",
    ]
    return "\n".join(lines) + "\n\n"
