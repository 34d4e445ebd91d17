"""Options of ``export_model``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from crossgraft.options._option import FromProgram, Options, option, options
from crossgraft.options.command import RUN_INPUT, Command
from crossgraft.options.models import CodeOptions
from crossgraft.options.running import Debug, Json, Quiet

if TYPE_CHECKING:
    from torch.nn import Module

    from crossgraft.progress import Reporter
else:
    Module = Reporter = FromProgram


@options
class FormatOptions(Options):
    """What is written, and where it goes."""

    group: ClassVar[str] = "Export"

    format: str = option(
        "safetensors, torch, onnx, triton, openvino, or peft (LoRA alone).", default="safetensors", is_common=True
    )
    out: str | Path | None = option(
        "New folder.", default=None, default_text="export/FORMAT in the run directory", is_common=True
    )
    overwrite: bool = option("Replace another export in that folder.", default=False)
    push_to: str | None = option(
        "Repository OWNER/NAME of the Hugging Face hub that the export is sent to as well.", default=None
    )
    private: bool = option("Make a repository that is created for it private.", default=True, opposite="public", needs="push_to")


@options
class ExportOptions(CodeOptions, FormatOptions):
    """Options of ``export_model``."""

    group: ClassVar[str] = "Export"

    network: Module | None = option(
        "The whole network, head included, where it cannot be built from its name; it is changed.", default=None, is_typed=False
    )
    reporter: Reporter | None = option("Receiver of progress; silent when None.", default=None, is_typed=False)


COMMAND = Command(
    "export",
    "Write a fine-tuned model so that it works without crossgraft, and check that its outputs agree.",
    example="export runs/tune-breast --format onnx",
    inputs=(RUN_INPUT,),
    options=(ExportOptions, Json, Quiet, Debug),
    verb="crossgraft.export.verb:export_model",
    notes="safetensors is what timm or torchvision loads, laid out as on the hub of Hugging Face; torch (torch.export) "
    "and onnx (triton is a repository with it, openvino is made of it) hold the whole way from an image in [0, 1] to "
    "calibrated probabilities, for any batch size. Each is loaded again and compared with the model before it is kept. "
    "Nothing is sent anywhere without --push-to.",
    place=140,
)
