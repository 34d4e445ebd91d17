"""The page docs/results/adapters.md, written of the rows that recipes/adapters.py keeps; trains nothing."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from adapters_figure import write_figure
from study_rows import Table, TrainingRow
from study_tables import (
    COLUMNS,
    Ordering,
    Tables,
    everywhere,
    or_dash,
    orderings_table,
    over_seeds,
    set_table,
    time_ratio,
    values,
    verdicts,
)

PRETRAINING = "cifar10"
"""Name of the table with the training of the ViT."""
ALL_VARIANTS = (
    "lora", "lora + repsim", "adaptformer", "adaptformer + repsim", "partial-3", "partial-3 + repsim", "full", "linear"
)  # fmt: skip
FROM_THE_OTHER_STUDY = ("full", "linear")
PAPER = {  # RepSim, Table 4: accuracy in %, CKA
    "lora": (73.34, 0.847),
    "lora + repsim": (73.74, 0.865),
    "adaptformer": (79.83, 0.517),
    "adaptformer + repsim": (77.56, 0.742),
    "partial-3": (77.27, 0.844),
    "partial-3 + repsim": (76.48, 0.964),
}


def published(first: str, second: str, metric: str) -> Ordering:
    """An ordering of Table 4, with its numbers."""
    column, digits = (0, 2) if metric == "accuracy" else (1, 3)
    numbers = " and ".join(f"{PAPER[name][column]:.{digits}f}" for name in (first, second))
    return Ordering(first, second, metric, f"Table 4: {numbers}")


WITH_REPSIM = [published(f"{name} + repsim", name, "cka") for name in ("lora", "adaptformer", "partial-3")]
ORDERINGS = (
    *WITH_REPSIM,
    *(Ordering(o.first, o.second, "cka_debiased", "Table 4, by the biased estimate") for o in WITH_REPSIM),
    published("lora + repsim", "lora", "accuracy"),
    published("adaptformer", "adaptformer + repsim", "accuracy"),
    published("partial-3", "partial-3 + repsim", "accuracy"),
    published("adaptformer", "partial-3", "accuracy"),
    published("partial-3", "lora", "accuracy"),
    published("lora", "adaptformer", "cka"),
    published("partial-3", "adaptformer", "cka"),
)

PAGE = """\
<!-- Written by recipes/adapters.py; do not edit. -->

# Adapters, with RepSim and without

```
python recipes/adapters.py --data-dir datasets --weights-dir weights --out docs/results/adapters.md
```

{progress}

[LoRA](../methods/lora.md) of rank 4, [AdaptFormer](../methods/adaptformer.md) with a bottleneck of 64 and the last three
blocks ([partial](../methods/partial.md)), each without a regulariser and with [RepSim](../regularizers/repsim.md) in its form of
covariances of all training images (`repsim:reference=dataset`), beside Table 4 of the RepSim paper. FULL and LINEAR stand beside
them.

**The ViT is small, and trained for this page.** {vit} AdaptFormer needs transformer blocks, so it is looked at on the ViT
alone; LoRA and the last three blocks also on two MobileNets with ImageNet weights, where LoRA stands beside every
convolution that does not work in groups. FULL and LINEAR of the MobileNets are of an earlier study, made with
the same settings.

Three medical sets with train, val and test split of their own; the epoch is picked on val (highest AUC), test is looked at
once. Every training: 15 epochs, batches of 64 images, augmentation `light`, AdamW with the defaults of `crossgraft tune`;
MobileNets at 64 pixels a side, the ViT at 32. PneumoniaMNIST is trained on 300 images of each class; RetinaMNIST is cut to
1450 images, of which about 980 train. None of the sets says which images belong to one patient: **patient leakage not
checked**. Accuracy is of the most probable class. CKA compares penultimate features of the test images with those of the
pretrained network; of two unrelated sets of features the biased estimate is not 0, the debiased one is. Intervals are 95 %.

## The ViT, beside the published table

Mean over the three sets, with an interval over the seeds (Student's t, n = {num_seeds}; wide, because three seeds say
little); – where a variant is not there yet for every set. *Trained*: share of the parameters, head included. *Time*: CPU
seconds of the whole call as a multiple of FULL's, the median over set and seed, on a machine that had other work to do: take
it as rough. The paper fine-tunes ViT-B/16 at 224 pixels (its caption names no set; ISIC2018 from the context): orderings can
be compared, sizes cannot.

{of_vit}

## The MobileNets

{of_mobilenets}

![Accuracy against similarity]({figure})

Each arrow leads from a method without RepSim to the same method with it (open): mean over seeds, and for the MobileNets over
both networks. Scales differ, and no interval is drawn; those are in the tables.

## Which published orderings hold

