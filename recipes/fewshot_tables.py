"""Tables of the few-shot study: accuracies, differences to the baselines, and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import NamedTuple

from fewshot_rows import BALANCED, BASELINES, CPU, HeadResult, baselines_of
from studies import Difference, difference_of

Tables = Mapping[str, Sequence[HeadResult]]
FIVE = "n_way_k_shot:ways=5,shots=5"
SHOTS = {
    "n_way_k_shot:ways=5,shots=1": "1 shot",
    FIVE: "5 shots",
    "n_way_k_shot:ways=5,shots=20": "20 shots",
    "meta_dataset": "Meta-Dataset",
}
EQUAL = [rule for rule in SHOTS if rule != "meta_dataset"]
"""Rules that give each class as many images."""
DEPTHWISE = "mobilenet"
"""How names of networks begin whose convolutions that are larger than one pixel are depthwise."""
PAID_FOR = {
    "url:learning_rate=unseen": "heads",
    "copa": "heads",
    "copa:learning_rate=0.005,weight_decay=0.0": "heads",
    "tsa:learning_rate=unseen": "inside",
    "copa_tsa": "inside",
    "fine_tuning": "inside",
}
"""Head that costs several times what logistic regression does → kind of the pieces that it is shown of, set by set."""
JUDGED = {**dict.fromkeys(EQUAL, "heads"), "meta_dataset": BALANCED}
"""Rule → kind of the pieces with baselines that are fair under it."""
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


class Pair(NamedTuple):
    """A network on a set."""

    name: str
    network: str


def rows_of_head(tables: Tables, kind: str, sampler: str, head: str) -> dict[Pair, HeadResult]:
    return {
        Pair(name, row.network): row
        for name, rows in tables.items()
        for row in rows
        if (row.kind, row.sampler, row.head) == (kind, sampler, head)
    }


def heads_of(tables: Tables, kind: str) -> list[str]:
    present = {row.head for rows in tables.values() for row in rows if row.kind == kind}
    return [head for head in SPELLED if head in present]


class Gain(NamedTuple):
    """What a head has over a baseline.

    Attributes:
        mean: Mean over sets of the mean over the networks of a set: networks see the same images, so that they are no more
            sets. None where nothing is measured.
        over_sets: The same with its interval over sets. None of fewer than two sets.
        above: Pairs where the interval over the episodes of the pair is above 0.
        below: Pairs where it is below 0.
        pairs: Pairs of set and network.
    """

    mean: float | None
    over_sets: Difference | None
    above: int
    below: int
    pairs: int


def gain(tables: Tables, kind: str, sampler: str, head: str, baseline: str) -> Gain:
    """Of a head over a baseline."""
    of_pairs = {pair: row.less(baseline) for pair, row in rows_of_head(tables, kind, sampler, head).items()}
    known = {pair: found for pair, found in of_pairs.items() if found is not None}
    of_sets: dict[str, list[float]] = {}
    for pair, (mean, _) in known.items():
        of_sets.setdefault(pair.name, []).append(mean)
    means = [fmean(of_set) for of_set in of_sets.values()]
    return Gain(
        fmean(means) if means else None,
        difference_of(means),
        sum(mean > half for mean, half in known.values()),
        sum(mean < -half for mean, half in known.values()),
        len(known),
    )


def gains_table(tables: Tables, kind: str, samplers: Sequence[str]) -> str:
    """Each head against each of the two baselines."""
    baselines = baselines_of(kind)
    columns = [f"less {SPELLED[each]} | above / below" for each in baselines]
    lines = [f"| head | episodes | {' | '.join(columns)} | sets | pairs |", "|---|---|---|---|---|---|---|---|"]
    for head in heads_of(tables, kind):
        if head in baselines:
            continue
        for sampler in samplers:
            gains = [gain(tables, kind, sampler, head, baseline) for baseline in BASELINES]
            cells = [f"{_difference(each.over_sets)} | {each.above} / {each.below}" for each in gains]
            last = gains[-1]
            if last.over_sets is not None:
                sizes = f"{last.over_sets.pairs} | {last.pairs}"
                lines.append(f"| {SPELLED[head]} | {SHOTS[sampler]} | {' | '.join(cells)} | {sizes} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def _difference(found: Difference | None) -> str:
    return "–" if found is None else f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def told(tables: Tables) -> str:
    """Heads and rules where the mean difference to both baselines leaves out 0, and those where it does to one from below."""
    on_features = [(head, JUDGED[rule], rule) for head in heads_of(tables, "heads") if head not in BASELINES for rule in SHOTS]
    inside = [(head, "inside", FIVE) for head in heads_inside(tables)]
    parts = [_judged(tables, "On frozen features", on_features)]
    if inside:
        sets = {pair.name for head, kind, rule in inside for pair in rows_of_head(tables, kind, rule, head)}
        parts.append(_judged(tables, f"Inside the network, on {len(sets)} sets", inside))
    return "\n\n".join(parts)


def heads_inside(tables: Tables) -> list[str]:
    """Those that train inside the network."""
    return [head for head in heads_of(tables, "inside") if head not in heads_of(tables, "heads")]


def _judged(tables: Tables, where: str, asked: Sequence[tuple[str, str, str]]) -> str:
    ahead: dict[str, list[str]] = {}
    behind: dict[str, list[str]] = {}
    for head, kind, rule in asked:
        found = [gain(tables, kind, rule, head, baseline).over_sets for baseline in BASELINES]
        known = [each for each in found if each is not None]
        if len(known) == len(BASELINES) and all(each.low > 0 for each in known):
            ahead.setdefault(SPELLED[head], []).append(SHOTS[rule])
        if len(known) == len(BASELINES) and any(each.high < 0 for each in known):
            behind.setdefault(SPELLED[head], []).append(SHOTS[rule])
    return (
        f"**{where}**, above both baselines: {_listed(ahead) or 'none'}. Below at least one of them: {_listed(behind) or 'none'}."
    )


def _listed(rules_of: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{head} ({', '.join(rules)})" for head, rules in rules_of.items())


def sets_table(tables: Tables, titles: Mapping[str, str]) -> str:
    """Differences to logistic regression, set by set, of the heads that a user would pay for."""
    lines = ["| set | head | 1 shot | 5 shots | 20 shots |", "|---|---|---|---|---|"]
    for name, title in titles.items():
        for head, kind in PAID_FOR.items():
            gains = [gain({name: tables.get(name, ())}, kind, rule, head, "logistic") for rule in EQUAL]
            if any(each.pairs for each in gains):
                lines.append(f"| {title} | {SPELLED[head]} | {' | '.join(map(_on_one_set, gains))} |")
    return "\n".join(lines)


def _on_one_set(found: Gain) -> str:
    if found.mean is None:
        return "–"
    said = f"{found.mean:+.3f} ({found.above} / {found.below} of {found.pairs})"
    return f"**{said}**" if found.above == found.pairs else said


def accuracies_table(tables: Tables, titles: Mapping[str, str], sampler: str) -> str:
    """One rule for the episodes, under its heading; empty where nothing is measured."""
    lines = _one_rule(tables, titles, "heads", sampler)
    return "\n".join([f"### {SHOTS[sampler]}", "", *lines, "", ""]) if lines else ""


def balanced_table(tables: Tables, titles: Mapping[str, str]) -> str:
    """Meta-Dataset's rule with baselines that count classes equally."""
    return "\n".join(_one_rule(tables, titles, BALANCED, "meta_dataset")) or "Nothing is measured yet."


