"""What ``predict`` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from crossgraft.result import Result
from crossgraft.tune.record import PredictionRecord, PredictionRow
from crossgraft.words.formatting import counted

if TYPE_CHECKING:
    import pandas as pd

UNREADABLE = "unreadable"
NO_LABEL = "none"
"""The decision where no label reaches its threshold."""


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Result[PredictionRecord]):
    """Predicted images: ``record`` has one row per image, in the order of the data.

    Attributes:
        names: The file or row of each image, relative to the data; not in ``record`` unless they were asked for.
        dicom_sr: Folder of DICOM structured reports, where they were asked for.
    """

    names: Sequence[str] = field(kw_only=True)
    dicom_sr: Path | None = field(default=None, kw_only=True)

    @property
    def shown(self) -> PredictionRecord:
        """The record, every row with its name."""
        named = [row.model_copy(update={"name": name}) for name, row in zip(self.names, self.record.rows, strict=True)]
        return self.record.model_copy(update={"rows": named})

    def summary(self) -> str:
        """The model, the data, and how many images of each class."""
        record = self.record
        counts = ", ".join(f"{name}: {number}" for name, number in record.predicted_counts.items())
        return f"{record.model.name} on {record.data_name}, {counted(len(self), 'image')}; {counts}"

    def places(self) -> Mapping[str, object]:
        """The table, and the report."""
        table = {} if self.out is None else {"Table": self.out / "predictions.csv"}
        reports = {} if self.dicom_sr is None else {"DICOM SR": self.dicom_sr}
        return {**table, **reports, **super().places()}

    def __len__(self) -> int:
        return len(self.record.rows)

    def to_frame(self) -> pd.DataFrame:
        """One row per image.

        ``image`` (its file or row), ``predicted`` (the most probable class), ``probability`` (of that class, after the
        temperature), ``decision`` (with the stored threshold; labels with ``; `` between them), one column ``probability
        CLASS`` a class, and where they are there ``target`` (the true class), ``seen`` (whether the model has learned from the
        image) and ``problem`` (why there is no prediction).
        """
        import pandas as pd

        classes = self.record.class_names
        rows = [self._row(name, row) for name, row in zip(self.names, self.record.rows, strict=True)]
        optional = [name for name in ("target", "seen", "problem") if any(row[name] not in (None, False) for row in rows)]
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
            "seen": row.seen,
            "problem": row.reason,
        }
