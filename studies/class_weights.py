"""Class weights of sets that no text and no head names: mean features of images that no episode is drawn from.

    python studies/class_weights.py data       # after studies/sets.py; a minute of one core

Half of the groups of a set (of the images of a class, where there are no groups) give data/class_weights/NAME.npz, a vector for
each class: the mean of their features of unit length in the MobileNetV1 0.5 of docs/results/fewshot.md. The rest is
data/other_NAME.csv.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from crossgraft.data import open_dataset
from crossgraft.features import extract_features
from crossgraft.models import load_backbone, read_zoo
from crossgraft.seeding import generator

SETS = ("ham10000", "medical_mnist", "spoken_digits")
EXAMPLES = Path("examples/own_models")
NETWORK = "mobilenetv1_050 · ImageNet"


def halves(found: pd.DataFrame, name: str) -> np.ndarray:
    """(n,) whether a row gives class weights."""
    random = generator(0, "class weights", name)
    if "group" in found:
        groups = found["group"].unique()
        return found["group"].isin(random.permutation(groups)[: len(groups) // 2]).to_numpy()
    known = np.zeros(len(found), dtype=bool)
    for rows in found.groupby("label").indices.values():
        known[random.permutation(rows)[: len(rows) // 2]] = True
    return known


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0])
    (folder / "class_weights").mkdir(exist_ok=True)
    zoo = read_zoo(EXAMPLES / "mobilenets.yaml", weights_dir=folder / "weights", allow_code=EXAMPLES)
    backbone = load_backbone(next(each for each in zoo if each.name == NETWORK), weights_dir=folder / "weights")
    for name in SETS:
        found = pd.read_csv(folder / f"{name}.csv", dtype=str)
        known = halves(found, name)
        found[~known].to_csv(folder / f"other_{name}.csv", index=False, lineterminator="\n")
        table = folder / f"known_{name}.csv"
        found[known].to_csv(table, index=False, lineterminator="\n")
        dataset = open_dataset(table, label_column="label")
        features = extract_features(dataset, backbone).features.astype(np.float64)
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        means = {each: features[dataset.targets == place].mean(axis=0) for place, each in enumerate(dataset.class_names)}
        np.savez(folder / "class_weights" / f"{name}.npz", **means)
        print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
