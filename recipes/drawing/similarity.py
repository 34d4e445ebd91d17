"""What docs/results/similarity.md says of its tables: chapter 3 of the thesis, and what keeping features buys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from drawing.similarity_figures import MEASURES, METHODS, SETS, SOURCES, draw_gains, draw_layers, draw_mistakes, draw_planes
from scipy import stats
from tables import (
    Lines,
    body,
    difference,
    markdown,
    mean,
    mean_and_interval,
    means,
    minus,
    read,
    read_csv,
    share_and_interval,
    signed,
)

from crossgraft.statistics import spearman

WAYS = ("full", "head-first", "linear")
PARTS = ("all", "first half", "second half")
UNIT = ["set", "seed"]
MODELS = ("vit_d96", "mobilenetv2_035")
COLUMNS = (
    *("accuracy", "cka_debiased", "loss", "one_step", "many_steps", "gradient", "to_start", "to_centre", "accuracy_at_centre"),
    "probe_natural",
)
SEEN = ("distance", "overlap", "gap", "drawn_gap", "trustworthiness", "attention", "source_attention")
PARTS_OF_METHODS = {"methods": COLUMNS, "seen": SEEN}
SHARES = ("accuracy", "accuracy_at_centre", "probe_natural", "overlap", "attention", "source_attention")
"""Columns of numbers from 0 to 1."""
CLAIMS = (  # column, words, sign that keeping should have against FULL, what the paper has
    ("one_step", "flatter than FULL, 1 step", -1, "Table 2: 0.0158 and 0.0271"),
    ("many_steps", "flatter than FULL, 5 steps", -1, "Table 2"),
    ("to_centre", "closer to the centre", -1, "Table 3: 0.72 and 0.80"),
    ("accuracy_at_centre", "more accurate at the centre", 1, "not measured"),
    ("distance", "closer centroid", -1, "Fig. 3"),
    ("overlap", "more overlap in the plane", 1, "Fig. 3"),
    ("gap", "more of the gap in one class", 1, "Fig. 4"),
    ("attention", "more of the attention, test images", 1, "Fig. 5"),
    ("source_attention", "more of the attention, source images", 1, "Fig. 5"),
    ("probe_natural", "less forgetting of natural images", 1, "claimed, not measured"),
    ("accuracy", "accuracy", 0, "Table 1: 71.0 and 72.0"),
)


class Study(NamedTuple):
    """All tables, with the column ``set``."""

    trainings: pd.DataFrame
    layers: pd.DataFrame
    mistakes: pd.DataFrame
    geometry: pd.DataFrame
    points: pd.DataFrame
    classes: pd.DataFrame


def read_study(folder: Path) -> Study:
    trainings = read(folder, SETS).merge(read(folder, SETS, "-kept"), how="left", on=["set", "model", "variant", "seed"])
    endings = ("layers", "mistakes", "kept/geometry", "kept/points", "classes")
    return Study(trainings, *(read((folder / ending).parent, SETS, f"-{Path(ending).name}") for ending in endings))


def fields(results: Path, figures: Path) -> dict[str, str]:
    study = read_study(results / "similarity")
    draw_layers(figures / "layers.svg", study.layers)
    draw_mistakes(figures / "mistakes.svg", study.mistakes)
    gain = {way: gains(study, way, source=None, relative=True) for way in WAYS[:2]}
    draw_gains(figures / "gains.svg", study.layers, gain)
    drawn = study.points[(study.points["set"] == "breastmnist") & (study.points["model"] == "vit_d96")]
    for kind in ("pca", "tsne"):
        draw_planes(figures / f"{kind}.svg", drawn, kind)
    return {
        "in_short": in_short(study),
        "aucs": auc_table(study),
        "layers": body(layer_table(study)),
        "mistakes": body(mistakes_table(study)),
        "mistakes_claims": mistakes_claims(study),
        "gains": body(gains_table(study)),
        "statistics": body(statistics_table(study)),
        "classes": body(classes_table(study)),
        "positions": positions_table(study),
        **{f"{name}_{model}": methods(study, model, columns) for model in MODELS for name, columns in PARTS_OF_METHODS.items()},
        "claims": body(claims_table(study)),
        **versions(read_csv(results / "similarity" / "data-versions.csv")),
    }


def versions(rows: pd.DataFrame) -> dict[str, str]:
    """Table 3.3: a row for each setting, a column for each version of the data, and what the second of each is worth."""
    names, settings = (list(dict.fromkeys(rows[column])) for column in ("data", "settings"))
    cells = {cell: of.set_index("seed")["auc"] for cell, of in rows.groupby(["settings", "data"])}
    lines = [[setting, *(share_and_interval(cells[setting, name]) for name in names)] for setting in settings]
    first, second = (cells[settings[1], name] - cells[settings[0], name] for name in names)
    gain = [signed(difference(each)) for each in (first, second)]
    return {
        "versions": markdown(("AUC", *names), [*lines, ["difference of the settings", *gain]]),
        "versions_seeds": str(rows["seed"].nunique()),
        "versions_gain": signed(difference((second - first).dropna())),
    }


def by_unit(rows: pd.DataFrame, column: str) -> pd.Series:
    """Mean of each set and seed; exact sums."""
    return rows.dropna(subset=[column]).groupby(UNIT)[column].agg(mean)


def aucs(study: Study, way: str, source: str | None) -> pd.Series:
    """By source, set and seed; of one source without its level."""
    level = ["model", *UNIT]
    own = study.trainings.loc[study.trainings["variant"] == way, [*level, "auc"]].set_index(level)["auc"]
    return own if source is None else own[source]


def gains(study: Study, way: str, source: str | None, *, relative: bool) -> pd.Series:
    """AUC beyond that of random weights of the same set and seed; as a share of it where it is relative."""
    found, base = aucs(study, way, source), aucs(study, "scratch", "random")
    of_unit = base.reindex(found.index.droplevel("model") if source is None else found.index).to_numpy()
    return (found - of_unit) / (of_unit if relative else 1)


def layers_of(study: Study, measure: str, of: str, way: str, source: str | None = None) -> pd.DataFrame:
    """Rows of layers; ``source``: of this one alone."""
    rows = study.layers
    rows = rows[(rows["measure"] == measure) & (rows["of"] == of) & (rows["variant"] == way)]
    return rows if source is None else rows[rows["first"] == source]


def over_layers(rows: pd.DataFrame, part: str, column: str = "value") -> pd.Series:
    """Mean over layers of a part of the network and over pairs of networks."""
    places = sorted(place for place in rows["place"].unique() if place >= 0)
    middle = len(places) // 2
    wanted = {"all": places, "first half": places[:middle], "second half": places[middle:]}[part]
    return by_unit(rows[rows["place"].isin(wanted)], column)


def changed_less(study: Study, measure: str, way: str, part: str) -> pd.Series:
    """Similarity before and after of ImageNet minus that of the other sources (Fig. 3.3a)."""
    found = {source: over_layers(layers_of(study, measure, "change", way, source), part) for source in SOURCES}
    others = pd.concat([found["birds"], found["insects"]])
    return minus(found["imagenet"], others.groupby(UNIT).agg(mean))


def after_minus_before(study: Study, measure: str, way: str, part: str) -> pd.Series:
    """Similarity of two sources after fine-tuning minus that before (Fig. 3.3b)."""
    after = over_layers(layers_of(study, measure, "models", way), part)
    return minus(after, over_layers(layers_of(study, measure, "before", "before"), part))


def after_minus_untrained(study: Study, measure: str, way: str, part: str) -> pd.Series:
    """The same minus that of two random initialisations."""
    rows = layers_of(study, measure, "models", way)
    return minus(over_layers(rows, part), over_layers(rows, part, "untrained"))


def after_minus_random(study: Study, measure: str, way: str, part: str) -> pd.Series:
    """The same minus that of each of the two with a random initialisation."""
    after = over_layers(layers_of(study, measure, "models", way), part)
    return minus(after, over_layers(layers_of(study, measure, "random", "full"), part))


LAYER_CLAIMS = (  # of the thesis, differences that it has above (+1) or below 0 (−1), or at 0
    ("ImageNet changes less than the other source (3.3a)", changed_less, 1),
    ("After fine-tuning two sources are less alike than before (3.3b)", after_minus_before, -1),
    ("Two fine-tuned sources are less alike than two random initialisations (3.3b)", after_minus_untrained, -1),
    ("Two fine-tuned sources are about as alike as each is to a random initialisation (3.3b)", after_minus_random, 0),
)


def verdict(gaps: pd.Series, sign: int) -> str:
    """Does what is published show, with an interval that excludes 0? Where 0 is published, is it inside?"""
    found = difference(gaps)
    if found is None:
        return "–"
    if not found.excludes_0:
        return "not told apart" if sign == 0 else "not decided"
    if sign == 0:
        return "higher" if found.mean > 0 else "lower"
    return "holds" if found.mean * sign > 0 else "the opposite"


def mistakes(study: Study, way: str, column: str) -> pd.Series:
    """Mean over pairs of sources."""
    return by_unit(study.mistakes[study.mistakes["variant"] == way], column)


def mistakes_gaps(study: Study, way: str) -> dict[str, pd.Series]:
    """Of what 3.5 claims: differences to independent mistakes, and to those before."""
    value = mistakes(study, way, "value")
    return {
        "independent": minus(value, mistakes(study, way, "independent")),
        "before": minus(value, mistakes(study, "before", "value")),
        "kappa": minus(mistakes(study, way, "kappa"), mistakes(study, "before", "kappa")),
    }


def in_short(study: Study) -> str:
    """Each claim in a line, of full fine-tuning and all layers."""

    def told(found: Mapping[str, pd.Series], sign: int) -> str:
        return "; ".join(f"{words} {signed(difference(gaps))}, {verdict(gaps, sign)}" for words, gaps in found.items())

    lines = [
        f"- **{claim}**: {told({words: gaps(study, measure, 'full', 'all') for measure, words in MEASURES.items()}, sign)}."
        for claim, gaps, sign in LAYER_CLAIMS
    ]
    gaps = mistakes_gaps(study, "full")
    lines.append(f"- **Mistakes are shared more than independent ones (3.5)**: {told({'P': gaps['independent']}, 1)}.")
    both = {"P": gaps["before"], "κ, which is free of accuracy": gaps["kappa"]}
    lines.append(f"- **… and more than before fine-tuning (3.5)**: {told(both, 1)}.")
    for measure, words in MEASURES.items():
        counts: list[str] = []
        places = layers_of(study, measure, "change", "full")["place"].unique()
        for kind, is_within in (("all points", False), ("within sets", True)):
            found = [correlation(study, measure, *each, is_within=is_within) for each in product(SOURCES, places)]
            below, above = sum(high < 0 for *_, high in found), sum(low > 0 for _, low, _ in found)
            inside = f"{len(found) - below - above} of {len(found)} with 0 inside"
            counts.append(f"{kind} {inside}, {below} below, {above} above")
        lines.append(
            f"- **Similarity does not go with the gain (3.6)**, {words}, intervals of the correlations of each source and "
            f"layer: {'; '.join(counts)}."
        )
    return "\n".join(lines)


def correlation(study: Study, measure: str, source: str, place: int, *, is_within: bool) -> tuple[float, float, float]:
    """Spearman of the similarity before and after with the relative gain, and a 95 % interval.

    Fisher's z with the standard error of Bonett and Wright (Psychometrika 65 (2000) 23), n being the number of sets and seeds:
    ways to fine-tune within one are no independent points.
    """
    parts: list[pd.DataFrame] = []
    for way in WAYS[:2]:
        own = layers_of(study, measure, "change", way, source)
        similar = own[own["place"] == place].set_index(UNIT)["value"]
        parts.append(pd.DataFrame({"similar": similar, "gain": gains(study, way, source, relative=True)}))
    points = pd.concat(parts)
    if is_within:
        points = points - points.groupby(level="set").transform(mean)
    found = spearman(points["similar"].to_numpy(), points["gain"].to_numpy())
    z = np.arctanh(np.clip(found, -0.999, 0.999))
    half = stats.norm.ppf(0.975) * np.sqrt((1 + found**2 / 2) / (points.index.nunique() - 3))
    return found, float(np.tanh(z - half)), float(np.tanh(z + half))


def auc_table(study: Study) -> str:
    lines: list[list[str]] = []
    for name, title in SETS.items():
        lines.append([title, "random weights", "scratch", share_and_interval(aucs(study, "scratch", "random")[name]), "", ""])
        for source, words in SOURCES.items():
            for way in WAYS:
                both = (mean_and_interval(gains(study, way, source, relative=each)[name]) for each in (False, True))
                lines.append([title, words, way, share_and_interval(aucs(study, way, source)[name]), *both])
    return body(lines).replace("|  |  |", "| | |")


def layer_table(study: Study) -> Lines:
    """The claims of Fig. 3.3, for each measure, way and part of the network, and their means in each set."""
    for (claim, gaps_of, sign), way, part in product(LAYER_CLAIMS, WAYS[:2], PARTS):
        cells: list[str] = []
        for measure in MEASURES:
            gaps = gaps_of(study, measure, way, part)
            cells += [signed(difference(gaps)), *(f"{mean(gaps[name]):+.3f}" for name in SETS), verdict(gaps, sign)]
        yield [claim, way, part, *cells]


def mistakes_table(study: Study) -> Lines:
    titles = {"before": "before, linear probe", "linear": "LINEAR, trained head", "full": "full", "head-first": "head-first"}
    both = (study.mistakes["accuracy"] + study.mistakes["other_accuracy"]) / 2
    study = study._replace(mistakes=study.mistakes.assign(both=both))
    for way, words in titles.items():
        value, *others = (mistakes(study, way, column) for column in ("value", "independent", "kappa", "both"))
        independent, kappa, accuracy = map(mean_and_interval, others)
        gap = signed(difference(minus(value, others[0])))
        yield [words, mean_and_interval(value), independent, gap, kappa, accuracy]


def mistakes_claims(study: Study) -> str:
    titles = {
        "independent": "more alike than independent (3.5)",
        "before": "more alike than before (3.5)",
        "kappa": "the same in κ, which is free of accuracy",
    }
    return body(
        [titles[name], way, signed(difference(gaps)), verdict(gaps, 1)]
        for way in WAYS[:2]
        for name, gaps in mistakes_gaps(study, way).items()
    )


def gains_table(study: Study) -> Lines:
    """Spearman of similarity and relative gain, of each source and layer."""
    for measure, words in MEASURES.items():
        names = layers_of(study, measure, "change", "full").drop_duplicates("place").set_index("place")["layer"]
        for place in sorted(names.index, key=lambda at: (at < 0, at)):
            found = [
                correlation(study, measure, source, place, is_within=is_within)
                for source, is_within in product(SOURCES, (False, True))
            ]
            yield [words, names[place], *("{:+.2f} [{:+.2f}, {:+.2f}]".format(*each) for each in found)]


def statistics_table(study: Study) -> Lines:
    """CKA of penultimate features to the pretrained network, and what statistics of BatchNorm do on their own."""
    for source, words in SOURCES.items():
        own = study.trainings[study.trainings["model"] == source].set_index("variant")
        cells = (own.loc[way, column] for way, column in (("full", "cka_debiased"), ("head-first", "cka_debiased")))
        yield [words, *map(mean_and_interval, cells), mean_and_interval(own.loc["full", "cka_debiased_untouched"])]


def classes_table(study: Study) -> Lines:
    """CKA of penultimate features of two sources with and without what tells classes apart; means over pairs of sources."""
    found = dict(list(study.classes.groupby(["set", "variant"])))
    for name, (way, words) in product(SETS, {"before": "before", "full": "after, full"}.items()):
        own = found[name, way]
        cells = (mean_and_interval(means(own.set_index("seed")[column], ["seed"])) for column in ("cka", "cka_within"))
        yield [name, words, f"{mean([*own['share'], *own['other_share']]):.2f}", *cells]


def positions_table(study: Study) -> str:
    """What CCA looks at in each layer, and what two random initialisations reach."""
    rows = layers_of(study, "cca", "change", "full")
    names = rows.drop_duplicates("place").sort_values("place")["layer"]
    lines: list[list[str]] = []
    for name in SETS:
        of_layer = dict(list(rows[rows["set"] == name].groupby("layer")))
        lines.append([name, *(
            f"{own['positions'].iloc[-1]:.0f} × {own['channels'].iloc[-1]:.0f}, floor {mean(own['untrained']):.2f}"
            for own in (of_layer[layer] for layer in names)
        )])  # fmt: skip
    return markdown(["Set", *names], lines)


def of_method(study: Study, model: str, method: str, column: str) -> pd.Series:
    """A column of the geometry of one network; the distance to the centre of two sets is one number, not one of each set."""
    own = study.geometry[(study.geometry["model"] == model) & (study.geometry["variant"] == method)]
    if column == "to_centre":
        own = own[own["set"] == list(SETS)[-1]].assign(set="")
    return own.set_index(UNIT)[column].dropna()


def methods(study: Study, model: str, columns: Sequence[str]) -> str:
    """Mean and interval over sets and seeds, of one network."""
    return body(
        [title, *(cell(of_method(study, model, method, column), column) for column in columns)]
        for method, title in METHODS.items()
    )


def cell(found: pd.Series, column: str) -> str:
    if column in ("one_step", "many_steps"):
        return f"{sum(found) / len(found):.4f}"
    return (share_and_interval if column in SHARES else mean_and_interval)(found)


def claims_table(study: Study) -> Lines:
    """Differences from FULL, paired by set and seed, of every method; the verdict is of RepSim."""
    methods = [name for name in METHODS if name != "full"]
    for model in MODELS:
        for column, words, sign, published in CLAIMS:
            full = of_method(study, model, "full", column)
            gaps = {name: minus(of_method(study, model, name, column), full) for name in methods}
            if not any(map(len, gaps.values())):
                continue
            digits = 4 if column in ("one_step", "many_steps") else 3
            cells = [signed(difference(gaps[name]), digits) for name in methods]
            yield [model, words, *cells, verdict(gaps["repsim"], sign), published]
