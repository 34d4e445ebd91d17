"""What the records of all commands that read images answer of checklists; see ``crossgraft.report.checklists``."""

from __future__ import annotations

from typing import Any

from crossgraft.report.source import Source
from crossgraft.words.formatting import counted, short_fingerprint


def data_of(source: Source[Any]) -> str:
    """Name, kind and fingerprint of the images."""
    data = source.record.dataset
    kind, classes = data.source.replace("_", " "), counted(len(data.class_names), "class", "classes")
    fingerprint = short_fingerprint(data.fingerprint)
    return f"{counted(data.num_images, 'image')} in {classes} from {data.name} ({kind}; fingerprint {fingerprint})"


def rows_of(source: Source[Any]) -> str | None:
    """Which rows of the data were used; None where that was not recorded."""
    return source.record.dataset.rows_used or None


def images_read(source: Source[Any]) -> str:
    """How many images were left out because they cannot be decoded."""
    number = source.record.dataset.num_skipped_unreadable
    return f"{counted(number, 'image')} left out as unreadable" if number else "no image was left out as unreadable"


def reading_of(source: Source[Any], description: str) -> str:
    """How files of scanners were read, and how images became the input of the network (``description``)."""
    return "; ".join([*(text.rstrip(".") for text in source.record.dataset.reading), description])


def software(source: Source[Any]) -> str | None:
    """Versions of all packages that a run names; None where there is no run."""
    run = source.run
    if run is None:
        return None
    versions = {"crossgraft": run.crossgraft_version, **run.versions}
    return ", ".join(f"{name} {version}" for name, version in versions.items())
