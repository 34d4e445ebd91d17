"""A small grid over settings of training: which points there are, and how they are written."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crossgraft.errors import UnknownNameError, UsageError

GridPoint = dict[str, float | int]
"""Setting → value of one point; empty without a grid."""

KEEP_FACTOR = "keep_factor"
"""Setting that ``--keep`` looks for, as if a grid varied it."""

GRID_SETTINGS: Mapping[str, type[float] | type[int]] = {
    "learning_rate": float,
    "head_learning_rate": float,
    "weight_decay": float,
    "layer_decay": float,
    "batch_size": int,
    "epochs": int,
}
"""What a grid may vary; the rest changes what is compared, and is better a run of its own."""


def read_grid(grid: str | Sequence[str] | Mapping[str, Sequence[float | int]] | None) -> list[GridPoint]:
    """Every combination of the values, in the order in which they were written; one empty point without a grid.

    Args:
        grid: ``learning_rate=1e-3,1e-4``, several of these (in one text with commas), or a mapping of lists.

    Raises:
        UnknownNameError: A setting is not known; the message gives the nearest ones.
        UsageError: A setting is given twice, or a value is no number, or stands twice.

    >>> read_grid(["learning_rate=0.1,0.01", "batch_size=8"])
    [{'learning_rate': 0.1, 'batch_size': 8}, {'learning_rate': 0.01, 'batch_size': 8}]
    """
    axes: dict[str, list[float | int]] = {}
    for name, values in _pairs(grid):
        if name not in GRID_SETTINGS:
            raise UnknownNameError("setting of a grid", name, GRID_SETTINGS)
        if name in axes:
            raise UsageError(f"--grid gives {name} twice. Write all its values in one: --grid {name}=A,B,C.")
        numbers = [_number(name, value) for value in values]
        if len(set(numbers)) < len(numbers) or not numbers:
            raise UsageError(f"--grid {name} needs different values, for example --grid {name}=A,B.")
        axes[name] = numbers
    return [dict(zip(axes, point, strict=True)) for point in itertools.product(*axes.values())]


@dataclass(frozen=True)
class GridTraining:
    """One point of the grid on one fold.

    Attributes:
        fold: From 0; None without folds.
        point: Settings of the grid.
    """

    fold: int | None
    point: GridPoint

    @property
    def name(self) -> str:
        """For tables and folders: ``fold-1 learning_rate=0.001``; ``only`` where there is no other."""
        parts = ["" if self.fold is None else f"fold-{self.fold}", point_name(self.point)]
        return " ".join(part for part in parts if part) or "only"


def first_factor(point: GridPoint) -> GridPoint:
    """Where the search of ``--keep`` begins: as strong as the regulariser says."""
    return {**point, KEEP_FACTOR: 1.0}


def further_factors(fold: int | None, point: GridPoint) -> str:
    """Name of all other factors of one point, as a part of the work."""
    others = {name: value for name, value in point.items() if name != KEEP_FACTOR}
    return f"{GridTraining(fold, others).name}, further factors"


def point_name(point: Mapping[str, float | int]) -> str:
    """A point in words, also part of the name of a folder.

    >>> point_name({"learning_rate": 0.0001, "batch_size": 8})
    'learning_rate=0.0001,batch_size=8'
    """
    return ",".join(f"{name}={value:g}" for name, value in point.items())


def _pairs(
    grid: str | Sequence[str] | Mapping[str, Sequence[float | int]] | None,
) -> list[tuple[str, Sequence[object]]]:
    if grid is None:
        return []
    if isinstance(grid, Mapping):
        return [(name, list(values)) for name, values in grid.items()]
    pairs: list[tuple[str, list[object]]] = []
    texts = [grid] if isinstance(grid, str) else grid
    for part in (part.strip() for text in texts for part in text.split(",")):
        name, equals, value = part.rpartition("=")
        if equals:
            pairs.append((name.strip().replace("-", "_"), []))
        if not pairs:
            raise UsageError(f"--grid {part}: write SETTING=VALUE,VALUE, for example --grid learning_rate=1e-3,1e-4.")
        pairs[-1][1].extend([value] if value else [])
    return [*pairs]


def _number(name: str, value: object) -> float | int:
    try:
        number = float(str(value))
    except ValueError as error:
        raise UsageError(f"--grid {name}: {value} is no number.") from error
    if GRID_SETTINGS[name] is float:
        return number
    if number != int(number):
        raise UsageError(f"--grid {name}: {value} is not a whole number.")
    return int(number)
