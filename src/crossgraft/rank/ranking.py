"""What ``rank_models`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from crossgraft.errors import DataError, NotApplicable, UsageError
from crossgraft.models import ModelSpec
from crossgraft.rank.evidence import advised_order
from crossgraft.rank.record import RankingRecord
from crossgraft.result import Result

if TYPE_CHECKING:
    import pandas as pd


_COLUMNS = {"value", "low", "high", "largest_shuffled", "above_shuffled", "seconds", "peak_bytes"}


def refuse_incomplete(record: RankingRecord, path: Path) -> None:
    """Every name that a ranking mentions must have its model, its score and its cell.

    Args:
        record: The ranking.
        path: Its file, for the message.

    Raises:
        DataError: One has not.
    """
    models = {model.name for model in record.models}
    scores = {score.name for score in record.scores}
    cells = {(cell.model, cell.score) for cell in record.cells}
    ranked = {(row.model, ranking.score) for ranking in record.rankings for row in ranking.rows}
    if record.primary_score not in {ranking.score for ranking in record.rankings}:
        raise DataError(f"{path} has no ranking by its primary score {record.primary_score}. Run the command again.")
    for model, score in sorted(ranked | cells):
        if model not in models or score not in scores or (model, score) not in cells:
            raise DataError(
                f"{path} mentions {score} of {model}, but lacks the model, the score or its value. Run the command again."
            )


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Result[RankingRecord]):
    """A ranked zoo: ``record`` holds every number.

    Attributes:
        specs: Name of each model that was ranked → what ``fine_tune`` takes as ``model``.
    """

    specs: Mapping[str, ModelSpec] = field(default_factory=dict[str, ModelSpec], kw_only=True)

    @property
    def best(self) -> ModelSpec:
        """Where to begin, of the models that the images cannot tell from the best: ``fine_tune(data, model=ranking.best)``.

        That which did best on other data, where results are known of two of them, else that with the highest primary score.

        It knows where its weights are, and which code may build it. Others may not be separable from it; see ``advice``.

        Raises:
            NotApplicable: No model is above its own value under shuffled labels and above random weights.
            UsageError: The ranking holds no models, because it was not made by ``rank_models``.
        """
        names = advised_order(self.record) if self.record.advised else []
        if not names:
            raise NotApplicable(f"There is no best model. {self.advice} ranking.specs has all models by name.")
        if names[0] not in self.specs:
            raise UsageError(
                f"This ranking does not know how {names[0]} is built, because rank_models did not make it. Give fine_tune the "
                "name or the file of the model."
            )
        return self.specs[names[0]]

    @property
    def advice(self) -> str:
        """What the numbers support, in words."""
        return self.record.advice

    def summary(self) -> str:
        """The data, the score that orders the ranking, the advice, and what speaks against its best model."""
        caution = "" if self.record.caution is None else f" Caveat: {self.record.caution}"
        return f"{self.record.dataset.name} by {self.record.primary_score}: {self.advice}{caution}"

    @property
    def primary(self) -> Mapping[str, object]:
        """How the primary score agrees with results that are known, else its value for the best model."""
        score = self.record.primary_score
        known = next((each for each in self.record.agreement if each.score == score and each.family is None), None)
        if known is not None and known.weighted_kendall is not None:
            return {"metric": "weighted_kendall", "value": known.weighted_kendall, "low": known.low, "high": known.high}
        best = next((row for row in self.record.ranking(score).rows if row.rank == 1), None)
        if best is None:
            return {}
        cell = self.record.cell(best.model, score)
        return {"metric": score, "value": cell.value, "low": cell.low, "high": cell.high, "rank": 1}

    def to_frame(self) -> pd.DataFrame:
        """One row per model and score, best first by the primary score."""
        import pandas as pd

        record = self.record
        order = {row.model: i for i, row in enumerate(record.primary_ranking.rows)}
        ranks = {(ranking.score, row.model): row.rank for ranking in record.rankings for row in ranking.rows}
        rows = [
            {
                "model": cell.model,
                "role": record.model(cell.model).role,
                "score": cell.score,
                "rank": ranks[cell.score, cell.model],
                **cell.model_dump(include=_COLUMNS),
                "reason": cell.reason or cell.no_interval_reason,
            }
            for cell in record.cells
        ]
        frame = pd.DataFrame(rows)
        frame["rank"] = frame["rank"].astype("Int64")
        return frame.sort_values("model", key=lambda names: names.map(order), kind="stable", ignore_index=True)

    def _most_important(self) -> pd.DataFrame:
        frame = self.to_frame()
        columns = ["rank", "model", "role", "value", "low", "high", "above_shuffled"]
        frame = frame.loc[frame["score"] == self.record.primary_score, columns]
        ranks = ["" if missing else str(rank) for rank, missing in zip(frame["rank"], frame["rank"].isna(), strict=True)]
        return frame.assign(rank=ranks)
