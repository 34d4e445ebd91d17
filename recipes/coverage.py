"""How often every interval that is printed holds the truth, in designs of few images, rare classes and few patients.

    python recipes/coverage.py       # 2 000 draws of each design that docs/results/coverage.csv lacks; half an hour for all

Delete the lines of designs that are to be drawn again. The designs are those of ``tests/intervals``, which CI draws 400 times.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from tables import read_csv

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from intervals.coverage import Coverage, coverage_of  # noqa: E402
from intervals.every_design import every_design  # noqa: E402

TABLE = ROOT / "docs" / "results" / "coverage.csv"
DRAWS = 2000


def main() -> None:
    """Draw what is missing; a line is written as soon as it is there."""
    designs = {(design.quantity, design.words): design for design in every_design()}
    known = read_csv(TABLE).set_index(["quantity", "design"])
    for key, design in designs.items():
        if key not in known.index:
            found = coverage_of(design, DRAWS)
            known.loc[key, :] = [found._asdict()[name] for name in Coverage._fields]
            in_order = known.reindex([each for each in designs if each in known.index])
            whole = in_order.astype({"draws": int, "without": int, "no_width": int}).reset_index()
            pd.DataFrame(whole).to_csv(TABLE, index=False, float_format="%.8f", lineterminator="\n")
            print(f"{design.name}: {100 * found.held:.1f} %" if found.draws else f"{design.name}: no interval", flush=True)


if __name__ == "__main__":
    main()
