"""How often every interval that is printed holds the truth, in designs of few images, rare classes and few patients.

    python recipes/coverage.py                       # 2 000 draws a design, about half an hour; continues where it ended
    python recipes/coverage.py --draws 400 --of AUC  # less of it, on the screen alone

Writes ``docs/results/coverage.md`` and ``coverage.csv`` beside it. The designs are those of ``tests/intervals``, which CI draws
400 times.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
sys.path.insert(0, str(REPOSITORY / "tests"))

from intervals.coverage import Coverage, Design, coverage_of  # noqa: E402
from intervals.every_design import every_design  # noqa: E402

RESULTS = REPOSITORY / "docs" / "results"
LEAST = 0.93
_HEAD = """# Do 95 % intervals hold the truth?

```
python recipes/coverage.py
```

Every interval that crossgraft prints is tried in the designs below: images are drawn from a known distribution again and
again, and it is counted how often the interval holds the truth. {draws} draws a design; the standard error of 95 % is {error}
points. The rule, and which method is whose, were written down [before](../log.md#intervals). Intervals hold the truth in at
least {least} % of the draws of every design{worst}; statistics that jump (shares, and what is made of them) may lie above 97 %.
Draws in which the product gives no interval, because too few images or patients tell, are counted apart; there the reason
stands in its place. No interval had width 0{zero}.{rest}

*Below* and *above* are the shares of draws in which the truth lies below the interval, and above it. All numbers:
[coverage.csv](coverage.csv). A third of the designs run in CI with 400 draws each, where less than 90 % fails.
"""


def main() -> None:
    """Draw what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--of", default="", help="only designs with this in their name; writes no page")
    parser.add_argument("--page", action="store_true", help="draw nothing; the page of what is drawn so far")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "runs" / "coverage", help="what is done already")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    kept = given.folder / "draws.jsonl"
    designs = [design for design in every_design() if given.of in design.name]
    for design in [] if given.page else designs:
        if design.name not in _read(kept, given.draws):
            found = coverage_of(design, given.draws)
            row = {"design": design.name, "asked": given.draws, "coverage": found._asdict()}
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{design.name}: {_percent(found.held) if found.draws else 'no interval'}", flush=True)
    if not given.of:
        done = _read(kept, given.draws)
        write_page([(each, done[each.name]) for each in designs if each.name in done], len(designs), given.draws)


def _read(kept: Path, num_draws: int) -> dict[str, Coverage]:
    """What is drawn already."""
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.is_file() else []
    rows = [json.loads(line) for line in lines]
    return {row["design"]: Coverage(**row["coverage"]) for row in rows if row["asked"] == num_draws}


def write_page(rows: list[tuple[Design, Coverage]], num_designs: int, num_draws: int) -> None:
    """The page, and all numbers as CSV."""
    with (RESULTS / "coverage.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["quantity", "design", *Coverage._fields])
        for design, found in rows:
            numbers = [f"{value:.4f}" if isinstance(value, float) else value for value in found]
            table.writerow([design.quantity, design.words, *numbers])
    judged = [(design, found) for design, found in rows if found.draws >= num_draws / 10]
    low = [f"{design.name} ({_percent(found.held)})" for design, found in judged if found.held < LEAST]
    zero = sum(found.no_width for _, found in rows)
    lines = [
        _HEAD.format(
            draws=f"{num_draws:,}".replace(",", " "),
            error=f"{100 * (0.95 * 0.05 / num_draws) ** 0.5:.1f}",
            least=f"{100 * LEAST:.0f}",
            worst=f", except {'; '.join(low)}" if low else "",
            zero=f", except {zero}" if zero else "",
            rest=f" {num_designs - len(rows)} of {num_designs} designs are not drawn yet." if len(rows) < num_designs else "",
        )
    ]
    for quantity in dict.fromkeys(design.quantity for design, _ in rows):
        lines += [
            f"## {quantity[0].upper() + quantity[1:]}",
            "| design | held | below | above | mean width | without an interval |",
            "|---|---|---|---|---|---|",
            *(_line(design, found, num_draws) for design, found in rows if design.quantity == quantity),
            "",
        ]
    (RESULTS / "coverage.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _line(design: Design, found: Coverage, num_draws: int) -> str:
    without = _percent(found.without / num_draws) if found.without else "—"
    if found.draws < num_draws / 10:
        return f"| {design.words} | — | — | — | — | {without} |"
    shares = " | ".join(_percent(share) for share in (found.held, found.below, found.above))
    return f"| {design.words} | {shares} | {found.width:.3g} | {without} |"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


if __name__ == "__main__":
    main()
