"""What docs/results/own-models.md says of own-models.csv."""

from __future__ import annotations

from pathlib import Path

from tables import read_csv

TITLES = {
    "cifar": "CIFAR-10, 1000 JPEG copies of test images: top-1 accuracy",
    "pneumonia": "PneumoniaMNIST, 624 test images",
    "omniglot": "Omniglot, 136 characters, 60 episodes of 5 classes with 5 drawings",
    "mobilenets": "MobileNets: largest difference to the recorded outputs, which have 4 decimals",
}


def fields(results: Path, figures: Path) -> dict[str, str]:
    rows = read_csv(results / "own-models.csv").set_index("part")
    lines: list[str] = []
    for part, title in TITLES.items():
        lines.append(title)
        for what, value, low, high in rows.loc[part].itertuples(index=False):
            if part == "mobilenets":
                said = f"{value:.5f}"
            elif "ROC" in what:
                said = f"{value:.3f} [{low:.3f}, {high:.3f}]"
            else:
                said = f"{100 * value:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
            lines.append(f"  {what:32} {said}")
    return {"measured": "\n".join(lines)}
