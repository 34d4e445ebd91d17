"""What ``export_model`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crossgraft.export.record import ExportRecord
from crossgraft.result import Result

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Exported(Result[ExportRecord]):
    """An exported model: ``record``, which is ``export.json`` in the folder ``out``, says how far its outputs agree."""

    def summary(self) -> str:
        """What it is, how far it was compared, and where it is."""
        record, agreement = self.record, self.record.agreement
        return (
            f"{record.model.name}, exported as {record.format} for {record.loads_with}; {agreement.num_images} images compared: "
            f"logits differ by at most {agreement.largest_logit_difference:.1e}. {record.model.use}"
        )

    def places(self) -> Mapping[str, object]:
        """The folder, and where it is on the hub."""
        pushed = self.record.pushed_to
        return {"Export": self.out, **({"On the hub": pushed} if pushed else {})}

    def to_frame(self) -> pd.DataFrame:
        """One row per file: ``file``, ``bytes`` and ``sha256``."""
        import pandas as pd

        rows = [(file.name, file.num_bytes, file.sha256) for file in self.record.files]
        return pd.DataFrame(rows, columns=["file", "bytes", "sha256"])
