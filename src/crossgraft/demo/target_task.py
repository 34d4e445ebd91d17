"""Who is a training writer, who is a test writer, and which digits are source and target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossgraft.data import Dataset, take_per_class
from crossgraft.errors import DataError
from crossgraft.seeding import generator

SOURCE_DIGITS = ("0", "1", "2", "3", "4")
TARGET_DIGITS = ("5", "6", "7", "8", "9")
IMAGES_PER_CLASS = 10


@dataclass(frozen=True)
class DemoData:
    """Three parts of the digits that share no image; only ``test`` has the test writers.

    Attributes:
        source: Digits 0–4 of the training writers, for pretraining.
        train: Ten images of each digit 5–9 of the training writers: the small labelled set of the user.
        test: All digits 5–9 of the other writers.
    """

    source: Dataset
    train: Dataset
    test: Dataset


def divide_digits(digits: Dataset, *, seed: int) -> DemoData:
    """Half of the writers train, the other half tests.

    Raises:
        DataError: The images have no writers.
    """
    if digits.groups is None:
        raise DataError("The demo needs the writer of each image.")
    writers = generator(seed, "demo writers").permutation(np.unique(digits.groups))
    training_writers = writers[: len(writers) // 2]
    is_training = np.isin(digits.groups, training_writers)
    pool = digits.take(is_training)
    target_pool = pool.select_classes(TARGET_DIGITS)
    rows = take_per_class(target_pool.targets, IMAGES_PER_CLASS, seed=seed, class_names=target_pool.class_names)
    used = f"{IMAGES_PER_CLASS} images of each digit 5–9 from {len(training_writers)} of {len(writers)} writers"
    return DemoData(
        source=pool.select_classes(SOURCE_DIGITS),
        train=target_pool.take(rows, rows_used=used),
        test=digits.take(~is_training).select_classes(TARGET_DIGITS),
    )
