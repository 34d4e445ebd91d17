"""The formats by the names that ``--format`` takes."""

from __future__ import annotations

from crossgraft.errors import UnknownNameError
from crossgraft.export.onnx_model import OnnxModel
from crossgraft.export.peft_adapter import PeftAdapterFiles
from crossgraft.export.safetensors_layout import SafetensorsLayout
from crossgraft.export.torch_program import TorchProgram
from crossgraft.export.written import Format

FORMATS: dict[str, Format] = {
    kind.name: kind for kind in (SafetensorsLayout(), TorchProgram(), OnnxModel(), PeftAdapterFiles())
}


def find_format(name: str) -> Format:
    """The format called ``name``, its packages imported.

    Raises:
        UnknownNameError: With the nearest names.
        MissingExtraError: A package that it needs is not installed.
    """
    if name not in FORMATS:
        raise UnknownNameError("format", name, FORMATS)
    FORMATS[name].require()
    return FORMATS[name]
