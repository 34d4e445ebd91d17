"""Splits of real patients. No real multi-label set is at hand, so labels are made of HAM10000's table: diagnosis and place."""

import csv
import tarfile

import numpy as np
import pytest

from crossgraft.data import k_folds, make_split

pytestmark = pytest.mark.real_data


@pytest.fixture(scope="module")
def lesions(real_data):
    """Label matrix of 7 diagnoses and all places on the body, and the lesion of each image."""
    with tarfile.open(real_data / "datasets" / "ham10000_subset_jpg200x150.tar") as archive:
        text = archive.extractfile("ham10000_subset/metadata.csv").read().decode()
    rows = list(csv.DictReader(text.splitlines()))
    names = sorted({row["dx"] for row in rows}) + sorted({row["localization"] for row in rows})
    targets = np.array([[int(name in (row["dx"], row["localization"])) for name in names] for row in rows])
    return targets, np.array([row["lesion_id"] for row in rows])


@pytest.mark.parametrize("seed", range(3))
def test_no_lesion_is_shared_and_every_label_is_within_two_images_of_its_share(lesions, seed):
    targets, groups = lesions
    fractions = {"train": 0.7, "val": 0.1, "test": 0.2}
    split = make_split(targets, groups, fractions=fractions, seed=seed)
    parts = [set(groups[split.rows(part)]) for part in fractions]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])
    for part, share in fractions.items():
        assert np.abs(targets[split.rows(part)].sum(axis=0) - share * targets.sum(axis=0)).max() < 2


def test_folds_of_lesions(lesions):
    targets, groups = lesions
    for fold in k_folds(targets, groups, num_folds=5, seed=0):
        assert not set(groups[fold.rows("train")]) & set(groups[fold.rows("test")])
        assert np.abs(targets[fold.rows("test")].sum(axis=0) - targets.sum(axis=0) / 5).max() < 2
