"""The page docs/results/itm.md, written of the rows that recipes/itm_ablations.py keeps; scores nothing."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from ground_truth_rows import read_cells, trained
from ground_truth_sets import TargetSet
from study_rows import as_csv, read_rows
from study_tables import clustered_interval

from crossgraft import evaluate_published
from crossgraft.statistics import weighted_kendall
from crossgraft.storage.atomic import write_atomically

ITERATIONS = (100, 200, 500, 1000)
BATCH_SIZES = (32, 64, 128, 256)
Centres = Literal["one-hot", "random", "pca", "laplacian"]
CENTRES: Mapping[str, Centres] = {"one-hot": "one-hot", "random": "random", "pca": "pca", "laplacian": "laplacian"}
PRINTED = {
    # (standardised, adaptive): average weighted Kendall after 100, 200, 500, 1000 iterations (ITM, Table 2)
    (0, 0): (0.443, 0.482, 0.519, 0.541),
    (0, 1): (0.471, 0.496, 0.508, 0.532),
    (1, 0): (0.557, 0.534, 0.576, 0.569),
    (1, 1): (0.523, 0.545, 0.605, 0.608),
}
HEAD = """\
<!-- Written by recipes/itm_ablations.py; do not edit. -->

# What the parts of ITM do

```
python recipes/itm_ablations.py --data-dir datasets --weights-dir weights --out docs/results/itm.md
```

{rests}

