"""``predictions.csv``: what the model says about every row that it was measured on."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from crossgraft.tune.measuring.evaluation import FoldPredictions
from crossgraft.tune.planning.preparation import Preparation


def prediction_table(folds: Sequence[FoldPredictions], prepared: Preparation, *, show_names: bool) -> pd.DataFrame:
    """One row per image, in the order of the data: number from 1, part, truth, decision, probabilities, logits.

    Args:
        folds: Folds of the selected models.
        prepared: Data and task.
        show_names: Whether to include names of files, which may identify patients.
    """
    dataset, names = prepared.rows.dataset, prepared.rows.dataset.class_names
    parts: list[pd.DataFrame] = []
    for fold in folds:
        rows = fold.parts.test
        probabilities, decisions = fold.test_probabilities(prepared.task), fold.decisions(prepared.task)
        table: dict[str, object] = {"row": rows + 1}
        if show_names:
            table["name"] = [dataset.image_name(int(row)) for row in rows]
        table["split"] = "test" if fold.parts.fold is None else f"fold {fold.parts.fold}"
        for column, classes in (("target", dataset.targets[rows]), ("decision", decisions)):
            table[column] = ["; ".join(prepared.task.names_of(row, names)) for row in classes]
        table |= {f"probability {name}": probabilities[:, column] for column, name in enumerate(names)}
        table |= {f"logit {name}": fold.test_logits[:, column] for column, name in enumerate(names)}
        parts.append(pd.DataFrame(table))
    return pd.concat(parts).sort_values("row", ignore_index=True)
