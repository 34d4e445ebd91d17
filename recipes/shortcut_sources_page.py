"""docs/results/shortcut_sources.md, from the rows of recipes/shortcut_sources.py."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from shortcut_sources_claims import claims
from shortcut_sources_figure import write_figure

Row = Mapping[str, str]
TITLES = {
    "natural": "CIFAR-10",
    "medical": "medical",
    "random": "random weights",
    "whitened": "medical, whitened",
    "low_passed": "CIFAR-10, low-passed",
}
PAIRS = (
    ("natural", "medical"),
    ("natural", "random"),
    ("medical", "random"),
    ("medical", "whitened"),
    ("natural", "low_passed"),
    ("medical", "low_passed"),
)
"""Those that the thesis speaks of; each as the second less the first."""
HEAD = """<!-- Written by recipes/shortcut_sources.py; do not edit. -->

# Does the source matter for shortcuts?

```
python recipes/shortcut_sources.py --data-dir datasets --weights-dir weights --out docs/results/shortcut_sources.md
```

{progress}Chapters 4 and 5 of the thesis compare networks that were pretrained on ImageNet and on RadImageNet, which differ in
more than what they show. Here architecture, number of images, their size and the training are the same, and images and
classes differ:

- **CIFAR-10**: 5000 photographs of ten classes, 32 × 32 pixels.
- **Medical**: 5000 images of five sets, as evenly as these have them (253 slices of brain MRI, 1187 images each of
  PneumoniaMNIST, RetinaMNIST and Medical MNIST, 1186 of HAM10000), 32 × 32, 22 classes (each class of each set). None shows
  ultrasound.
- **Random weights**: the same network before any training.
- **Medical, whitened**: the medical images with a flat spectrum (`crossgraft edit --with whiten_spectrum`; equation 5.2).
- **CIFAR-10, low-passed**: the photographs without frequencies above 0.125 cycles per pixel, in two classes, animals and
  vehicles.

**Network.** ResNet-20 whose first convolution has a stride of 2, so that images of 64 × 64 cost what those of 32 × 32 do
otherwise. Pretraining from scratch: 25 epochs, 64 % of the images train, 16 % pick the epoch, 20 % test.