Difference in the metric between two variants, one for each pair of set and network (mean over seeds): their mean with an
interval (Student's t over the pairs, which share images and weights, so take it as rough), and in how many pairs, and in how
many single trainings, the first is ahead.

### On the ViT

{vit_orderings}

{vit_verdicts}

### On the MobileNets

{mobilenet_orderings}

{mobilenet_verdicts}

### On all three networks

{all_orderings}

{all_verdicts}

## Every set and network

Mean over the seeds with an interval over the seeds.

{tables}
"""


def write_page(
    path: Path, tables: Tables, beside: Tables, pretraining: Table, *, titles: Mapping[str, str], vit: str, wanted: int
) -> None:
    """The page and, in a folder beside it, its figure; ``wanted`` is the number of trainings of the whole study."""
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    whole = with_rows_beside(tables, beside, vit)
    write_figure(folder / "trade-off.svg", whole, titles, vit)
    there = sum(len(table.trainings) for table in tables.values())
    text = page_of(whole, pretraining, titles=titles, vit=vit, figure=f"{folder.name}/trade-off.svg")
    progress = "" if there >= wanted else f"**The study is not finished: {there} of {wanted} trainings are there.**"
    path.write_text(text.replace("{progress}", progress), encoding="utf-8")
    print(f"{there} trainings are there")


def page_of(tables: Tables, pretraining: Table, *, titles: Mapping[str, str], vit: str, figure: str) -> str:
    """All but how much of the study is there."""
    on_all = [o for o in ORDERINGS if "adaptformer" not in o.first + o.second]
    of_vit, of_others = only(tables, lambda row: row.model == vit), only(tables, lambda row: row.model != vit)
    return PAGE.format(
        progress="{progress}",
        vit=about(pretraining),
        num_seeds=len({row.seed for table in tables.values() for row in table.trainings}),
        of_vit=beside_published(of_vit),
        of_mobilenets=beside_published(of_others),
        figure=figure,
        vit_orderings=orderings_table(of_vit, ORDERINGS),
        vit_verdicts=verdicts(of_vit, ORDERINGS),
        mobilenet_orderings=orderings_table(of_others, on_all),
        mobilenet_verdicts=verdicts(of_others, on_all),
        all_orderings=orderings_table(tables, on_all),
        all_verdicts=verdicts(tables, on_all),
        tables="\n\n".join(set_table(tables[name], title, there(tables[name])) for name, title in titles.items()),
    )


def with_rows_beside(tables: Tables, beside: Tables, vit: str) -> dict[str, Table]:
    """Rows of FULL and LINEAR that another study has of networks other than the ViT."""
    more = only(beside, lambda row: row.variant in FROM_THE_OTHER_STUDY and row.model != vit)
    return {name: replace(table, trainings=(*table.trainings, *more[name].trainings)) for name, table in tables.items()}


def only(tables: Tables, wanted: Callable[[TrainingRow], bool]) -> dict[str, Table]:
    """Some rows of each set, no curves."""
    return {name: Table(tuple(filter(wanted, table.trainings))) for name, table in tables.items()}


def about(pretraining: Table) -> str:
    """How the ViT came to its weights."""
    if not pretraining.trainings:
        return "It is not trained yet."
    row = pretraining.trainings[0]
    right, low, high = (100 * (value or 0) for value in (row.accuracy, row.accuracy_low, row.accuracy_high))
    return (
        f"Six blocks of width 96 with three heads, 4 × 4 patches of 32 × 32 pixels, {row.num_parameters or 0:,} parameters,\n"
        "trained from scratch on the 5000 training images of CIFAR-10 at hand (a share of them is val): 40 epochs,\n"
        f"{(row.seconds or 0) / 60:.0f} minutes on a machine that had other work to do. It tells "
        f"{right:.1f} % [{low:.1f}, {high:.1f}] of 1000 test images of ten classes\n"
        "right. A ViT with ImageNet weights was not tried."
    )


def there(table: Table) -> list[str]:
    return [name for name in ALL_VARIANTS if any(row.variant == name for row in table.trainings)]


def beside_published(tables: Tables) -> str:
    metrics = ("accuracy", "balanced_accuracy", "cka", "cka_debiased")
    heads = ["Variant", "Published, %", "Published CKA", *(COLUMNS[name] for name in metrics), "Trained", "Time"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for variant in ALL_VARIANTS:
        if not values(tables, variant, "accuracy"):
            continue
        accuracy, cka = PAPER.get(variant, (None, None))
        paper = [or_dash(accuracy), "–" if cka is None else f"{cka:.3f}"]
        here = [over_seeds(everywhere(tables, variant, metric)) for metric in metrics]
        cells = [variant, *paper, *here, trained_share(tables, variant), time_ratio(tables, variant, "full")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def trained_share(tables: Tables, variant: str) -> str:
    """In per cent, the median over networks; – in rows from before it was kept."""
    shares = [
        row.num_trained / row.num_parameters
        for table in tables.values()
        for row in table.trainings
        if row.variant == variant and row.num_trained and row.num_parameters
    ]
    return f"{100 * statistics.median(shares):.1f} %" if shares else "–"
