"""What is told once every model has a value: a table in the progress, which the result completes."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.progress import Reporter
from crossgraft.rank.assemble import build_cells
from crossgraft.rank.evaluate import FirstValues, ModelEvaluation
from crossgraft.scores import AnyScore
from crossgraft.words.formatting import NumberFormat, counted
from crossgraft.words.text_table import text_table

_MOST_ROWS = 20


def tell_values(
    members: Sequence[FirstValues], scores: Sequence[AnyScore], primary: str, reporter: Reporter, *, scenario: str = "datasets"
) -> None:
    """Say the value of every score of every model, the best by ``primary`` first; intervals, ranks and controls are to come.

    Args:
        members: Candidates.
        scores: In the order of the columns.
        primary: Name of the score that orders them.
        reporter: Who says it.
        scenario: For scores that ask for it.
    """
    models = [ModelEvaluation(key=each.key, model=each.model, evaluations=each.values) for each in members]
    values = {score.name: [cell.value for cell in build_cells(score, models, scenario=scenario)] for score in scores}
    order = sorted(range(len(models)), key=lambda place: -_or_lowest(values[primary][place]))
    columns = [(score.title, values[score.name], NumberFormat.for_column(values[score.name])) for score in scores]
    titles = [title for title, _, _ in columns]
    rows = [
        [models[place].model.name, *(as_text(column[place]) for _, column, as_text in columns)] for place in order[:_MOST_ROWS]
    ]
    reporter.say(f"Values of {counted(len(models), 'model')}; intervals and controls follow:")
    for line in text_table(["Model", *titles], rows, right=titles).splitlines():
        reporter.say(line)
    if len(order) > _MOST_ROWS:
        reporter.say(f"… and {counted(len(order) - _MOST_ROWS, 'model')} more.")


def _or_lowest(value: float | None) -> float:
    return float("-inf") if value is None else value
