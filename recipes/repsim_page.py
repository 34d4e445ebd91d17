"""The page docs/results/repsim.md, written of the rows that recipes/repsim.py keeps; trains nothing."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from repsim_figure import write_figure
from study_rows import CurveRow, Table, TrainingRow
from study_tables import (
    COLUMNS,
    Key,
    Ordering,
    Tables,
    everywhere,
    in_numbers,
    or_dash,
    orderings_table,
    over_seeds,
    paired_difference,
    set_table,
    time_ratio,
    values,
    verdicts,
)

PAPER = {  # RepSim, Table 1, means of five sets: accuracy (mAP of two sets) in %, CKA
    "full": (72.02, 0.52),
    "repsim": (71.03, 0.68),
    "hcs 0.8": (68.79, 0.76),
    "linear": (61.41, None),
    "scratch": (50.96, 0.45),
}
PAPER_ABLATIONS = {  # RepSim, Table 5, ISIC2018: accuracy in %, CKA
    "repsim, Q fixed": (83.55, 0.56),
    "repsim, with μ": (83.49, 0.51),
    "repsim, b=4": (81.42, 0.21),
    "repsim, b=32": (83.33, 0.30),
    "repsim, b=128": (83.95, 0.60),
}
PAPER_MINUTES = {"linear": 26.65, "full": 57.08, "hcs 0.8": 111.04, "repsim": 57.83}  # Table 6, fifty epochs


ORDERINGS = (
    Ordering("full", "repsim", "accuracy", "Table 1: 72.02 and 71.03"),
    Ordering("repsim", "hcs 0.8", "accuracy", "Table 1: 71.03 and 68.79"),
    Ordering("hcs 0.8", "linear", "accuracy", "Table 1: 68.79 and 61.41"),
    Ordering("linear", "scratch", "accuracy", "Table 1: 61.41 and 50.96"),
    Ordering("hcs 0.8", "repsim", "cka", "Table 1: 0.76 and 0.68"),
    Ordering("hcs 0.8", "repsim", "cka_debiased", "Table 1, by the biased estimate"),
    Ordering("repsim", "full", "cka", "Table 1: 0.68 and 0.52"),
    Ordering("repsim", "full", "cka_debiased", "Table 1, by the biased estimate"),
    Ordering("repsim", "repsim, Q fixed", "accuracy", "Table 5: 83.95 and 83.55"),
    Ordering("repsim", "repsim, Q fixed", "cka", "Table 5: 0.60 and 0.56"),
    Ordering("repsim", "repsim, with μ", "accuracy", "Table 5: 83.95 and 83.49"),
    Ordering("repsim", "repsim, with μ", "cka", "Table 5: 0.60 and 0.51"),
)
NOT_IN_THE_PAPER = (
    Ordering("repsim, procrustes", "full", "cka", "–"),
    Ordering("repsim, procrustes", "full", "cka_debiased", "–"),
    Ordering("repsim, procrustes", "full", "accuracy", "–"),
    Ordering("repsim, procrustes", "repsim", "cka", "–"),
    Ordering("repsim, procrustes", "repsim", "accuracy", "–"),
    Ordering("repsim, Q fixed", "full", "cka", "–"),
    Ordering("repsim, with μ", "full", "cka", "–"),
)
SIZE_ORDERINGS = (
    Ordering("repsim, b=32", "repsim, b=4", "cka", "Table 5: 0.30 and 0.21"),
    Ordering("repsim, b=128", "repsim, b=32", "cka", "Table 5: 0.60 and 0.30"),
    Ordering("repsim, b=32", "repsim, b=4", "accuracy", "Table 5: 83.33 and 81.42"),
    Ordering("repsim, b=128", "repsim, b=32", "accuracy", "Table 5: 83.95 and 83.33"),
)
HCS_LINE = ("full", "hcs 0.8", "hcs 0.6", "hcs 0.4", "hcs 0.2", "linear")
JUDGED = (
    "repsim", "repsim, weight 10", "repsim, weight 100", "repsim, Q fixed", "repsim, with μ", "repsim, as printed",
    "repsim, procrustes", "hcs 0.8", "hcs 0.6", "hcs 0.4", "hcs 0.2", "l2_sp",
)  # fmt: skip
LINES = {
    "interpolation": "WiSE-FT, statistics of BatchNorm estimated",
    "mix": "WiSE-FT, statistics of BatchNorm mixed",
    "hcs": "HCS, λ from 0.8 to 0.2, between FULL and LINEAR",
}
PAGE = """\
<!-- Written by recipes/repsim.py; do not edit. -->

