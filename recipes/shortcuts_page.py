"""docs/results/shortcuts.md, from the rows of recipes/shortcuts.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from shortcuts_planted_page import planted_section

Row = dict[str, str]
OUTCOMES = ("relies", "passes", "undecided", "undetectable", "untrained", "impossible")
HEAD = """# Which networks lean on which artefact

Written by `recipes/shortcuts.py`; do not edit. Quick mode: logistic regression on frozen features, trained where a share of the
positives carries an artefact (0, 0.1, 0.2, 0.5, 0.8, 1), in five folds, and tested on one test part where the artefact goes
with the class (i.i.d.) and where it goes against it (o.o.d.). SRI is the area between both, less that at share 0: 0 is no
reliance, 0.725 a model that sees nothing but the artefact. An outcome needs both intervals of 95 %, over folds and over
patients: *relies* above 0 and not below 0.05, *passes* below 0.05. *Not assessable* is an artefact that a probe does not see
in the features (AUC below 0.6), letters below six pixels, or a network that learned nothing (clean AUC below 0.55); it is no
pass.

The class in question is malignant (BUSI; frames that look alike are one group), tumour (brain MRI; slices that look alike
are one group) or melanoma (HAM10000, by lesion). Every artefact has its options behind its name; those of the thesis come
first. No set here is of computed tomograms, so that photon noise of projections is
[shown on others](frequency.md#projection-noise-on-computed-tomograms). The rows, with all intervals, are in
[shortcuts/](shortcuts/); {count} are there.
"""


RETRACTED = """
## Retracted

**What trained models were called.** Until 26 November 2026 `crossgraft audit RUN` said that a model *relies on* an artefact as
soon as the AUC was surely lower where the artefact goes against the class. The cause of the error: that happens with every edit
that moves answers, whether or not the model ever saw it go with a class. Such a model is *sensitive* now; it *relies* only where
that may cost 0.05 or more and the artefact pulls answers more than heads on the network that it started from, and than shams.
What this page says of sweeps stays: there the share 0 is the sound classifier of the same images, and is subtracted. It says what
classifiers *come* to rely on where an artefact goes with the class, and nothing of a network as it is.
"""


def write_page(path: Path, sets: Sequence[tuple[str, Sequence[Row]]], planted: Sequence[Row]) -> None:
    """The whole page; ``planted`` are the rows of ``shortcuts_planted``."""
    parts = [HEAD.format(count=sum(len(rows) for _, rows in sets))]
    for title, rows in sets:
        if rows:
            missing = [name for name in _artefacts([row for _, each in sets for row in each]) if name not in _artefacts(rows)]
            left_out = f"\nNot measured here yet: {', '.join(missing)}.\n" if missing else ""
            parts += [f"\n## {title}\n\n", *_confounders(rows), left_out, _cut_off(rows), "\n", *_networks(rows)]
    parts += [_findings(sets), planted_section(planted), RETRACTED]
    path.write_text("".join(parts), encoding="utf-8")


def _artefacts(rows: Sequence[Row]) -> list[str]:
    """Artefacts with their options, each once."""
    return list(dict.fromkeys(f"{row['confounder']}:{row['options']}" for row in rows))


def _confounders(rows: Sequence[Row]) -> list[str]:
    """One line per artefact and strength, over the networks."""
    lines = [
        "| artefact | rms, grey levels | relies | passes | undecided | not assessable | median SRI | largest SRI |\n",
        "|---|---|---|---|---|---|---|---|\n",
    ]
    for name, options in dict.fromkeys((row["confounder"], row["options"]) for row in rows):
        of_it = [row for row in rows if (row["confounder"], row["options"]) == (name, options)]
        counts = Counter(row["outcome"] for row in of_it)
        blind = sum(counts[each] for each in OUTCOMES[3:])
        values = sorted(float(row["sri"]) for row in _assessed(of_it))
        shown = ["–", "–"] if not values else [f"{median(values):.3f}", f"{values[-1]:.3f}"]
        rms = f"{float(of_it[0]['rms']):.2f}" if of_it[0]["rms"] else "–"
        told = [f"{name}:{options}", rms, *(str(counts[each]) for each in OUTCOMES[:3]), str(blind), *shown]
        lines.append(f"| {' | '.join(told)} |\n")
    return lines


def _cut_off(rows: Sequence[Row]) -> str:
    """Artefacts that no pixel of some inputs shows: what lies along an edge is cut off by the central crop."""
    lost: dict[str, int] = {}
    for row in rows:
        if row["input_rms"] and float(row["input_rms"]) == 0:
            name = f"{row['confounder']}:{row['options']}"
            lost[name] = lost.get(name, 0) + 1
    if not lost:
        return ""
    several = ", ".join(f"{name} ({number} networks)" for name, number in lost.items())
    return f"\nCut off by the central crop before it reaches the network, and so never seen: {several}.\n"


def _networks(rows: Sequence[Row]) -> list[str]:
    """One line per network, over the artefacts that can be assessed."""
    lines = ["| network | clean AUC | relies on | of | mean SRI |\n", "|---|---|---|---|---|\n"]
    for network in dict.fromkeys(row["network"] for row in rows):
        of_it = [row for row in rows if row["network"] == network]
        known = _assessed(of_it)
        clean = next((f"{float(row['clean_auc']):.3f}" for row in of_it if row["clean_auc"]), "–")
        mean = f"{sum(float(row['sri']) for row in known) / len(known):.3f}" if known else "–"
        relies = sum(row["outcome"] == "relies" for row in known)
        lines.append(f"| {network} | {clean} | {relies} | {len(known)} | {mean} |\n")
    lines.append(
        "\nThe mean is over what can be assessed, which differs from network to network: compare single artefacts, in the rows.\n"
    )
    return lines


def _findings(sets: Sequence[tuple[str, Sequence[Row]]]) -> str:
    every = [row for _, rows in sets for row in rows]
    known = _assessed(every)
    if not known:
        return ""
    relies = sum(row["outcome"] == "relies" for row in known)
    found = [_of_set(title, rows) for title, rows in sets if _assessed(rows)]
    return f"""
## What this says

Of {len(every)} combinations {len(known)} can be assessed, and in {relies} of these the classifier relies on the artefact.

{"".join(found)}
This is what classifiers on frozen features do. Fine-tuning moves features towards what tells the classes apart, and may find an
artefact that a probe does not see: [five sources of one network](shortcut_sources.md) are compared in full mode. An artefact that
is drawn stands for itself alone; nothing here says how often the real ones go with a disease.
"""


def _of_set(title: str, rows: Sequence[Row]) -> str:
    """One item: how many rely, and whether the stronger of two strengths is relied on more."""
    known = _assessed(rows)
    relies = sum(row["outcome"] == "relies" for row in known)
    compared, stronger = 0, 0
    for name in dict.fromkeys(row["confounder"] for row in rows):
        options = list(dict.fromkeys(row["options"] for row in rows if row["confounder"] == name))
        of_it = [(row["options"], float(row["sri"])) for row in known if row["confounder"] == name]
        of_both = [[sri for strength, sri in of_it if strength == each] for each in options]
        if len(of_both) == 2 and all(of_both):
            compared += 1
            stronger += median(of_both[1]) > median(of_both[0])
    said = f"- **{title}**: {relies} of {len(known)} that can be assessed rely, of {len(rows)}."
    if compared:
        said += f" The stronger of two strengths has the larger median SRI for {stronger} of {compared} artefacts."
    return said + "\n"


def _assessed(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["outcome"] in OUTCOMES[:3] and row["sri"]]
