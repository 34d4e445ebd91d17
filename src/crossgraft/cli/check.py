"""``crossgraft check``."""

from __future__ import annotations

from typing import Annotated

import typer

from crossgraft.cli import options
from crossgraft.cli.output import show

app = typer.Typer(rich_markup_mode=None)

EXIT_UNSOUND = 3


@app.command()
def check(
    context: typer.Context,
    data: Annotated[str, typer.Argument(help="Folder, CSV or TSV table, .npz file, hf:owner/name, or digits.")],
    label_column: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    class_names: options.ClassNames = None,
    ordinal: options.Ordinal = False,
    group_column: options.GroupColumn = None,
    path_column: options.PathColumn = None,
    image_root: options.ImageRoot = None,
    allow_outside: options.AllowOutside = False,
    window: options.Window = None,
    slices: options.Slices = None,
    split: options.Split = None,
    holdout: options.Holdout = None,
    folds: options.Folds = None,
    fold: options.Fold = 0,
    allow_download: options.AllowDownload = False,
    no_images: options.NoImages = False,
    show_names: options.ShowNames = False,
    seed: options.Seed = 0,
    workers: options.Workers = None,
    out: options.Out = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    config: options.Config = None,
    debug: options.Debug = False,
) -> None:
    """Look for what makes results wrong: copies and patients across splits, wrong labels, damaged images.

    Example: crossgraft check digits --holdout 0.2

    All rows of all splits are looked at. The exit code is 3 if something unsound was found, and 0 if there are only
    warnings and notices.
    """
    from crossgraft.cli.check_text import check_text
    from crossgraft.config import resolve, settings_model
    from crossgraft.options import CheckOptions
    from crossgraft.verbs.check_data import check_data

    reporter = options.make_reporter(quiet=quiet)
    known = settings_model(CheckOptions)
    arguments = resolve(known, file=config, given=options.typed_flags(context))
    found = options.in_own_directory(
        options.run_directories(arguments.pop("out"), "check", data),
        lambda directory: check_data(data, reporter=reporter, out=directory, **arguments),
    )
    if json:
        options.print_json(found.to_json())
    else:
        show(check_text(found.record, found.report))
    if not found.is_sound:
        raise typer.Exit(EXIT_UNSOUND)