def inside_table(tables: Tables, titles: Mapping[str, str]) -> str:
    """What trains inside the network, beside the heads on the same episodes."""
    return "\n".join(_one_rule(tables, titles, "inside", FIVE)) or "Nothing is measured yet."


def rates_table(tables: Tables, titles: Mapping[str, str]) -> str:
    """TSA at its two rates in a network of depthwise convolutions."""
    return "\n".join(_one_rule(tables, titles, "rates", FIVE)) or "Nothing is measured yet."


def without_depthwise(tables: Tables, head: str) -> str:
    """Gain of a head inside networks whose larger convolutions are not depthwise, over each baseline."""
    plain = {name: [row for row in rows if not row.network.startswith(DEPTHWISE)] for name, rows in tables.items()}
    said: list[str] = []
    for baseline in BASELINES:
        found = gain(plain, "inside", FIVE, head, baseline)
        if found.over_sets is not None:
            sets = f"ahead on {found.over_sets.ahead} of {found.over_sets.pairs} sets"
            said.append(f"{_difference(found.over_sets)} over {SPELLED[baseline]} ({sets})")
    return " and ".join(said) or "not measured yet"


def on_gpus(tables: Tables) -> str:
    """Which lines inside the network are of a GPU, and of which."""
    found: dict[str, set[Pair]] = {}
    for name, rows in tables.items():
        for row in rows:
            if row.kind == "inside" and row.device != CPU:
                found.setdefault(row.device, set()).add(Pair(name, row.network))
    if not found:
        return "All of it was computed on CPUs."
    return " ".join(f"Lines computed on an {device}: {len(pairs)}." for device, pairs in found.items())


