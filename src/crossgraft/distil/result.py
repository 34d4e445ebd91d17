"""What ``distil`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from crossgraft.distil.page import answer_in_words
from crossgraft.distil.record import DistillationRecord
from crossgraft.distil.student import UniversalBackbone
from crossgraft.result import Result

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Distilled(Result[DistillationRecord]):
    """Several networks in one: ``record`` holds every number.

    Attributes:
        student: The network that came out, with a head per domain.
        weights: File of the backbone, which ``--model`` reads; None where nothing was written.
    """

    student: UniversalBackbone | None = field(default=None, kw_only=True)
    weights: Path | None = field(default=None, kw_only=True)

    def summary(self) -> str:
        """What the student is worth beside its teachers."""
        return answer_in_words(self.record)

    def places(self) -> Mapping[str, object]:
        """The weights, and the report."""
        return {**({} if self.weights is None else {"Weights": self.weights}), **super().places()}

    def to_frame(self) -> pd.DataFrame:
        """One row for each domain, network and metric on test."""
        import pandas as pd

        rows = [
            {
                "domain": domain.name,
                "network": network,
                **{name: getattr(row, name) for name in ("metric", "value", "low", "high", "num_images", "num_groups")},
            }
            for domain in self.record.domains
            for network, found in (("teacher", domain.teacher_metrics), ("student", domain.student_metrics))
            for row in found
        ]
        return pd.DataFrame(rows)

    def _most_important(self) -> pd.DataFrame:
        frame = self.to_frame()
        return frame.loc[frame["metric"] == self.record.domains[0].primary_metric]
