"""The page docs/results/sources.md, written of the rows that recipes/sources.py keeps; trains nothing."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ground_truth_rows import FULL, LEARNING_RATES, Cells, picked, read_cells
from ground_truth_sets import TargetSet
from sources_images import ALL_BUT, NATURAL, RANDOM, SCORE_NAMES
from study_rows import as_csv, read_rows
from study_tables import clustered_interval

from crossgraft.statistics import spearman, weighted_kendall
from crossgraft.storage.atomic import write_atomically

SEEDS = (0, 1)
HEAD = """\
<!-- Written by recipes/sources.py; do not edit. -->

# What should a network have learned from?

```
python recipes/sources.py --data-dir datasets --weights-dir weights --out docs/results/sources.md
```

{progress}

A ResNet-20 (first convolution of stride 2) is pretrained on each source, 32 pixels a side, then all of it is fine-tuned on each
target, 64 pixels a side, on at most 100 images of a class. *All but the target*: the other medical sets pooled, a class being a
set and its class. No source has images of the target. Learning rates {rates}; the AUC on val picks rate and epoch; mean over
{seeds} seeds. This is Fig. 6.4 and Table 6.4 of the thesis in small: there ResNet18, 15 sources of up to 1.3 million images, 224
pixels."""


@dataclass(frozen=True, kw_only=True)
class SourceRow:
    """One pretraining.

    Attributes:
        source: Name.
        images: Number of its images.
        classes: Number of its classes.
        epochs: Of its training.
        best_epoch: The one that was kept.
        auc: On a fifth of its own images that it has not seen.
        accuracy: The same.
        diversity: Effective rank of the features of its images in a network that is no source.
        cpu_seconds: Of the processor, with what was described.
    """

    source: str
    images: int
    classes: int
    epochs: int
    best_epoch: int | None = None
    auc: float | None = None
    accuracy: float | None = None
    diversity: float | None = None
    cpu_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class PairRow:
    """What is known of a source and a target before anything is fine-tuned; None for random weights, which have no images.

    Attributes:
        source: Name.
        target: Name.
        feature_similarity: Negative Fréchet distance of features of a network that is no source.
        spectral_similarity: Overlap of the mean radial power spectra, in [0, 1].
        logme: Score of the frozen features on the training images of the target, as all that follow.
        h_score: Score.
        sfda: Score.
        parc: Score.
        gbc: Score.
        transrate: Score.
        nca_score: Score.
    """

    source: str
    target: str
    feature_similarity: float | None = None
    spectral_similarity: float | None = None
    logme: float | None = None
    h_score: float | None = None
    sfda: float | None = None
    parc: float | None = None
    gbc: float | None = None
    transrate: float | None = None
    nca_score: float | None = None


Results = Mapping[str, Mapping[str, float]]
"""Target → source → AUC, mean over the seeds."""
Value = Callable[[str, str], float | None]
"""Of a source and a target."""


def read_sources(rows: Path) -> list[SourceRow]:
    """Pretrainings that are there."""
    return read_rows(rows / "pretraining.csv", SourceRow)


def read_pairs(rows: Path) -> list[PairRow]:
    """Pairs that are described."""
    return read_rows(rows / "pairs.csv", PairRow)


def write_sources(rows: Path, found: Sequence[SourceRow]) -> None:
    """All pretrainings."""
    rows.mkdir(parents=True, exist_ok=True)
    write_atomically(rows / "pretraining.csv", as_csv(SourceRow, found))


def write_pairs(rows: Path, found: Sequence[PairRow]) -> None:
    """All pairs."""
    rows.mkdir(parents=True, exist_ok=True)
    write_atomically(rows / "pairs.csv", as_csv(PairRow, found))


def write_page(out: Path, rows: Path, targets: Sequence[TargetSet]) -> None:
    """The page of all that is there."""
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, page_of(rows, targets))


def page_of(rows: Path, targets: Sequence[TargetSet]) -> str:
    """All of it as Markdown."""
    cells = {target.name: read_cells(rows, target.name) for target in targets}
    pairs = read_pairs(rows)
    results = {name: results_of(of_target) for name, of_target in cells.items()}
    done = [target for target in targets if complete(target.name, cells[target.name], pairs)]
    missing = [target.title for target in targets if target not in done]
    trainings = sum(len(each) for each in cells.values())
    hours = sum(row.cpu_seconds or 0.0 for each in cells.values() for row in each.values()) / 3600
    hours += sum(row.cpu_seconds or 0.0 for row in read_sources(rows)) / 3600
    progress = f"{trainings} fine-tunings, {hours:.1f} CPU-hours with the pretraining."
    if missing:
        progress = f"**The study is not finished.** {progress} Not complete: {'; '.join(missing)}."
    rates = " and ".join(f"{rate:g}" for rate in LEARNING_RATES)
    parts = [HEAD.format(progress=progress, rates=rates, seeds=len(SEEDS)), _matrix(results, targets), _pretraining(rows)]
    if done:
        whole = {target.name: results[target.name] for target in done}
        parts += [_predictors(whole, pairs, read_sources(rows), done), _claims(whole, done)]
    return "\n\n".join(parts) + "\n"


def results_of(cells: Cells) -> dict[str, float]:
    """Source → AUC on test; sources without a finished training are not among them."""
    found: dict[str, float] = {}
    for source in dict.fromkeys(row.model for row in cells.values()):
        values = [row.auc for seed in SEEDS if (row := picked(cells, source, FULL, seed)) is not None and row.auc is not None]
        if values:
            found[source] = statistics.fmean(values)
    return found


def complete(target: str, cells: Cells, pairs: Sequence[PairRow]) -> bool:
    """Has every source that is described all its trainings?"""
    sources = [row.source for row in pairs if row.target == target]
    wanted = [(source, FULL, rate, seed) for source in sources for rate in LEARNING_RATES for seed in SEEDS]
    return bool(wanted) and all(key in cells for key in wanted)


def plain(source: str) -> str:
    """Pooled sources differ by target; they are one line."""
    return "all but the target" if source.startswith(ALL_BUT) else source


def _matrix(results: Results, targets: Sequence[TargetSet]) -> str:
    named = {target: {plain(source): value for source, value in of.items()} for target, of in results.items()}
    sources = sorted({source for of in named.values() for source in of})
    lines = ["## Every source and target", "", "AUC × 100 on test; the best of each target in bold.", ""]
    lines += [f"| Source | {' | '.join(target.title for target in targets)} |", "|---" * (1 + len(targets)) + "|"]
    for source in sources:
        cells = []
        for target in targets:
            of = named[target.name]
            shown = f"{100 * of[source]:.1f}" if source in of else "–"
            cells.append(f"**{shown}**" if source in of and of[source] == max(of.values()) else shown)
        lines.append(f"| {source} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _pretraining(rows: Path) -> str:
    lines = [
        "## The sources",
        "",
        "*Diversity*: effective rank of the features of the images in a network that is no source.",
        "",
        "| Source | Images | Classes | Epochs | Own AUC | Diversity |",
        "|---|---|---|---|---|---|",
    ]
    for row in sorted(read_sources(rows), key=lambda each: each.images):
        area, rank = ("–" if each is None else f"{each:.{digits}f}" for each, digits in ((row.auc, 3), (row.diversity, 1)))
        lines.append(f"| {row.source} | {row.images} | {row.classes} | {row.epochs} | {area} | {rank} |")
    return "\n".join(lines)


def predictors(pairs: Sequence[PairRow], sources: Sequence[SourceRow]) -> dict[str, Value]:
    """What could tell beforehand which source is best."""
    known = {row.source: row for row in sources}
    found = {(row.source, row.target): row for row in pairs}

    def of_source(name: str) -> Value:
        return lambda source, _: getattr(known.get(source), name, None)

    def of_pair(name: str) -> Value:
        return lambda source, target: getattr(found.get((source, target)), name, None)

    own = {"Size": "images", "Classes": "classes", "Diversity": "diversity", "Own AUC": "auc"}
    alike = {"Similarity of features": "feature_similarity", "Similarity of spectra": "spectral_similarity"}
    return {
        **{title: of_source(name) for title, name in own.items()},
        **{title: of_pair(name) for title, name in alike.items()},
        **{name: of_pair(name) for name in SCORE_NAMES},
    }


def _predictors(results: Results, pairs: Sequence[PairRow], sources: Sequence[SourceRow], targets: Sequence[TargetSet]) -> str:
    lines = [
        "## What predicts the AUC?",
        "",
        "Rank correlation over the sources of a target (random weights, which have no images, only for the scores), mean over "
        f"{len(targets)} targets; 95 % percentile interval of the mean over groups of related targets. An interval that contains "
        "0: not decided.",
        "",
        "| Predictor | Targets | Spearman | Weighted Kendall |",
        "|---|---|---|---|",
    ]
    groups = {target.name: target.group or target.name for target in targets}
    for title, value in predictors(pairs, sources).items():
        of_target = {name: correlations(results[name], name, value) for name in groups}
        kept = {name: found for name, found in of_target.items() if found is not None}
        if kept:
            cells = [_mean([each[i] for each in kept.values()], [groups[name] for name in kept]) for i in (0, 1)]
            lines.append(f"| {title} | {len(kept)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def correlations(results: Mapping[str, float], target: str, value: Value) -> tuple[float, float] | None:
    """Spearman and weighted Kendall over the sources that have a value; None of fewer than three, or of equal ones."""
    found = {source: value(source, target) for source in results}
    pairs = [(each, results[source]) for source, each in found.items() if each is not None and np.isfinite(each)]
    if len(pairs) < 3:
        return None
    x, y = np.array(pairs, dtype=np.float64).T
    return None if np.ptp(x) == 0 or np.ptp(y) == 0 else (spearman(x, y), weighted_kendall(x, y))


def _mean(values: Sequence[float], groups: Sequence[str]) -> str:
    low, high = clustered_interval(np.array(values), groups)
    return f"{statistics.fmean(values):+.2f} [{low:+.2f}, {high:+.2f}]".replace("-", "−")


def _claims(results: Results, targets: Sequence[TargetSet]) -> str:
    """The sentences of section 6.5.1, counted here."""
    lines = ["## The claims of the thesis", ""]
    for claim, first, second in (
        ("Diversity: all but the target against the best single medical set", _pooled, _best_single),
        ("Diversity: all but the target against CIFAR-10", _pooled, _named(NATURAL)),
        ("Medical sources against CIFAR-10: the best single medical set", _best_single, _named(NATURAL)),
        ("Pretraining at all: CIFAR-10 against random weights", _named(NATURAL), _named(RANDOM)),
    ):
        gaps = {name: a - b for name, of in results.items() if (a := first(of)) is not None and (b := second(of)) is not None}
        groups = {target.name: target.group or target.name for target in targets}
        if gaps:
            ahead = sum(gap > 0 for gap in gaps.values())
            points = _mean([100 * gap for gap in gaps.values()], [groups[name] for name in gaps])
            lines.append(f"- {claim}: ahead on {ahead} of {len(gaps)} targets, {points} points of AUC.")
    lines += ["", "The best single set is chosen on test, afterwards: it is a bound for any rule of choice, no method."]
    return "\n".join(lines)


def _pooled(of: Mapping[str, float]) -> float | None:
    return next((value for source, value in of.items() if source.startswith(ALL_BUT)), None)


def _best_single(of: Mapping[str, float]) -> float | None:
    return max(
        (value for source, value in of.items() if source not in (NATURAL, RANDOM) and not source.startswith(ALL_BUT)),
        default=None,
    )


def _named(name: str) -> Callable[[Mapping[str, float]], float | None]:
    return lambda of: of.get(name)
