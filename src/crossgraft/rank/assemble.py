"""Put the evaluations of all models together: a table of first values for the progress, and the record of the ranking."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from crossgraft.data import Dataset
from crossgraft.data.describe import describe_dataset
from crossgraft.models.record import ModelRecord, Role
from crossgraft.progress import Reporter
from crossgraft.rank.advice import check_targets, order_models, write_advice, write_checks
from crossgraft.rank.aggregate import static_prior
from crossgraft.rank.evaluate import FirstValues, ModelEvaluation, RawValue, ScoreEvaluation
from crossgraft.rank.ground_truth import agreement
from crossgraft.rank.record import STATIC_PRIOR, GroundTruthRecord, PriorRecord, PriorRow, RankingRecord, ScoreCell, ScoreRecord
from crossgraft.rank.results_store import KnownTable
from crossgraft.records.base import CheckRecord, Reference
from crossgraft.scores import SCORES, AnyScore, ZooScore
from crossgraft.statistics import jackknife_interval
from crossgraft.words.formatting import NumberFormat, counted, joined, listed
from crossgraft.words.text_table import text_table

_MOST_LABELS = 3
_ROUNDING = 1e-12
"""Share of a score below which a standard error is rounding in float64."""


def mean_over_labels(
    models: Sequence[ModelEvaluation], evaluations: Sequence[ScoreEvaluation], by_label: Mapping[str, Sequence[ScoreEvaluation]]
) -> list[ScoreEvaluation]:
    """One evaluation a model: every value is the mean over the same labels for all models, so that they compare.

    A label for which some candidate has no finite value is left out for all models, and a warning says so.
    """
    why_not = {label: _why_left_out(models, evaluations, column) for label, column in by_label.items()}
    used = [label for label, why in why_not.items() if why is None]
    left_out = [f"{label}: {why}" for label, why in why_not.items() if why is not None]
    note = [f"Mean of {len(used)} of {len(by_label)} labels. Left out: {' '.join(left_out)}"] if left_out else []
    return [
        _mean(evaluation, {label: by_label[label][place] for label in used}, note) if evaluation.per_label else evaluation
        for place, evaluation in enumerate(evaluations)
    ]


def _why_left_out(
    models: Sequence[ModelEvaluation], evaluations: Sequence[ScoreEvaluation], column: Sequence[ScoreEvaluation]
) -> str | None:
    """Why a label takes no part, or None; candidates for which the score is defined at all must have a finite value."""
    for model, evaluation, of_label in zip(models, evaluations, column, strict=True):
        if model.model.role != "candidate" or not evaluation.per_label:
            continue
        if of_label.full is None:
            return of_label.reason
        if of_label.full.value is None or not math.isfinite(of_label.full.value):
            return f"no finite value for {model.model.name}."
    return None


def _mean(evaluation: ScoreEvaluation, by_label: Mapping[str, ScoreEvaluation], note: Sequence[str]) -> ScoreEvaluation:
    full = {label: one.full for label, one in by_label.items() if one.full is not None}
    if not full or len(full) < len(by_label):
        reasons = dict.fromkeys(one.reason for one in by_label.values() if one.reason)
        reason = " ".join([*note, *filter(None, reasons)]) or "There is no label for which every model has a value."
        return evaluation.model_copy(update={"reason": reason, "per_label": {}})
    blocks = zip(*(one.blocks for one in by_label.values()), strict=True)
    redrawn = zip(*(one.redrawn for one in by_label.values()), strict=True)
    shuffled = zip(*(one.shuffled for one in by_label.values()), strict=True)
    parts = {f"{label}: {name}": part for label, raw in full.items() for name, part in raw.parts.items()}
    return evaluation.model_copy(
        update={
            "full": RawValue(value=_mean_value(list(full.values())), parts=parts, warnings=[*note, *_shared_warnings(full)]),
            "blocks": [RawValue(value=_mean_value(raws)) for raws in blocks],
            "redrawn": [RawValue(value=_mean_value(raws)) for raws in redrawn],
            "shuffled": [RawValue(value=_mean_value(raws)) for raws in shuffled],
            "per_label": dict(by_label),
        }
    )


def _mean_value(raws: Sequence[RawValue]) -> float:
    return float(np.mean([math.nan if raw.value is None else raw.value for raw in raws]))


def _shared_warnings(full: Mapping[str, RawValue]) -> list[str]:
    """Each warning once, with the labels that it is about."""
    labels: defaultdict[str, list[str]] = defaultdict(list)
    for label, raw in full.items():
        for warning in raw.warnings:
            labels[warning].append(label)
    return [f"{_whom(names, among=len(full))}: {warning}" for warning, names in labels.items()]


def _whom(names: Sequence[str], *, among: int) -> str:
    if len(names) == among > 1:
        return "Every label"
    return f"{'Label' if len(names) == 1 else 'Labels'} {listed(names, _MOST_LABELS)}"


def takes_scenario(score: AnyScore) -> bool:
    """Whether the score combines its parts otherwise for architectures than for source data sets."""
    return isinstance(score, ZooScore) and "scenario" in score.combine_options


def build_cells(score: AnyScore, models: Sequence[ModelEvaluation], *, scenario: str = "datasets") -> list[ScoreCell]:
    """One cell a model for ``score``; ``scenario`` is for scores that ask for it."""
    evaluations = [next(e for e in model.evaluations if e.score == score.name) for model in models]
    labels = dict.fromkeys(label for evaluation in evaluations for label in evaluation.per_label)
    if labels:
        by_label = {label: [evaluation.per_label.get(label, evaluation) for evaluation in evaluations] for label in labels}
        if isinstance(score, ZooScore):
            by_label = {label: combine_over_zoo(score, models, column, scenario=scenario) for label, column in by_label.items()}
        evaluations = mean_over_labels(models, evaluations, by_label)
    elif isinstance(score, ZooScore):
        evaluations = combine_over_zoo(score, models, evaluations, scenario=scenario)
    return [_cell(model.model.name, evaluation) for model, evaluation in zip(models, evaluations, strict=True)]


def combine_over_zoo(
    score: ZooScore[...], models: Sequence[ModelEvaluation], evaluations: Sequence[ScoreEvaluation], *, scenario: str = "datasets"
) -> list[ScoreEvaluation]:
    """Give every evaluation of a zoo-level score its values.

    The candidates are combined among themselves; a control is combined as one more member, so that it never moves the
    scale of the candidates; leave-one-block-out values use the parts of all members without that block; a shuffled value
    replaces only the parts of its own model.
    """
    candidates = [
        i
        for i, (model, evaluation) in enumerate(zip(models, evaluations, strict=True))
        if model.model.role == "candidate" and evaluation.full is not None
    ]

    options = {"scenario": scenario} if takes_scenario(score) else {}

    def value_of(member: int, own: RawValue, block: int | None) -> RawValue:
        others = [i for i in candidates if i != member]
        parts = [_raw_at(evaluations[i], block).parts for i in others] + [own.parts]
        combined = score.combine(parts, **options)[-1]
        return own.model_copy(update={"value": float(combined), "warnings": [*own.warnings, *combined.warnings]})

    finished: list[ScoreEvaluation] = []
    for i, evaluation in enumerate(evaluations):
        if evaluation.full is None:
            finished.append(evaluation)
            continue
        finished.append(
            evaluation.model_copy(
                update={
                    "full": value_of(i, evaluation.full, None),
                    "blocks": [value_of(i, raw, block) for block, raw in enumerate(evaluation.blocks)],
                    "redrawn": [value_of(i, raw, None) for raw in evaluation.redrawn],
                    "shuffled": [value_of(i, raw, None) for raw in evaluation.shuffled],
                }
            )
        )
    return finished


def _raw_at(evaluation: ScoreEvaluation, block: int | None) -> RawValue:
    if block is not None and block < len(evaluation.blocks):
        return evaluation.blocks[block]
    return evaluation.full or RawValue(value=None)


def _cell(model: str, evaluation: ScoreEvaluation) -> ScoreCell:
    cell = ScoreCell(
        model=model,
        score=evaluation.score,
        value=None,
        reason=evaluation.reason,
        seconds=evaluation.seconds,
        peak_bytes=evaluation.peak_bytes,
    )
    full = evaluation.full
    if full is None or full.value is None:
        return cell
    if not math.isfinite(full.value):
        reason = " ".join(full.warnings) or f"The score is {full.value} on these features."
        return cell.model_copy(update={"reason": reason, "parts": full.parts, "warnings": full.warnings})
    shuffled = [raw.value for raw in evaluation.shuffled if raw.value is not None and math.isfinite(raw.value)]
    replicates = [raw.value for raw in evaluation.blocks if raw.value is not None]
    no_interval = evaluation.no_interval_reason
    if no_interval is None and not np.isfinite(replicates).all():
        no_interval = "The score is not finite when one block of images is left out."
    redrawn = [raw.value for raw in evaluation.redrawn if raw.value is not None and math.isfinite(raw.value)]
    redrawn = [full.value, *redrawn] if redrawn and no_interval is None else []
    several = [redrawn] if redrawn else []
    estimate = jackknife_interval(full.value, replicates, redrawn=several) if no_interval is None else None
    if estimate is not None and estimate.standard_error <= _ROUNDING * float(np.abs(replicates).max()):
        no_interval, estimate = "The score is the same whichever block of images is left out.", None
    return cell.model_copy(
        update={
            **(estimate._asdict() if estimate else {"value": full.value}),
            "no_interval_reason": no_interval,
            "jackknife_values": replicates if estimate else [],
            "redrawn_values": redrawn,
            "shuffled_values": shuffled,
            "largest_shuffled": max(shuffled, default=None),
            "above_shuffled": full.value > max(shuffled) if shuffled else None,
            "parts": full.parts,
            "warnings": full.warnings,
            "per_label": {
                label: one.full.value
                for label, one in evaluation.per_label.items()
                if one.full is not None and one.full.value is not None
            },
        }
    )


def describe_score(score: AnyScore, *, scenario: str = "datasets") -> ScoreRecord:
    """One score as the report shows it; its title says a scenario that is not the usual one."""
    is_unusual = takes_scenario(score) and scenario != "datasets"
    return ScoreRecord(
        name=score.name,
        title=f"{score.title}, {scenario}" if is_unusual else score.title,
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


NO_HISTORY = (
    "No other target has known results of two of these models, measured in the same way, so the static prior could not be asked."
)


def describe_prior(history: KnownTable, candidates: Sequence[ModelRecord]) -> PriorRecord | None:
    """Static prior of every candidate, the best first; None when no other target has results of two of them."""
    if not history.targets:
        return None
    prior = static_prior(history.results)
    known = np.isfinite(history.results)
    targets = np.asarray(history.targets)
    order = sorted(range(len(candidates)), key=lambda model: (prior.num_known[model] == 0, -prior.values[model]))
    rows = [
        PriorRow(
            model=candidates[model].name,
            num_targets=len(set(targets[known[:, model]].tolist())),  # one target may be known by several protocols
            mean_rank=float(prior.mean_ranks[model]) if prior.num_known[model] else None,
            prior_rank=place if prior.num_known[model] else None,
            origins=[*history.spoke[model]] if history.spoke else [],
        )
        for place, model in enumerate(order, start=1)
    ]
    number = counted(len(set(history.targets)), "other target")
    return PriorRecord(
        targets=list(dict.fromkeys(history.targets)),
        origins=history.origins,
        rows=rows,
        summary=f"The static prior, which never looks at these images, puts {rows[0].model} first: it did best on average on "
        f"{number}.",
    )


def check_prior(prior: PriorRecord | None) -> CheckRecord:
    """Whether the static prior was computed."""
    if prior is None:
        return CheckRecord(title="Static prior", severity="not assessed", text=NO_HISTORY)
    unknown = [row.model for row in prior.rows if row.num_targets == 0]
    text = f"Results on {counted(len(prior.targets), 'other target')} are known ({'; '.join(prior.origins)})."
    if unknown:
        text += f" Nothing is known of {joined(unknown)}."
    return CheckRecord(title="Static prior", severity="notice" if unknown else "passed", text=text)


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
    scenario: str = "datasets",
) -> RankingRecord:
    """Cells with intervals, the order by each score, advice, checks and agreement with fine-tuned results.

    ``evaluations`` are candidates first, then controls; ``history`` is of the candidates, in their order.
    """
    models = [evaluation.model for evaluation in evaluations]
    cells = {score.name: build_cells(score, evaluations, scenario=scenario) for score in scores}
    roles: dict[str, Role] = {model.name: model.role for model in models}
    rankings = {name: order_models(name, of_score, roles) for name, of_score in cells.items()}
    described = [describe_score(score, scenario=scenario) for score in scores]
    title = next(score.title for score in described if score.name == primary)
    candidates = [model for model in models if model.role == "candidate"]
    advice = write_advice(title, rankings[primary], cells[primary], models)
    prior = describe_prior(history, candidates)
    return RankingRecord(
        dataset=describe_dataset(dataset, show_names=show_names),
        models=models,
        scores=described,
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


_MOST_ROWS = 20


def tell_values(
    members: Sequence[FirstValues], scores: Sequence[AnyScore], primary: str, reporter: Reporter, *, scenario: str = "datasets"
) -> None:
    """Say the value of every score of every model, the best by ``primary`` first; intervals, ranks and controls are to come.

    Args:
        members: Candidates.
        scores: In the order of the columns.
        primary: Name of the score that orders them.
        reporter: Who says it.
        scenario: For scores that ask for it.
    """
    models = [ModelEvaluation(key=each.key, model=each.model, evaluations=each.values) for each in members]
    values = {score.name: [cell.value for cell in build_cells(score, models, scenario=scenario)] for score in scores}
    of_primary = values[primary]
    order = sorted(range(len(models)), key=lambda place: (of_primary[place] is None, -(of_primary[place] or 0.0)))
    columns = [(score.title, values[score.name], NumberFormat.for_column(values[score.name])) for score in scores]
    titles = [title for title, _, _ in columns]
    rows = [
        [models[place].model.name, *(as_text(column[place]) for _, column, as_text in columns)] for place in order[:_MOST_ROWS]
    ]
    reporter.say(f"Values of {counted(len(models), 'model')}; intervals and controls follow:")
    for line in text_table(["Model", *titles], rows, right=titles).splitlines():
        reporter.say(line)
    if len(order) > _MOST_ROWS:
        reporter.say(f"… and {counted(len(order) - _MOST_ROWS, 'model')} more.")
