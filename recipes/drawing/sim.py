"""What docs/results/sim.md says of its tables: ρSIM beside the same without it, its placebo, and what costs as much."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from drawing.sim_figures import draw_gradients, draw_sweeps
from drawing.sim_options import (
    beyond_chance,
    leaks_told,
    losses_table,
    sweep_points,
    sweeps_table,
    tokens_told,
    what_comes_back,
    which_tokens,
    widths_told,
)
from tables import (
    Difference,
    Lines,
    body,
    difference,
    markdown,
    marked,
    mean,
    mean_and_interval,
    median,
    minus,
    of_variant,
    read,
    read_csv,
    sections,
    signed,
)

from crossgraft.tune.engine.gradient_norms import SPIKE, moving_average

BASELINE, SIM, PLACEBO, LONGER, DROPOUT = "baseline", "rho_sim", "placebo", "longer", "dropout 0.2"
FREE = (LONGER, "weight decay × 3", "weight decay × 10", DROPOUT)
"""What costs as much as ρSIM, or nothing."""
CORE = (BASELINE, SIM, PLACEBO, *FREE)
REGULARIZERS = ("mixup", "cutmix", "label smoothing")
SWEEPS = (
    *(BASELINE, SIM),
    *(f"rho {value}" for value in ("0.1", "0.4", "0.6", "0.8", "1")),
    *(f"weight {value}" for value in ("1e-05", "0.0001", "0.001", "0.01", "0.1", "1")),
    *(f"loss {name}" for name in ("norm_mse", "mse", "l1", "wasserstein", "kl", "cosine")),
)
PIECES = {  # title, variants
    "cifar10": ("CIFAR-10 subset: ResNet-20, and what costs as much", CORE),
    "cifar10_regularisers": (
        "CIFAR-10 subset: ResNet-20, with other regularisers",
        [f"{name}{ending}" for name in REGULARIZERS for ending in ("", f" + {SIM}", f" + {PLACEBO}")],
    ),
    "breastmnist": ("BreastMNIST", CORE),
    "retinamnist": ("RetinaMNIST", CORE),
    "cifar10_depth": ("CIFAR-10 subset: Deeper networks", (BASELINE, SIM)),
    "cifar10_sweeps": ("CIFAR-10 subset: Sweeps", SWEEPS),
}
MEDICAL = ("breastmnist", "retinamnist")
METRICS = {  # title, direction: more is better in all of them
    "accuracy": ("Accuracy, points", 1),
    "balanced_accuracy": ("Balanced accuracy, points", 1),
    "auc": ("AUC × 100", 1),
    "nll": ("NLL saved × 100", -1),
}
OF_EQUAL_CLASSES = ("accuracy", "auc", "nll")
"""Where all classes have as many test images, balanced accuracy is accuracy."""
TABLE_2 = {"resnet20": "ResNet-18: 0.29", "resnet32": "ResNet-50: 0.13", "resnet56": "ResNet-101: 0.25, ResNet-152: 0.13"}
"""Gains of ρSIM over the baseline in the paper, of the networks nearest by rank of depth; on ResNet-50 what follows."""
TABLE_2_JOINED = {"mixup": "0.23", "cutmix": "0.09", "label smoothing": "0.14"}
TABLE_11 = {"resnet20": "ResNet-18: 1.11, 1.04", "resnet32": "ResNet-34: 1.13, 1.05", "resnet56": "ResNet-50: 1.18, 1.07"}
"""Time and memory as multiples of the baseline's, on CUB."""
GRADIENTS = {"largest_norm": 2, "num_spikes": 2, "roughness": 3}
"""Numbers of a training → digits of the difference to the baseline; a smoother training has less of each."""
ON_GPU = " on "
"""Between versions and the name of a GPU."""


Trained = Mapping[tuple[str, str, str], pd.DataFrame]
"""Piece, network and variant → its trainings by seed."""


