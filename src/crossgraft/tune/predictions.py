"""What ``predict`` returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from crossgraft.records import PredictionRecord, PredictionRow
from crossgraft.words.visible import visible

if TYPE_CHECKING:
    import pandas as pd

UNREADABLE = "unreadable"
NO_LABEL = "none"
"""The decision where no label reaches its threshold."""
_ROWS_SHOWN = 10


@dataclass(frozen=True)
class Predictions:
    """Predicted images: ``record`` holds every number, ``report`` the page if a run directory was written.

    Attributes:
        record: One row per image, in the order of the data; names of files are not in it unless they were asked for.
        names: The file or row of each image, relative to the data.
        out: The run directory, or None.
        report: The page, or None.
    """

    record: PredictionRecord
    names: Sequence[str] = field(repr=False)
    out: Path | None = None
    report: Path | None = None

    def __len__(self) -> int:
        return len(self.record.rows)

    def to_frame(self) -> pd.DataFrame:
        """One row per image.

        ``image`` (its file or row), ``predicted`` (the most probable class), ``probability`` (of that class, after the
        temperature), ``decision`` (with the stored threshold; labels with ``; `` between them), one column ``probability
        CLASS`` a class, and where they are there ``target`` (the true class) and ``problem`` (why there is no prediction).
        """
        import pandas as pd

        classes = self.record.class_names
        rows = [self._row(name, row) for name, row in zip(self.names, self.record.rows, strict=True)]
        optional = [name for name in ("target", "problem") if any(row[name] is not None for row in rows)]
        columns = ["image", "predicted", "probability", "decision", *(f"probability {name}" for name in classes)]
        return pd.DataFrame(rows, columns=[*columns, *optional])

    def _row(self, name: str, row: PredictionRow) -> dict[str, object]:
        classes, probabilities = self.record.class_names, row.probabilities
        best = None if not probabilities else max(range(len(classes)), key=probabilities.__getitem__)
        return {
            "image": name,
            "predicted": None if best is None else classes[best],
            "probability": None if best is None else probabilities[best],
            "decision": row.decision,
            **{f"probability {name}": value for name, value in zip(classes, probabilities, strict=False)},
            "target": row.target,
            "problem": row.reason,
        }

    def to_json(self) -> str:
        """The record as one JSON document with ``schema_version``; every row has its name."""
        named = [row.model_copy(update={"name": name}) for name, row in zip(self.names, self.record.rows, strict=True)]
        return self.record.model_copy(update={"rows": named}).model_dump_json()

    def __repr__(self) -> str:
        """One line: there may be thousands of images."""
        counts = ", ".join(f"{name}: {number}" for name, number in self.record.predicted_counts.items())
        return f"Predictions({self.record.data_name!r}, {len(self)} images; {counts})"

    def _repr_html_(self) -> str:
        frame = self.to_frame()
        more = f"<p>… and {len(frame) - _ROWS_SHOWN} more</p>" if len(frame) > _ROWS_SHOWN else ""
        model, data = escape(self.record.model.name), escape(self.record.data_name)
        table = frame.head(_ROWS_SHOWN).to_html(index=False, escape=True, float_format="{:.3f}".format)
        return visible(f"<p>{model} on {data}</p>{table}{more}", keep="\n")
