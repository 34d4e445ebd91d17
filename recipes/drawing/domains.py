"""What docs/results/domains.md says of its tables: domains that training never saw, by objective, without and with ρSIM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from tables import Difference, difference, markdown, mean, read_csv, sections, signed

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
SEEDS = 3
DOMAINS_PUBLISHED = ("P", "A", "C", "S", "L100", "L38", "L43", "L46")
TABLE_12 = {
    # accuracy, %, on the unseen domain, as in DOMAINS_PUBLISHED; without and with ρSIM (SIM, Table 12; its means are Table 5)
    "erm": ((97.01, 87.74, 79.61, 77.12, 41.16, 55.65, 38.97, 51.79), (97.54, 88.87, 82.3, 81.7, 44.27, 57.36, 40.51, 49.78)),
    "irm": ((97.49, 88.96, 82.5, 76.05, 46.31, 59.75, 44.59, 50.09), (97.96, 89.79, 81.57, 80.43, 48.32, 59.63, 42.06, 52.82)),
    "vrex": ((97.37, 87.16, 81.48, 82.62, 46.27, 58.46, 40.95, 51.77), (97.54, 89.06, 81.57, 81.04, 42.9, 58.73, 44.12, 54.17)),
    "mixstyle": ((94.97, 87.06, 79.74, 82.31, 43.36, 56.32, 32.6, 54.97), (95.75, 86.91, 81.4, 83.3, 42.99, 54.35, 36.56, 54.46)),
}
COLOURS = {"erm": "#000000", "irm": "#0072B2", "vrex": "#D55E00", "group_dro": "#009E73", "mixstyle": "#CC79A7"}
"""Safe for the colour-blind; the ways also stand on lines of their own."""

Rows = Mapping[str, pd.DataFrame]
"""Set → one row a network: way, seed and the domain that was left out."""


def fields(results: Path, figures: Path) -> dict[str, str]:
    rows = {name: of_known_ways(read_csv(results / "domains" / f"{name}.csv")) for name in SETS}
    draw_differences(figures / "differences.svg", rows)
    return {
        "state": state(rows),
        "seconds": seconds_told(rows),
        "linear": linear_table(read_csv(results / "domains" / "linear.csv")),
        "results": by_set(rows, results_table),
        "verdicts": verdicts(rows),
        "by_domain": by_set(rows, domain_table),
        "published": published_table(),
        "beside": beside(rows),
        "causes": causes(rows),
    }


def of_known_ways(rows: pd.DataFrame) -> pd.DataFrame:
    """Only jobs in which every domain was left out and has a number."""
    rows = rows[rows["variant"].isin(WAYS)].dropna(subset=["unseen"])
    complete = rows.groupby(["variant", "seed"])["domain"].transform("nunique") == rows["domain"].nunique()
    return rows[complete]


def jobs(rows: pd.DataFrame) -> int:
    return len(rows[["variant", "seed"]].drop_duplicates())


def state(rows: Rows) -> str:
    """How much of the study there is."""
    done, every = sum(map(jobs, rows.values())), len(SETS) * len(WAYS) * SEEDS
    by_name = ", ".join(f"{SETS[name][0]} {jobs(own)} of {len(WAYS) * SEEDS}" for name, own in rows.items())
    if done == every:
        return f"All {every} jobs (sets × ways × seeds) are done."
    return (
        f"**{done} of {every} jobs (sets × ways × seeds) are done**: {by_name}. What is missing is missing below; the same "
        "commands go on with it."
    )


def seconds_told(rows: Rows) -> str:
    """Seconds of a training with ρSIM over those without, from jobs of the same seed."""
    ratios = [
        float(with_sim / (without * 2 / points))
        for own in rows.values()
        for name in OBJECTIVES
        for points in [3 if name == REFERENCE else 2]
        for seed in own["seed"].unique()
        for without in own.loc[(own["variant"] == name) & (own["seed"] == seed), "seconds"].head(1)
        for with_sim in own.loc[(own["variant"] == name + SIM) & (own["seed"] == seed), "seconds"].head(1)
    ]
    return (
        "not measured yet"
        if not ratios
        else f"{mean(ratios):.1f} times the seconds of a training here, on a machine that had other work"
    )


def linear_table(rows: pd.DataFrame) -> str:
    lines: list[list[str]] = []
    for name, own in rows.groupby("set", sort=False):
        is_mixed = own["left_out"] == "mixed"
        lines.append([SETS[name][0], f"{mean(own.loc[is_mixed, 'balanced_accuracy']):.2f}", of_domains(own[~is_mixed])])
    return markdown(["Set", "Mixed", "On a domain that was left out"], lines)


def of_domains(own: pd.DataFrame) -> str:
    return ", ".join(f"{row.left_out} {row.balanced_accuracy:.2f}" for row in own.itertuples())


def by_set(rows: Rows, table: object) -> str:
    return sections({SETS[name][0]: table(own) if len(own) else "No job is done yet." for name, own in rows.items()})


def of_way(rows: pd.DataFrame, way: str, column: str = "unseen") -> pd.Series:
    """A number by domain and seed."""
    return rows[rows["variant"] == way].set_index(["domain", "seed"])[column].dropna()


def over(rows: pd.DataFrame, way: str, other: str) -> list[float]:
    """Difference to another way in each domain, a mean over the seeds that both have."""
    gaps = (of_way(rows, way) - of_way(rows, other)).dropna()
    return [mean(group) for _, group in gaps.groupby(level="domain")]


def results_table(rows: pd.DataFrame) -> str:
    lines = []
    for way, title in WAYS.items():
        unseen = of_way(rows, way)
        if unseen.empty:
            lines.append([title, *["–"] * 6])
            continue
        by_domain = unseen.groupby(level="domain").mean()
        gap = (of_way(rows, way, "seen") - unseen).dropna().groupby(level="domain").mean()
        lines.append([
            title,
            unseen.index.get_level_values("seed").nunique(),
            f"{by_domain.mean():.3f}",
            f"{by_domain.min():.3f} ({by_domain.idxmin()})",
            signed(difference(gap)),
            "" if way == REFERENCE else signed(difference(over(rows, way, REFERENCE))),
            signed(difference(over(rows, way, way.removesuffix(SIM)))) if way.endswith(SIM) else "",
        ])  # fmt: skip
    return markdown(["Way", "Seeds", "Unseen, mean", "Worst", "Gap to seen", "− ERM", "− without ρSIM"], lines)


def domain_table(rows: pd.DataFrame) -> str:
    names = sorted(rows["domain"].unique(), key=natural_key)
    lines = []
    for way, title in WAYS.items():
        own = of_way(rows, way).groupby(level="domain").mean()
        if len(own):
            lines.append([title, *(f"{own[name]:.3f}" for name in names)])
    return markdown(["Way", *names], lines)


def comparisons(rows: pd.DataFrame) -> list[tuple[str, Difference]]:
    """Each way less ERM, and each with ρSIM less the same without it, where there are numbers; none twice."""
    pairs = [(way, REFERENCE) for way in WAYS if way != REFERENCE]
    pairs += [(f"{name}{SIM}", name) for name in OBJECTIVES if name != REFERENCE]
    found = [(f"{WAYS[first]} − {WAYS[second]}", difference(over(rows, first, second))) for first, second in pairs]
    return [(title, each) for title, each in found if each is not None]


def verdicts(rows: Rows) -> str:
    """What the rule says of each set."""
    lines = []
    for name, own in rows.items():
        if own.empty:
            continue
        title, column = SETS[name]
        shift = difference((of_way(own, REFERENCE, "seen") - of_way(own, REFERENCE)).groupby(level="domain").mean())
        if shift is not None:
            said = "a real shift" if shift.low > 0 else "no shift is shown"
            lines.append(f"- **{title}: {said}.** Gap of ERM {signed(shift)} over {column}.")
        found = comparisons(own)
        decided = [f"{pair} {signed(each)}" for pair, each in found if each.excludes_0]
        if not found:
            continue
        count = f"Of {len(found)} differences {len(decided)} {'has' if len(decided) == 1 else 'have'} an interval without 0"
        listed = f": {'; '.join(decided)}. By chance alone one in twenty would" if decided else ", so nothing is decided"
        lines.append(f"- {title}: {count}{listed}.")
    return "\n".join(lines) if lines else "Nothing is measured yet."


def published_table() -> str:
    """Means of Table 5, and differences over the domains of Table 12."""
    lines = []
    for name, both in TABLE_12.items():
        for end, values in zip(("", SIM), both, strict=True):
            pacs, terra = mean(values[:4]), mean(values[4:])
            to_erm = [a - b for a, b in zip(values, TABLE_12[REFERENCE][0], strict=True)]
            to_self = [a - b for a, b in zip(values, both[0], strict=True)]
            lines.append([
                WAYS[name + end],
                f"{pacs:.2f}",
                f"{terra:.2f}",
                "" if name + end == REFERENCE else signed(difference(to_erm), 2),
                signed(difference(to_self), 2) if end else "",
            ])  # fmt: skip
    return markdown(["Way", "PACS", "TerraIncognita", "− ERM, points", "− without ρSIM, points"], lines)


def beside(rows: Rows) -> str:
    """ρSIM over the same without it, published and here, in points."""
    lines = []
    for name, title in OBJECTIVES.items():
        there = "not in it"
        if name in TABLE_12:
            first, second = TABLE_12[name]
            there = signed(difference(b - a for a, b in zip(first, second, strict=True)), 2)
        here = [signed(in_points(difference(over(own, name + SIM, name))), 2) for own in rows.values()]
        lines.append([title, there, *here])
    head = ["ρSIM − without it, points", "SIM, Table 12", *(title for title, _ in SETS.values())]
    return markdown(head, lines)


def in_points(found: Difference | None) -> Difference | None:
    return None if found is None else found._replace(mean=100 * found.mean, low=100 * found.low, high=100 * found.high)


def causes(rows: Rows) -> str:
    """What the tables themselves say of it: spread, what val picked, and how well each way fits domains that it saw."""
    facts = {
        title: facts_of_set(rows[name])
        for name, (title, _) in SETS.items()
        if name in rows and len(of_way(rows[name], REFERENCE))
    }
    sets = list(facts)
    return markdown(
        ["", *sets], [[fact, *(facts[title].get(fact, "") for title in sets)] for fact in next(iter(facts.values()), {})]
    )


def facts_of_set(own: pd.DataFrame) -> dict[str, str]:
    reference = own[own["variant"] == REFERENCE].groupby("domain")["unseen"]
    seen = {title: of_way(own, way, "seen") for way, title in WAYS.items()}
    return {
        "Standard deviation of ERM between domains": f"{reference.mean().std():.3f}",
        "Between seeds of one domain": f"{reference.std().mean():.3f}",
        "Trainings where val picked the lowest learning rate": f"{mean(own['learning_rate'] == own['learning_rate'].min()):.0%}",
        "Where it picked an epoch of the last tenth": f"{mean(own['best_epoch'] >= 0.9 * own['best_epoch'].max()):.0%}",
        **{f"On seen domains: {title}": f"{mean(values):.3f}" for title, values in seen.items() if len(values)},
    }


def draw_differences(path: Path, rows: Rows) -> None:
    """Each way less ERM, by set; an SVG, the same bytes from the same rows."""
    shown = {name: own for name, own in rows.items() if len(own)}
    ways = [way for way in WAYS if way != REFERENCE]
    with mpl.rc_context({"svg.hashsalt": "domains", "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=(7.2, 2.9), layout="constrained")
        panels = figure.subplots(1, max(1, len(shown)), squeeze=False, sharey=True)[0]
        for axes, (name, own) in zip(panels, shown.items(), strict=False):
            axes.axvline(0, color="#888888", linewidth=0.8)
            for place, way in enumerate(ways):
                draw_way(axes, place, COLOURS[way.removesuffix(SIM)], over(own, way, REFERENCE), filled=way.endswith(SIM))
            axes.set(title=SETS[name][0], xlabel="Balanced accuracy − ERM")
            axes.set_yticks(range(len(ways)), [WAYS[way] for way in ways])
            axes.spines[["top", "right"]].set_visible(False)
        panels[0].set_ylim(len(ways) - 0.4, -0.6)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def draw_way(axes: object, place: int, colour: str, values: Sequence[float], *, filled: bool) -> None:
    found = difference(values)
    if found is None:
        return
    axes.plot(values, [place + 0.22] * len(values), "|", color=colour, alpha=0.45, markersize=5)
    axes.errorbar(
        [found.mean], [place], xerr=[[found.mean - found.low], [found.high - found.mean]], fmt="o", color=colour, markersize=4.5,
        markerfacecolor=colour if filled else "white", elinewidth=1.2, capsize=2,
    )  # fmt: skip