**Audit.** `crossgraft audit --mode full`: malignant against all others on BUSI (780 frames, those that look alike are one
group, because patients are not known), made smaller to 64 × 64 *before* anything is edited, so that the network sees each
artefact as it was drawn. A share of 0, 0.2, 0.5 or 1 of the training positives carries it; three folds train and pick the
epoch, all are measured on the same 156 test images, 42 of them malignant. Every fine-tuning trains everything for 10 epochs
with the defaults of `crossgraft tune` (AdamW, largest learning rate 0.001, which falls along a cosine). SRI: 0 is no reliance,
0.7 a model that sees nothing but the artefact. Intervals are 95 %; those *over folds* (Student's t, n = 3) are wide, because
three trainings say little, and those *over patients* take the trained networks as given. An outcome needs both: *relies* above
0 and not below 0.05, *passes* below 0.05.
"""
LIMITS = """
## What this cannot say

Each source was pretrained once, and fine-tuned once for each artefact, share and fold: an interval over patients does not hold
what another pretraining would change. The network is small, and so are the sources: 5000 images of CIFAR-10 are no ImageNet,
and five sets of 32 × 32 pixels are no RadImageNet. Where the sources differ in images they differ in classes and colours, too.
Ten epochs with a falling learning rate favour what is learned fast, and leave little room for differences in epochs. One
strength of each artefact was tried, on one target. Comparisons are not corrected for their number.
"""


def write_page(path: Path, tables: Mapping[str, Sequence[Row]]) -> None:
    """The whole page, and its figure."""
    audits, trainings, differences = (_in_order(tables[name]) for name in ("audits", "trainings", "differences"))
    there = list(dict.fromkeys(row["source"] for row in audits))
    progress = "" if len(there) == len(TITLES) else f"**Not finished: {len(there)} of {len(TITLES)} sources are there.**\n\n"
    parts = [HEAD.format(progress=progress), _pretraining(_in_order(tables["pretraining"]))]
    if audits:
        write_figure(path.with_suffix("") / "reliance.svg", audits, TITLES)
        parts += [
            _reliance(audits, f"{path.stem}/reliance.svg"),
            _curves(trainings),
            _epochs(trainings),
            _differences(differences),
            claims(trainings, differences),
        ]
    parts.append(LIMITS)
    path.write_text("".join(parts), encoding="utf-8")


def _pretraining(rows: Sequence[Row]) -> str:
    lines = [
        [
            TITLES[row["source"]],
            row["images"],
            row["classes"],
            f"{float(row['accuracy']):.3f} [{float(row['accuracy_low']):.3f}, {float(row['accuracy_high']):.3f}]",
            row["best_epoch"],
            f"{float(row['seconds']):.0f}",
        ]
        for row in rows
    ]
    head = ["source", "images", "classes", "accuracy on its own test images", "epoch kept", "seconds"]
    return f"\n## What the sources taught\n\n{table(head, lines)}"


def _reliance(audits: Sequence[Row], figure: str) -> str:
    lines = [
        [
            _artefact(row["confounder"]),
            TITLES[row["source"]],
            row["outcome"],
            f"{float(row['sri']):.3f}",
            interval(row, "low", "high"),
            interval(row, "patients_low", "patients_high"),
            f"{float(row['clean_auc']):.3f}",
            f"{float(row['frozen_sri']):.3f}",
            f"{float(row['detectability']):.2f}",
        ]
        for confounder in dict.fromkeys(row["confounder"] for row in audits)
        for row in audits
        if row["confounder"] == confounder
    ]
    head = ["artefact", "source", "outcome", "SRI", "over folds", "over patients", "clean AUC"]
    head += ["SRI, frozen features", "detectability, frozen features"]
    drawn = {_artefact(row["confounder"]): float(row["rms"]) for row in audits}
    said = ", ".join(f"{name} {rms:.1f}" for name, rms in drawn.items())
    return f"""
## Reliance by source and artefact

*Clean AUC*: without any artefact, in training and in test. *Frozen features*: quick mode, a logistic regression on what the
source taught, and the AUC with which a probe tells images with the artefact from those without it there. What the artefacts
change, root mean square in grey levels of 255: {said}.

{table(head, lines)}
![Reliance by source and artefact]({figure})

Bars are intervals over patients.
"""


def _curves(trainings: Sequence[Row]) -> str:
    shares = _shares(trainings)
    lines: list[list[str]] = []
    for confounder in dict.fromkeys(row["confounder"] for row in trainings):
        for source in dict.fromkeys(row["source"] for row in trainings):
            of_it = [row for row in trainings if (row["source"], row["confounder"]) == (source, confounder)]
            cells = [
                f"{_mean(row['iid'] for row in at)} / {_mean(row['ood'] for row in at)}"
                for at in ([row for row in of_it if row["share"] == share] for share in shares)
                if at
            ]
            if cells:
                lines.append([_artefact(confounder), TITLES[source], *cells])
    head = ["artefact", "source", *(f"share {share}" for share in shares)]
    said = "AUC on i.i.d. / o.o.d. test images, mean over the folds."
    return f"\n## Curves\n\n{said}\n\n{table(head, lines)}"


def _epochs(trainings: Sequence[Row]) -> str:
    shares = _shares(trainings)
    lines: list[list[str]] = []
    for source in dict.fromkeys(row["source"] for row in trainings):
        single = distinct([row for row in trainings if row["source"] == source])
        at = [[float(row["best_epoch"]) for row in single if row["share"] == share] for share in shares]
        everything = [epoch for epochs in at for epoch in epochs]
        medians = [f"{statistics.median(epochs):g}" if epochs else "–" for epochs in [*at, everything]]
        lines.append([TITLES[source], str(len(everything)), *medians, f"{statistics.fmean(everything):.2f}"])
    head = ["source", "trainings", *(f"share {share}" for share in shares), "all", "mean"]
    said = "Epoch of ten that val picks (highest AUC), median over folds and artefacts. A training of share 0 counts once."
    return f"\n## Epochs\n\n{said}\n\n{table(head, lines)}"


def _differences(differences: Sequence[Row]) -> str:
    lines = [
        [
            f"{TITLES[second]} − {TITLES[first]}",
            "clean AUC" if row["metric"] == "clean_auc" else f"SRI, {_artefact(row['confounder'])}",
            f"{float(row['difference']):+.3f}",
            interval(row, "low", "high", sign="+"),
            interval(row, "patients_low", "patients_high", sign="+"),
        ]
        for first, second in PAIRS
        for row in differences
        if (row["source"], row["other"]) == (first, second)
    ]
    head = ["sources", "of", "difference", "over folds", "over patients"]
    said = """Of the same folds, and over the same test images: what the test images have in common does not widen an interval.
*Mean* is over the artefacts."""
    return f"\n## Differences of sources\n\n{said}\n\n{table(head, lines)}"


def distinct(trainings: Iterable[Row]) -> list[Row]:
    """Each training once: one of share 0 stands in the rows under every artefact."""
    found: dict[tuple[str, ...], Row] = {}
    for row in trainings:
        name = "" if row["share"] == "0" else row["confounder"]
        found.setdefault((row["source"], name, row["share"], row["fold"]), row)
    return list(found.values())


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def interval(row: Row, low: str, high: str, *, sign: str = "") -> str:
    return f"[{float(row[low]):{sign}.3f}, {float(row[high]):{sign}.3f}]" if row[low] and row[high] else "–"


def _in_order(rows: Sequence[Row]) -> list[Row]:
    """By source as they stand in the tables, whichever was finished first."""
    return sorted(rows, key=lambda row: list(TITLES).index(row["source"]))


def _artefact(confounder: str) -> str:
    return confounder.partition(":")[0]


def _shares(trainings: Sequence[Row]) -> list[str]:
    return sorted({row["share"] for row in trainings}, key=float)


def _mean(values: Iterable[str]) -> str:
    return f"{statistics.fmean(map(float, values)):.3f}"
