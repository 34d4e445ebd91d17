"""What a linear model makes of domains that it never saw: the shift of a set, before any network.

python studies/linear_domains.py data docs/results/domains/linear.csv
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from sets import SIDE, resized
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedGroupKFold

COLUMNS = {"digits_by_speaker": "speaker", "omniglot_by_writer": "drawers", "ham10000_by_region": "region"}


def measured(data: Path, name: str, column: str) -> list[dict[str, object]]:
    """One row a fold of mixed images, and one a domain."""
    rows = pd.read_csv(data / f"{name}.csv", dtype=str)
    pixels = np.stack([resized(np.asarray(Image.open(data / file)), SIDE).ravel() for file in rows["image"]]).astype(np.float64)
    labels, domains = rows["label"].to_numpy(), rows[column].to_numpy()
    groups = rows["group"].to_numpy() if "group" in rows else np.arange(len(rows))
    parts = [("mixed", *fold) for fold in StratifiedGroupKFold(5, shuffle=True, random_state=0).split(pixels, labels, groups)]
    parts += [(domain, np.flatnonzero(domains != domain), np.flatnonzero(domains == domain)) for domain in np.unique(domains)]
    return [
        {"set": name, "left_out": left_out, "balanced_accuracy": round(accuracy(pixels, labels, train, test), 4)}
        for left_out, train, test in parts
    ]


def accuracy(pixels: np.ndarray, labels: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
    scaled = (pixels - pixels[train].mean(axis=0)) / pixels[train].std()
    model = LogisticRegression(C=1e-3, max_iter=300, class_weight="balanced").fit(scaled[train], labels[train])
    return float(balanced_accuracy_score(labels[test], model.predict(scaled[test])))


def main(arguments: list[str]) -> None:
    data, out = map(Path, arguments)
    rows = [row for name, column in COLUMNS.items() for row in measured(data, name, column)]
    pd.DataFrame(rows).to_csv(out, index=False, lineterminator="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
