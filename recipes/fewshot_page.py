"""The page docs/results/fewshot.md, written of the rows that recipes/fewshot.py keeps; adapts nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fewshot_rows import BALANCED
from fewshot_tables import (
    EQUAL,
    FIVE,
    SHOTS,
    Tables,
    accuracies_table,
    balanced_table,
    costs_table,
    gains_table,
    inside_table,
    named_table,
    on_gpus,
    rates_table,
    sets_table,
    told,
    without_depthwise,
)
from fewshot_text import PAGE

from crossgraft.storage.atomic import write_atomically


def write_page(out: Path, tables: Tables, titles: Mapping[str, str]) -> None:
    """Write the page; what is missing is a dash."""
    text = PAGE.format(
        num_rows=sum(map(len, tables.values())),
        sets="; ".join(titles.values()),
        gains=gains_table(tables, "heads", EQUAL),
        by_set=sets_table(tables, titles),
        uneven=gains_table(tables, "heads", ["meta_dataset"]),
        balanced_gains=gains_table(tables, BALANCED, ["meta_dataset"]),
        balanced=balanced_table(tables, titles),
        told=told(tables),
        heads="".join(accuracies_table(tables, titles, rule) for rule in SHOTS),
        named=named_table(tables, titles),
        inside=inside_table(tables, titles),
        on_gpus=on_gpus(tables),
        inside_gains=gains_table(tables, "inside", [FIVE]),
        rates=rates_table(tables, titles),
        tsa_elsewhere=without_depthwise(tables, "tsa:learning_rate=unseen"),
        costs=costs_table(tables),
    )
    write_atomically(out, text)
