"""What docs/results/domains.md says of its tables: domains that training never saw, by objective, without and with ρSIM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
from figures import figure
from matplotlib.axes import Axes
from tables import Difference, Lines, body, difference, gaps, markdown, mean, means, of_variant, read_csv, sections, signed

from crossgraft.data.class_names import natural_key

SETS = {
    "digits_by_speaker": ("Spoken digits, by speaker", "speaker"),
    "omniglot_by_writer": ("Letters, by writers", "writers"),
    "ham10000_by_region": ("HAM10000, by region", "region"),
}
OBJECTIVES = {"erm": "ERM", "irm": "IRM", "vrex": "VREx", "group_dro": "GroupDRO", "mixstyle": "MixStyle"}
SIM = " + rho_sim"
WAYS = {f"{name}{end}": title + (" + ρSIM" if end else "") for name, title in OBJECTIVES.items() for end in ("", SIM)}
REFERENCE = "erm"
TABLE_12 = {
    # accuracy, %, on P, A, C, S, L100, L38, L43 and L46; without and with ρSIM (SIM, Table 12; its means are Table 5)
    "erm": ((97.01, 87.74, 79.61, 77.12, 41.16, 55.65, 38.97, 51.79), (97.54, 88.87, 82.3, 81.7, 44.27, 57.36, 40.51, 49.78)),
    "irm": ((97.49, 88.96, 82.5, 76.05, 46.31, 59.75, 44.59, 50.09), (97.96, 89.79, 81.57, 80.43, 48.32, 59.63, 42.06, 52.82)),
    "vrex": ((97.37, 87.16, 81.48, 82.62, 46.27, 58.46, 40.95, 51.77), (97.54, 89.06, 81.57, 81.04, 42.9, 58.73, 44.12, 54.17)),
    "mixstyle": ((94.97, 87.06, 79.74, 82.31, 43.36, 56.32, 32.6, 54.97), (95.75, 86.91, 81.4, 83.3, 42.99, 54.35, 36.56, 54.46)),
}
COLOURS = {"erm": "#000000", "irm": "#0072B2", "vrex": "#D55E00", "group_dro": "#009E73", "mixstyle": "#CC79A7"}
"""Safe for the colour-blind; the ways also stand on lines of their own."""
TRAINING = ["domain", "seed"]

Rows = Mapping[str, pd.DataFrame]
"""Set → one row a network: way, seed and the domain that was left out."""


def fields(results: Path, figures: Path) -> dict[str, str]:
    rows = {name: of_known_ways(read_csv(results / "domains" / f"{name}.csv")) for name in SETS}
    draw_differences(figures / "differences.svg", rows)
    return {
        "num_jobs": str(sum(len(own[["variant", "seed"]].drop_duplicates()) for own in rows.values())),
        "seconds": seconds_told(rows),
        "linear": body(linear_table(read_csv(results / "domains" / "linear.csv"))),
        "results": by_set(rows, results_table),
        "verdicts": verdicts(rows),
        "by_domain": by_set(rows, domain_table),
        "published": body(published_table()),
        "beside": body(beside(rows)),
        "causes": causes(rows),
    }


def of_known_ways(rows: pd.DataFrame) -> pd.DataFrame:
    """Only jobs in which every domain was left out and has a number."""
    rows = rows[rows["variant"].isin(WAYS)].dropna(subset=["unseen"])
    return rows[rows.groupby(["variant", "seed"])["domain"].transform("nunique") == rows["domain"].nunique()]


def seconds_told(rows: Rows) -> str:
    """Seconds of a training with ρSIM over those without, from jobs of the same seed; ERM is tuned over three rates, not two."""
    ratios: list[float] = []
    for own in rows.values():
        seconds = own.groupby(["variant", "seed"])["seconds"].first()
        for name in OBJECTIVES:
            ratios += (seconds[name + SIM] / (seconds[name] * 2 / (3 if name == REFERENCE else 2))).dropna().tolist()
    return f"{mean(ratios):.1f}"


def linear_table(rows: pd.DataFrame) -> Lines:
    for name, own in rows.groupby("set", sort=False):
        is_mixed = own["left_out"] == "mixed"
        left_out = ", ".join(f"{row.left_out} {row.balanced_accuracy:.2f}" for row in own[~is_mixed].itertuples())
        yield [SETS[name][0], f"{mean(own.loc[is_mixed, 'balanced_accuracy']):.2f}", left_out]


def by_set(rows: Rows, table: Callable[[pd.DataFrame], str]) -> str:
    return sections({SETS[name][0]: table(own) for name, own in rows.items()})


def of_way(rows: pd.DataFrame, way: str, column: str = "unseen") -> pd.Series:
    """A number by domain and seed."""
    return of_variant(rows, way, column, TRAINING)


def over(rows: pd.DataFrame, way: str, other: str) -> list[float]:
    """Difference to another way in each domain, a mean over the seeds that both have."""
    return means(gaps(rows, way, other, "unseen", TRAINING), ["domain"])


def results_table(rows: pd.DataFrame) -> str:
    lines = []
    for way, title in WAYS.items():
        unseen = of_way(rows, way)
        by_domain = unseen.groupby(level="domain").mean()
        gap = (of_way(rows, way, "seen") - unseen).dropna().groupby(level="domain").mean()
        cells = [f"{by_domain.mean():.3f}", f"{by_domain.min():.3f} ({by_domain.idxmin()})", signed(difference(gap))]
        to_erm = "" if way == REFERENCE else signed(difference(over(rows, way, REFERENCE)))
        to_self = signed(difference(over(rows, way, way.removesuffix(SIM)))) if way.endswith(SIM) else ""
        lines.append([title, unseen.index.get_level_values("seed").nunique(), *cells, to_erm, to_self])
    return markdown(["Way", "Seeds", "Unseen, mean", "Worst", "Gap to seen", "− ERM", "− without ρSIM"], lines)


def domain_table(rows: pd.DataFrame) -> str:
    names = sorted(rows["domain"].unique(), key=natural_key)
    found = rows.pivot_table("unseen", "variant", "domain")
    lines = [[title, *(f"{found.loc[way, name]:.3f}" for name in names)] for way, title in WAYS.items()]
    return markdown(["Way", *names], lines)


def comparisons(rows: pd.DataFrame) -> list[tuple[str, Difference]]:
    """Each way less ERM, and each with ρSIM less the same without it, where there are numbers; none twice."""
    pairs = [(way, REFERENCE) for way in WAYS if way != REFERENCE]
    pairs += [(f"{name}{SIM}", name) for name in OBJECTIVES if name != REFERENCE]
    return [(f"{WAYS[first]} − {WAYS[second]}", difference(over(rows, first, second))) for first, second in pairs]


def verdicts(rows: Rows) -> str:
    """What the rule says of each set."""
    lines = []
    for (title, column), own in ((SETS[name], own) for name, own in rows.items()):
        shift = difference((of_way(own, REFERENCE, "seen") - of_way(own, REFERENCE)).groupby(level="domain").mean())
        said = "a real shift" if shift.low > 0 else "no shift is shown"
        lines.append(f"- **{title}: {said}.** Gap of ERM {signed(shift)} over {column}.")
        found = comparisons(own)
        decided = [f"{pair} {signed(each)}" for pair, each in found if each.excludes_0]
        count = f"Of {len(found)} differences {len(decided)} {'has' if len(decided) == 1 else 'have'} an interval without 0"
        listed = f": {'; '.join(decided)}. By chance alone one in twenty would" if decided else ", so nothing is decided"
        lines.append(f"- {title}: {count}{listed}.")
    return "\n".join(lines)


def published_table() -> Lines:
    """Means of Table 5, and differences over the domains of Table 12."""
    for way, values in ((name + end, each) for name, both in TABLE_12.items() for end, each in zip(("", SIM), both, strict=True)):
        to_erm, to_self = (
            signed(difference(a - b for a, b in zip(values, TABLE_12[other][0], strict=True)), 2)
            for other in (REFERENCE, way.removesuffix(SIM))
        )
        cells = ["" if way == REFERENCE else to_erm, to_self if way.endswith(SIM) else ""]
        yield [WAYS[way], f"{mean(values[:4]):.2f}", f"{mean(values[4:]):.2f}", *cells]


def beside(rows: Rows) -> Lines:
    """ρSIM over the same without it, published and here, in points."""
    for name, title in OBJECTIVES.items():
        there = "not in it"
        if name in TABLE_12:
            there = signed(difference(b - a for a, b in zip(*TABLE_12[name], strict=True)), 2)
        here = [signed(difference(100 * gap for gap in over(own, name + SIM, name)), 2) for own in rows.values()]
        yield [title, there, *here]


def causes(rows: Rows) -> str:
    """What the tables themselves say of it: spread, what val picked, and how well each way fits domains that it saw."""
    facts = pd.DataFrame({
        title: facts_of_set(rows[name]) for name, (title, _) in SETS.items()
    })  # fmt: skip
    return markdown(["", *facts], [[fact, *cells] for fact, cells in facts.iterrows()])


def facts_of_set(own: pd.DataFrame) -> pd.Series:
    reference = own[own["variant"] == REFERENCE].groupby("domain")["unseen"]
    seen = {title: of_way(own, way, "seen") for way, title in WAYS.items()}
    return pd.Series({
        "Standard deviation of ERM between domains": f"{reference.mean().std():.3f}",
        "Between seeds of one domain": f"{reference.std().mean():.3f}",
        "Trainings where val picked the lowest learning rate": f"{mean(own['learning_rate'] == own['learning_rate'].min()):.0%}",
        "Where it picked an epoch of the last tenth": f"{mean(own['best_epoch'] >= 0.9 * own['best_epoch'].max()):.0%}",
        **{f"On seen domains: {title}": f"{mean(values):.3f}" for title, values in seen.items()},
    })  # fmt: skip


def draw_differences(path: Path, rows: Rows) -> None:
    """Each way less ERM, by set."""
    ways = [way for way in WAYS if way != REFERENCE]
    with figure(path, (7.2, 2.9), "domains") as drawn:
        panels = drawn.subplots(1, len(rows), squeeze=False, sharey=True)[0]
        for axes, (name, own) in zip(panels, rows.items(), strict=True):
            axes.axvline(0, color="#888888", linewidth=0.8)
            for place, way in enumerate(ways):
                draw_way(axes, place, COLOURS[way.removesuffix(SIM)], over(own, way, REFERENCE), filled=way.endswith(SIM))
            axes.set(title=SETS[name][0], xlabel="Balanced accuracy − ERM")
            axes.set_yticks(range(len(ways)), [WAYS[way] for way in ways])
            axes.spines[["top", "right"]].set_visible(False)
        panels[0].set_ylim(len(ways) - 0.4, -0.6)


def draw_way(axes: Axes, place: int, colour: str, values: list[float], *, filled: bool) -> None:
    found = difference(values)
    axes.plot(values, [place + 0.22] * len(values), "|", color=colour, alpha=0.45, markersize=5)
    axes.errorbar(
        [found.mean], [place], xerr=[[found.mean - found.low], [found.high - found.mean]], fmt="o", color=colour, markersize=4.5,
        markerfacecolor=colour if filled else "white", elinewidth=1.2, capsize=2,
    )  # fmt: skip