# Fine-tuning without forgetting: accuracy against similarity

```
python recipes/repsim.py --data-dir datasets --weights-dir weights --out docs/results/repsim.md
```

{progress}

FULL, LINEAR and SCRATCH, regularisers that hold the features near the pretrained ones, and the baseline that costs no training:
networks between LINEAR and FULL ([WiSE-FT](../how-to/interpolate-two-models.md)). Each set has its own train, val and test split;
the epoch is picked on val (highest AUC), test is looked at once. Every training: 64 pixels a side, 15 epochs, batches of 64
images, augmentation `light` (none with LINEAR, whose features are computed once), AdamW with the defaults of `crossgraft tune`.
PneumoniaMNIST is trained on 300 images of each class; RetinaMNIST is cut to 1450 images, of which about 980 train. None of the
sets says which images belong to one patient: **patient leakage not checked**. CKA compares penultimate features of the test
images, without augmentation, with those of the pretrained network; of two unrelated sets of features the biased estimate is not
0, the debiased one is.

Accuracy and balanced accuracy are of the most probable class, as in the paper: the threshold that `crossgraft tune` fits to val
for two classes would add its own noise.

*repsim* is the default of `--regularizer repsim`; *as printed* leaves out the division by the norm of the pretrained covariance
(`normalize=none`), as in the paper. Intervals are 95 %.

## All sets and networks together

Mean over sets and networks, with an interval over the seeds (Student's t, n = {num_seeds}; wide, because three seeds say
little; larger weights of RepSim were looked at with one seed); – where a variant is not there yet for every set and network.
*Time*: CPU seconds of the whole call as a multiple of FULL's, the median over all pairs of set, network and seed, on a machine
that had other work to do: take it as rough.

{pooled}

![Accuracy against similarity]({figure})

Each point is the mean over networks and seeds of a set, with an interval over the seeds; above with the biased estimate of CKA,
below with the debiased one. Lines: networks between LINEAR and FULL, with statistics of BatchNorm estimated on training images
or mixed like the weights, and HCS from λ = 0.8 to 0.2.

## Which published orderings hold

