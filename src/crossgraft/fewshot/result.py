"""What ``run_episodes`` returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crossgraft.fewshot.evaluate import EpisodeTable
from crossgraft.fewshot.record import FewshotRecord
from crossgraft.fewshot.words import answer_in_words
from crossgraft.result import Result

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class FewshotResult(Result[FewshotRecord]):
    """Heads on the same episodes: ``record`` holds the means.

    Attributes:
        table: Accuracy of every head on every episode.
    """

    table: EpisodeTable | None = field(default=None, kw_only=True)

    def summary(self) -> str:
        """The best head, and how it stands to the baseline."""
        return f"{self.record.dataset.name} with {self.record.model.name}: {answer_in_words(self.record)}"

    def to_frame(self) -> pd.DataFrame:
        """One row per head, best first."""
        import pandas as pd

        return pd.DataFrame([row.model_dump(exclude={"warnings"}) for row in self.record.heads])

    def episodes(self) -> pd.DataFrame:
        """One row per episode: its sizes, and the accuracy of each head."""
        import pandas as pd

        table = self.table
        if table is None:
            return pd.DataFrame()
        sizes = {"ways": table.num_ways, "support": table.num_support, "query": table.num_query}
        return pd.DataFrame({**sizes, **dict(zip(table.heads, table.accuracies.T, strict=True))})
