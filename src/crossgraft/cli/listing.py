"""What ``crossgraft list`` shows: rows of registries, as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from crossgraft.registry import Registry
from crossgraft.words.text_table import text_table, wrap

Listed = Literal[
    "scores",
    "models",
    "sources",
    "results",
    "methods",
    "regularizers",
    "batch-transforms",
    "augmentations",
    "losses",
    "heads",
    "samplers",
    "confounders",
]
Rows = list[dict[str, object]]
_TOO_LONG = ("options", "cost", "reference")
"""What is shown below the table, because it is too long for a column."""


def rows_of(kind: Listed, *, available: bool, weights_dir: str | Path | None) -> Rows:
    """One row per name.

    Args:
        kind: What to list.
        available: Only models whose weights are on this machine.
        weights_dir: Where weights of models are looked for too.
    """
    rows: Mapping[str, Callable[[], Rows]] = {
        "scores": _scores,
        "models": lambda: _models(available, weights_dir),
        "sources": _sources,
        "results": _results,
        "heads": _heads,
        "samplers": _samplers,
        "confounders": _confounders,
    }
    return rows[kind]() if kind in rows else _slot(kind.replace("-", "_"))


def rows_as_text(rows: Rows) -> str:
    """A table, and below it what is too long for a column."""
    if not rows:
        return "None."
    columns = [name for name in rows[0] if name not in _TOO_LONG]
    parts = [text_table(columns, [[str(row[name]) for name in columns] for row in rows], is_whole=True)]
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


def _models(available: bool, weights_dir: str | Path | None) -> Rows:
    from crossgraft.models import list_available_models

    rows = list_available_models(weights_dir=weights_dir)
    return [
        {
            "model": row.name,
            "family": row.family,
            "available": "yes" if row.available else "no",
            "weights": row.where,
        }
        for row in rows
        if row.available or not available
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
            "from": registry.origin(name),
            "reference": plugin.citation,
        }
        for name, plugin in registry
    ]


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
    from crossgraft.audit.catalogue import edits_by_place, options_with_units

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


def _results() -> Rows:
    from crossgraft.rank.results_store import known_results

    return [
        {
            "model": row.model,
            "source": row.source,
            "target": row.target,
            "method": row.method,
            "metric": row.metric,
            "value": f"{row.value:.4f}",
            "interval": "" if row.low is None or row.high is None else f"[{row.low:.4f}, {row.high:.4f}]",
            "from": row.origin,
        }
        for row in known_results()
    ]
