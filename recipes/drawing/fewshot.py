"""What docs/results/fewshot.md says of heads on episodes: accuracies, differences to two baselines, and costs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pandas as pd
from drawing.fewshot_gap import fields as of_gaps
from tables import Difference, Lines, body, difference, markdown, mean, read, signed

SETS = {
    "omniglot": "Omniglot",
    "cifar10": "CIFAR-10, test",
    "ham10000": "HAM10000, by lesion",
    "retinamnist": "RetinaMNIST",
    "medical_mnist": "Medical MNIST",
    "busi": "BUSI, by look",
    "spoken_digits": "Spoken digits, by speaker",
}
FIVE, UNEVEN = "n_way_k_shot:ways=5,shots=5", "meta_dataset"
SHOTS = {
    "n_way_k_shot:ways=5,shots=1": "1 shot",
    FIVE: "5 shots",
    "n_way_k_shot:ways=5,shots=20": "20 shots",
    UNEVEN: "Meta-Dataset",
}
EQUAL = [rule for rule in SHOTS if rule != UNEVEN]
"""Rules that give each class as many images."""
BASELINES = ("logistic", "ridge")
BALANCED = "balanced"
"""Kind of the rows whose baselines count classes equally."""
PAID_FOR = {
    "url:learning_rate=unseen": "heads",
    "copa": "heads",
    "copa:learning_rate=0.005,weight_decay=0.0": "heads",
    "tsa:learning_rate=unseen": "inside",
    "copa_tsa": "inside",
    "fine_tuning": "inside",
}
"""Head that costs several times what logistic regression does → kind of the rows that it is shown of, set by set."""
SPELLED = {
    "ncc": "NCC",
    "url": "URL, rate 0.1",
    "url:learning_rate=unseen": "URL, rate 1",
    "copa": "CoPA",
    "copa:learning_rate=0.005,weight_decay=0.0": "CoPA, 5e-3 and no decay",
    "tip_adapter": "Tip-Adapter, prototypes",
    "logistic": "logistic",
    "ridge": "ridge",
    "logistic:balanced=True": "logistic, balanced",
    "ridge:balanced=True": "ridge, balanced",
    "tsa": "TSA, seen",
    "tsa:learning_rate=unseen": "TSA, unseen",
    "tsa:learning_rate=unseen,form=vector": "TSA, unseen, vectors",
    "copa_tsa": "CoPA + TSA",
    "fine_tuning": "fine-tuning",
    "class weights alone": "class weights alone",
    "tip_adapter of names": "Tip-Adapter",
    "tip_adapter of names, trained": "Tip-Adapter-F",
    "tip_adapter of names, trained with rho_sim": "Tip-Adapter-F with ρSIM",
}


class Gain(NamedTuple):
    """What a head has over a baseline: mean over sets of the mean over the networks of a set, which see the same images.

    Attributes:
        over_sets: With its interval; None of fewer than two sets.
        mean: None where nothing is measured.
        above: Pairs of set and network where the interval over the episodes of the pair is above 0.
        below: Pairs where it is below 0.
        pairs: All of them.
    """

    over_sets: Difference | None
    mean: float | None
    above: int
    below: int
    pairs: int


def chosen(rows: pd.DataFrame, kind: str, rule: str, head: str | None = None) -> pd.DataFrame:
    """Rows of one kind under one rule for the episodes, and of one head."""
    return rows[(rows["kind"] == kind) & (rows["sampler"] == rule) & (True if head is None else rows["head"] == head)]


def heads_of(rows: pd.DataFrame, kind: str) -> list[str]:
    """In the order of the page."""
    present = {*rows.loc[rows["kind"] == kind, "head"]}
    return [head for head in SPELLED if head in present]


def gain(rows: pd.DataFrame, kind: str, rule: str, head: str, baseline: str) -> Gain:
    found = chosen(rows, kind, rule, head).dropna(subset=f"less_{baseline}")
    gaps, half = found[f"less_{baseline}"], found[f"less_{baseline}_half"]
    means = [mean(of_set) for _, of_set in gaps.groupby(found["set"], sort=False)]
    above, below = int((gaps > half).sum()), int((gaps < -half).sum())
    return Gain(difference(means), mean(means) if means else None, above, below, len(found))


def fields(results: Path, figures: Path) -> dict[str, str]:
    rows = read(results / "fewshot", SETS)
    return {
        "num_rows": str(len(rows)),
        "sets": "; ".join(SETS.values()),
        "gains": body(gains(rows, "heads", EQUAL)),
        "by_set": body(by_set(rows)),
        "uneven": body(gains(rows, "heads", [UNEVEN])),
        "balanced_gains": body(gains(rows, BALANCED, [UNEVEN])),
        "balanced": accuracies(rows, BALANCED, UNEVEN),
        **told(rows),
        "heads": "".join(f"### {title}\n\n{accuracies(rows, 'heads', rule)}\n\n" for rule, title in SHOTS.items()),
        "named": "\n\n".join(f"{title}:\n\n{text}" for rule, title in SHOTS.items() if (text := accuracies(rows, "named", rule))),
        "inside": accuracies(rows, "inside", FIVE),
        "on_gpus": on_gpus(rows),
        "inside_gains": body(gains(rows, "inside", [FIVE])),
        "rates": accuracies(rows, "rates", FIVE),
        "tsa_elsewhere": without_depthwise(rows, "tsa:learning_rate=unseen"),
        "costs": body(costs(rows)),
        **of_gaps(results, figures),
    }


def gains(rows: pd.DataFrame, kind: str, rules: Sequence[str]) -> Lines:
    """Each head against each of the two baselines."""
    baselines = [f"{name}:balanced=True" if kind == BALANCED else name for name in BASELINES]
    for head, rule in product([each for each in heads_of(rows, kind) if each not in baselines], rules):
        found = [gain(rows, kind, rule, head, baseline) for baseline in BASELINES]
        if (last := found[-1]).over_sets is not None:
            cells = [cell for each in found for cell in (signed(each.over_sets), f"{each.above} / {each.below}")]
            yield [SPELLED[head], SHOTS[rule], *cells, last.over_sets.pairs, last.pairs]


def inside_alone(rows: pd.DataFrame) -> list[str]:
    """Heads that train inside the network."""
    return [head for head in heads_of(rows, "inside") if head not in heads_of(rows, "heads")]


def told(rows: pd.DataFrame) -> dict[str, str]:
    """Heads and rules where the mean difference to both baselines leaves out 0, and those where it does to one from below."""
    heads = [head for head in heads_of(rows, "heads") if head not in BASELINES]
    on_features = [(head, BALANCED if rule == UNEVEN else "heads", rule) for head in heads for rule in SHOTS]
    alone, sets = inside_alone(rows), chosen(rows, "inside", FIVE)
    num_sets = sets[sets["head"].isin(alone)]["set"].nunique()
    inside = [(head, "inside", FIVE) for head in alone]
    return {
        "on_features": ahead_or_behind(rows, "On frozen features", on_features),
        "in_network": ahead_or_behind(rows, f"Inside the network, on {num_sets} sets", inside),
    }


def ahead_or_behind(rows: pd.DataFrame, where: str, asked: Sequence[tuple[str, str, str]]) -> str:
    sides: dict[str, dict[str, list[str]]] = {"ahead": {}, "behind": {}}
    for head, kind, rule in asked:
        known = [found for each in BASELINES if (found := gain(rows, kind, rule, head, each).over_sets) is not None]
        if len(known) == len(BASELINES):
            is_on = {"ahead": all(each.low > 0 for each in known), "behind": any(each.high < 0 for each in known)}
            for side in (side for side, is_there in is_on.items() if is_there):
                sides[side].setdefault(SPELLED[head], []).append(SHOTS[rule])
    one, other = ("; ".join(f"{head} ({', '.join(of)})" for head, of in each.items()) or "none" for each in sides.values())
    return f"**{where}**, above both baselines: {one}. Below at least one of them: {other}."


def by_set(rows: pd.DataFrame) -> Lines:
    """Differences to logistic regression, set by set, of the heads that a user would pay for."""
    for name, title in SETS.items():
        for head, kind in PAID_FOR.items():
            found = [gain(rows[rows["set"] == name], kind, rule, head, "logistic") for rule in EQUAL]
            if any(each.pairs for each in found):
                yield [title, SPELLED[head], *map(on_one_set, found)]


def on_one_set(found: Gain) -> str:
    if found.mean is None:
        return "–"
    said = f"{found.mean:+.3f} ({found.above} / {found.below} of {found.pairs})"
    return f"**{said}**" if found.above == found.pairs else said


def accuracies(rows: pd.DataFrame, kind: str, rule: str) -> str:
    """A line per set and network, the best bold; nothing where nothing is measured."""
    heads = heads_of(rows, kind)
    shown = chosen(rows, kind, rule).pivot(index=["set", "network"], columns="head", values="accuracy").reindex(columns=heads)
    lines = [[SETS[name], network, *marked(of)] for (name, network), of in shown.sort_index().iterrows()]
    return markdown(["set", "network", *map(SPELLED.get, heads)], lines) if lines else ""


def marked(values: pd.Series) -> list[str]:
    best = values.max()
    return ["–" if pd.isna(each) else f"**{each:.3f}**" if each == best else f"{each:.3f}" for each in values]


def without_depthwise(rows: pd.DataFrame, head: str) -> str:
    """Gain of a head inside networks whose larger convolutions are not depthwise, over each baseline."""
    plain = rows[~rows["network"].str.startswith("mobilenet")]
    found = {SPELLED[each]: gain(plain, "inside", FIVE, head, each).over_sets for each in BASELINES}
    return " and ".join(f"{signed(each)} over {name} (ahead on {each.ahead_of_pairs} sets)" for name, each in found.items())


def on_gpus(rows: pd.DataFrame) -> str:
    """Which lines inside the network are of a GPU, and of which."""
    found = rows[(rows["kind"] == "inside") & (rows["device"] != "cpu")].drop_duplicates(["device", "set", "network"])
    return " ".join(f"Lines computed on an {device}: {number}." for device, number in found["device"].value_counts().items())


def costs(rows: pd.DataFrame) -> Lines:
    """Milliseconds of fit and predict, median over the sets, by network and rule."""
    for kind, heads in {"heads": heads_of(rows, "heads"), "inside": inside_alone(rows)}.items():
        own = rows[rows["kind"] == kind].dropna(subset="milliseconds")
        found = own.groupby(["head", "network", "sampler"])["milliseconds"].agg(median)
        for head, network in product(heads, sorted({*own["network"]})):
            of = [found.get((head, network, rule)) for rule in SHOTS]
            if any(each is not None for each in of):
                yield [SPELLED[head], network, *("–" if each is None else milliseconds(each) for each in of)]


def milliseconds(cost: float) -> str:
    return f"{cost:.0f}" if cost >= 10 else f"{cost:.1f}"
