"""What is known afterwards, and the work."""

from typing import Literal

import numpy as np

from crossgraft.records.base import SCHEMA_VERSION, Record


class ClassCount(Record):
    """The images of one class."""

    name: str
    num_images: int


class DescriptionRecord(Record):
    """The images of each class of a data set."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["description"] = "description"
    data_name: str
    classes: list[ClassCount]

    @property
    def answer(self):
        """The most common class."""
        most = max(self.classes, key=lambda row: row.num_images)
        return f"Most images show {most.name}: {most.num_images}."


def count_classes(dataset, *, at_least):
    """The classes with ``at_least`` so many images."""
    counts = np.bincount(dataset.targets, minlength=len(dataset.class_names))
    rows = [ClassCount(name=name, num_images=int(n)) for name, n in zip(dataset.class_names, counts, strict=True)]
    return DescriptionRecord(data_name=dataset.name, classes=[row for row in rows if row.num_images >= at_least])
