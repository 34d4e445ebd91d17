"""The section of docs/results/shortcuts.md on sound and planted classifiers, from the rows of recipes/shortcuts_planted.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scipy.stats import binomtest

from crossgraft.audit.needed import UNCHANGED as ENOUGH
from crossgraft.audit.trained import LARGEST_DROP

Row = dict[str, str]
TITLES = {
    "ham10000_nevus": "HAM10000, nevus",
    "busi_benign": "BUSI, benign",
    "medical_mnist": "Medical MNIST, chest X-ray",
    "ham10000_melanoma": "HAM10000, melanoma",
    "busi_malignant": "BUSI, malignant",
}
TRAININGS = {"linear": "Linear heads", "full": "Fine-tunings"}
HEAD = """
## Sound classifiers, and planted tags

Written from `planted.csv` of `recipes/shortcuts_planted.py`. None, half or all of the training positives get a letter of an
eighth of the image, a classifier is trained, and `crossgraft audit` judges it on clean held-out images: {networks}, inputs
of 128 pixels. Linear heads are logistic regressions with five strengths of penalty, which the rule is not told; each seed has
its own split by patient. Full mode: all weights, 6 epochs. The rule was [written down](../log.md#audit-sensitive-or-relies)
before this letter, an L at the upper right, was drawn anywhere; it was made on an R at the upper left and other seeds.

*Harmed*: the AUC falls by {limit:g} or more where the letter goes against the class. Where it falls less, a classifier may have
learned little of the letter. *Before* is what the same numbers were called by the rule until 26 November 2026, by which every
sure change of the AUC was reliance; the last columns are all other verdicts.
"""
COLUMNS = (
    *("set", "planted", "classifiers", "relies, 95 % interval", "harmed", "of these relies", "before"),
    *("sensitive", "passes", "undecided", "not assessable"),
)


def planted_section(rows: Sequence[Row]) -> str:
    """The section; empty without rows."""
    if not rows:
        return ""
    networks = ", ".join(dict.fromkeys(row["network"].split()[0] for row in rows))
    lines = [HEAD.format(networks=networks, limit=LARGEST_DROP)]
    for training, title in TRAININGS.items():
        of_it = [row for row in rows if row["training"] == training]
        lines += [_said(title, of_it), _table(of_it)] if of_it else []
    return "".join(lines)


def _table(rows: Sequence[Row]) -> str:
    lines = [f"\n| {' | '.join(COLUMNS)} |\n", "|---" * len(COLUMNS) + "|\n"]
    for name, title in TITLES.items():
        for share in ("0", "0.5", "1"):
            of_it = [row for row in rows if (row["set"], row["share"]) == (name, share)]
            lines += [_line(f"| {title} | {share} |", of_it)] if of_it else []
    return "".join(lines)


def _line(start: str, rows: Sequence[Row]) -> str:
    counts = Counter(row["outcome"] for row in rows)
    before = _share([row["old_outcome"] == "relies" for row in rows if row["old_outcome"]])
    blind = sum(counts[each] for each in ("undetectable", "untrained", "impossible"))
    others = " | ".join(str(counts[each]) for each in ("sensitive", "passes", "undecided"))
    harmed = [_relies(row) for row in rows if _is_harmed(row)]
    found = _share([_relies(row) for row in rows])
    return f"{start} {len(rows)} | {found} | {len(harmed)} | {sum(harmed)} | {before} | {others} | {blind} |\n"


def _relies(row: Row) -> bool:
    return row["outcome"] == "relies"


def _is_harmed(row: Row) -> bool:
    return row["drop"] != "" and float(row["drop"]) >= LARGEST_DROP


def _share(flags: Sequence[bool]) -> str:
    """With Wilson's interval."""
    if not flags:
        return "–"
    low, high = binomtest(sum(flags), len(flags)).proportion_ci(method="wilson")
    return f"{sum(flags) / len(flags):.0%} [{low:.0%}, {high:.0%}]"


def _said(title: str, rows: Sequence[Row]) -> str:
    sound = [row for row in rows if row["share"] == "0"]
    planted = [row for row in rows if row["share"] != "0" and row["outcome"] != "undetectable"]
    enough = [row for row in planted if int(float(row["patients"])) >= ENOUGH]
    few = [row for row in planted if int(float(row["patients"])) < ENOUGH]
    before = _share([row["old_outcome"] == "relies" for row in sound if row["old_outcome"]])
    return (
        f"\n**{title}.** Of {len(sound)} sound classifiers {_share([_relies(row) for row in sound])} are said to rely on the "
        f"letter; by the earlier rule {before}. Of planted ones, where the test part has the {ENOUGH} patients of each class "
        f"that `audit --plan` asks for, {_of_harmed(enough)}{f'; with fewer patients, {_of_harmed(few)}' if few else ''}.\n"
    )


def _of_harmed(rows: Sequence[Row]) -> str:
    harmed = [_relies(row) for row in rows if _is_harmed(row)]
    others = [_relies(row) for row in rows if not _is_harmed(row)]
    said = f"{_share(harmed)} of the {len(harmed)} that are harmed are found"
    return f"{said}, and {sum(others)} of the {len(others)} that are not" if others else said
