"""``crossgraft demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crossgraft.cli import options
from crossgraft.cli.output import show

app = typer.Typer(rich_markup_mode=None)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Run directory.")] = Path("runs/demo"),
    seed: options.Seed = 0,
    cache_dir: options.CacheDir = None,
    fast: Annotated[bool, typer.Option("--fast", help="Fewer models and steps, to see that it runs.")] = False,
    no_images: options.NoImages = False,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """See everything once, offline, on real handwriting: toy models are trained, ranked and checked.

    Example: crossgraft demo
    """
    from crossgraft.cli.demo_text import demo_text
    from crossgraft.demo import write_demo

    reporter = options.make_reporter(quiet=quiet)
    record, report = write_demo(
        out=out,
        seed=seed,
        cache_dir=cache_dir,
        fast=fast,
        no_images=no_images,
        overwrite=overwrite,
        reporter=reporter,
    )
    if json:
        options.print_json(record.model_dump_json())
    else:
        show(demo_text(record, out, report))
