"""What docs/results/adapters.md says of its tables, and its figure."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pandas as pd
from figures import figure, legend
from tables import (
    Lines,
    body,
    by_pair,
    by_seed,
    difference,
    gaps,
    markdown,
    mean,
    mean_and_interval,
    median,
    number,
    of_variant,
    read,
    read_csv,
    sections,
    signed,
    verdict,
)

SETS = {"breastmnist": "BreastMNIST", "pneumoniamnist": "PneumoniaMNIST", "retinamnist": "RetinaMNIST"}
VIT = "vit_d96"
METHODS = ("lora", "adaptformer", "partial-3")
VARIANTS = (*(name for method in METHODS for name in (method, f"{method} + repsim")), "full", "linear")
COLUMNS = {"accuracy": "Accuracy", "balanced_accuracy": "Balanced accuracy", "auc": "AUC", "cka": "CKA",
           "cka_debiased": "CKA, debiased"}  # fmt: skip
PAPER = {  # RepSim, Table 4: accuracy in %, CKA
    "lora": (73.34, 0.847),
    "lora + repsim": (73.74, 0.865),
    "adaptformer": (79.83, 0.517),
    "adaptformer + repsim": (77.56, 0.742),
    "partial-3": (77.27, 0.844),
    "partial-3 + repsim": (76.48, 0.964),
}
ORDERINGS = [  # first, second, metric
    *((f"{name} + repsim", name, metric) for metric in ("cka", "cka_debiased") for name in METHODS),
    ("lora + repsim", "lora", "accuracy"),
    ("adaptformer", "adaptformer + repsim", "accuracy"),
    ("partial-3", "partial-3 + repsim", "accuracy"),
    ("adaptformer", "partial-3", "accuracy"),
    ("partial-3", "lora", "accuracy"),
    ("lora", "adaptformer", "cka"),
    ("partial-3", "adaptformer", "cka"),
]
ON_ALL = [each for each in ORDERINGS if "adaptformer" not in each[0] + each[1]]
LOOKS = {  # method: title, colour (safe for the colour-blind), marker
    "lora": ("LoRA", "#0072B2", "o"),
    "adaptformer": ("AdaptFormer", "#D55E00", "s"),
    "partial-3": ("Last three blocks", "#009E73", "^"),
    "full": ("FULL", "#000000", "D"),
    "linear": ("LINEAR", "#777777", "x"),
}


def fields(results: Path, figures: Path) -> dict[str, str]:
    rows = read(results / "adapters", SETS)
    of_vit, of_others = rows[rows["model"] == VIT], rows[rows["model"] != VIT]
    draw(figures / "trade-off.svg", {"ViT": of_vit, "MobileNets": of_others})
    judged = {"vit": (of_vit, ORDERINGS), "mobilenet": (of_others, ON_ALL), "all": (rows, ON_ALL)}
    return {
        **pretraining(read_csv(results / "adapters" / "cifar10.csv").iloc[0]),
        "num_seeds": str(rows["seed"].nunique()),
        "of_vit": body(beside_published(of_vit)),
        "of_mobilenets": body(beside_published(of_others)),
        **{f"{name}_orderings": body(orderings(*of)) for name, of in judged.items()},
        **{f"{name}_verdicts": verdicts(*of) for name, of in judged.items()},
        "tables": sections({title: of_set(rows[rows["set"] == name]) for name, title in SETS.items()}),
    }


def pretraining(row: pd.Series) -> dict[str, str]:
    shares = {end: f"{100 * row[f'accuracy{end}']:.1f}" for end in ("", "_low", "_high")}
    return {
        "vit_parameters": f"{row['num_parameters']:,}",
        "vit_minutes": f"{row['seconds'] / 60:.0f}",
        "vit_accuracy": f"{shares['']} % [{shares['_low']}, {shares['_high']}]",
    }


def beside_published(rows: pd.DataFrame) -> Lines:
    """Each variant, in the mean over sets and models of each seed."""
    metrics = ("accuracy", "balanced_accuracy", "cka", "cka_debiased")
    for variant in (name for name in VARIANTS if name in {*rows["variant"]}):
        own = rows[rows["variant"] == variant]
        accuracy, cka = PAPER.get(variant, (None, None))
        here = [mean_and_interval(by_seed(of_variant(rows, variant, metric))) for metric in metrics]
        shares = (100 * own["num_trained"] / own["num_parameters"]).dropna()
        times = of_variant(rows, variant, "cpu_seconds") / of_variant(rows, "full", "cpu_seconds")
        trained = f"{median(shares, '.1f')} %" if len(shares) else "–"
        yield [variant, number(accuracy, ".2f"), number(cka, ".3f"), *here, trained, median(times.dropna(), ".2f")]


def orderings(rows: pd.DataFrame, chosen: list[tuple[str, str, str]]) -> Lines:
    for first, second, metric in chosen:
        of_each = gaps(rows, first, second, metric)
        found = difference(by_pair(of_each))
        ahead = "–" if found is None else found.ahead_of_pairs
        single = f"{(of_each > 0).sum()} of {len(of_each)}"
        yield [first, second, COLUMNS[metric], signed(found), ahead, single, published(first, second, metric)]


def published(first: str, second: str, metric: str) -> str:
    if metric == "cka_debiased":
        return "Table 4, by the biased estimate"
    column, digits = (0, 2) if metric == "accuracy" else (1, 3)
    return f"Table 4: {PAPER[first][column]:.{digits}f} and {PAPER[second][column]:.{digits}f}"


def verdicts(rows: pd.DataFrame, chosen: list[tuple[str, str, str]]) -> str:
    return "\n".join(
        f"- **{first} over {second} in {COLUMNS[metric]}** "
        f"({published(first, second, metric).partition(':')[0]}): {verdict(found)}."
        for first, second, metric in chosen
        if (found := difference(by_pair(gaps(rows, first, second, metric))))
    )


def of_set(rows: pd.DataFrame) -> str:
    """Every network and variant."""
    found = dict(list(rows.groupby(["model", "variant"])))
    lines = [
        [*key, *(mean_and_interval(own[metric].dropna()) for metric in COLUMNS), median(own["cpu_seconds"].dropna(), ".0f")]
        for key in ((model, variant) for model in rows["model"].unique() for variant in VARIANTS)
        if (own := found.get(key)) is not None
    ]
    return markdown(["Network", "Variant", *COLUMNS.values(), "CPU seconds"], lines)


def draw(path: Path, kinds: dict[str, pd.DataFrame]) -> None:
    """Accuracy against similarity, means over networks and seeds: an arrow from each method to the same with RepSim."""
    with figure(path, (3.4 * len(SETS) + 0.4, 6.4), "crossgraft", {}) as drawn:
        grid = drawn.subplots(2, len(SETS), squeeze=False)
        for axes, (kind, name) in zip(grid.flat, product(kinds, SETS), strict=True):
            rows = kinds[kind][kinds[kind]["set"] == name]
            found = {variant: (mean(own["cka"]), mean(own["accuracy"])) for variant, own in rows.groupby("variant")}
            axes.grid(color="#E5E5E5", linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
            axes.margins(0.12)
            for method, (label, colour, marker) in LOOKS.items():
                look = {"color": colour, "markersize": 7, "linestyle": "none"}
                if method in found:
                    axes.plot(*found[method], marker, label=label, **look)
                if held := found.get(f"{method} + repsim"):
                    axes.plot(*held, marker, markerfacecolor="white", **look)
                    axes.annotate(
                        "", held, found[method], arrowprops={"arrowstyle": "->", "color": colour, "shrinkA": 5, "shrinkB": 5}
                    )
            axes.set_title(f"{SETS[name]}, {kind}", fontsize=10)
        for axes in grid[-1]:
            axes.set_xlabel("CKA to the pretrained network")
        for axes in grid[:, 0]:
            axes.set_ylabel("Accuracy")
        legend(drawn, grid.flat, columns=len(LOOKS))
