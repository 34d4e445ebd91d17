"""What docs/results/shortcut_sources.md says of audits of networks from five sources, and of claims of the thesis beside them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from tables import difference, markdown, mean, read_csv, signed

TITLES = {
    "natural": "CIFAR-10",
    "medical": "medical",
    "random": "random weights",
    "whitened": "medical, whitened",
    "low_passed": "CIFAR-10, low-passed",
}
IN_CLAIMS = {"natural": "CIFAR-10", "random": "random weights", "low_passed": "low-passed CIFAR-10"}
PAIRS = (("natural", "medical"), ("natural", "random"), ("medical", "random"), ("medical", "whitened"),
         ("natural", "low_passed"), ("medical", "low_passed"))  # fmt: skip
"""Those that the thesis speaks of; each as the second less the first."""
LOOKS = {  # source: colour (safe for the colour-blind), marker
    "natural": ("#0072B2", "o"),
    "low_passed": ("#56B4E9", "v"),
    "medical": ("#D55E00", "s"),
    "whitened": ("#E69F00", "^"),
    "random": ("#777777", "x"),
}
MEAN, CLEAN = "mean", "clean_auc"
NOISE = ("poisson_image", "nlm_denoising", MEAN)


class Claim(NamedTuple):
    """A difference of two sources, second less first, that the thesis says something of; ``sign`` is the expected one, or 0."""

    said: str
    first: str
    second: str
    artefacts: tuple[str, ...]
    sign: int
    metric: str = "sri"


CLAIMS = (
    Claim(
        "Medical pretraining is more robust than natural to a tag and to denoising (4.3: on CT the o.o.d. AUC falls from 0.84 to "
        "0.02 with ImageNet and to 0.22 with RadImageNet for the tag, from 0.7 to 0.01 and from 0.83 to 0.6 for denoising), and "
        "to frequency shortcuts (5.2.1).",
        "natural", "medical", ("tag", "low_pass", "nlm_denoising", MEAN), -1,
    ),
    Claim(
        "Both rely on Poisson noise alike where it is independent from pixel to pixel (4.3, X-rays).",
        "natural", "medical", ("poisson_image",), 0,
    ),
    Claim("They classify about equally well (4.3, 5.2.1).", "natural", "medical", ("",), 0, CLEAN),
    Claim(
        "Random weights rely on artefacts as much as ImageNet's, where they learn the task at all (4.3).",
        "natural", "random", ("tag", "low_pass", *NOISE), 0,
    ),
    Claim(
        "Pretraining on whitened medical images lets a network pick up the shortcut (5.2.4, with noise and NLM).",
        "medical", "whitened", NOISE, 1,
    ),
    Claim(
        "Pretraining on low-passed natural images makes a network more robust (5.2.4, with noise and NLM) …",
        "natural", "low_passed", NOISE, -1,
    ),
    Claim("… as robust as medical pretraining, or more (5.2.4).", "medical", "low_passed", NOISE, 0),
)  # fmt: skip


def fields(results: Path, figures: Path) -> dict[str, str]:
    names = ("pretraining", "audits", "trainings", "differences")
    pretraining, audits, trainings, differences = (read_rows(results / "shortcut_sources" / f"{name}.csv") for name in names)
    draw(figures / "reliance.svg", audits)
    drawn = {row["artefact"]: f"{row['artefact']} {row['rms']:.1f}" for _, row in audits.iterrows()}
    return {
        "pretraining": table(
            ["source", "images", "classes", "accuracy on its own test images", "epoch kept", "seconds"],
            [
                [
                    row["title"],
                    row["images"],
                    row["classes"],
                    f"{row['accuracy']:.3f} {ends(row, 'accuracy_')}",
                    row["best_epoch"],
                    f"{row['seconds']:.0f}",
                ]
                for _, row in pretraining.iterrows()
            ],
        ),
        "rms": ", ".join(drawn.values()),
        "reliance": table(
            [
                "artefact",
                "source",
                "outcome",
                "SRI",
                "over folds",
                "over patients",
                "clean AUC",
                "SRI, frozen features",
                "detectability, frozen features",
            ],
            [
                [
                    artefact,
                    row["title"],
                    row["outcome"],
                    f"{row['sri']:.3f}",
                    ends(row),
                    ends(row, "patients_"),
                    f"{row['clean_auc']:.3f}",
                    f"{row['frozen_sri']:.3f}",
                    f"{row['detectability']:.2f}",
                ]
                for artefact, of in audits.groupby("artefact", sort=False)
                for _, row in of.iterrows()
            ],
        ),
        "curves": curves(trainings),
        "epochs": epochs(trainings),
        "differences": table(
            ["sources", "of", "difference", "over folds", "over patients"],
            [
                [
                    f"{TITLES[second]} − {TITLES[first]}",
                    "clean AUC" if row["metric"] == CLEAN else f"SRI, {row['artefact']}",
                    f"{row['difference']:+.3f}",
                    ends(row, sign="+"),
                    ends(row, "patients_", sign="+"),
                ]
                for first, second in PAIRS
                for _, row in differences[(differences["source"] == first) & (differences["other"] == second)].iterrows()
            ],
        ),
        "claims": "\n".join(f"- {each}" for each in claims(trainings, differences)),
    }


def read_rows(file: Path) -> pd.DataFrame:
    """By source as the page has them, whichever was finished first; artefacts without their options."""
    rows = read_csv(file)
    names = rows["confounder"].fillna("").str.partition(":")[0] if "confounder" in rows else ""
    order = list(TITLES)
    rows = rows.assign(title=rows["source"].map(TITLES), artefact=names)
    return rows.sort_values("source", key=lambda source: source.map(order.index), kind="stable")


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    return markdown(head, rows).replace("|---", "| --- ", len(head))


def ends(row: pd.Series, prefix: str = "", *, sign: str = "") -> str:
    return f"[{row[f'{prefix}low']:{sign}.3f}, {row[f'{prefix}high']:{sign}.3f}]"


def curves(trainings: pd.DataFrame) -> str:
    """AUC on i.i.d. and o.o.d. test images, mean over the folds."""
    found = trainings.groupby(["artefact", "title", "share"], sort=False)[["iid", "ood"]].agg(mean)
    cells = (found["iid"].map("{:.3f}".format) + " / " + found["ood"].map("{:.3f}".format)).unstack("share", sort=False)
    rows = [
        [*place, *of] for place, of in cells.groupby(level="artefact", sort=False).apply(lambda of: of.droplevel(0)).iterrows()
    ]
    return table(["artefact", "source", *(f"share {share:g}" for share in cells.columns)], rows)


def epochs(trainings: pd.DataFrame) -> str:
    """Epoch that val picks, median; a training of share 0 stands in the rows under every artefact, and counts once."""
    rows = []
    for title, of in distinct(trainings).groupby("title", sort=False):
        medians = [f"{each:g}" for each in of.groupby("share")["best_epoch"].median()]
        rows.append([title, len(of), *medians, f"{of['best_epoch'].median():g}", f"{mean(of['best_epoch']):.2f}"])
    shares = [f"share {share:g}" for share in sorted({*trainings["share"]})]
    return table(["source", "trainings", *shares, "all", "mean"], rows)


def distinct(trainings: pd.DataFrame) -> pd.DataFrame:
    names = trainings["artefact"].where(trainings["share"] != 0, "")
    return trainings.assign(artefact=names).drop_duplicates(["source", "artefact", "share", "fold"])


def claims(trainings: pd.DataFrame, differences: pd.DataFrame) -> list[str]:
    """One paragraph each."""
    known = differences.set_index(["source", "other", "metric", "artefact"])
    told = []
    for claim in CLAIMS:
        parts = []
        for name in claim.artefacts:
            row = known.loc[(claim.first, claim.second, claim.metric, name)]
            of = "clean AUC" if claim.metric == CLEAN else "mean SRI of the artefacts" if name == MEAN else f"SRI, {name}"
            said = f"{row['difference']:+.3f} {ends(row, 'patients_', sign='+')}"
            parts.append(f"{of} {said}: {verdict(row, claim.sign)}")
        first, second = (IN_CLAIMS.get(name, name) for name in (claim.first, claim.second))
        told.append(f"**{claim.said}** Here, {second} less {first}: {'; '.join(parts)}.")
    return [*told, spread(trainings), convergence(trainings)]


def verdict(row: pd.Series, sign: int) -> str:
    """By the interval over patients, and whether that over folds agrees."""
    found, over_folds = (int(row[f"{each}low"] > 0) - int(row[f"{each}high"] < 0) for each in ("patients_", ""))
    if not found:
        return "not decided" if sign else "no difference shown"
    told = ("higher" if found > 0 else "lower") if sign == 0 else "as claimed" if found == sign else "the opposite"
    return told if over_folds == found else f"{told} over patients, not decided over folds"


def spread(trainings: pd.DataFrame) -> str:
    """Standard deviation between folds."""
    between = trainings.groupby(["source", "confounder", "share"], sort=False)["ood"].agg(statistics.stdev)
    values = ", ".join(f"{IN_CLAIMS.get(name, name)} {mean(between[name]):.3f}" for name in ("natural", "medical", "random"))
    return (
        "**Random weights fluctuate most from fold to fold (5.2.1).** Here, standard deviation of the o.o.d. AUC between folds, "
        f"mean over artefacts and shares: {values}."
    )


def convergence(trainings: pd.DataFrame) -> str:
    """Epochs to convergence, training by training."""
    picked = distinct(trainings).set_index(["artefact", "share", "fold"])
    of = {name: picked[picked["source"] == name]["best_epoch"] for name in ("natural", "medical", "random")}
    told = []
    for name in ("medical", "random"):
        found = difference((of[name] - of["natural"]).dropna())
        assert found is not None
        decided = ("more" if found.low > 0 else "fewer") if found.excludes_0 else "not decided"
        told.append(f"{IN_CLAIMS.get(name, name)} less CIFAR-10 {signed(found, 2)}, {found.pairs} pairs: {decided}")
    return (
        "**Medical pretraining needs more epochs: 141 on average, with ImageNet 72 (4.3; at most 200, learning rate 1e-5).** "
        "Here, epoch that val picks of ten, trainings of the same fold, share and artefact paired (Student's t; they "
        f"share images, so take it as rough): {'; '.join(told)}."
    )


def draw(file: Path, audits: pd.DataFrame) -> None:
    """SRI with the interval over patients; the same bytes from the same rows."""
    artefacts = list(dict.fromkeys(audits["artefact"]))
    with mpl.rc_context({"svg.hashsalt": "crossgraft", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}):
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        axes = figure.subplots()
        for place, (source, (colour, marker)) in enumerate(LOOKS.items()):
            found = audits[audits["source"] == source].set_index("artefact").loc[artefacts]
            xs = [number + 0.13 * (place - 2) for number in range(len(artefacts))]
            bars = [found["sri"] - found["patients_low"], found["patients_high"] - found["sri"]]
            axes.errorbar(
                xs, found["sri"], yerr=bars, fmt=marker, color=colour, label=TITLES[source], markersize=5, linewidth=1.2
            )
        axes.axhline(0, color="#000000", linewidth=0.8)
        axes.set_xticks(range(len(artefacts)), artefacts)
        axes.set_ylabel("Shortcut reliance index")
        axes.grid(axis="y", color="#E5E5E5", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
        figure.savefig(file, metadata={"Date": None, "Creator": None})
