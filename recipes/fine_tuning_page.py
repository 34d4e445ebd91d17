"""The page docs/results/fine-tuning.md, written of the records that recipes/fine_tuning.py keeps; trains nothing."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from studies import Difference, difference_of, verdict

from crossgraft.metrics.record import MetricRecord
from crossgraft.tune.record import TuningRecord

METRICS = {"auc": "AUC", "accuracy": "Accuracy", "balanced_accuracy": "Balanced accuracy"}
FOLDED_METRICS = {**METRICS, "calibration_error": "Calibration error"}
THESIS = {
    # ImageNet weights, mean AUC × 100: no freeze, freeze first, random initialisation (thesis, Table 3.2)
    "Thyroid": (64.9, 67.8, 64.3),
    "Breast": (94.3, 95.1, 85.2),
    "Chest": (98.7, 99.0, 97.9),
    "Mammograms": (75.4, 77.3, 68.3),
    "Knee": (96.5, 97.1, 93.2),
    "ISIC": (97.4, 97.6, 95.8),
    "Pcam-small": (92.9, 94.4, 83.2),
}
REPSIM = {
    # accuracy (Chest, Endo: mAP), %: FULL, LINEAR, SCRATCH (RepSim, Table 1)
    "ISIC2018": (84.63, 73.57, 66.91),
    "APTOS2019": (84.06, 77.87, 69.49),
    "MedFM-Chest": (33.56, 23.55, 11.89),
    "MedFM-Colon": (99.74, 94.24, 89.42),
    "MedFM-Endo": (58.11, 37.80, 17.08),
}
PAGE = """\
<!-- Written by recipes/fine_tuning.py; do not edit. -->

# Full, linear, from scratch, head first

```
python recipes/fine_tuning.py --data-dir datasets --weights-dir weights --out docs/results/fine-tuning.md
```

{progress}\
Each set has its own train, val and test split. The epoch with the best {rule} on val is picked; test is looked at once.
Images are {side}, much smaller than the networks were pretrained with. PneumoniaMNIST is trained on
300 images of each class, with the whole val and test parts. None of the sets says which images belong to one patient:
**patient leakage not checked**. {settings}

*Head first*: the head alone until val gets no better, then everything. Intervals are 95 %.

## Every set, network and method

Mean over {seeds} seeds ± standard deviation between seeds; in brackets the interval of the test images, its ends averaged over
the seeds. *Seconds*: of one training, on a machine that had other work.

{tables}

## Which orderings hold

