"""What the verb is about: the images of each class, what is recorded of them, and how that is shown."""

from typing import Literal

import numpy as np

from crossgraft.records.base import SCHEMA_VERSION, Record
from crossgraft.report.blocks import Heading, Paragraph, Section
from crossgraft.report.tables import Column, Table, whole, words
from crossgraft.words.formatting import counted


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


def count_classes(dataset, *, at_least):
    """The classes with ``at_least`` so many images."""
    counts = np.bincount(dataset.targets, minlength=len(dataset.class_names))
    rows = [ClassCount(name=name, num_images=int(n)) for name, n in zip(dataset.class_names, counts, strict=True)]
    return DescriptionRecord(data_name=dataset.name, classes=[row for row in rows if row.num_images >= at_least])


def answer(record):
    """The most common class."""
    most = max(record.classes, key=lambda row: row.num_images)
    return f"Most images show {most.name}: {most.num_images}."


def heading(source):
    """The data, and how many classes there are."""
    record = source.record
    return Heading(record.data_name, counted(len(record.classes), "class", "classes"), answer(record))


def counts_section(source):
    """One row per class."""
    rows = [[words(row.name), whole(row.num_images)] for row in source.record.classes]
    table = Table("Images of each class", [Column("Class"), Column("Images", numeric=True)], rows, "classes")
    return Section("counts", "Classes", "evidence", [table])


def answer_section(source):
    """The answer."""
    return Section("verdict", "Answer", "verdict", [Paragraph(answer(source.record), tone="lead")])