Difference in the metric between two variants, one for each pair of set and network (mean over seeds): their mean with an
interval (Student's t over the pairs, which share images and weights, so take it as rough), and in how many pairs, and in how
many single trainings, the first is ahead.

{orderings}

{verdicts}

### Variants that the paper does not compare

*procrustes* compares the features of the same images instead of covariances (`mode=procrustes`).

{more_orderings}

### Batch size: BreastMNIST, mobilenetv1_050

One set and one network, so the pairs are seeds. FULL at the same sizes shows what the size does on its own.

{sizes}

{size_orderings}

## Against the free baseline

How much more accurate is a variant than a line at the same CKA? Along each line, values between two networks are taken as
straight; outside of its range a variant is compared with the nearer end. Differences in accuracy over pairs of set and network,
as above; above 0: the variant is worth its training.

{free}

{picked}

## Beside the published tables

RepSim fine-tuned ViT-B/16 at 224 pixels on five other sets, 50 epochs in batches of 128. Orderings can be compared, sizes can
not.

{published}

Ablations (its Table 5, ISIC2018):

{ablations}

Time (its Table 6, minutes for 50 epochs on one A100): {minutes}. Here, on a CPU with networks this small, the d × d products of
RepSim weigh much more beside a step than with ViT-B/16; ratios of single steps are in [benchmarks](benchmarks.md).

Its Figure 6 draws LINEAR, HCS and FULL as one curve and finds RepSim on it or above it. Ours is the last column of the table of
the free baseline.

## Every set and network

Mean over the seeds with an interval over the seeds.

{tables}
"""


def write_page(path: Path, tables: Tables, *, titles: Mapping[str, str], wanted: int) -> None:
    """The page and, in a folder beside it, its figure; ``wanted`` is the number of trainings of the whole study."""
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    figure = folder / "trade-off.svg"
    write_figure(figure, tables, titles)
    text = page_of(tables, titles=titles, wanted=wanted, figure=f"{folder.name}/{figure.name}")
    path.write_text(text, encoding="utf-8")


def page_of(tables: Tables, *, titles: Mapping[str, str], wanted: int, figure: str) -> str:
    there = sum(len(table.trainings) for table in tables.values())
    return PAGE.format(
        progress="" if there >= wanted else f"**The study is not finished: {there} of {wanted} trainings are there.**",
        num_seeds=len({row.seed for table in tables.values() for row in table.trainings}),
        pooled=_pooled(tables),
        figure=figure,
        orderings=orderings_table(tables, ORDERINGS),
        verdicts=verdicts(tables, ORDERINGS),
        more_orderings=orderings_table(tables, NOT_IN_THE_PAPER),
        sizes=_sizes(tables),
        size_orderings=orderings_table(tables, SIZE_ORDERINGS, by_seed=True),
        free=_free(tables),
        picked=_picked(tables),
        published=_published(tables),
        ablations=_ablations(tables),
        minutes=", ".join(f"{name} {minutes:g}" for name, minutes in PAPER_MINUTES.items()),
        tables="\n\n".join(
            set_table(tables[name], title, _variants({"": tables[name]})) for name, title in titles.items()
        ),
    )


def above_line(
    tables: Tables, variant: str, line: str, *, metric: str = "accuracy", by: str = "cka"
) -> dict[Key, float]:
    """How far each training of ``variant`` lies above the line of its set, network and seed at the same similarity."""
    gaps: dict[Key, float] = {}
    similar = values(tables, variant, by)
    for key, value in values(tables, variant, metric).items():
        points = sorted(_line(tables[key[0]], key[1], key[2], line, metric, by))
        if key in similar and len(points) > 1:
            gaps[key] = value - float(np.interp(similar[key], *zip(*points, strict=True)))
    return gaps


def _line(table: Table, model: str, seed: int, line: str, metric: str, by: str) -> list[tuple[float, float]]:
    rows: Sequence[TrainingRow | CurveRow]
    if line == "hcs":
        rows = [row for row in table.trainings if (row.model, row.seed) == (model, seed) and row.variant in HCS_LINE]
        rows = rows if {row.variant for row in rows} == set(HCS_LINE) else []
    else:
        wanted = "estimate" if line == "interpolation" else line
        rows = [row for row in table.curve if (row.model, row.seed, row.batch_norm) == (model, seed, wanted)]
    found = [(getattr(row, by), getattr(row, metric)) for row in rows]
    return [(similar, value) for similar, value in found if similar is not None and value is not None]


def _pooled(tables: Tables) -> str:
    lines = [f"| Variant | {' | '.join(COLUMNS.values())} | Time |", "|---" * (len(COLUMNS) + 2) + "|"]
    for variant in _variants(tables):
        if ", b=" not in variant:
            cells = [over_seeds(everywhere(tables, variant, metric)) for metric in COLUMNS]
            lines.append(f"| {variant} | {' | '.join(cells)} | {time_ratio(tables, variant, 'full')} |")
    return "\n".join(lines)


def _variants(tables: Tables) -> list[str]:
    known = [*PAPER, *JUDGED, *PAPER_ABLATIONS]
    there = {row.variant for table in tables.values() for row in table.trainings}
    return [name for name in dict.fromkeys([*known, *sorted(there)]) if name in there]


def _sizes(tables: Tables) -> str:
    names = [name for name in _variants(tables) if ", b=" in name]
    names.sort(key=lambda name: (name.partition(",")[0], int(name.rpartition("=")[2])))
    columns = ("accuracy", "cka", "cka_debiased")
    lines = [f"| Variant | {' | '.join(COLUMNS[metric] for metric in columns)} |", "|---" * 4 + "|"]
    lines += [f"| {n} | {' | '.join(over_seeds(values(tables, n, metric)) for metric in columns)} |" for n in names]
    return "\n".join(lines) if names else "Not trained yet."


def _free(tables: Tables) -> str:
    lines = [f"| Variant | {' | '.join(LINES.values())} |", "|---" * (len(LINES) + 1) + "|"]
    for variant in JUDGED:
        if not values(tables, variant, "accuracy"):
            continue
        of_lines = {
            line: "" if variant in HCS_LINE and line == "hcs" else _above(tables, variant, line) for line in LINES
        }
        lines.append(f"| {variant} | {' | '.join(of_lines.values())} |")
    return "\n".join(lines)


def _above(tables: Tables, variant: str, line: str) -> str:
    found = paired_difference(above_line(tables, variant, line))
    return "–" if found is None else f"{in_numbers(found)}, {found.ahead} of {found.pairs}"


def _picked(tables: Tables) -> str:
    """What val picks on each curve, against FULL, whose seed it shares."""
    sentences: list[str] = []
    for batch_norm in ("estimate", "mix"):
        rows = {
            (name, row.model, row.seed): row
            for name, table in tables.items()
            for row in table.curve
            if row.picked and row.batch_norm == batch_norm
        }
        full, similar = values(tables, "full", "accuracy"), values(tables, "full", "cka")
        both = [key for key in rows if key in full and key in similar]
        accuracy = paired_difference({key: (rows[key].accuracy or 0) - full[key] for key in both})
        cka = paired_difference({key: (rows[key].cka or 0) - similar[key] for key in both})
        if accuracy is not None and cka is not None:
            alphas = statistics.median(row.alpha for row in rows.values())
            sentences.append(
                f"- Statistics {'mixed' if batch_norm == 'mix' else 'estimated'}: the α that val picks (median {alphas:g}) is "
                f"{in_numbers(accuracy)} more accurate than FULL, and {in_numbers(cka)} more similar."
            )
    return "\n".join(["α is picked on val, by balanced accuracy:", "", *sentences]) if sentences else ""


def _published(tables: Tables) -> str:
    lines = [
        "| Variant | Published, % | Published CKA | Accuracy here | CKA here | CKA here, debiased |",
        "|---" * 6 + "|",
    ]
    for variant, (accuracy, cka) in PAPER.items():
        here = [over_seeds(everywhere(tables, variant, metric)) for metric in ("accuracy", "cka", "cka_debiased")]
        lines.append(f"| {variant} | {accuracy:.2f} | {or_dash(cka)} | {' | '.join(here)} |")
    return "\n".join(lines)


def _ablations(tables: Tables) -> str:
    lines = ["| Variant | Published, % | Published CKA | Accuracy here | CKA here |", "|---" * 5 + "|"]
    for variant, (accuracy, cka) in {"repsim": (83.95, 0.60), **PAPER_ABLATIONS}.items():
        kind = values if ", b=" in variant else everywhere
        here = [over_seeds(kind(tables, variant, metric)) for metric in ("accuracy", "cka")]
        lines.append(f"| {variant} | {accuracy:.2f} | {or_dash(cka)} | {' | '.join(here)} |")
    return "\n".join(lines)
