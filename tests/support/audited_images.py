"""Images of patients with one class each, for audits."""

from dataclasses import replace

import numpy as np

from crossgraft.data import dataset_from_arrays


def images(patients=90, *, per_patient=2, classes=("healthy", "ill"), grouped=True, seed=0, side=8):
    """Noise of patients with one class each; a third of the patients is the test part, a third of the others is val."""
    rng = np.random.default_rng(seed)
    number = patients * per_patient
    owners = np.repeat(np.arange(patients), per_patient)
    pixels = rng.integers(0, 200, (number, side, side, 1)).astype(np.uint8)
    names = np.array(classes)[owners % len(classes)]
    groups = [f"p{owner}" for owner in owners] if grouped else None
    found = dataset_from_arrays(pixels, names, groups=groups, name="some")
    part = np.array(["train", "train", "val", "test", "train", "test"])[owners // len(classes) % 6]
    return replace(found, splits=part)
