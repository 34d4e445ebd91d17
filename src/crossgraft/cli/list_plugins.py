"""``crossgraft list``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from crossgraft.cli import options
from crossgraft.cli.text_table import text_table

app = typer.Typer(rich_markup_mode=None)

Rows = list[dict[str, object]]


@app.command(name="list")
def list_plugins(
    kind: Annotated[Literal["scores", "models", "sources"], typer.Argument(help="scores, models or sources.")],
    available: Annotated[
        bool, typer.Option("--available", help="Only models whose weights are on this machine.")
    ] = False,
    weights_dir: options.WeightsDir = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Show what there is: scores, models, kinds of data sources; other packages may add to each.

    Example: crossgraft list scores
    """
    import json as json_module

    from crossgraft.records import SCHEMA_VERSION

    rows = {"scores": _scores, "models": lambda: _models(available, weights_dir), "sources": _sources}[kind]()
    if json:
        typer.echo(json_module.dumps({"schema_version": SCHEMA_VERSION, kind: rows}))
    else:
        typer.echo(text_table(list(rows[0]), [[str(value) for value in row.values()] for row in rows]) if rows else "None.")


def _scores() -> Rows:
    from crossgraft.scores import DEFAULT_SCORES, SCORES

    return [
        {
            "score": name,
            "title": score.title,
            "needs": ", ".join(score.inputs),
            "default": "yes" if name in DEFAULT_SCORES else "no",
            "from": SCORES.origin(name),
            "reference": score.reference,
        }
        for name, score in SCORES
    ]


def _models(available: bool, weights_dir: Path | None) -> Rows:
    from crossgraft.models import list_available_models

    rows = list_available_models(weights_dir=weights_dir)
    return [
        {"model": row.name, "family": row.family, "available": "yes" if row.available else "no", "weights": row.where}
        for row in rows
        if row.available or not available
    ]


def _sources() -> Rows:
    from crossgraft.data import SOURCES

    return [
        {"source": name, "reads": source.reads, "from": SOURCES.origin(name)} for name, source in SOURCES
    ]
