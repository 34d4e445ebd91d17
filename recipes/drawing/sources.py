"""What docs/results/sources.md says of networks that were pretrained on several sources: which is best, and what tells it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from drawing.ground_truth import GROUPS, SETS, picked
from tables import Lines, body, clustered_interval, markdown, mean, number, read_csv, typeset

from crossgraft.statistics import spearman, weighted_kendall

TARGETS = {name: title for name, title in SETS.items() if name not in ("omniglot_greek", "cifar10")}
ALL_BUT, NATURAL, RANDOM = "all but the target", "cifar10", "random"
OF_SOURCE = {"Size": "images", "Classes": "classes", "Diversity": "diversity", "Own AUC": "auc"}
OF_PAIR = {"Similarity of features": "feature_similarity", "Similarity of spectra": "spectral_similarity"}
SCORES = ("logme", "h_score", "sfda", "parc", "gbc", "transrate", "nca_score")


def fields(results: Path, figures: Path) -> dict[str, str]:
    folder = results / "sources"
    rows = {target: read_csv(folder / f"{target}.csv") for target in TARGETS}
    sources, pairs = read_csv(folder / "pretraining.csv"), read_csv(folder / "pairs.csv")
    spent = sum(each["cpu_seconds"].sum() for each in rows.values()) + sources["cpu_seconds"].sum()
    of_sources = {target: picked(each).groupby("model")["auc"].agg(mean).rename(plain) for target, each in rows.items()}
    areas = pd.DataFrame(of_sources).rename_axis("source").sort_index()
    known = pairs.merge(sources[["source", "images", "classes", "diversity", "auc"]], on="source", how="left")
    known = known.assign(source=known["source"].map(plain)).set_index(["target", "source"])
    return {
        "trainings": str(sum(map(len, rows.values()))),
        "hours": f"{spent / 3600:.1f}",
        "matrix": matrix(areas),
        "sources": body(
            [*row[["source", "images", "classes", "epochs"]], number(row["auc"], ".3f"), number(row["diversity"], ".1f")]
            for _, row in sources.sort_values("images", kind="stable").iterrows()
        ),
        "num_targets": str(len(TARGETS)),
        "predictors": body(predictors(areas, known)),
        **claims(areas),
    }


def plain(source: str) -> str:
    """Pooled sources differ by target; they are one line."""
    return ALL_BUT if source.startswith("all but ") else source


def matrix(areas: pd.DataFrame) -> str:
    best = areas.max()
    lines = [
        [source, *(f"**{100 * of[each]:.1f}**" if of[each] == best[each] else number(100 * of[each], ".1f") for each in TARGETS)]
        for source, of in areas.iterrows()
    ]
    return markdown(["Source", *TARGETS.values()], lines)


def predictors(areas: pd.DataFrame, known: pd.DataFrame) -> Lines:
    """Rank correlation of what was known beforehand with the AUC, over the sources of each target."""
    for title, column in (OF_SOURCE | OF_PAIR | dict(zip(SCORES, SCORES, strict=True))).items():
        found = {}
        for target in TARGETS:
            both = pd.concat([known.loc[target, column], areas[target]], axis=1).dropna().to_numpy(dtype=np.float64).T
            found[target] = spearman(*both), weighted_kendall(*both)
        cells = [shown([each[place] for each in found.values()]) for place in (0, 1)]
        yield [title, len(found), *cells]


def shown(values: Sequence[float]) -> str:
    """Mean over the targets, and its interval over groups of related ones."""
    low, high = clustered_interval(values, [GROUPS.get(target, target) for target in TARGETS])
    return typeset(f"{mean(values):+.2f} [{low:+.2f}, {high:+.2f}]")


def claims(areas: pd.DataFrame) -> dict[str, str]:
    """The numbers of the sentences of section 6.5.1, counted here."""
    pooled, natural, random = (areas.loc[name] for name in (ALL_BUT, NATURAL, RANDOM))
    best = areas.drop([ALL_BUT, NATURAL, RANDOM]).max()
    gaps = {"pooled_best": pooled - best, "pooled_natural": pooled - natural, "best_natural": best - natural}
    return {
        name: f"ahead on {sum(gap > 0)} of {len(gap)} targets, {shown(list(100 * gap))} points of AUC."
        for name, gap in {**gaps, "natural_random": natural - random}.items()
    }