class Place(NamedTuple):
    """Where trainings differ by ρSIM alone: a piece of the study, a network, and the variants to compare."""

    piece: str
    model: str
    without: str = BASELINE
    with_sim: str = SIM
    with_placebo: str = PLACEBO

    def values(self, trained: Trained, side: str, metric: str) -> pd.Series:
        """A number of every training of a side by seed; any name that is none of them is that of a variant."""
        own = trained.get((self.piece, self.model, getattr(self, side, side)))
        return pd.Series(dtype=float) if own is None else own[metric].dropna()


SCRATCH = [
    Place("cifar10", "resnet20"),
    *(Place("cifar10_depth", model) for model in ("resnet32", "resnet56")),
    *(Place("cifar10_regularisers", "resnet20", name, f"{name} + {SIM}", f"{name} + {PLACEBO}") for name in REGULARIZERS),
]
PRETRAINED = [Place(name, model) for name in MEDICAL for model in ("mobilenetv1_050", "mobilenetv2_035")]


class Comparison(NamedTuple):
    """Two sides of each place; ``on_one_machine``: only pairs of which both were trained on the same one."""

    title: str
    first: str
    second: str
    on_one_machine: bool = False


OVER_WITHOUT = Comparison("ρSIM − the same training without it", "with_sim", "without")
OVER_PLACEBO = Comparison("ρSIM − its placebo", "with_sim", "with_placebo")
OVER_LONGER = Comparison("ρSIM − the baseline for longer", "with_sim", LONGER)
PLACEBO_OVER_WITHOUT = Comparison("placebo − the same training without it", "with_placebo", "without")
FROM_SCRATCH = [
    OVER_WITHOUT,
    OVER_PLACEBO,
    OVER_PLACEBO._replace(title=f"{OVER_PLACEBO.title}, both on a GPU or both on a CPU", on_one_machine=True),
    PLACEBO_OVER_WITHOUT,
]
FINE_TUNING = [
    *(OVER_WITHOUT, OVER_PLACEBO, PLACEBO_OVER_WITHOUT, OVER_LONGER),
    Comparison("the baseline for longer − the baseline", LONGER, "without"),
    *(Comparison(f"ρSIM − {name}", "with_sim", name) for name in FREE[1:]),
]


def fields(results: Path, figures: Path) -> dict[str, str]:
    folder = results / "sim"
    rows = read(folder, PIECES).merge(read(folder, PIECES, "-looks"), how="left", on=["set", "model", "variant", "seed"])
    steps = read_csv(folder / "cifar10-steps.csv")
    ratios = read(folder, ("cifar10", "breastmnist", "retinamnist"), "-step-costs").set_index(["set", "model"])["ratio"]
    trained = {key: own.set_index("seed") for key, own in with_costs(rows).groupby(["set", "model", "variant"])}
    tokens, inverted = read(folder, ("breastmnist_tokens", "pneumoniamnist_tokens")), read_csv(folder / "privacy.csv")
    swept = rows[rows["set"] == "cifar10_sweeps"]
    logged = rows[rows["num_steps"].notna()]
    draw_gradients(figures / "gradients.svg", steps)
    draw_sweeps(figures / "sweeps.svg", sweep_points(swept))
    scratch = {"all": SCRATCH, "ResNet-20 alone": SCRATCH[:1]}
    of_sets = {name: [place for place in PRETRAINED if place.piece == name] for name in MEDICAL}
    return {
        "short": in_short(trained),
        "longer": body(longer(rows, trained, ratios)),
        "machines": machines(rows),
        "pooled": body(pooled(trained, scratch, FROM_SCRATCH, OF_EQUAL_CLASSES)),
        "mixed": mixed_machines(trained, SCRATCH),
        "mixed3": mixed_machines(trained, PRETRAINED),
        "core": body(core(trained)),
        "table2": body(table_2(trained)),
        "table3": body(table_3(trained)),
        "pooled3": body(pooled(trained, {"both sets": PRETRAINED, **of_sets}, FINE_TUNING, list(METRICS))),
        "sweeps": sweeps_table(swept),
        "beyond_chance": beyond_chance(swept),
        "widths": widths_told(swept),
        "losses": body(losses_table(swept)),
        "tokens": body(which_tokens(tokens)),
        "tokens_told": tokens_told(tokens),
        "privacy": body(what_comes_back(inverted)),
        **leaks_told(inverted),
        "costs": body(costs(trained, ratios)),
        "gradients": body(gradients(logged)),
        "smoothing": smoothing_told(logged),
        "spikes": spikes_told(steps),
        "tables": sections({title: of_piece(rows[rows["set"] == name], name) for name, (title, _) in PIECES.items()}),
    }


