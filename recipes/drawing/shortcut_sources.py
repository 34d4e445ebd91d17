"""What docs/results/shortcut_sources.md says of audits of networks from five sources, and of claims of the thesis beside them."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from figures import figure
from tables import body, body_of, difference, mean, read_csv, signed

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

    first: str
    second: str
    artefacts: tuple[str, ...]
    sign: int
    metric: str = "sri"


CLAIMS = {  # field of the page, which has what the thesis says: what shows here
    "more_robust": Claim("natural", "medical", ("tag", "low_pass", "nlm_denoising", MEAN), -1),
    "noise_alike": Claim("natural", "medical", ("poisson_image",), 0),
    "classify_alike": Claim("natural", "medical", ("",), 0, CLEAN),
    "random_alike": Claim("natural", "random", ("tag", "low_pass", *NOISE), 0),
    "whitened": Claim("medical", "whitened", NOISE, 1),
    "low_passed": Claim("natural", "low_passed", NOISE, -1),
    "low_passed_medical": Claim("medical", "low_passed", NOISE, 0),
}


def fields(results: Path, figures: Path) -> dict[str, str]:
    names = ("pretraining", "audits", "trainings", "differences")
    pretraining, audits, trainings, differences = (read_rows(results / "shortcut_sources" / f"{name}.csv") for name in names)
    draw(figures / "reliance.svg", audits)
    known = differences.set_index(["source", "other", "metric", "artefact"])
    differences = differences.assign(
        sources=differences["other"].map(TITLES) + " − " + differences["title"],
        of=("SRI, " + differences["artefact"]).where(differences["metric"] != CLEAN, "clean AUC"),
    )
    return {
        "pretraining": body_of(
            pretraining,
            *("{title}", "{images}", "{classes}", "{accuracy:.3f} " + ends("accuracy_"), "{best_epoch}", "{seconds:.0f}"),
        ),
        "rms": ", ".join({row.artefact: f"{row.artefact} {row.rms:.1f}" for row in audits.itertuples()}.values()),
        "reliance": body_of(
            pd.concat(of for _, of in audits.groupby("artefact", sort=False)),
            *("{artefact}", "{title}", "{outcome}", "{sri:.3f}", ends(), ends("patients_")),
            *("{clean_auc:.3f}", "{frozen_sri:.3f}", "{detectability:.2f}"),
        ),
        "curves": curves(trainings),
        "epochs": epochs(trainings),
        "differences": body_of(
            pd.concat(
                differences[(differences["source"] == first) & (differences["other"] == second)] for first, second in PAIRS
            ),
            *("{sources}", "{of}", "{difference:+.3f}", ends(sign="+"), ends("patients_", "+")),
        ),
        **{name: shown(claim, known) for name, claim in CLAIMS.items()},
        "spread": spread(trainings),
        "convergence": convergence(trainings),
    }


def read_rows(file: Path) -> pd.DataFrame:
    """By source as the page has them, whichever was finished first; artefacts without their options."""
    rows = read_csv(file)
    names = rows["confounder"].fillna("").str.partition(":")[0] if "confounder" in rows else ""
    rows = rows.assign(title=rows["source"].map(TITLES), artefact=names)
    return rows.sort_values("source", key=lambda source: source.map(list(TITLES).index), kind="stable")


def ends(prefix: str = "", sign: str = "") -> str:
    """Format of an interval."""
    return f"[{{{prefix}low:{sign}.3f}}, {{{prefix}high:{sign}.3f}}]"


def curves(trainings: pd.DataFrame) -> str:
    """AUC on i.i.d. and o.o.d. test images, mean over the folds."""
    found = trainings.groupby(["artefact", "title", "share"], sort=False)[["iid", "ood"]].agg(mean)
    cells = (found["iid"].map("{:.3f}".format) + " / " + found["ood"].map("{:.3f}".format)).unstack("share", sort=False)
    of_artefact = cells.groupby(level="artefact", sort=False).apply(lambda of: of.droplevel(0))
    return body([*place, *of] for place, of in of_artefact.iterrows())


def epochs(trainings: pd.DataFrame) -> str:
    """Epoch that val picks, median; a training of share 0 stands in the rows under every artefact, and counts once."""
    rows = []
    for title, of in distinct(trainings).groupby("title", sort=False):
        medians = [f"{each:g}" for each in of.groupby("share")["best_epoch"].median()]
        rows.append([title, len(of), *medians, f"{of['best_epoch'].median():g}", f"{mean(of['best_epoch']):.2f}"])
    return body(rows)


def distinct(trainings: pd.DataFrame) -> pd.DataFrame:
    names = trainings["artefact"].where(trainings["share"] != 0, "")
    return trainings.assign(artefact=names).drop_duplicates(["source", "artefact", "share", "fold"])


def shown(claim: Claim, known: pd.DataFrame) -> str:
    """What the rows say of it."""
    parts = []
    for name in claim.artefacts:
        row = known.loc[(claim.first, claim.second, claim.metric, name)]
        of = "clean AUC" if claim.metric == CLEAN else "mean SRI of the artefacts" if name == MEAN else f"SRI, {name}"
        parts.append(f"{of} {row['difference']:+.3f} {ends('patients_', '+').format(**row)}: {verdict(row, claim.sign)}")
    first, second = (IN_CLAIMS.get(name, name) for name in (claim.first, claim.second))
    return f"Here, {second} less {first}: {'; '.join(parts)}."


def verdict(row: pd.Series, sign: int) -> str:
    """By the interval over patients, and whether that over folds agrees."""
    found, over_folds = (int(row[f"{each}low"] > 0) - int(row[f"{each}high"] < 0) for each in ("patients_", ""))
    if not found:
        return "not decided" if sign else "no difference shown"
    told = ("higher" if found > 0 else "lower") if sign == 0 else "as claimed" if found == sign else "the opposite"
    return told if over_folds == found else f"{told} over patients, not decided over folds"


def spread(trainings: pd.DataFrame) -> str:
    """Standard deviation of the o.o.d. AUC between folds, mean over artefacts and shares."""
    between = trainings.groupby(["source", "confounder", "share"], sort=False)["ood"].agg(statistics.stdev)
    return ", ".join(f"{IN_CLAIMS.get(name, name)} {mean(between[name]):.3f}" for name in ("natural", "medical", "random"))


def convergence(trainings: pd.DataFrame) -> str:
    """Epochs to convergence, training by training."""
    picked = distinct(trainings).set_index(["artefact", "share", "fold"])
    of = {name: picked[picked["source"] == name]["best_epoch"] for name in ("natural", "medical", "random")}
    told = []
    for name in ("medical", "random"):
        found = difference((of[name] - of["natural"]).dropna())
        decided = ("more" if found.low > 0 else "fewer") if found.excludes_0 else "not decided"
        told.append(f"{IN_CLAIMS.get(name, name)} less CIFAR-10 {signed(found, 2)}, {found.pairs} pairs: {decided}")
    return "; ".join(told)


def draw(file: Path, audits: pd.DataFrame) -> None:
    """SRI with the interval over patients."""
    artefacts = list(dict.fromkeys(audits["artefact"]))
    with figure(file, (7.2, 3.4), "crossgraft", {"font.size": 9}) as drawn:
        axes = drawn.subplots()
        for place, (source, (colour, marker)) in enumerate(LOOKS.items()):
            found = audits[audits["source"] == source].set_index("artefact").loc[artefacts]
            xs = [number + 0.13 * (place - 2) for number in range(len(artefacts))]
            bars = [found["sri"] - found["patients_low"], found["patients_high"] - found["sri"]]
            look = {"fmt": marker, "color": colour, "label": TITLES[source]}
            axes.errorbar(xs, found["sri"], yerr=bars, markersize=5, linewidth=1.2, **look)
        axes.axhline(0, color="#000000", linewidth=0.8)
        axes.set_xticks(range(len(artefacts)), artefacts)
        axes.set_ylabel("Shortcut reliance index")
        axes.grid(axis="y", color="#E5E5E5", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        drawn.legend(loc="outside lower center", ncols=3, frameon=False)
