"""Options of ``export_model``."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from crossgraft.options._objects import Module, Reporter
from crossgraft.options._option import Options, option, options
from crossgraft.options.models import CodeOptions


@options
class FormatOptions(Options):
    """What is written, and where it goes."""

    group: ClassVar[str] = "Export"

    format: str = option("safetensors, torch, onnx, or peft (LoRA alone).", default="safetensors", is_common=True)
    out: str | Path | None = option(
        "New folder.", default=None, default_text="export/FORMAT in the run directory", is_common=True
    )
    overwrite: bool = option("Replace another export in that folder.", default=False)
    push_to: str | None = option(
        "Repository OWNER/NAME of the Hugging Face hub that the export is sent to as well.", default=None
    )
    private: bool = option(
        "Make a repository that is created for it private.", default=True, opposite="public", needs="push_to"
    )


@options
class ExportOptions(CodeOptions, FormatOptions):
    """Options of ``export_model``."""

    group: ClassVar[str] = "Export"

    network: Module | None = option(
        "The whole network, head included, where it cannot be built from its name; it is changed.",
        default=None,
        is_typed=False,
    )
    reporter: Reporter | None = option("Receiver of progress; silent when None.", default=None, is_typed=False)