def gaps(first: pd.Series, second: pd.Series) -> pd.Series:
    """First minus second in percentage points, where both are there."""
    return 100 * minus(first, second)


def pairs_of(trained: Trained, place: Place, comparison: Comparison, metric: str) -> pd.Series:
    """First minus second in points; positive where the first is better."""
    first, second = (place.values(trained, side, metric) for side in comparison[1:3])
    if comparison.on_one_machine:
        one, other = (place.values(trained, side, "versions") for side in comparison[1:3])
        first = first[[other.get(key) == one[key] for key in first.index]]
    return METRICS[metric][1] * gaps(first, second)


def over(trained: Trained, places: Iterable[Place], comparison: Comparison, metric: str = "accuracy") -> Difference | None:
    """Over all pairs of trainings."""
    return difference(gap for place in places for gap in pairs_of(trained, place, comparison, metric))


def in_short(trained: Trained) -> str:
    """ρSIM beside the same without, its placebo, and the epochs that it costs; and how short trainings are."""
    core = SCRATCH[0]
    lines = [answer(trained, "From scratch", SCRATCH), answer(trained, "Fine-tuning", PRETRAINED)]
    base = core.values(trained, "without", "accuracy")
    beside = {place.without: place.values(trained, "without", "accuracy") for place in SCRATCH if place.without in REGULARIZERS}
    beside[DROPOUT] = core.values(trained, DROPOUT, "accuracy")
    said = [f"{name} {signed(difference(gaps(each, base)), 2)}" for name, each in beside.items()]
    more = difference(gaps(core.values(trained, LONGER, "accuracy"), base))
    found = over(trained, SCRATCH, OVER_WITHOUT)
    lines.append(
        f"- **Trainings from scratch are short here**: more epochs change the ResNet-20 by {signed(more, 2)}, {', '.join(said)}. "
        f"The paper reports 0.1 to 0.3 points for ρSIM on CIFAR-10, after 200 epochs: less than the ±"
        f"{(found.high - found.low) / 2:.1f} of the interval here, which is too wide to tell such a gain from none."
    )
    return "\n".join(["**In short**, in points of accuracy:", "", *lines])


def answer(trained: Trained, title: str, places: Sequence[Place]) -> str:
    found, placebo, longer = (over(trained, places, each) for each in (OVER_WITHOUT, OVER_PLACEBO, OVER_LONGER))

    def told(each: Difference) -> str:
        return f"{signed(each, 2)} ({each.pairs} pairs)"

    if found.high < 0:
        shows = "ρSIM harms"
    elif found.low <= 0:
        shows = "no gain of ρSIM shows"
    else:  # a gain that the placebo may share is no gain of ρSIM
        shows = "ρSIM helps" if placebo.low > 0 else "a gain shows that the placebo may share"
    said = (
        f"- **{title}**: {shows}. Its difference to the same training without it is {told(found)}, to its placebo "
        f"{told(placebo)}, to the baseline trained for longer, at about the same cost or less, {told(longer)}."
    )
    others = {name: over(trained, places, OVER_WITHOUT, name) for name in ("auc", "nll")}
    clear = [f"{METRICS[name][0]} {signed(each, 2)}" for name, each in others.items() if each.excludes_0]
    said += f" Also, against the same training without it: {'; '.join(clear)}." if clear else ""
    of_sets = [
        f"{name}, {comparison.title}, {METRICS[metric][0]} {signed(each, 2)}"
        for name in dict.fromkeys(place.piece for place in places if place.piece in MEDICAL)
        for comparison in (OVER_WITHOUT, OVER_PLACEBO, OVER_LONGER)
        for metric in METRICS
        if (each := over(trained, [place for place in places if place.piece == name], comparison, metric)).excludes_0
    ]
    return f"{said} By set, with intervals that exclude 0: {'; '.join(of_sets)}." if of_sets else said


