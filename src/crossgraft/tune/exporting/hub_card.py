"""The header that the hub of Hugging Face reads from a card."""

from __future__ import annotations

import re

from crossgraft.tune.exporting.source_model import SourceModel

_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9.-]*")
_LIBRARIES = ("timm",)  # names that the hub knows


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
