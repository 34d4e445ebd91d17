"""What ``crossgraft list`` shows: rows of registries, as a table."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crossgraft.cli.output import is_terminal
from crossgraft.errors import UsageError
from crossgraft.options.models import SMALL_MODELS, THEIR_SIZE
from crossgraft.registry import Registry
from crossgraft.words.text_table import text_table, wrap

if TYPE_CHECKING:
    from crossgraft.tune.presets import Preset

Listed = Literal[
    "scores",
    "models",
    "model-libraries",
    "sources",
    "results",
    "methods",
    "regularizers",
    "batch-transforms",
    "augmentations",
    "losses",
    "schedules",
    "presets",
    "heads",
    "samplers",
    "confounders",
]
Rows = list[dict[str, object]]
_TOO_LONG = ("options", "sets", "differs", "cost", "reference")
"""What is shown below the table, because it is too long for a column."""


def rows_of(
    kind: Listed,
    *,
    available: bool,
    weights_dir: str | Path | None,
    search: str | None = None,
    only_model: str | None = None,
    only_target: str | None = None,
    only_from: str | None = None,
) -> Rows:
    """One row per name.

    Args:
        kind: What to list.
        available: Only models whose weights are on this machine.
        weights_dir: Where weights of models are looked for too.
        search: Text in the names of models, or in what they were trained on.
        only_model: Text in the names of the models of known results.
        only_target: Text in the names of their targets.
        only_from: Text in the name of the publication or command.

    Raises:
        UsageError: A filter of results, or an option of models, is given with another kind.
    """
    filters = {"--only-model": only_model, "--only-target": only_target, "--only-from": only_from}
    named = next((flag for flag, text in filters.items() if text is not None), None)
    if kind != "results" and named is not None:
        raise UsageError(f"{named} is for known results: crossgraft list results {named} TEXT.")
    about_models = {"--available": available, "--weights-dir": weights_dir is not None, "--search": search is not None}
    surplus = next((flag for flag, is_said in about_models.items() if is_said), None)
    if kind != "models" and surplus is not None:
        raise UsageError(f"{surplus} is for models: crossgraft list models {surplus}. Leave it out here.")
    rows: Mapping[str, Callable[[], Rows]] = {
        "scores": _scores,
        "models": lambda: _models(available, weights_dir, search),
        "sources": _sources,
        "results": lambda: _results(only_model, only_target, only_from),
        "heads": _heads,
        "model-libraries": _libraries,
        "samplers": _samplers,
        "confounders": _confounders,
    }
    return rows[kind]() if kind in rows else _slot(kind.replace("-", "_"))


def after_models(rows: Rows, weights_dir: str | Path | None) -> str:
    """What to type next: to rank what is on this machine, or to download two small models."""
    here = ",".join(str(row["model"]) for row in rows if row["available"] == "yes")
    if not here:
        line = f"crossgraft rank DATA --models {SMALL_MODELS} --allow-download"
        return f"Next, to download two small models ({THEIR_SIZE}) and rank them for your images:\n  {line}"
    folder = [] if weights_dir is None else ["--weights-dir", str(weights_dir)]
    line = shlex.join(["crossgraft", "rank", "DATA", "--models", here, *folder])
    return f"Next, to rank those on this machine for your images:\n  {line}"


def rows_as_text(rows: Rows) -> str:
    """A table, and below it what is too long for a column."""
    if not rows:
        return "None."
    columns = [name for name in rows[0] if name not in _TOO_LONG and any(row[name] != "" for row in rows)]
    # Results are long: they fit the terminal, and stay whole in a pipe, where names are to be copied.
    is_narrow = "interval" in rows[0] and (is_terminal() or "COLUMNS" in os.environ)
    cells = [[str(row[name]) for row in rows] for name in columns]
    parts = [
        text_table(
            columns,
            list(zip(*cells, strict=True)),
            right=("value", "interval") if "interval" in rows[0] else (),
            is_whole=not is_narrow,
        )
    ]
    for below in _TOO_LONG:
        texts = [wrap(f"{row[columns[0]]}: {row[below]}", indent="  ") for row in rows if row.get(below)]
        parts += ["\n".join([f"{below}:", *texts])] if texts else []
    return "\n\n".join(parts)


def _scores() -> Rows:
    from crossgraft.scores import DEFAULT_SCORES, SCORES

    return [
        {
            "score": name,
            "title": score.title,
            "needs": score.needs,
            "default": "yes" if name in DEFAULT_SCORES else "no",
            "from": SCORES.origin(name),
            "cost": score.cost,
            "reference": score.reference,
        }
        for name, score in SCORES
    ]


def _models(available: bool, weights_dir: str | Path | None, search: str | None) -> Rows:
    from crossgraft.models import list_available_models

    rows = list_available_models(weights_dir=weights_dir, search=search)
    return [
        {
            "model": row.name,
            "family": row.family,
            "parameters": "" if row.num_parameters is None else f"{row.num_parameters / 1e6:.1f} M",
            "licence": row.licence or "",
            "available": "yes" if row.available else "no",
            "weights": row.where,
        }
        for row in rows
        if row.available or not available
    ]


def _libraries() -> Rows:
    from crossgraft.models.sources.libraries import LIBRARIES

    return [
        {"library": name, "title": library.title, "type": library.form, "from": LIBRARIES.origin(name)}
        for name, library in LIBRARIES
    ]


def _sources() -> Rows:
    from crossgraft.data import SOURCES

    return [{"source": name, "reads": source.description, "from": SOURCES.origin(name)} for name, source in SOURCES]


def _slot(kind: str) -> Rows:
    """One kind of plug-in of ``tune``; its options stand with their defaults."""
    from crossgraft.tune.slots import options_in_words, slots

    registry = slots()[kind]
    return [
        {
            "name": name,
            "title": plugin.title,
            "options": options_in_words(plugin) or "none",
            **(_of_preset(plugin) if kind == "presets" else {}),
            "from": registry.origin(name),
            "reference": plugin.citation,
        }
        for name, plugin in registry
    ]


def _of_preset(plugin: type[Preset]) -> dict[str, object]:
    """What it sets without options, and what it does otherwise than its publication."""
    sets = {name: " ".join(map(str, value)) if isinstance(value, tuple) else value for name, value in plugin().settings.items()}
    settings = ", ".join(f"{name}={value}" for name, value in sets.items())
    return {"command": plugin.command, "sets": settings, "differs": plugin.differs}


def _heads() -> Rows:
    from crossgraft.fewshot import HEADS

    return _of_fewshot(HEADS)


def _samplers() -> Rows:
    from crossgraft.fewshot import SAMPLERS

    return _of_fewshot(SAMPLERS)


def _of_fewshot(registry: Registry[type[Any]]) -> Rows:
    """One kind of plug-in of ``fewshot``; its options stand with their defaults."""
    from crossgraft.tune.slots import options_in_words

    return [
        {
            "name": name,
            "title": plugin.title,
            "options": options_in_words(plugin) or "none",
            "from": registry.origin(name),
            "reference": plugin.reference,
        }
        for name, plugin in registry
    ]


def _confounders() -> Rows:
    """By their place in MICCAT, those of the patient first; then edits that are no confounder."""
    from crossgraft.edit.edits import edits_by_place, options_with_units

    how = "COLUMN:VALUE, as sex:F or age:>60 (crossgraft audit)"
    thesis = "Juodelyte, thesis on cross-domain transfer in medical imaging, chapter 4"
    of_patients: Rows = [
        {"title": "Sex, age, ethnicity …", "place": "patient › demographic", "options": how, "reference": thesis},
        {"title": "Body size, density, implants …", "place": "patient › anatomical", "options": "", "reference": ""},
    ]
    of_patients = [{"name": "--attribute COLUMN", "touches": "which images are taken", **row} for row in of_patients]
    order = ("name", "title", "place", "touches", "options", "reference")
    return [{name: row[name] for name in order} for row in of_patients] + [
        {
            "name": name,
            "title": edit.title,
            "place": place,
            "touches": scope,
            "options": options_with_units(edit) or "none",
            "reference": edit.reference,
        }
        for place, scope, name, edit in edits_by_place()
    ]


def _results(*filters: str | None) -> Rows:
    """Own results one by one; a publication on one line unless its results are asked for."""
    from crossgraft.rank.results_store import known_lines

    return known_lines(*filters)