def machines(rows: pd.DataFrame) -> str:
    """How many trainings of each piece a GPU has done."""
    programs = rows["versions"].str.partition(ON_GPU)
    on_gpu = programs[1] != ""
    versions = {kind: ", ".join(sorted({*own.str.extract(r"(torch \S+)")[0]})) for kind, own in programs[0].groupby(on_gpu)}
    said: list[str] = []
    for gpu, own in rows.groupby(programs[2][on_gpu], sort=False):
        counts = own.groupby("set", sort=False).size()
        parts = "; ".join(f"{PIECES[name][0]} ({n} of {(rows['set'] == name).sum()})" for name, n in counts.items())
        said.append(
            f"\n\nTrained on one {gpu} ({versions[True]}): {parts}. The others on CPUs ({versions[False]}). "
            "What is drawn is the\nsame on both, but for dropout; rounding is not, so that single trainings end elsewhere."
        )
    return "".join(said)


def longer(rows: pd.DataFrame, trained: Trained, ratios: pd.Series) -> Lines:
    """How many epochs that is, and from which ratio it follows."""
    for (name, model), own in rows[rows["set"].isin(["cifar10", *MEDICAL])].groupby(["set", "model"], sort=False):
        times = [
            ", ".join(median(multiples(trained, groups()[name, model], side, measure), ".2f") for side in ("with_sim", LONGER))
            for measure in ("cpu_seconds", "clock")
        ]
        of_both = [epochs(own[own["variant"] == variant]) for variant in (BASELINE, LONGER)]
        yield [name, model, f"{ratios[name, model]:.2f} times as long", *of_both, *times]


def epochs(rows: pd.DataFrame) -> str:
    return ", ".join(sorted(set(re.findall(r"\bepochs=(\d+)", " ".join(rows["settings"]))), key=int))


def pooled(
    trained: Trained, groups: Mapping[str, Sequence[Place]], comparisons: Sequence[Comparison], metrics: Sequence[str]
) -> Lines:
    """Mean differences over the pairs of each group, with intervals, in every metric."""
    for group, places in groups.items():
        pairs: dict[tuple[str, str], int] = {}
        for each in comparisons:
            found = [over(trained, places, each, metric) for metric in metrics]
            if pairs.get((each.first, each.second)) != found[0].pairs:  # else all pairs are on one machine
                pairs[each.first, each.second] = found[0].pairs
                yield [group, each.title, *map(marked, found), str(found[0].pairs)]


def mixed_machines(trained: Trained, places: Sequence[Place]) -> str:
    """In how many pairs the two trainings are of different machines; nothing where there is none."""
    said: list[str] = []
    for each in (OVER_WITHOUT, OVER_PLACEBO, PLACEBO_OVER_WITHOUT):
        versions = [[place.values(trained, side, "versions") for side in each[1:3]] for place in places]
        same = [one[key] == other[key] for one, other in versions for key in one.index.intersection(other.index)]
        if not all(same):
            said.append(f"{len(same) - sum(same)} of {len(same)} pairs of {each.title}")
    return f" The two trainings ran on different machines in {'; in '.join(said)}." if said else ""


