"""What docs/results/shortcuts.md says of artefacts that networks lean on, and of classifiers with and without a planted one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import median

import pandas as pd
from scipy.stats import binomtest
from tables import Lines, body, body_of, interval, markdown, number, read_csv, typeset

from crossgraft.audit.outcomes import UNCHANGED as ENOUGH
from crossgraft.audit.trained import LARGEST_DROP
from crossgraft.audit.words import OUTCOMES

SETS = {"busi": "BUSI", "brain": "Brain MRI", "ham10000": "HAM10000"}
PLANTED = {
    "ham10000_nevus": "HAM10000, nevus",
    "busi_benign": "BUSI, benign",
    "medical_mnist": "Medical MNIST, chest X-ray",
    "ham10000_melanoma": "HAM10000, melanoma",
    "busi_malignant": "BUSI, malignant",
}
TRAININGS = {"linear": "Linear heads", "full": "Fine-tunings"}
ASSESSED, BLIND = ["relies", "passes", "undecided"], ["undetectable", "untrained", "impossible"]
READ_FROM = ["features before fine-tuning", "features after fine-tuning", "random weights", "pixels", "class alone"]
ARTEFACTS = ("artefact", "rms, grey levels", *ASSESSED, "not assessable", "median SRI", "largest SRI")
OF_PLANTED = ("set", "planted", "classifiers", "relies, 95 % interval", "harmed", "of these relies", "before", "sensitive",
              "passes", "undecided", "not assessable")  # fmt: skip


def fields(results: Path, figures: Path) -> dict[str, str]:
    sets = {name: read_reliance(results, name) for name in SETS}
    every, planted = pd.concat(sets.values()), read_csv(results / "shortcuts" / "planted.csv")
    known = assessed(every)
    return {
        "count": str(len(every)),
        "sets": "".join(f"\n## {SETS[name]}\n\n{of_set(rows)}" for name, rows in sets.items()),
        "assessed": str(len(known)),
        "relies": str((known["outcome"] == "relies").sum()),
        "findings": "\n".join(finding(SETS[name], rows) for name, rows in sets.items()),
        "networks": ", ".join(dict.fromkeys(name.split()[0] for name in planted["network"])),
        "limit": f"{LARGEST_DROP:g}",
        "levels": levels(read_csv(results / "shortcuts" / "noise.csv")),
        "readable": body(readable(read_csv(results / "shortcuts" / "readable.csv"))),
        "planted": "".join(of_training(title, planted[planted["training"] == kind]) for kind, title in TRAININGS.items()),
    }


def levels(rows: pd.DataFrame) -> str:
    """Noise against none and against less noise, network by network."""
    against = rows["confounder"].str.contains(" against ").map({True: "less noise", False: "none"})
    shown = {name: rows[name].map(lambda value: number(value, ".3f")) for name in ("patients_low", "patients_high")}
    shown |= {"network": rows["model"].str.split().str[0], "against": against, "outcome": rows["outcome"].map(OUTCOMES)}
    return body_of(
        rows.assign(**shown, seen=rows["detectability"].map(lambda value: number(value, ".2f"))),
        *(
            "{network}",
            "{against}",
            "{sri:.3f} [{sri_low:.3f}, {sri_high:.3f}]",
            "[{patients_low}, {patients_high}]",
            "{outcome}",
        ),
        *("{ood:.3f} [{ood_low:.3f}, {ood_high:.3f}]", "{seen}"),
    )


def readable(rows: pd.DataFrame) -> Lines:
    """AUC of probes, attribute by attribute, of the network before and after fine-tuning and of what nobody trained."""
    for (attribute, network), of in rows.groupby(["attribute", "model"], sort=False):
        for _, row in of.sort_values("features", key=lambda names: names.map(READ_FROM.index), kind="stable").iterrows():
            gaps = [
                "–"
                if pd.isna(row[name])
                else typeset(f"{row[name]:+.3f} {interval(row[f'{name}_low'], row[f'{name}_high'], '+.3f')}")
                for name in ("random", "alone")
            ]
            area = f"{row['auc']:.3f} {interval(row['low'], row['high'])}"
            yield [network.split()[0], attribute, row["features"], area, *gaps]


def read_reliance(results: Path, name: str) -> pd.DataFrame:
    """Rows of one set, with each artefact and its options in one column."""
    rows = read_csv(results / "shortcuts" / f"{name}.csv")
    return rows.assign(artefact=rows["confounder"] + ":" + rows["options"])


def assessed(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["outcome"].isin(ASSESSED) & rows["sri"].notna()]


def of_set(rows: pd.DataFrame) -> str:
    """One line per artefact over the networks, and one per network over the artefacts that can be assessed."""
    artefacts, networks = [], []
    for name, of in rows.groupby("artefact", sort=False):
        counts, values = Counter(of["outcome"]), assessed(of)["sri"]
        blind = sum(counts[each] for each in BLIND)
        shown = [f"{median(values):.3f}", f"{values.max():.3f}"] if len(values) else ["–", "–"]
        artefacts.append([name, number(of["rms"].iloc[0], ".2f"), *(counts[each] for each in ASSESSED), blind, *shown])
    for name, of in rows.groupby("network", sort=False):
        known, clean = assessed(of), of["clean_auc"].dropna()
        mean = f"{sum(known['sri']) / len(known):.3f}" if len(known) else "–"
        relies = (known["outcome"] == "relies").sum()
        networks.append([name, number(clean.iloc[0], ".3f") if len(clean) else "–", relies, len(known), mean])
    lost = rows[rows["input_rms"] == 0]["artefact"].value_counts(sort=False)
    several = ", ".join(f"{name} ({count} networks)" for name, count in lost.items())
    cut_off = f"\nCut off by the central crop before it reaches the network, and so never seen: {several}.\n" if several else ""
    return (
        f"{markdown(ARTEFACTS, artefacts)}\n{cut_off}\n"
        f"{markdown(['network', 'clean AUC', 'relies on', 'of', 'mean SRI'], networks)}\n\n"
        "The mean is over what can be assessed, which differs from network to network: compare single artefacts, in the rows.\n"
    )


def finding(title: str, rows: pd.DataFrame) -> str:
    """How many rely, and whether the stronger of two strengths is relied on more."""
    known = assessed(rows)
    compared = stronger = 0
    for _, of in rows.groupby("confounder", sort=False):
        medians = [known[known["artefact"] == name]["sri"].median() for name in dict.fromkeys(of["artefact"])]
        if len(medians) == 2 and not any(map(pd.isna, medians)):
            compared, stronger = compared + 1, stronger + (medians[1] > medians[0])
    return (
        f"- **{title}**: {(known['outcome'] == 'relies').sum()} of {len(known)} that can be assessed rely, of {len(rows)}. The "
        f"stronger of two strengths has the larger median SRI for {stronger} of {compared} artefacts."
    )


def of_training(title: str, rows: pd.DataFrame) -> str:
    """Sound and planted classifiers of one kind, in words and as a table."""
    sound = rows[rows["share"] == 0]
    planted = rows[(rows["share"] != 0) & (rows["outcome"] != "undetectable")]
    enough, few = planted[planted["patients"] >= ENOUGH], planted[planted["patients"] < ENOUGH]
    lines = [
        [PLANTED[name], f"{share:g}", *line(of)] for name in PLANTED for share, of in rows[rows["set"] == name].groupby("share")
    ]
    return (
        f"\n**{title}.** Of {len(sound)} sound classifiers {proportion(sound['outcome'])} are said to rely on the letter; by the "
        f"earlier rule {proportion(sound['old_outcome'].dropna())}. Of planted ones, where the test part has the {ENOUGH} "
        f"patients of each class that `audit --plan` asks for, {of_harmed(enough)}"
        f"{f'; with fewer patients, {of_harmed(few)}' if len(few) else ''}.\n\n{markdown(OF_PLANTED, lines)}\n"
    )


def line(rows: pd.DataFrame) -> list[object]:
    counts = Counter(rows["outcome"])
    harmed = rows[rows["drop"] >= LARGEST_DROP]["outcome"]
    blind = sum(counts[each] for each in BLIND)
    found = [len(rows), proportion(rows["outcome"]), len(harmed), (harmed == "relies").sum()]
    return [*found, proportion(rows["old_outcome"].dropna()), *(counts[each] for each in ("sensitive", *ASSESSED[1:])), blind]


def proportion(outcomes: pd.Series) -> str:
    """Of those that are said to rely, with Wilson's interval."""
    if not len(outcomes):
        return "–"
    number_of = int((outcomes == "relies").sum())
    low, high = binomtest(number_of, len(outcomes)).proportion_ci(method="wilson")
    return f"{number_of / len(outcomes):.0%} [{low:.0%}, {high:.0%}]"


def of_harmed(rows: pd.DataFrame) -> str:
    is_harmed = rows["drop"] >= LARGEST_DROP
    harmed, others = rows[is_harmed]["outcome"], rows[~is_harmed]["outcome"]
    said = f"{proportion(harmed)} of the {len(harmed)} that are harmed are found"
    return f"{said}, and {(others == 'relies').sum()} of the {len(others)} that are not" if len(others) else said
