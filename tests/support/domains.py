"""Images of several hospitals."""

from dataclasses import replace

import numpy as np

from crossgraft.data import dataset_from_arrays

HOSPITALS = ("BONN", "GENT", "LYON", "OSLO")


def of_hospitals(hospitals, labels, *, groups=None, seed=0, size=16, splits=None, images=None):
    """Images with the name of a hospital each: a class has a brighter half, a hospital is brighter than the one before."""
    hospitals, labels = np.asarray(hospitals), np.asarray(labels)
    if images is None:
        names = sorted(set(hospitals.tolist()))
        images = np.random.default_rng(seed).integers(0, 90, (len(labels), size, size, 3))
        images[:, : size // 2] += 60 * labels.reshape(len(labels), -1)[:, 0][:, None, None, None]
        images = images + 15 * np.array([names.index(name) for name in hospitals])[:, None, None, None]
    made = dataset_from_arrays(images.astype(np.uint8), labels, groups=groups, name="scans")
    made = replace(made, attributes={"hospital": hospitals})
    return made if splits is None else replace(made, splits=np.asarray(splits))


def four_hospitals(per_hospital=20, *, groups=None, **more):
    """As many images of each, of two classes in turn."""
    n = per_hospital * len(HOSPITALS)
    return of_hospitals(np.repeat(HOSPITALS, per_hospital), np.arange(n) % 2, groups=groups, **more)