Differences in the metric between two methods, one for each pair of set and network (mean over seeds): their mean with a 95 %
interval (Student's t over the pairs, which share images and weights, so take it as rough), and in how many pairs the first is
ahead.

{orderings}

## Beside the published tables

The thesis (Table 3.2) fine-tuned ResNet50 at full size with five folds; AUC × 100, ImageNet weights.

{thesis}

RepSim (Table 1) fine-tuned ViT-B/16 at 224 pixels; accuracy, for MedFM-Chest and MedFM-Endo mAP, in %.

{repsim}

{verdict}

## Folds of patients and folds of pictures: HAM10000

{ham}
"""

ORDERINGS = (
    ("head first", "full", "auc", "thesis, Table 3.2: freezing first is ahead in 7 of 7 sets"),
    ("full", "scratch", "auc", "thesis, Table 3.2: pretrained weights are ahead in 7 of 7 sets"),
    ("full", "linear", "accuracy", "RepSim, Table 1: ahead in 5 of 5 sets"),
    ("linear", "scratch", "accuracy", "RepSim, Table 1: ahead in 5 of 5 sets"),
)


class Result(NamedTuple):
    """One finished training."""

    target: str
    model: str
    method: str
    seed: int
    record: TuningRecord


def write_page(
    path: Path, results: Sequence[Result], folded: Mapping[str, TuningRecord], *, titles: Mapping[str, str], wanted: int
) -> None:
    """Write the page of what is there; ``wanted`` is the number of trainings of the whole study."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page_of(results, folded, titles=titles, wanted=wanted), encoding="utf-8")


def page_of(results: Sequence[Result], folded: Mapping[str, TuningRecord], *, titles: Mapping[str, str], wanted: int) -> str:
    there = len(results) + len(folded)
    progress = "" if there >= wanted else f"**The study is not finished: {there} of {wanted} trainings are there.**\n\n"
    some = results[0].record if results else None
    return PAGE.format(
        progress=progress,
        side=f"{some.model.preprocessing.height_pixels} pixels a side" if some else "small",
        settings=_settings(some) if some else "",
        rule=METRICS.get(some.selection_metric, some.selection_metric) if some else "value",
        seeds=len({result.seed for result in results}),
        tables="\n\n".join(_target_table(results, name, title) for name, title in titles.items()),
        orderings=_orderings(results),
        thesis=_published(THESIS, ("No freeze", "Head first", "Random"), decimals=1),
        repsim=_published(REPSIM, ("FULL", "LINEAR", "SCRATCH"), decimals=2),
        verdict=_verdict(results),
        ham=_folds(folded),
    )


def value_of(record: TuningRecord, metric: str) -> float | None:
    """A metric on the test rows."""
    found = record.metric(metric)
    return None if found is None else found.value


def difference(results: Sequence[Result], first: str, second: str, metric: str) -> Difference | None:
    """Over the pairs of set and network that have both methods; None with fewer than two."""
    means = _means(results, metric)
    pairs = sorted({key[:2] for key in means if (*key[:2], first) in means and (*key[:2], second) in means})
    gaps = [means[*pair, first] - means[*pair, second] for pair in pairs]
    return difference_of(gaps)


def _means(results: Sequence[Result], metric: str) -> dict[tuple[str, str, str], float]:
    """(set, network, method) → mean over the seeds."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for result in results:
        value = value_of(result.record, metric)
        if value is not None:
            found.setdefault((result.target, result.model, result.method), []).append(value)
    return {key: statistics.fmean(values) for key, values in found.items()}


def _settings(record: TuningRecord) -> str:
    chosen = {name: value for name, value in record.plan.settings.items() if name in _SHOWN_SETTINGS}
    return "Settings of the first training: " + ", ".join(f"{name} {value}" for name, value in chosen.items()) + "."


_SHOWN_SETTINGS = ("optimizer", "learning rate", "weight decay", "schedule", "epochs", "batch size", "augmentation")


def _target_table(results: Sequence[Result], name: str, title: str) -> str:
    found = [result for result in results if result.target == name]
    lines = [
        f"### {title}",
        "",
        f"| Network | Method | {' | '.join(METRICS.values())} | Seconds |",
        "|---|---" + "|---" * 4 + "|",
    ]
    for model in dict.fromkeys(result.model for result in found):
        for method in dict.fromkeys(result.method for result in found):
            records = [r.record for r in found if r.model == model and r.method == method]
            cells = [_over_seeds(records, metric) for metric in METRICS]
            seconds = statistics.median(record.seconds for record in records) if records else 0
            lines.append(f"| {model} | {method} | {' | '.join(cells)} | {seconds:.0f} |")
    return "\n".join(lines) if found else f"### {title}\n\nNot trained yet."


def _over_seeds(records: Sequence[TuningRecord], metric: str) -> str:
    found = [row for record in records if (row := record.metric(metric)) is not None and row.value is not None]
    if not found:
        return "–"
    values = [row.value for row in found if row.value is not None]
    spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.3f}{spread}{_ends(found)}"


def _ends(rows: Sequence[MetricRecord]) -> str:
    lows, highs = [row.low for row in rows if row.low is not None], [row.high for row in rows if row.high is not None]
    return f" [{statistics.fmean(lows):.3f}, {statistics.fmean(highs):.3f}]" if lows and highs else ""


def _orderings(results: Sequence[Result]) -> str:
    lines = ["| First | Second | Metric | Mean difference | First ahead | Published |", "|---|---|---|---|---|---|"]
    for first, second, metric, published in ORDERINGS:
        found = difference(results, first, second, metric)
        gap = "–" if found is None else f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
        ahead = "–" if found is None else f"{found.ahead} of {found.pairs}"
        lines.append(f"| {first} | {second} | {METRICS[metric]} | {gap} | {ahead} | {published} |")
    return "\n".join(lines)


def _published(table: Mapping[str, Sequence[float]], columns: Sequence[str], *, decimals: int) -> str:
    lines = [f"| Set | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(f'{value:.{decimals}f}' for value in values)} |" for name, values in table.items()]
    means = [statistics.fmean(column) for column in zip(*table.values(), strict=True)]
    return "\n".join([*lines, f"| mean | {' | '.join(f'{mean:.2f}' for mean in means)} |"])


def _verdict(results: Sequence[Result]) -> str:
    """One sentence for each published ordering: it shows here, its opposite shows, or neither."""
    sentences: list[str] = []
    for first, second, metric, published in ORDERINGS:
        found = difference(results, first, second, metric)
        if found is not None:
            sentences.append(f"- **{first} over {second}** ({published.partition(':')[0]}): {verdict(found)}.")
    return "\n".join(["On our sets, networks and sizes:", "", *sentences]) if sentences else ""


def _folds(folded: Mapping[str, TuningRecord]) -> str:
    if not folded:
        return "Not trained yet."
    some = next(iter(folded.values()))
    lines = [
        f"{some.model.name}, {some.dataset.num_images} images, five folds; each image is a test image once, of a model that was "
        "picked without it. The same call, once with `--group-column lesion_id` and once with `--group-column none`, which "
        "leaves pictures of one lesion in train and test.",
        "",
        f"| Folds of | {' | '.join(FOLDED_METRICS.values())} | Leakage |",
        "|---" * (len(FOLDED_METRICS) + 2) + "|",
    ]
    for name, record in folded.items():
        cells = [_over_seeds([record], metric) for metric in FOLDED_METRICS]
        lines.append(f"| {name}s | {' | '.join(cells)} | {record.leakage} |")
    return "\n".join([*lines, "", _leak(folded)]).rstrip()


def _leak(folded: Mapping[str, TuningRecord]) -> str:
    if set(folded) != {"lesion", "image"}:
        return ""
    gaps: list[str] = []
    for metric, title in METRICS.items():
        by_lesion, by_image = value_of(folded["lesion"], metric), value_of(folded["image"], metric)
        if by_lesion is not None and by_image is not None:
            gaps.append(f"{title} {by_image - by_lesion:+.3f}")
    return f"Folds of pictures minus folds of lesions: {', '.join(gaps)}." if gaps else ""
