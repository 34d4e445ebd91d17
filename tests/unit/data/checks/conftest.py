"""Data sets of a few images in memory, with splits, patients and columns as a test wants them."""

from dataclasses import replace

import numpy as np
import pytest

from crossgraft import check_data
from crossgraft.data import dataset_from_arrays


@pytest.fixture
def make_dataset(pixels):
    """`make_dataset(images, labels, splits=…, groups=…, **columns)`; an integer stands for a random image of that seed."""

    def make(images, labels, *, splits=None, groups=None, **columns):
        samples = [pixels(image, 24, 24) if isinstance(image, int) else image for image in images]
        dataset = dataset_from_arrays(samples, labels, groups=groups, name="study")
        return replace(
            dataset,
            splits=None if splits is None else np.asarray(splits),
            attributes={name: np.asarray(values) for name, values in columns.items()},
        )

    return make


@pytest.fixture
def check(make_dataset):
    """Check such a data set; `found(title)` of the result is the finding with this title. `holdout=0`: without a split."""

    def run(*arguments, holdout=None, **more):
        return Findings(check_data(make_dataset(*arguments, **more), holdout=holdout))

    return run


class Findings:
    """What a check found, by title."""

    def __init__(self, result):
        self.result = result
        self.record = result.record

    def __getitem__(self, title):
        return next(finding for finding in self.record.findings if finding.title == title)

    def __contains__(self, title):
        return any(finding.title == title for finding in self.record.findings)
