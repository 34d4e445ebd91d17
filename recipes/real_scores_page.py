"""The page docs/results/real-scores.md, written of the kept results of recipes/real_scores.py; computes no score."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from crossgraft.rank.record import RankingRecord
from crossgraft.records.base import RunRecord
from crossgraft.scores import SCORES, ZooScore

GRADIENT_SCORES = ("gradient_ratio", "nca_gradient")
YARDSTICK = "linear_probe"
SHORT_NAMES = {
    "mobilenetv1_025 · ImageNet": "v1-025",
    "mobilenetv1_025 · person or not": "v1-person",
    "mobilenetv1_050 · ImageNet": "v1-050",
    "mobilenetv1_075 · ImageNet": "v1-075",
    "mobilenetv1_100 · ImageNet": "v1-100",
    "mobilenetv2_035 · ImageNet": "v2-035",
    "mobilenetv2_100 · ImageNet": "v2-100",
    "mobilenetv2_100 · birds": "v2-birds",
    "mobilenetv2_100 · insects": "v2-insects",
    "resnet20 · CIFAR-10": "r20",
    "resnet32 · CIFAR-10": "r32",
    "resnet44 · CIFAR-10": "r44",
    "resnet56 · CIFAR-10": "r56",
    "conv4 · miniImageNet, 5-shot": "c4-5shot",
    "conv4 · miniImageNet, 1-shot": "c4-1shot",
    "conv4 · Omniglot": "c4-omniglot",
    "pneumonia_cnn · PneumoniaMNIST": "pneumonia",
}
PAGE = """\
<!-- Written by recipes/real_scores.py; do not edit. -->

# Every score on real checkpoints and real images

```
OMP_NUM_THREADS=1 python recipes/real_scores.py --data-dir datasets --weights-dir weights --out docs/results/real-scores.md
```

{models} networks of `examples/own_models` and all {scores} scores. Sets measured: {measured}. {missing}

No fine-tuning was done here: the page shows what the scores say and where they disagree, not which of them is right. The linear
probe (cross-validated on the same images) is the only yardstick.

- Images: the train split where there is one, at most {limit} a set with the class shares kept. HAM10000 is grouped by lesion.
  MedMNIST and the brain slices do not say which images belong to one patient, and the brain slices hold exact copies; intervals
  may be too narrow there. BUSI is left out, because BreastMNIST is made of it.
- Models: each at its own input size; those that want more than {side} pixels get {side}, which is not the size that they were
  trained with ({reduced}).
- Intervals: 95 %, by leaving out 20 blocks of images. {gradient} have none: they need a backward pass of every
  image and were evaluated once. Others without one are listed at the end.
- Measured with one thread on {machine} that had other work to do; seconds vary with the load, the
  scores do not. {versions}.

{set_table}

## What holds over the sets

{findings}

## The order by each score

Best first; `=` joins equal values. *Level with the first*: how many models the interval of the difference does not separate from
the first. *Pairs*: how many of all pairs of models are separable. *Chance*: how many models do not exceed the score's own
values for shuffled labels (5 shuffles). A dash stands where a score was evaluated once.

Short names: {short_names}.

{orders}

## LogME of every model, with intervals

{logme}

## Do the scores agree?

