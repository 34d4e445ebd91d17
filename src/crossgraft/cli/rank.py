"""``crossgraft rank``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crossgraft.cli import options
from crossgraft.cli.output import show

app = typer.Typer(rich_markup_mode=None)


@app.command()
def rank(
    context: typer.Context,
    data: Annotated[
        str | None, typer.Argument(help="Folder, CSV or TSV table, .npz file, hf:owner/name, or digits.")
    ] = None,
    published: Annotated[
        str | None,
        typer.Option("--published", help="No data: evaluate thesis, itm, or a CSV of your results, again."),
    ] = None,
    models: options.Models = None,
    scores: Annotated[str, typer.Option("--scores", help="default, all, or names with commas.")] = "default",
    by: Annotated[str | None, typer.Option("--by", help="Score that orders the ranking. [default: logme]")] = None,
    ground_truth: Annotated[
        Path | None,
        typer.Option("--ground-truth", help="CSV of fine-tuned results: model, and a column of numbers."),
    ] = None,
    ground_truth_column: Annotated[
        str | None, typer.Option("--ground-truth-column", help="Which column, when there are several.")
    ] = None,
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
    per_class: options.PerClass = None,
    limit: options.Limit = None,
    skip_unreadable: options.SkipUnreadable = False,
    weights_dir: options.WeightsDir = None,
    allow_download: options.AllowDownload = False,
    allow_code: options.AllowCode = None,
    image_size: Annotated[int | None, typer.Option("--image-size", min=1, help="Input side in pixels.")] = None,
    resize_policy: Annotated[str | None, typer.Option("--resize-policy", help="crop, squash or pad.")] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, help="Images at a time. [default: what is fastest]")
    ] = None,
    all_intervals: Annotated[
        bool, typer.Option("--all-intervals", help="Intervals also for scores that take over a minute once.")
    ] = False,
    strict: options.Strict = False,
    no_images: options.NoImages = False,
    show_names: options.ShowNames = False,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    workers: options.Workers = None,
    cache_dir: options.CacheDir = None,
    out: options.Out = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    config: options.Config = None,
    debug: options.Debug = False,
) -> None:
    """Rank pretrained models for your labelled images, without fine-tuning them.

    Example: crossgraft rank digits --models resnet18,mobilenetv2_100

    Only rows of split "train" are read (all rows if there is no split); "test" is never opened.
    """
    from crossgraft.cli.ranking_text import ranking_text
    from crossgraft.config import resolve, settings_model
    from crossgraft.errors import UsageError
    from crossgraft.options import RankOptions
    from crossgraft.verbs.rank_models import rank_models

    if published is not None:
        _evaluate_published(context, published, out=out, overwrite=overwrite, json=json)
        return
    if data is None:
        raise UsageError("Name the images to rank for, for example: crossgraft rank digits (or --published thesis).")
    reporter = options.make_reporter(quiet=quiet)
    known = settings_model(RankOptions)
    given = options.typed_flags(context)
    arguments = resolve(known, file=config, given=given)
    if config is not None:
        options.models_of_file(arguments, given)
    ranking = options.in_own_directory(
        options.run_directories(arguments.pop("out"), "rank", data),
        lambda directory: rank_models(data, reporter=reporter, out=directory, **arguments),
    )
    if json:
        options.print_json(ranking.to_json())
    else:
        show(ranking_text(ranking.record, ranking.report))


def _evaluate_published(context: typer.Context, name: str, *, out: Path | None, overwrite: bool, json: bool) -> None:
    from crossgraft.cli.published_text import published_text
    from crossgraft.errors import UsageError
    from crossgraft.verbs.evaluate_published import evaluate_published

    surplus = {*options.typed_flags(context)} - {"published", "out", "overwrite"}
    if context.params["data"] is not None or surplus:
        what = "DATA" if context.params["data"] is not None else "--" + min(surplus).replace("_", "-")
        raise UsageError(f"--published evaluates results that are there already; it can not be used with {what}.")
    reporter = options.make_reporter(quiet=True)
    record, directory = options.in_own_directory(
        options.run_directories(out, "rank", name),
        lambda directory: (evaluate_published(name, out=directory, overwrite=overwrite, reporter=reporter), directory),
    )
    if json:
        options.print_json(record.model_dump_json())
    else:
        page = directory / "report.html"
        show(published_text(record, page if page.is_file() else None))