def named_table(tables: Tables, titles: Mapping[str, str]) -> str:
    """What starts from rows of the ImageNet head, by rule."""
    parts = {rule: _one_rule(tables, titles, "named", rule) for rule in SHOTS}
    lines = [line for rule, part in parts.items() if part for line in (f"{SHOTS[rule]}:", "", *part, "")]
    return "\n".join(lines).rstrip() or "Nothing is measured yet."


def _one_rule(tables: Tables, titles: Mapping[str, str], kind: str, sampler: str) -> list[str]:
    """A line per pair; no line where nothing is measured."""
    heads = heads_of(tables, kind)
    of_head = {head: rows_of_head(tables, kind, sampler, head) for head in heads}
    pairs = sorted({pair for rows in of_head.values() for pair in rows})
    if not pairs:
        return []
    return [
        f"| set | network | {' | '.join(SPELLED[head] for head in heads)} |",
        "|---|---|" + "---|" * len(heads),
        *(f"| {titles[pair.name]} | {pair.network} | {_marked([of_head[head].get(pair) for head in heads])} |" for pair in pairs),
    ]


def _marked(rows: Sequence[HeadResult | None]) -> str:
    """Accuracies; the best of a line is bold."""
    best = max((row.accuracy for row in rows if row is not None), default=0.0)
    return " | ".join(
        "–" if row is None else f"**{row.accuracy:.3f}**" if row.accuracy == best else f"{row.accuracy:.3f}" for row in rows
    )


def costs_table(tables: Tables) -> str:
    """Milliseconds of fit and predict, median over the sets, by network and rule."""
    lines = ["| head | network | " + " | ".join(SHOTS.values()) + " |", "|---|---|" + "---|" * len(SHOTS)]
    for kind in ("heads", "inside"):
        for head in heads_of(tables, kind) if kind == "heads" else heads_inside(tables):
            networks = sorted({row.network for rows in tables.values() for row in rows if row.kind == kind})
            for network in networks:
                cells = []
                for sampler in SHOTS:
                    costs = [
                        row.milliseconds
                        for pair, row in rows_of_head(tables, kind, sampler, head).items()
                        if pair.network == network and row.milliseconds is not None
                    ]
                    cells.append(_milliseconds(median(costs)) if costs else "–")
                if any(cell != "–" for cell in cells):
                    lines.append(f"| {SPELLED[head]} | {network} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _milliseconds(cost: float) -> str:
    return f"{cost:.0f}" if cost >= 10 else f"{cost:.1f}"
