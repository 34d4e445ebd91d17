"""What the numbers support: the order by a score, which models are separable, advice in one or two sentences, checks."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from crossgraft.data import Dataset
from crossgraft.models.record import ModelRecord, Role
from crossgraft.rank.record import PairRecord, RankingByScore, RankRow, ScoreCell
from crossgraft.records.base import CheckRecord
from crossgraft.statistics import Estimate, jackknife_interval
from crossgraft.statistics.jackknife import MIN_BLOCKS
from crossgraft.words.formatting import counted, joined, listed

FLOAT32_ROUNDING = 1e-6
"""Relative size of a difference that may be rounding of the features, for example between two saturated scores."""


def difference(first: ScoreCell, second: ScoreCell) -> Estimate | None:
    """The difference of two cells with its jackknife interval; None where one of them has no interval.

    Both models were evaluated without the same blocks, so what the images have in common cancels. What is drawn with a seed is
    drawn for each of them, so it adds up.
    """
    if first.value is None or second.value is None or not first.jackknife_values or not second.jackknife_values:
        return None
    replicates = np.subtract(first.jackknife_values, second.jackknife_values)
    redrawn = [cell.redrawn_values for cell in (first, second) if cell.redrawn_values]
    estimate = jackknife_interval(first.value - second.value, replicates, redrawn=redrawn)
    return estimate if estimate.standard_error > 0 else None


def separable(first: ScoreCell, second: ScoreCell) -> bool:
    """Whether the interval of the difference excludes 0. Without an interval, or within rounding, nothing is separable."""
    estimate = difference(first, second)
    if estimate is None or estimate.contains_zero:
        return False
    return _is_larger(first, second) or _is_larger(second, first)


def _is_larger(first: ScoreCell, second: ScoreCell) -> bool:
    """Whether the first value is larger, and by more than rounding."""
    size = max(1.0, abs(first.value or 0.0), abs(second.value or 0.0))
    return _value(first) - _value(second) > FLOAT32_ROUNDING * size


def order_models(score: str, cells: Sequence[ScoreCell], roles: Mapping[str, Role]) -> RankingByScore:
    """Rank the candidates by one score, best first; ties keep the order of the zoo.

    Controls are listed after the candidates and get no rank.
    """
    ranked = sorted(
        (cell for cell in cells if roles[cell.model] == "candidate" and cell.value is not None),
        key=lambda cell: -(cell.value or 0.0),
    )
    rows = [
        RankRow(
            model=cell.model,
            role="candidate",
            rank=position + 1,
            not_separable_from=[
                other + 1 for other, other_cell in enumerate(ranked) if other != position and not separable(cell, other_cell)
            ],
        )
        for position, cell in enumerate(ranked)
    ]
    in_rank = {cell.model for cell in ranked}
    rest = sorted((cell for cell in cells if cell.model not in in_rank), key=lambda cell: roles[cell.model])
    rows += [RankRow(model=cell.model, role=roles[cell.model], rank=None, not_separable_from=[]) for cell in rest]
    shuffled = [value for cell in cells if roles[cell.model] == "candidate" for value in cell.shuffled_values]
    return RankingByScore(
        score=score,
        rows=rows,
        pairs=[_pair(first, second) for first, second in pairwise(ranked)],
        best_shuffled=max(shuffled, default=None),
        num_shuffled=len(shuffled),
    )


def _pair(first: ScoreCell, second: ScoreCell) -> PairRecord:
    estimate = difference(first, second)
    return PairRecord(
        first=first.model,
        second=second.model,
        difference=(first.value or 0.0) - (second.value or 0.0),
        low=estimate.low if estimate else None,
        high=estimate.high if estimate else None,
        separable=separable(first, second),
    )


FEW_IMAGES_PER_CLASS = 10
MOST_CLASSES = 8
MOST_NAMES = 3
"""More names than this make no advice."""
_MOST_LABELS = 20


class Advice(NamedTuple):
    """What the numbers support.

    Attributes:
        sentence: In words, with how many models were left out and why.
        models: The models that it names or counts, the best first; empty where there is no evidence for any.
        caution: What speaks against the best of them.
    """

    sentence: str
    models: Sequence[str] = ()
    caution: str | None = None


def write_advice(title: str, ranking: RankingByScore, cells: Sequence[ScoreCell], models: Sequence[ModelRecord]) -> Advice:
    """Advice from intervals and controls only.

    A model is advised where it is separably above every network with random weights, of whatever architecture, and above its own
    value under shuffled labels: of the others nothing shows that they know more of the images. Without any interval the values
    decide which are left out, and no model is one to start with.
    """
    ranked = [row.model for row in ranking.rows if row.rank is not None]
    if not ranked:
        return Advice(f"{title} gives no value for any model here, so there is no ranking.")
    by_model = {cell.model: cell for cell in cells}
    if all(by_model[name].above_shuffled is False for name in ranked):
        return Advice(
            f"No model is above its own value under shuffled labels: by {title} these images give no evidence for any "
            "of them. Bring more images, or check the labels."
        )
    controls = [by_model[row.model] for row in ranking.rows if row.role != "candidate" and by_model[row.model].value is not None]
    controls.sort(key=_value, reverse=True)
    as_shuffled = [name for name in ranked if by_model[name].above_shuffled is False]
    as_random = [name for name in ranked if name not in as_shuffled and _rival(by_model[name], controls) is not None]
    names = [name for name in ranked if name not in (*as_shuffled, *as_random)]
    unscored = [row.model for row in ranking.rows if row.role == "candidate" and row.rank is None]
    without_value = ""
    if unscored:
        verb = "has" if len(unscored) == 1 else "have"
        without_value = f" {len(unscored)} of {len(ranked) + len(unscored)} models {verb} no value: {joined(unscored)}."
    if not names:
        return Advice(_nothing_shown(title, by_model[as_random[0]], len(ranked), controls) + without_value)
    alike = [name for name in names[1:] if not separable(by_model[names[0]], by_model[name])]
    is_told = not controls or bool(by_model[names[0]].jackknife_values)
    others_left_out = len(names) < len(ranked) or (len(ranked) > 1 and bool(unscored))
    sentence = _start_with(names, alike, title, models, others_left_out=others_left_out, is_told=is_told)
    whys = {
        "separably above every network with random weights": as_random,
        f"above {'its' if len(as_shuffled) == 1 else 'their'} own {title} under shuffled labels": as_shuffled,
    }
    for why, left_out in whys.items():
        if left_out:
            verb = "is" if len(left_out) == 1 else "are"
            sentence += f" {len(left_out)} of {counted(len(ranked), 'model')} {verb} left out, not {why}: {joined(left_out)}."
    caution = (
        None
        if is_told
        else f"Without intervals nothing tells {names[0]} from a network with random weights ({controls[0].model})."
    )
    return Advice(sentence + without_value, [names[0], *alike], caution)


def _rival(cell: ScoreCell, controls: Sequence[ScoreCell]) -> ScoreCell | None:
    """The first of ``controls`` that a model is not above; without its interval the values decide."""
    if cell.jackknife_values:
        return next((each for each in controls if not (_value(cell) > _value(each) and separable(cell, each))), None)
    return next((each for each in controls if not _is_larger(cell, each)), None)


def _nothing_shown(title: str, best: ScoreCell, num_models: int, controls: Sequence[ScoreCell]) -> str:
    rival = _rival(best, controls)
    name = "" if rival is None else rival.model
    how = "scores higher than" if rival is not None and _is_larger(rival, best) else "cannot be told apart from"
    if num_models == 1:
        return f"{title} does not show that {best.model} knows more of these images than random weights: {name} {how} it."
    return (
        f"{title} does not show that any of these {num_models} models knows more of the images than random weights: {name} {how} "
        f"the best of them, {best.model}."
    )


def not_above_random(models: Sequence[ModelRecord], cells: Sequence[ScoreCell]) -> list[str]:
    """Candidates with a value that is not above that of their own architecture with random weights.

    The interval of the difference decides; where there is none, the two values.
    """
    by_model = {cell.model: cell for cell in cells}
    controls = {model.architecture: by_model[model.name] for model in models if model.role != "candidate"}
    return [
        model.name
        for model in models
        if model.role == "candidate" and model.architecture in controls and by_model[model.name].value is not None
        if not _is_above(by_model[model.name], controls[model.architecture])
    ]


def _is_above(cell: ScoreCell, control: ScoreCell) -> bool:
    has_interval = difference(cell, control) is not None
    return _is_larger(cell, control) and (separable(cell, control) or not has_interval)


def _start_with(
    names: Sequence[str], alike: Sequence[str], title: str, models: Sequence[ModelRecord], *, others_left_out: bool, is_told: bool
) -> str:
    """The best model, with those of ``names`` that are ``alike``: the score cannot tell them from the best.

    Args:
        names: The models that are left, the best first.
        alike: Those of them that are not separable from the first.
        title: Name of the score.
        models: All of them.
        others_left_out: Whether some had no evidence, or no value beside several that have one.
        is_told: Whether an interval tells the best from random weights, where any were scored.
    """
    best = names[0]
    if len(names) == 1:
        if not others_left_out:
            return f"Only {best} has a value, so there is nothing to compare it with."
        return f"Start with {best}: no other model is left." if is_told else f"Of all models only {best} is left."
    if len(alike) == len(names) - 1:
        return f"{title} cannot tell the {len(names)} models apart on these images."
    if alike:
        return _several([best, *alike], title, models)
    return f"Start with {best}: {title} separates it from every other model {'that is left' if others_left_out else 'here'}."


def _several(names: Sequence[str], title: str, models: Sequence[ModelRecord]) -> str:
    if len(names) <= MOST_NAMES:
        return f"Start with {_either(names)}: {title} cannot tell them apart."
    sizes = {model.name: _parameters_without_head(model) for model in models if model.name in names}
    smallest = min(names, key=lambda name: sizes[name])
    advice = f"Start with one of the {len(names)} models that {title} cannot tell apart from the best, {names[0]}"
    return advice + ("." if sizes[smallest] == sizes[names[0]] else f"; the smallest of them is {smallest}.")


def _parameters_without_head(model: ModelRecord) -> int:
    """What remains when the linear layer of the source classes is taken off, as it is for another task."""
    return model.num_parameters - (model.num_source_classes or 0) * (model.num_features + 1)


def write_checks(
    dataset: Dataset, models: Sequence[ModelRecord], title: str, ranking: RankingByScore, cells: Sequence[ScoreCell]
) -> list[CheckRecord]:
    """Everything that was looked at and everything that was not, for the report."""
    return [
        _check_groups(dataset),
        *([_check_class_sizes(dataset)] if dataset.task.partitions else []),
        *_check_skipped(dataset),
        _check_shuffled(title, cells, models),
        _check_random_weights(title, cells, models),
        _check_separable(title, ranking),
    ]


def check_targets(dataset: Dataset, labels_left_out: Mapping[str, str]) -> list[CheckRecord]:
    """Labels that were not scored, and classes whose order no score uses."""
    checks: list[CheckRecord] = []
    if not dataset.task.partitions:
        checks.append(_check_labels(dataset, labels_left_out))
    if dataset.task.in_order:
        text = (
            "The classes were said to be in an order, and the scores do not use it: to them a mistake by one grade is as bad "
            "as any other."
        )
        checks.append(CheckRecord(title="Order of the classes", severity="notice", text=text))
    return checks


def _check_labels(dataset: Dataset, left_out: Mapping[str, str]) -> CheckRecord:
    number = len(dataset.class_names)
    text = f"Scores are computed for one label at a time; shown is the mean over {number - len(left_out)} of {number} labels."
    if not left_out:
        return CheckRecord(title="Labels that were scored", severity="passed", text=text)
    whys = "; ".join(f"{label}: {why.rstrip('.')}" for label, why in list(left_out.items())[:_MOST_LABELS])
    more = f"; and {len(left_out) - _MOST_LABELS} more" if len(left_out) > _MOST_LABELS else ""
    return CheckRecord(title="Labels that were scored", severity="notice", text=f"{text} Not scored: {whys}{more}.")


def _check_groups(dataset: Dataset) -> CheckRecord:
    if dataset.groups is None:
        text = (
            "No group column was given, so images of one patient may lie on both sides of any split, and the intervals "
            "take every image as independent. Name the column with --group-column."
        )
        return CheckRecord(title="Patient leakage", severity="not assessed", text=text)
    number = len(np.unique(dataset.groups))
    text = f"The jackknife leaves out whole groups of the column {dataset.group_column} ({counted(number, 'group')})."
    of_one = [
        name for index, name in enumerate(dataset.class_names) if len(np.unique(dataset.groups[dataset.members(index)])) == 1
    ]
    task = dataset.task
    if number < MIN_BLOCKS:
        text = f"The column {dataset.group_column} has fewer than {MIN_BLOCKS} groups, so there are no intervals."
    if of_one:
        text += (
            f" All images {task.of} the {task.noun} {_either(of_one)} are of one group: a model that knows the patient knows the "
            f"{task.noun}. Bring images of more patients."
        )
    severity = "warning" if of_one or number < MIN_BLOCKS else "passed"
    return CheckRecord(title="Patient leakage", severity=severity, text=text)


def _check_class_sizes(dataset: Dataset) -> CheckRecord:
    counts = dict(zip(dataset.class_names, dataset.class_counts, strict=True))
    small = [f"{name} ({count})" for name, count in counts.items() if count < FEW_IMAGES_PER_CLASS]
    if not small:
        text = f"Every class has at least {min(counts.values())} images."
        return CheckRecord(title="Class sizes", severity="passed", text=text)
    text = f"Fewer than {FEW_IMAGES_PER_CLASS} images in: {listed(small, MOST_CLASSES)}. Scores of so few images move a lot."
    return CheckRecord(title="Class sizes", severity="warning", text=text)


def _check_skipped(dataset: Dataset) -> list[CheckRecord]:
    if not dataset.skipped_unreadable:
        return []
    text = f"{len(dataset.skipped_unreadable)} unreadable images were left out because --skip-unreadable was given."
    return [CheckRecord(title="Unreadable images", severity="warning", text=text)]


def _check_shuffled(title: str, cells: Sequence[ScoreCell], models: Sequence[ModelRecord]) -> CheckRecord:
    candidates = {model.name for model in models if model.role == "candidate"}
    low = [cell.model for cell in cells if cell.model in candidates and cell.above_shuffled is False]
    if not low:
        text = f"Every model with a value is above its {title} under five shuffles of the labels."
        return CheckRecord(title="Shuffled labels", severity="passed", text=text)
    text = f"Not above their own {title} under shuffled labels, so no evidence for them: {', '.join(low)}."
    return CheckRecord(title="Shuffled labels", severity="warning", text=text)


def _check_random_weights(title: str, cells: Sequence[ScoreCell], models: Sequence[ModelRecord]) -> CheckRecord:
    if all(model.role == "candidate" for model in models):
        text = "No network with random weights was scored."
        return CheckRecord(title="Random weights", severity="not assessed", text=text)
    equal = not_above_random(models, cells)
    if not equal:
        text = f"Every model is separably above the same architecture with random weights, by {title}."
        return CheckRecord(title="Random weights", severity="passed", text=text)
    text = f"Not separably above the same architecture with random weights, by {title}: {', '.join(equal)}."
    return CheckRecord(title="Random weights", severity="warning", text=text)


def _check_separable(title: str, ranking: RankingByScore) -> CheckRecord:
    if not ranking.pairs:
        text = f"Fewer than two models have a value of {title}."
        return CheckRecord(title="Order of neighbours", severity="not assessed", text=text)
    equal = [f"{pair.first} and {pair.second}" for pair in ranking.pairs if not pair.separable]
    if not equal:
        text = f"The 95 % interval of every difference between neighbours by {title} excludes 0."
        return CheckRecord(title="Order of neighbours", severity="passed", text=text)
    which = "The only pair" if len(ranking.pairs) == 1 else f"{len(equal)} of {len(ranking.pairs)} pairs"
    verb = "is" if len(equal) == 1 else "are"
    text = f"{which} of neighbours by {title} {verb} not separable: {'; '.join(equal)}."
    return CheckRecord(title="Order of neighbours", severity="notice", text=text)


def _either(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _value(cell: ScoreCell) -> float:
    return float("-inf") if cell.value is None else cell.value
