"""Put the evaluations of all models together into the record that the report renders."""

from collections.abc import Mapping, Sequence

from crossgraft.data import Dataset
from crossgraft.data.describe import describe_dataset
from crossgraft.models.record import Role
from crossgraft.rank.advice import check_targets, write_advice, write_checks
from crossgraft.rank.cells import build_cells
from crossgraft.rank.describe import cite, describe_score
from crossgraft.rank.evaluate import ModelEvaluation
from crossgraft.rank.ground_truth import agreement
from crossgraft.rank.known_record import STATIC_PRIOR, PriorRecord
from crossgraft.rank.order import order_models
from crossgraft.rank.prior_record import check_prior, describe_prior
from crossgraft.rank.record import GroundTruthRecord, RankingRecord, ScoreCell
from crossgraft.rank.results_store import KnownTable
from crossgraft.records.base import CheckRecord
from crossgraft.scores import AnyScore


def assemble_record(
    dataset: Dataset,
    scores: Sequence[AnyScore],
    primary: str,
    evaluations: Sequence[ModelEvaluation],
    truth: GroundTruthRecord | None,
    *,
    primary_reason: str,
    history: KnownTable,
    findings: Sequence[CheckRecord] = (),
    labels_left_out: Mapping[str, str] | None = None,
    seed: int,
    show_names: bool = False,
) -> RankingRecord:
    """Cells with intervals, the order by each score, advice, checks and agreement with fine-tuned results.

    ``evaluations`` are candidates first, then controls; ``history`` is of the candidates, in their order.
    """
    models = [evaluation.model for evaluation in evaluations]
    cells = {score.name: build_cells(score, evaluations) for score in scores}
    roles: dict[str, Role] = {model.name: model.role for model in models}
    rankings = {name: order_models(name, of_score, roles) for name, of_score in cells.items()}
    titles = {score.name: score.title for score in scores}
    title = titles[primary]
    candidates = [model for model in models if model.role == "candidate"]
    advice = write_advice(title, rankings[primary], cells[primary], models)
    prior = describe_prior(history, candidates)
    return RankingRecord(
        dataset=describe_dataset(dataset, show_names=show_names),
        models=models,
        scores=[describe_score(score) for score in scores],
        cells=[cell for of_score in cells.values() for cell in of_score],
        primary_score=primary,
        primary_reason=primary_reason,
        rankings=list(rankings.values()),
        advice=advice.sentence,
        advised=list(advice.models),
        caution=advice.caution,
        ground_truth=truth,
        agreement=[
            row
            for name, of_score in {**cells, **_prior_cells(prior)}.items()
            for row in (agreement(name, of_score, models, truth, seed=seed) if truth else [])
        ],
        checks=[
            check_prior(prior),
            *write_checks(dataset, models, title, rankings[primary], cells[primary]),
            *check_targets(dataset, labels_left_out or {}),
            *findings,
        ],
        references=cite(scores, with_prior=prior is not None),
        labels_left_out=dict(labels_left_out or {}),
        prior=prior,
    )


def _prior_cells(prior: PriorRecord | None) -> dict[str, list[ScoreCell]]:
    """The static prior as a control among the scores that are compared with fine-tuned results."""
    if prior is None:
        return {}
    known = {row.model: -row.mean_rank for row in prior.rows if row.mean_rank is not None}
    return {STATIC_PRIOR: [ScoreCell(model=model, score=STATIC_PRIOR, value=value) for model, value in known.items()]}
