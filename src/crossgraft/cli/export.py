"""``crossgraft export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crossgraft.cli import options
from crossgraft.cli.output import show

app = typer.Typer(rich_markup_mode=None)


@app.command()
def export(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="Run directory of crossgraft tune, or the folder model of one.")],
    format: Annotated[
        str, typer.Option("--format", help="safetensors, torch, onnx, or peft (LoRA alone).")
    ] = "safetensors",
    out: Annotated[
        Path | None, typer.Option("--out", help="New folder. [default: export/FORMAT in the run directory]")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace another export in that folder.")] = False,
    push_to: Annotated[
        str | None, typer.Option("--push-to", help="Also send it to this repository of the hub: OWNER/NAME.")
    ] = None,
    private: Annotated[bool, typer.Option("--private/--public", help="Of a repository that --push-to creates.")] = True,
    allow_code: options.AllowCode = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Write a fine-tuned model so that it works without crossgraft, and check that its outputs agree.

    Example: crossgraft export runs/tune-breast --format onnx

    safetensors is what timm or torchvision loads, laid out as on the hub of Hugging Face; torch (torch.export) and onnx
    hold the whole way from an image in [0, 1] to calibrated probabilities, for any batch size. Each is loaded again and
    compared with the model before it is kept. Nothing is sent anywhere without --push-to.
    """
    from crossgraft.cli.export_text import export_text
    from crossgraft.verbs.export_model import export_model

    given = {name: value for name, value in options.typed_flags(context).items() if name != "run"}
    exported = export_model(run, reporter=options.make_reporter(quiet=quiet), **given)  # pyright: ignore[reportArgumentType]
    if json:
        options.print_json(exported.to_json())
    else:
        show(export_text(exported))
