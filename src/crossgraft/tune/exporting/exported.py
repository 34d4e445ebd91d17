"""What ``export_model`` returns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crossgraft.records import ExportRecord

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Exported:
    """An exported model: ``record`` says what it is and how far its outputs agree.

    Attributes:
        record: The same as ``export.json`` in the folder.
        out: The folder.
    """

    record: ExportRecord
    out: Path

    def to_frame(self) -> pd.DataFrame:
        """One row per file: ``file``, ``bytes`` and ``sha256``."""
        import pandas as pd

        rows = [(file.name, file.num_bytes, file.sha256) for file in self.record.files]
        return pd.DataFrame(rows, columns=["file", "bytes", "sha256"])

    def to_json(self) -> str:
        """The record as one JSON document with ``schema_version``."""
        return self.record.model_dump_json()

    def _repr_html_(self) -> str:
        """A short table for notebooks."""
        from crossgraft.words.notebook import facts_table

        record = self.record
        return facts_table(
            f"{record.model.name}, exported as {record.format}",
            {
                "folder": self.out,
                "loads with": record.loads_with,
                "largest difference of a logit": f"{record.agreement.largest_logit_difference:.1e}",
                "images compared": record.agreement.num_images,
                "on the hub": record.pushed_to,
                "use": record.model.use,
            },
        )