def core(trained: Trained) -> Lines:
    """Every variant of ResNet-20 beside its baseline, and ρSIM beside it."""
    place = SCRATCH[0]
    for variant in CORE:
        values = place.values(trained, variant, "accuracy")
        to_base = difference(gaps(values, place.values(trained, "without", "accuracy")))
        to_it = [over(trained, [place], Comparison("", "with_sim", variant), metric) for metric in OF_EQUAL_CLASSES]
        cells = ["", ""] if variant == BASELINE else [marked(to_base), to_base.ahead_of_pairs]
        yield [variant, mean_and_interval(values), *cells, *("" if variant == SIM else marked(each) for each in to_it)]


def table_2(trained: Trained) -> Lines:
    base = SCRATCH[0].values(trained, "without", "accuracy")
    for place in SCRATCH:
        other, one, placebo = (place.values(trained, side, "accuracy") for side in ("without", "with_sim", "with_placebo"))
        gain = difference(gaps(one, other))
        beside = "" if place.piece == "cifar10" else marked(difference(gaps(other, base)))
        published = TABLE_2[place.model] if place.without == BASELINE else f"ResNet-50: {TABLE_2_JOINED[place.without]}"
        cells = [beside, mean_and_interval(one), marked(gain), gain.ahead_of_pairs, marked(difference(gaps(one, placebo)))]
        yield [place.model, place.without, mean_and_interval(other), *cells, published]


def table_3(trained: Trained) -> Lines:
    """Every variant of every medical set and network."""
    for place, variant in product(PRETRAINED, CORE):
        means = [mean_and_interval(place.values(trained, variant, metric)) for metric in OF_EQUAL_CLASSES]
        both = [[place.values(trained, each, metric) for each in (variant, BASELINE)] for metric in ("accuracy", "auc")]
        paired = ["", ""] if variant == BASELINE else [marked(difference(gaps(*each))) for each in both]
        yield [place.piece, place.model, variant, *means, *paired]


def groups() -> dict[tuple[str, str], list[Place]]:
    """Set and network → where it was trained with ρSIM and without."""
    found: dict[tuple[str, str], list[Place]] = {}
    for place in (*SCRATCH, Place("cifar10_sweeps", "resnet20"), *PRETRAINED):
        found.setdefault((place.piece.partition("_")[0], place.model), []).append(place)
    return found


def costs(trained: Trained, ratios: pd.Series) -> Lines:
    """One line for ρSIM and one for its placebo, of each set and network."""
    for ((name, model), places), (variant, side) in product(groups().items(), {SIM: "with_sim", PLACEBO: "with_placebo"}.items()):
        added = places[0].values(trained, side, "num_own_parameters")
        if not len(added):
            continue
        of_whole = added.max() / places[0].values(trained, "without", "num_parameters").max()
        step = ratios.get((places[0].piece, model)) if variant == SIM else None
        clock, more = multiples(trained, places, side, "clock"), [one - its for one, its in both(trained, places, side, "on_gpu")]
        times = [median_and_range(multiples(trained, places, side, "cpu_seconds")), "–" if step is None else f"{step:.2f}"]
        times.append(median_and_range(clock) if clock else f"+{median(more, '.0f')} s" if more else "–")
        memory = [median_and_range(multiples(trained, places, side, of)) for of in ("memory_cpu", "memory_gpu")]
        published = TABLE_11.get(model, "–") if variant == SIM else ""
        yield [name, model, variant, *times, *memory, f"{added.max():,.0f} ({of_whole:.2f})", published]


def multiples(trained: Trained, places: Iterable[Place], side: str, measure: str) -> list[float]:
    """Of all pairs with the same seed and machine: a side as a multiple of the same training without."""
    return [one / other for one, other in both(trained, places, side, measure)]


