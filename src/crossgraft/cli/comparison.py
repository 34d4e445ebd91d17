"""``crossgraft tune --compare``: several fine-tunings instead of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from crossgraft.cli import options
from crossgraft.cli.output import show
from crossgraft.errors import UsageError
from crossgraft.progress import Reporter

if TYPE_CHECKING:
    from pydantic import BaseModel

EXIT_PARTIAL = 6


def with_comparison(settings: type[BaseModel]) -> type[BaseModel]:
    """The settings of ``fine_tune`` and the two of a comparison, which may stand in the same file."""
    from pydantic import create_model

    added: dict[str, Any] = {"compare": (str | list[str | dict[str, Any]] | None, None), "seeds": (int | None, None)}
    return create_model(settings.__name__, __base__=settings, **added)


def refuse_seeds(seeds: int | None) -> None:
    """One training has one seed.

    Raises:
        UsageError: Several were asked for.
    """
    if seeds is not None:
        raise UsageError(
            "--seeds says how often each way of --compare is trained. Give --compare too, or --seed for one training."
        )


def compare_and_print(data: str, arguments: Mapping[str, Any], *, reporter: Reporter, as_json: bool) -> None:
    """Train all variants and print the table, or the plan.

    Args:
        data: As typed.
        arguments: Of ``compare_fine_tunings``; ``seeds`` may be None.
        reporter: Where progress goes.
        as_json: One document instead of text.
    """
    from crossgraft.cli.comparison_text import comparison_text
    from crossgraft.verbs.compare_fine_tunings import compare_fine_tunings

    call = dict(arguments)
    if call["seeds"] is None:
        call["seeds"] = 1
    found = options.in_own_directory(
        options.run_directories(call.pop("out"), "compare", data),
        lambda directory: compare_fine_tunings(data, reporter=reporter, out=directory, **call),
    )
    if as_json:
        options.print_json(found.to_json())
    elif found.comparison is None:
        show(found.summary())
    else:
        show(comparison_text(found.record, found.report))
    if found.comparison is not None and any(row.state == "failed" for row in found.record.trainings):
        raise typer.Exit(EXIT_PARTIAL)
