"""The section of docs/results/shortcuts.md on sound and planted classifiers, from the rows of recipes/shortcuts_planted.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scipy.stats import binomtest

from crossgraft.audit.needed import UNCHANGED as ENOUGH

Row = dict[str, str]
TITLES = {"ham10000": "HAM10000, melanoma", "busi": "BUSI, malignant", "medical_mnist": "Medical MNIST, chest X-ray"}
HEAD = """
## Sound classifiers, and planted tags

Written from `planted.csv` of `recipes/shortcuts_planted.py`. None, half or all of the training positives get a letter
(`tag:0.125`), a classifier is trained, and `crossgraft audit` judges it on clean held-out images: {networks}. Linear heads are
logistic regressions with five strengths of penalty, which the rule is not told, on inputs of 64 pixels; each seed has its own
split by patient. Full mode: all weights, 6 epochs at 64 pixels. The rule was [written down](../log.md#audit-sensitive-or-relies)
before these images were looked at. *Before* is what the same numbers were called by the earlier rule, by which every sure change
of the AUC was reliance; the last columns are all other verdicts.

| set | training | planted | verdicts | relies, 95 % interval | before | sensitive | passes | undecided | not assessable |
|---|---|---|---|---|---|---|---|---|---|
"""


def planted_section(rows: Sequence[Row]) -> str:
    """The section; empty without rows."""
    if not rows:
        return ""
    networks = ", ".join(dict.fromkeys(row["network"].split()[0] for row in rows))
    lines = [HEAD.format(networks=networks)]
    for name, title in TITLES.items():
        for training in ("linear", "full"):
            for share in ("0", "0.5", "1"):
                of_it = [row for row in rows if (row["set"], row["training"], row["share"]) == (name, training, share)]
                if of_it:
                    lines.append(_line(title, training, share, of_it))
    pieces = [(TITLES[name], training) for name in TITLES for training in ("linear", "full")]
    there = {(TITLES[row["set"]], row["training"]) for row in rows if row["set"] in TITLES}
    missing = [f"{title} ({training})" for title, training in pieces if (title, training) not in there]
    left_out = f"\nNot measured here yet: {'; '.join(missing)}.\n" if missing else ""
    return "".join([*lines, left_out, _said(rows)])


def _line(title: str, training: str, share: str, rows: Sequence[Row]) -> str:
    counts = Counter(row["outcome"] for row in rows)
    before = _share([row["old_outcome"] == "relies" for row in rows if row["old_outcome"]])
    blind = sum(counts[each] for each in ("undetectable", "untrained", "impossible"))
    others = " | ".join(str(counts[each]) for each in ("sensitive", "passes", "undecided"))
    found = _share([row["outcome"] == "relies" for row in rows])
    return f"| {title} | {training} | {share} | {len(rows)} | {found} | {before} | {others} | {blind} |\n"


def _share(flags: Sequence[bool]) -> str:
    """With Wilson's interval."""
    if not flags:
        return "–"
    low, high = binomtest(sum(flags), len(flags)).proportion_ci(method="wilson")
    return f"{sum(flags) / len(flags):.0%} [{low:.0%}, {high:.0%}]"


def _is_beyond_start(row: Row) -> bool:
    """Without the question of shams."""
    return float(row["start_low"]) > 0 if float(row["pull"]) >= 0 else float(row["start_high"]) < 0


def _said(rows: Sequence[Row]) -> str:
    sound = [row["outcome"] == "relies" for row in rows if row["share"] == "0"]
    old = [row["old_outcome"] == "relies" for row in rows if row["share"] == "0" and row["old_outcome"]]
    lines = [
        f"\nOf {len(sound)} sound classifiers {sum(sound)} are said to rely on the letter: {_share(sound)}. By the earlier "
        f"rule it were {sum(old)}: {_share(old)}.\n"
    ]
    for share in ("1", "0.5"):
        planted = [
            row
            for row in rows
            if row["share"] == share and row["training"] == "linear" and row["outcome"] != "undetectable"
        ]
        beyond = _share([_is_beyond_start(row) for row in planted])
        enough = [row["outcome"] == "relies" for row in planted if int(float(row["patients"])) >= ENOUGH]
        few = [row["outcome"] == "relies" for row in planted if int(float(row["patients"])) < ENOUGH]
        lines.append(
            f"\nPlanted in a share of {share}, it is found in linear heads in {_share(enough)} of {len(enough)} where the test "
            f"part has the {ENOUGH} patients of each class that `audit --plan` asks for, and in {_share(few)} of {len(few)} "
            f"below; what a probe does not see is left out. Beyond the starting network alone lie {beyond}.\n"
        )
    return "".join(lines)