def both(trained: Trained, places: Iterable[Place], side: str, measure: str) -> Iterator[tuple[float, float]]:
    """A cost of each side, a column of ``with_costs``."""
    for place in places:
        (one, other), (mine, its) = (
            [place.values(trained, each, name) for each in (side, "without")] for name in (measure, "versions")
        )
        yield from ((one[key], other[key]) for key in one.index if key in other.index and mine[key] == its[key])


def with_costs(rows: pd.DataFrame) -> pd.DataFrame:
    """Beside ``cpu_seconds``: ``on_gpu`` and ``clock`` (seconds), ``memory_cpu`` and ``memory_gpu`` (bytes).

    ``clock`` leaves out trainings whose clock has the start of the process in it.
    """
    on_gpu = rows["versions"].str.contains(ON_GPU)
    starts = (rows["set"] == "cifar10_depth") | ((rows["set"] == "cifar10") & (rows["seed"] == 0))
    return rows.assign(
        on_gpu=rows["seconds"].where(on_gpu),
        clock=rows["seconds"].where(on_gpu & ~starts),
        memory_cpu=rows["peak_bytes"].where(~on_gpu),
        memory_gpu=rows["peak_bytes"].where(on_gpu),
    )


def median_and_range(found: Sequence[float]) -> str:
    """The range where it is one."""
    if not found:
        return "–"
    low, high = f"{min(found):.2f}", f"{max(found):.2f}"
    return median(found, ".2f") + (f" ({low} to {high})" if low != high else "")


def gradients(logged: pd.DataFrame) -> Lines:
    """Means over seeds, and paired differences to the baseline."""
    for (model, variant), own in logged.groupby(["model", "variant"], sort=False):
        cells = [f"{mean(own['median_norm']):.3g}"]
        for column, digits in GRADIENTS.items():
            paired = "" if variant == BASELINE else marked(to_baseline(logged, model, variant, column), digits)
            cells += [f"{mean(own[column]):.3g}", paired]
        yield [model, variant, *cells]


def to_baseline(logged: pd.DataFrame, model: str, variant: str, column: str) -> Difference | None:
    own = logged[logged["model"] == model]
    return difference(minus(of_variant(own, variant, column), of_variant(own, BASELINE, column)))


def smoothing_told(logged: pd.DataFrame) -> str:
    """In how many comparisons ρSIM or its placebo has less, and in how many more."""
    found = [
        to_baseline(logged, model, variant, column)
        for (model, variant), _ in logged.groupby(["model", "variant"])
        if variant != BASELINE
        for column in GRADIENTS
    ]
    fewer, more = sum(each.high < 0 for each in found), sum(each.low > 0 for each in found)
    return f"less in {fewer} and more in {more} of {len(found)}"


def spikes_told(steps: pd.DataFrame, num_epochs: int = 20) -> str:
    """How many of the spikes in the figure are the last step of an epoch."""
    said: list[str] = []
    for variant, own in steps.groupby("variant", sort=False):
        norms = own[["norm"]].to_numpy()
        spikes = 2 + np.flatnonzero(norms[1:, 0] > SPIKE * moving_average(norms)[:-1, 0])  # numbers of steps
        said.append(f"{(spikes % (len(norms) // num_epochs) == 0).sum()} of {len(spikes)} ({variant})")
    return ", ".join(said)


def of_piece(rows: pd.DataFrame, name: str) -> str:
    """Every network and variant; balanced accuracy where classes are unequal."""
    columns = {"accuracy": "Accuracy", **({"balanced_accuracy": "Balanced accuracy"} if name in MEDICAL else {}), "auc": "AUC"}
    lines = [
        [model, variant, *(mean_and_interval(own[metric]) for metric in columns)]
        for model in rows["model"].unique()
        for variant in PIECES[name][1]
        if len(own := rows[(rows["model"] == model) & (rows["variant"] == variant)])
    ]
    return markdown(["Network", "Variant", *columns.values()], lines)