Spearman's correlation with the linear probe over the models of a set that have both values. *Mean* with a 95 % interval
(Student's t over the sets, which are few).

{with_probe}

Mean over the sets of Spearman's correlation between two scores:

{matrix}

## What a score costs

One evaluation on all images of a set: seconds of wall time, median and largest over models and sets, with the features there
already. The gradient scores look at the images again; {nca_gradient} includes both its parts. Scores of one model share
statistics, and the first to ask for them pays.

{costs}

## Warnings and missing values

Values that came with a warning or did not come, over {cells} pairs of model and set (controls not counted):

{warnings}

What the reports say about each set beyond that:

{checks}
"""


@dataclass(frozen=True)
class Measured:
    """What is known about one set."""

    title: str
    note: str
    record: RankingRecord
    run: RunRecord
    gradients: Mapping[str, Mapping[str, object]]
    reduced: Sequence[str]
    cpu_seconds: float
    wall_seconds: float

    @classmethod
    def read(cls, results: Path, name: str, title: str, note: str, *, side: int) -> Measured | None:
        """The kept results, or None where the measurement is not finished."""
        file, folder = results / f"{name}.json", results / name
        state = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        if not state.get("finished"):
            return None
        record = RankingRecord.model_validate_json((folder / "report.json").read_bytes())
        run = RunRecord.model_validate_json((folder / "run.json").read_bytes())
        reduced = [model["name"] for model in state["facts"]["models"] if model["preprocessing"].get("input_size") == side]
        seconds = state["cpu_seconds"], state["wall_seconds"]
        return cls(title, note, record, run, state["gradients"], reduced, *seconds)

    @property
    def models(self) -> list[str]:
        """Candidates, without controls."""
        return [model.name for model in self.record.models if model.role == "candidate"]

    def values(self, score: str) -> dict[str, float]:
        """Of the candidates that have one."""
        if score not in GRADIENT_SCORES:
            found = {model: self.record.cell(model, score).value for model in self.models}
            return {model: value for model, value in found.items() if value is not None and not np.isnan(value)}
        parts = {model: of["parts"] for model, of in self.gradients.items() if "parts" in of}
        if score == "gradient_ratio":
            values = {model: of["gradient_ratio"] for model, of in parts.items()}
        else:
            zoo_score = SCORES.get(score)
            assert isinstance(zoo_score, ZooScore)
            values = dict(zip(parts, map(float, zoo_score.combine(list(parts.values()))), strict=True))
        return {model: value for model, value in values.items() if not np.isnan(value)}

    def seconds(self, score: str) -> list[float]:
        """Of one evaluation, one a model."""
        if score in GRADIENT_SCORES:
            return [float(of["seconds"]) for of in self.gradients.values() if "seconds" in of]
        cells = [self.record.cell(model, score) for model in self.models]
        return [cell.seconds for cell in cells if cell.value is not None]


def write_page(file: Path, sets: Sequence[Measured], *, side: int, missing: Sequence[str] = ()) -> None:
    """Write the page of the sets that are finished; ``missing`` are the titles of the others."""
    if not sets:
        raise SystemExit("No set is finished, so there is nothing to write.")
    scores = SCORES.names()
    models = list(dict.fromkeys(model for measured in sets for model in measured.models))
    limit = max(measured.record.dataset.num_images for measured in sets)
    text = PAGE.format(
        models=len(models),
        scores=len(scores),
        measured=listed([measured.title for measured in sets]),
        missing=f"Not measured yet: {listed(missing)}." if missing else "These are all that the recipe knows.",
        limit=limit,
        side=side,
        reduced=", ".join(map(short, sets[0].reduced)) or "none",
        gradient=" and ".join(title(score) for score in GRADIENT_SCORES),
        nca_gradient=title("nca_gradient"),
        machine=machine(sets[0].run),
        versions=versions(sets),
        set_table=set_table(sets),
        findings=findings(sets, scores),
        short_names=", ".join(f"{short(model)} = {model}" for model in models),
        orders="\n\n".join(order_table(measured, scores) for measured in sets),
        logme=value_table(sets, models, "logme"),
        with_probe=probe_table(sets, [score for score in scores if score != YARDSTICK]),
        matrix=correlation_matrix(sets, scores),
        costs=cost_table(sets, scores),
        cells=sum(len(measured.models) for measured in sets),
        warnings=warning_table(sets, scores),
        checks=check_table(sets),
    )
    file.write_text(text, encoding="utf-8")


def title(score: str) -> str:
    return SCORES.get(score).title


def short(model: str) -> str:
    return SHORT_NAMES.get(model, model)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, numbers_from: int = 1) -> str:
    """Markdown; columns from ``numbers_from`` on are aligned to the right."""
    rule = ["---" if column < numbers_from else "---:" for column in range(len(header))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])


def number(value: float, digits: int = 2) -> str:
    return "—" if np.isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def machine(run: RunRecord) -> str:
    return f"a virtual machine of {run.machine.get('cores', '2')} cores ({run.machine.get('processor', 'x86-64')})"


def versions(sets: Sequence[Measured]) -> str:
    found = sets[0].run.versions
    return ", ".join(f"{name} {found[name]}" for name in ("torch", "timm", "numpy", "scipy") if name in found)


def set_table(sets: Sequence[Measured]) -> str:
    rows: list[list[str]] = []
    for measured in sets:
        dataset = measured.record.dataset
        counts = " / ".join(map(str, dataset.class_counts))
        groups = "not known" if dataset.num_groups is None else f"{dataset.num_groups} ({dataset.group_column})"
        controls = len(measured.record.models) - len(measured.models)
        rows.append(
            [
                measured.title,
                str(dataset.num_images),
                f"{len(dataset.class_counts)} ({counts})",
                groups,
                str(len(measured.models)),
                str(controls),
                f"{measured.cpu_seconds:.0f}",
                f"{measured.wall_seconds:.0f}",
            ]
        )
    header = ["Set", "Images", "Classes", "Groups", "Models", "Random controls", "CPU seconds", "Wall seconds"]
    return table(header, rows)


def findings(sets: Sequence[Measured], scores: Sequence[str]) -> str:
    """Counts only, as sentences."""
    lines: list[str] = []
    for one in sets:
        level = separability(one, "logme")[0]
        firsts = len({first_of(one.values(score)) for score in scores if one.values(score)})
        lines.append(
            f"{one.title}: LogME does not separate its first model from {level} others, and the {len(scores)} scores name "
            f"{firsts} different first models."
        )
    found = {score: correlations(sets, score) for score in scores if score != YARDSTICK}
    if len(sets) > 1:
        clear = [title(score) for score, values in found.items() if len(values) > 1 and interval(values)[1] > 0]
        below = [title(score) for score, values in found.items() if len(values) and values.mean() < 0]
        lines.append(
            f"The mean correlation with the linear probe is above 0, with its whole interval, for {len(clear)} of {len(found)} "
            f"scores: {listed(clear) or 'none'}."
        )
        lines.append(f"It is below 0 on average for: {listed(below) or 'none'}.")
    return "\n".join(f"- {line}" for line in lines)


def listed(items: Sequence[object]) -> str:
    *others, last = [str(item) for item in items] or [""]
    return f"{', '.join(others)} and {last}" if others else last


def first_of(values: Mapping[str, float]) -> str:
    return max(values, key=lambda model: values[model])


def order_of(values: Mapping[str, float]) -> str:
    """``a = b > c`` without the signs between different values."""
    by_value: dict[float, list[str]] = defaultdict(list)
    for model, value in values.items():
        by_value[value].append(short(model))
    return " ".join("=".join(by_value[value]) for value in sorted(by_value, reverse=True)) or "—"


def order_table(measured: Measured, scores: Sequence[str]) -> str:
    rows: list[list[str]] = []
    for score in scores:
        row = [title(score), order_of(measured.values(score))]
        rows.append([*row, *(["—"] * 3 if score in GRADIENT_SCORES else separability(measured, score))])
    header = ["Score", "Order", "Level with the first", "Pairs", "Chance"]
    note = f"{measured.note}\n\n" if measured.note else ""
    return f"### {measured.title}\n\n{note}{table(header, rows, numbers_from=2)}"


def separability(measured: Measured, score: str) -> list[str]:
    ranking = measured.record.ranking(score)
    ranked = [row for row in ranking.rows if row.rank is not None]
    if not ranked:
        return ["—"] * 3
    num_pairs = len(ranked) * (len(ranked) - 1) // 2
    num_level = sum(len(row.not_separable_from) for row in ranked) // 2
    has_intervals = all(measured.record.cell(row.model, score).low is not None for row in ranked)
    level = str(len(ranked[0].not_separable_from)) if has_intervals else "—"
    pairs = f"{num_pairs - num_level} of {num_pairs}" if has_intervals else "—"
    above = [measured.record.cell(row.model, score).above_shuffled for row in ranked]
    known = [flag for flag in above if flag is not None]
    return [level, pairs, str(known.count(False)) if known else "—"]


def value_table(sets: Sequence[Measured], models: Sequence[str], score: str) -> str:
    rows: list[list[str]] = []
    for model in models:
        cells = [measured.record.cell(model, score) if model in measured.models else None for measured in sets]
        rows.append(
            [model]
            + [
                "—"
                if cell is None or cell.value is None
                else f"{number(cell.value, 3)} [{number(cell.low or np.nan, 3)}, {number(cell.high or np.nan, 3)}]"
                for cell in cells
            ]
        )
    return table(["Model", *(measured.title for measured in sets)], rows)


def spearman(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """Over the models that have both; NaN where one of them is constant or fewer than three are left."""
    common = [model for model in first if model in second]
    a, b = np.array([first[model] for model in common]), np.array([second[model] for model in common])
    if len(common) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(stats.spearmanr(a, b).statistic)


def correlations(sets: Sequence[Measured], score: str) -> np.ndarray:
    """With the linear probe, one value a set on which it is defined."""
    found = np.array([spearman(one.values(score), one.values(YARDSTICK)) for one in sets])
    return found[~np.isnan(found)]


def probe_table(sets: Sequence[Measured], scores: Sequence[str]) -> str:
    rows: list[tuple[float, list[str]]] = []
    for score in scores:
        each = [number(spearman(one.values(score), one.values(YARDSTICK))) for one in sets]
        known = correlations(sets, score)
        mean, low, high = interval(known) if len(known) > 1 else (known.mean() if len(known) else -2.0, np.nan, np.nan)
        last = f"{number(mean)} [{number(low)}, {number(high)}]" if len(known) > 1 else "—"
        rows.append((mean, [title(score), *each, last]))
    ordered = [row for _, row in sorted(rows, key=lambda row: -row[0])]
    return table(["Score", *(measured.title for measured in sets), "Mean"], ordered)


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean of at least two values, and its 95 % interval by Student's t."""
    half = float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    mean = float(values.mean())
    return mean, mean - half, mean + half


def correlation_matrix(sets: Sequence[Measured], scores: Sequence[str]) -> str:
    values = [{score: measured.values(score) for score in scores} for measured in sets]
    rows: list[list[str]] = []
    for place, first in enumerate(scores):
        row = [f"{place + 1} {title(first)}"]
        for second in scores[:place]:
            found = np.array([spearman(of[first], of[second]) for of in values])
            row.append(number(float(found[~np.isnan(found)].mean())) if not np.isnan(found).all() else "—")
        rows.append(row + [""] * (len(scores) - place))
    return table(["Score", *(str(place + 1) for place in range(len(scores)))], rows)


def cost_table(sets: Sequence[Measured], scores: Sequence[str]) -> str:
    rows: list[tuple[float, list[str]]] = []
    for score in scores:
        if score == "gradient_ratio":  # evaluated together with the next
            continue
        seconds = [value for measured in sets for value in measured.seconds(score)]
        if seconds:
            median = float(np.median(seconds))
            rows.append((median, [title(score), f"{median:.3f}", f"{max(seconds):.3f}"]))
    return table(["Score", "Median", "Largest"], [row for _, row in sorted(rows, reverse=True)])


def warning_table(sets: Sequence[Measured], scores: Sequence[str]) -> str:
    """Texts that differ only in numbers are one row."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for measured in sets:
        for score, kind, text in said(measured, scores):
            counts[title(score), kind, without_numbers(text)] += 1
    rows = [[name, kind, text, str(count)] for (name, kind, text), count in sorted(counts.items())]
    return table(["Score", "What", "Text", "Cells"], rows, numbers_from=3)


def said(measured: Measured, scores: Sequence[str]) -> list[tuple[str, str, str]]:
    """Score, kind and text of every warning and every reason for a missing value."""
    found: list[tuple[str, str, str]] = []
    for score in scores:
        if score in GRADIENT_SCORES:
            reasons = [str(of["reason"]) for of in measured.gradients.values() if "reason" in of]
            found += [(score, "no value", reason) for reason in reasons]
            continue
        for model in measured.models:
            cell = measured.record.cell(model, score)
            if cell.reason:
                found.append((score, "no value", cell.reason))
            if cell.no_interval_reason and cell.value is not None:
                found.append((score, "no interval", cell.no_interval_reason))
            found += [(score, "warning", text) for text in cell.warnings]
    return found


def without_numbers(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?(e-?\d+)?", "…", text).replace("|", "/")


def check_table(sets: Sequence[Measured]) -> str:
    rows = [
        [measured.title, check.severity, check.title, check.text.replace("|", "/")]
        for measured in sets
        for check in measured.record.checks
        if check.severity in ("unsound", "warning", "notice")
    ]
    return table(["Set", "Severity", "What", "Text"], rows, numbers_from=4)
