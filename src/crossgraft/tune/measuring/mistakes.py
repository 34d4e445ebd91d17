"""The wrong answers that a model is surest of: what to look at first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crossgraft.tasks import Decisions, Probabilities, Task
from crossgraft.tune.mistakes_record import MistakeRecord, MistakesRecord
from crossgraft.tune.predictions import NO_LABEL
from crossgraft.types import Targets

MOST_SHOWN = 12


def find_mistakes(
    probabilities: Probabilities,
    decisions: Decisions,
    targets: Targets,
    *,
    task: Task,
    class_names: Sequence[str],
    rows: np.ndarray,
) -> MistakesRecord:
    """Images that were answered wrongly, the surest answer first; of equally sure ones in the order of the data.

    Args:
        probabilities: (n, C), after temperature.
        decisions: In the form of targets.
        targets: What is true.
        task: Kind of the targets.
        class_names: Names of the classes or labels.
        rows: Place of each image in the data.
    """
    wrong = task.wrong_answers(probabilities, decisions, targets)
    surest = np.where(np.isnan(wrong), -np.inf, wrong).max(axis=1)
    is_wrong = np.isfinite(surest)
    order = np.lexsort((rows, -surest))[: min(MOST_SHOWN, int(is_wrong.sum()))]
    said = task.marks(decisions, len(class_names))
    records: list[MistakeRecord] = []
    for place in order.tolist():
        column = int(np.nanargmax(wrong[place]))
        records.append(
            MistakeRecord(
                row=int(rows[place]) + 1,
                target="; ".join(task.names_of(targets[place], class_names)) or NO_LABEL,
                answer=class_names[column] if said[place, column] else f"no {class_names[column]}",
                probability=float(surest[place]),
            )
        )
    return MistakesRecord(num_wrong=int(is_wrong.sum()), num_images=len(rows), most_certain=records)