[ITM](../methods/itm.md) on features of the training images, {seeds} seeds, against the AUC on test after full fine-tuning
([trained table](ground_truth.md)). τ_w: scipy's weighted Kendall, mean over seeds and sets; in brackets the 95 % percentile
interval of the mean over groups of related sets, where there are three groups or more. Sets have a few hundred training images,
so that ITM's own validation has tens, and its accuracies tie: the paper's sets are much larger."""


@dataclass(frozen=True)
class Variant:
    """How ITM is told to work.

    Attributes:
        standardized: Features of mean 0 and variance 1 first?
        adaptive: η by equation 12 of all networks, else 0.5.
        iterations: Steps.
        batch_size: Images of a step.
        centres: Kind of the pseudo-centres.
    """

    standardized: int
    adaptive: int
    iterations: int
    batch_size: int
    centres: str


@dataclass(frozen=True, kw_only=True)
class ScoreRow(Variant):
    """One score.

    Attributes:
        model: Network.
        seed: Of everything that is drawn.
        score: ITM.
        eta: The η that was used.
        cpu_seconds: Of the processor.
    """

    model: str
    seed: int
    score: float
    eta: float
    cpu_seconds: float

    @property
    def variant(self) -> Variant:
        """How it was told to work."""
        return Variant(self.standardized, self.adaptive, self.iterations, self.batch_size, self.centres)


BASE = Variant(1, 1, 500, 256, "one-hot")
"""What the paper recommends."""


def table_variants() -> Iterator[Variant]:
    """Table 2."""
    for standardized, adaptive in PRINTED:
        for iterations in ITERATIONS:
            yield replace(BASE, standardized=standardized, adaptive=adaptive, iterations=iterations)


def batch_variants() -> list[Variant]:
    """Figure 4."""
    return [replace(BASE, batch_size=size) for size in BATCH_SIZES]


def centre_variants() -> list[Variant]:
    """Figure 5."""
    return [replace(BASE, centres=kind) for kind in CENTRES]


@dataclass(frozen=True)
class Judged:
    """Weighted Kendall of one variant on one set.

    Attributes:
        group: Sets of one group are related.
        taus: One per seed.
        cpu_seconds: Mean of one score.
    """

    group: str
    taus: tuple[float, ...]
    cpu_seconds: float

    @property
    def tau(self) -> float:
        """Mean over the seeds."""
        return statistics.fmean(self.taus)


def read_scores(rows: Path, name: str) -> list[ScoreRow]:
    """Of one set; empty where nothing is done."""
    return read_rows(rows / f"{name}.csv", ScoreRow)


def write_scores(rows: Path, name: str, found: Sequence[ScoreRow]) -> None:
    """All scores of one set."""
    rounded = [
        replace(row, score=round(row.score, 6), eta=round(row.eta, 6), cpu_seconds=round(row.cpu_seconds, 4)) for row in found
    ]
    rows.mkdir(parents=True, exist_ok=True)
    write_atomically(rows / f"{name}.csv", as_csv(ScoreRow, rounded))


def write_page(out: Path, rows: Path, truth: Path, targets: Sequence[TargetSet]) -> None:
    """The page of all that is there."""
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, page_of(rows, truth, targets))


def page_of(rows: Path, truth: Path, targets: Sequence[TargetSet]) -> str:
    """All of it as Markdown."""
    judged = {target: found for target in targets if (found := judge(rows, truth, target))}
    seeds = max((len(each.taus) for found in judged.values() for each in found.values()), default=0)
    parts = [HEAD.format(rests=_rests(judged, targets), seeds=seeds)]
    if judged:
        found = list(judged.values())
        parts += [_table_2(found), _batches(found), _centres(found)]
    return "\n\n".join([*parts, _published()]) + "\n"


def judge(rows: Path, truth: Path, target: TargetSet) -> dict[Variant, Judged]:
    """Every variant against the results of fine-tuning; empty where there are no scores."""
    found: dict[Variant, dict[int, dict[str, ScoreRow]]] = {}
    for row in read_scores(rows, target.name):
        found.setdefault(row.variant, {}).setdefault(row.seed, {})[row.model] = row
    results = {each.model: each.result for each in trained(read_cells(truth, target.name), "auc")}
    judged: dict[Variant, Judged] = {}
    for variant, by_seed in found.items():
        taus = [tau for of in by_seed.values() if (tau := _tau(of, results)) is not None]
        spent = [row.cpu_seconds for of in by_seed.values() for row in of.values()]
        if taus:
            judged[variant] = Judged(target.group or target.name, tuple(taus), statistics.fmean(spent))
    return judged


def _tau(scores: Mapping[str, ScoreRow], results: Mapping[str, float]) -> float | None:
    """Of the networks that have both; None where nothing can be ordered, 0 where all scores are equal."""
    pairs = np.array([(scores[model].score, results[model]) for model in scores if model in results])
    if len(pairs) < 3 or np.ptp(pairs[:, 1]) == 0:
        return None
    return 0.0 if np.ptp(pairs[:, 0]) == 0 else weighted_kendall(pairs[:, 0], pairs[:, 1])


def _rests(judged: Mapping[TargetSet, object], targets: Sequence[TargetSet]) -> str:
    if not judged:
        return "**Nothing is scored yet**: no set has a result of every network."
    names = "; ".join(target.title for target in judged)
    groups = len({target.group or target.name for target in judged})
    missing = [target.title for target in targets if target not in judged]
    few = " **So few that no difference below is decided.**" if groups < 3 else ""
    return f"It rests on {len(judged)} of {len(targets)} sets ({names}) in {groups} groups.{few}" + (
        f" Missing: {'; '.join(missing)}." if missing else ""
    )


def _mean(found: Sequence[Mapping[Variant, Judged]], variant: Variant) -> str:
    of_sets = [of[variant] for of in found if variant in of]
    if not of_sets:
        return "–"
    return _with_interval([each.tau for each in of_sets], [each.group for each in of_sets])


def _with_interval(values: Sequence[float], groups: Sequence[str], *, shown: str = "{:.3f}") -> str:
    """Mean, and its interval where there are three groups or more."""
    mean = shown.format(statistics.fmean(values))
    if len(set(groups)) > 2:
        low, high = clustered_interval(np.array(values), groups)
        mean += f" [{shown}, {shown}]".format(low, high)
    return mean.replace("-", "−")


def _table_2(found: Sequence[Mapping[Variant, Judged]]) -> str:
    lines = [
        "## Standardising and adaptive η (Table 2)",
        "",
        "In each cell τ_w here, then the average that the paper prints for ten networks on its ten sets.",
        "",
        f"| Standardised | Adaptive η | {' | '.join(f'{number} iterations' for number in ITERATIONS)} |",
        "|---|---" + "|---" * len(ITERATIONS) + "|",
    ]
    for (standardized, adaptive), printed in PRINTED.items():
        variants = [replace(BASE, standardized=standardized, adaptive=adaptive, iterations=number) for number in ITERATIONS]
        cells = [f"{_mean(found, each)} / {paper:.3f}" for each, paper in zip(variants, printed, strict=True)]
        said = ["yes" if each else "no" for each in (standardized, adaptive)]
        lines.append(f"| {' | '.join([*said, *cells])} |")
    return "\n".join([*lines, "", *_effects(found)])


def _effects(found: Sequence[Mapping[Variant, Judged]]) -> Iterator[str]:
    """Paired differences at 500 iterations."""
    for what, first, second in (
        ("Standardising, with adaptive η", BASE, replace(BASE, standardized=0)),
        ("Adaptive η, with standardising", BASE, replace(BASE, adaptive=0)),
        ("1 000 iterations instead of 100", replace(BASE, iterations=1000), replace(BASE, iterations=100)),
    ):
        both = [(of[first], of[second]) for of in found if first in of and second in of]
        if both:
            gaps = [one.tau - other.tau for one, other in both]
            ahead = sum(gap > 0 for gap in gaps)
            mean = _with_interval(gaps, [one.group for one, _ in both], shown="{:+.3f}")
            yield f"- {what}: {mean} in τ_w, ahead on {ahead} of {len(gaps)} sets."


def _batches(found: Sequence[Mapping[Variant, Judged]]) -> str:
    lines = [
        "## Batch size (Figure 4)",
        "",
        "A batch is never larger than the images that ITM trains on, four fifths of the training images.",
        "",
        "| Batch size | τ_w | CPU seconds of one score |",
        "|---|---|---|",
    ]
    for variant in batch_variants():
        spent = [of[variant].cpu_seconds for of in found if variant in of]
        if spent:
            lines.append(f"| {variant.batch_size} | {_mean(found, variant)} | {statistics.fmean(spent):.2f} |")
    return "\n".join(lines)


def _centres(found: Sequence[Mapping[Variant, Judged]]) -> str:
    lines = [
        "## Pseudo-centres (Figure 5)",
        "",
        "The paper found little difference and takes one-hot centres. *Spread*: mean standard deviation between seeds.",
        "",
        "| Centres | τ_w | Spread |",
        "|---|---|---|",
    ]
    for variant in centre_variants():
        of_sets = [of[variant] for of in found if variant in of]
        if of_sets:
            spread = statistics.fmean(statistics.stdev(each.taus) if len(each.taus) > 1 else 0.0 for each in of_sets)
            lines.append(f"| {variant.centres} | {_mean(found, variant)} | {spread:.3f} |")
    return "\n".join(lines)


def _published() -> str:
    """What can be said of the paper's own figures, which have no features."""
    methods = {each.name: each for each in evaluate_published("itm").record.scenarios[0].methods}
    printed, prior = methods["ITM"], methods["static_prior"]
    gain = printed.gain
    shown = (
        "" if gain is None or gain.value is None else f"{gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]".replace("-", "−")
    )
    return (
        "## On the paper's own ten sets\n\n"
        f"`crossgraft rank --published itm`: ITM's τ_w as printed (Table 1) is {printed.mean.value:.3f} on average, that of a "
        f"static prior, which never looks at the set, {prior.mean.value:.3f}. ITM minus prior: {shown} (95 %, jackknife over "
        "sets). Ablations cannot be repeated from these figures: no features and no scores of single networks are published."
    )
