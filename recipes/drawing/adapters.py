"""What docs/results/adapters.md says of its tables, and its figure."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from tables import (
    by_pair,
    by_seed,
    difference,
    markdown,
    mean,
    mean_and_interval,
    median,
    minus,
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
COLUMNS = {
    "accuracy": "Accuracy",
    "balanced_accuracy": "Balanced accuracy",
    "auc": "AUC",
    "cka": "CKA",
    "cka_debiased": "CKA, debiased",
}
PAPER = {  # RepSim, Table 4: accuracy in %, CKA
    "lora": (73.34, 0.847),
    "lora + repsim": (73.74, 0.865),
    "adaptformer": (79.83, 0.517),
    "adaptformer + repsim": (77.56, 0.742),
    "partial-3": (77.27, 0.844),
    "partial-3 + repsim": (76.48, 0.964),
}
ORDERINGS = [  # first, second, metric
    *((f"{name} + repsim", name, "cka") for name in METHODS),
    *((f"{name} + repsim", name, "cka_debiased") for name in METHODS),
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
    own, mobilenets = (read(results / folder, SETS) for folder in ("adapters", "adapters/mobilenets"))
    beside = mobilenets[mobilenets["variant"].isin(["full", "linear"]) & (mobilenets["model"] != VIT)]
    rows = pd.concat([own, beside], ignore_index=True)
    of_vit, of_others = rows[rows["model"] == VIT], rows[rows["model"] != VIT]
    draw(figures / "trade-off.svg", {"ViT": of_vit, "MobileNets": of_others})
    return {
        "vit": pretraining(read_csv(results / "adapters" / "cifar10.csv").iloc[0]),
        "num_seeds": str(rows["seed"].nunique()),
        "of_vit": beside_published(of_vit),
        "of_mobilenets": beside_published(of_others),
        "figure": "adapters/trade-off.svg",
        "vit_orderings": orderings(of_vit, ORDERINGS),
        "vit_verdicts": verdicts(of_vit, ORDERINGS),
        "mobilenet_orderings": orderings(of_others, ON_ALL),
        "mobilenet_verdicts": verdicts(of_others, ON_ALL),
        "all_orderings": orderings(rows, ON_ALL),
        "all_verdicts": verdicts(rows, ON_ALL),
        "tables": sections({title: of_set(rows[rows["set"] == name]) for name, title in SETS.items()}),
    }


def pretraining(row: pd.Series) -> str:
    right, low, high = (100 * row[name] for name in ("accuracy", "accuracy_low", "accuracy_high"))
    return (
        f"Six blocks of width 96 with three heads, 4 × 4 patches of 32 × 32 pixels, {row['num_parameters']:,} parameters,\n"
        "trained from scratch on the 5000 training images of CIFAR-10 at hand (a share of them is val): 40 epochs,\n"
        f"{row['seconds'] / 60:.0f} minutes on a machine that had other work to do. It tells "
        f"{right:.1f} % [{low:.1f}, {high:.1f}] of 1000 test images of ten classes\n"
        "right. A ViT with ImageNet weights was not tried."
    )


def beside_published(rows: pd.DataFrame) -> str:
    """Each variant, in the mean over sets and models of each seed."""
    metrics = ("accuracy", "balanced_accuracy", "cka", "cka_debiased")
    head = ["Variant", "Published, %", "Published CKA", *(COLUMNS[name] for name in metrics), "Trained", "Time"]
    lines: list[list[str]] = []
    for variant in VARIANTS:
        own = rows[rows["variant"] == variant]
        if len(own):
            accuracy, cka = PAPER.get(variant, (None, None))
            here = [mean_and_interval(by_seed(of_variant(rows, variant, metric))) for metric in metrics]
            shares = (100 * own["num_trained"] / own["num_parameters"]).dropna()
            trained = f"{median(shares, '.1f')} %" if len(shares) else "–"
            times = of_variant(rows, variant, "cpu_seconds") / of_variant(rows, "full", "cpu_seconds")
            lines.append([variant, number(accuracy, ".2f"), number(cka, ".3f"), *here, trained, median(times.dropna(), ".2f")])
    return markdown(head, lines)


def orderings(rows: pd.DataFrame, chosen: list[tuple[str, str, str]]) -> str:
    head = ["First", "Second", "Metric", "Mean difference", "Ahead, pairs", "Ahead, trainings", "Published"]
    lines: list[list[str]] = []
    for first, second, metric in chosen:
        gaps = minus(of_variant(rows, first, metric), of_variant(rows, second, metric))
        found = difference(by_pair(gaps))
        ahead = "–" if found is None else f"{found.ahead} of {found.pairs}"
        single = f"{(gaps > 0).sum()} of {len(gaps)}"
        lines.append([first, second, COLUMNS[metric], signed(found), ahead, single, published(first, second, metric)])
    return markdown(head, lines)


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
        if (found := difference(by_pair(minus(of_variant(rows, first, metric), of_variant(rows, second, metric)))))
    )


def of_set(rows: pd.DataFrame) -> str:
    """Every network and variant."""
    lines = [
        [
            model,
            variant,
            *(mean_and_interval(own[metric].dropna()) for metric in COLUMNS),
            median(own["cpu_seconds"].dropna(), ".0f"),
        ]
        for model in rows["model"].unique()
        for variant in VARIANTS
        if len(own := rows[(rows["model"] == model) & (rows["variant"] == variant)])
    ]
    return markdown(["Network", "Variant", *COLUMNS.values(), "CPU seconds"], lines)


def draw(path: Path, kinds: dict[str, pd.DataFrame]) -> None:
    """Accuracy against similarity: an arrow from each method to the same with RepSim. The same bytes from the same rows."""
    with mpl.rc_context({"svg.hashsalt": "crossgraft", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(3.4 * len(SETS) + 0.4, 6.4), layout="constrained")
        grid = figure.subplots(2, len(SETS), squeeze=False)
        for column, (name, title) in enumerate(SETS.items()):
            for row, (kind, rows) in enumerate(kinds.items()):
                axes, own = grid[row][column], rows[rows["set"] == name]
                axes.grid(color="#E5E5E5", linewidth=0.6)
                axes.spines[["top", "right"]].set_visible(False)
                axes.margins(0.12)
                for method, (label, colour, marker) in LOOKS.items():
                    plain, held = (point(own, variant) for variant in (method, f"{method} + repsim"))
                    if plain is not None:
                        axes.plot(*plain, marker, color=colour, markersize=7, label=label, linestyle="none")
                    if held is not None:
                        axes.plot(*held, marker, color=colour, markersize=7, markerfacecolor="white", linestyle="none")
                        arrow = {"arrowstyle": "->", "color": colour, "shrinkA": 5, "shrinkB": 5}
                        axes.annotate("", held, plain, arrowprops=arrow)
                axes.set_title(f"{title}, {kind}", fontsize=10)
                axes.set_xlabel("CKA to the pretrained network" if row else "")
                axes.set_ylabel("" if column else "Accuracy")
        handles = {t.get_label(): t for line in grid for axes in line for t in axes.get_lines() if t.get_label()[0] != "_"}
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(LOOKS), frameon=False)
        figure.savefig(path, metadata={"Date": None, "Creator": None})


def point(rows: pd.DataFrame, variant: str) -> tuple[float, float] | None:
    """CKA and accuracy, mean over networks and seeds."""
    own = rows[rows["variant"] == variant]
    return (mean(own["cka"]), mean(own["accuracy"])) if len(own) else None
