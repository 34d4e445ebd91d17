"""``crossgraft predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crossgraft.cli import options
from crossgraft.cli.output import show

app = typer.Typer(rich_markup_mode=None)


@app.command()
def predict(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(help="Run directory of crossgraft tune, or the folder model of one.")],
    images: Annotated[str, typer.Argument(help="Image file, folder of images, CSV or TSV table of paths, .npz file …")],
    use_split: Annotated[
        str | None, typer.Option("--use-split", help="Of data with splits, for example test. [default: all rows]")
    ] = None,
    label_column: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    group_column: options.GroupColumn = None,
    path_column: options.PathColumn = None,
    image_root: options.ImageRoot = None,
    allow_outside: options.AllowOutside = False,
    window: options.Window = None,
    slices: options.Slices = None,
    allow_download: options.AllowDownload = False,
    skip_unreadable: options.SkipUnreadable = False,
    allow_code: options.AllowCode = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, help="Images at a time. [default: 64]")
    ] = None,
    no_images: options.NoImages = False,
    show_names: options.ShowNames = False,
    device: options.Device = "auto",
    workers: options.Workers = None,
    out: options.Out = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    config: options.Config = None,
    debug: options.Debug = False,
) -> None:
    """Predict the class of images with a fine-tuned model: calibrated probability and decision.

    Example: crossgraft predict runs/tune-breast new_images/

    Images need no labels. Where they have some (folders, or a column, named as the classes of the model), metrics with
    intervals are measured as well. predictions.csv in the run directory has one row an image.
    """
    from crossgraft.cli.predict_text import predict_text
    from crossgraft.config import resolve, settings_model
    from crossgraft.options import PredictOptions
    from crossgraft.verbs.predict import predict as predict_images

    reporter = options.make_reporter(quiet=quiet)
    known = settings_model(PredictOptions)
    given = {name: value for name, value in options.typed_flags(context).items() if name not in ("run", "images")}
    arguments = resolve(known, file=config, given=given)
    predictions = options.in_own_directory(
        options.run_directories(arguments.pop("out"), "predict", images),
        lambda directory: predict_images(run, images, reporter=reporter, out=directory, **arguments),
    )
    if json:
        options.print_json(predictions.to_json())
    else:
        show(predict_text(predictions))
