"""Models, scores and their papers become records: plain, without absolute paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crossgraft.rank.record import ScoreRecord
from crossgraft.records.base import Reference
from crossgraft.scores import SCORES, AnyScore


def describe_score(score: AnyScore) -> ScoreRecord:
    """One score as the report shows it."""
    return ScoreRecord(
        name=score.name,
        title=score.title,
        reference=score.reference,
        inputs=list(score.inputs),
        origin=SCORES.origin(score.name),
        is_reference_probe=score.is_reference_probe,
        cost=score.cost,
    )


def cite(scores: Sequence[AnyScore], *, with_prior: bool = False) -> list[Reference]:
    """The papers behind the numbers of a ranking."""
    statistics: Mapping[str, str] = {
        "jackknife": "Efron and Stein, The jackknife estimate of variance, Annals of Statistics 9(3), 1981.",
        "weighted Kendall": "Vigna, A weighted correlation index for rankings with ties, WWW 2015.",
    }
    if with_prior:
        statistics = {**statistics, "static prior": "Singh, Hess and Vanschoren, arXiv 2510.06448."}
    own = {score.title: score.reference for score in scores}
    return [Reference(key=key, text=text) for key, text in {**own, **statistics}.items()]
