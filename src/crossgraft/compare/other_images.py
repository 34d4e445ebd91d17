"""Images beside those that two models are compared on: other labelled ones for linear probes, and those of the source."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from crossgraft.compare import OtherImages
from crossgraft.compare.options import CompareModelsOptions
from crossgraft.data import Dataset
from crossgraft.data.given_images import open_given
from crossgraft.data.opening import open_divided
from crossgraft.data.rows import ImageRows
from crossgraft.options._option import from_mapping, options_of
from crossgraft.options.data import DatasetOptions, ImageOptions
from crossgraft.progress import Reporter

_OF_ANY_DATA = ("allow_outside", "window", "slices", "allow_download", "skip_unreadable", "holdout", "seed")
"""Options that say how any data are read; columns and class names are those of one data set."""


def open_others(options: CompareModelsOptions, reporter: Reporter) -> OtherImages:
    """What ``probe`` and ``source_images`` name; nothing where neither is given.

    Raises:
        DataError: Data are missing, damaged or unsound.
        UsageError: An option has no meaning for these data.
    """
    source = None if options.source_images is None else _open_source(options.source_images, options, reporter)
    if options.probe is None:
        return OtherImages(source=source)
    named = () if isinstance(options.probe, Dataset) else _OF_ANY_DATA
    how = {name: getattr(options, name) for name in {*named, "seed"} & {*options_of(DatasetOptions)}}
    other = open_divided(options.probe, from_mapping(DatasetOptions, how), use_split=None, reporter=reporter)
    splits = np.full(len(other), "train") if other.splits is None else other.splits
    return OtherImages(other, np.flatnonzero(splits == "train"), np.flatnonzero(splits == "test"), source)


def _open_source(folder: str | Path, options: CompareModelsOptions, reporter: Reporter) -> ImageRows:
    how = {name: getattr(options, name) for name in {*_OF_ANY_DATA} & {*options_of(ImageOptions)}}
    return open_given(folder, from_mapping(ImageOptions, how), reporter, known_classes=())
