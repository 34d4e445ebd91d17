"""Options of ``rank_models``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from crossgraft.options._objects import AnyScore
from crossgraft.options._option import Options, option, options
from crossgraft.options.data import ClassOptions, Splits, Subsets, TableOptions, Unreadable, Volumes
from crossgraft.options.models import Candidates, CodeOptions, Download, InputSize, InsideCheckpoints
from crossgraft.options.running import Cache, Device, Output, Page, Seed, Strictness, Workers


@options
class ZooOptions(Options):
    """What is ranked, and by what."""

    group: ClassVar[str] = "Models and scores"

    scores: str | AnyScore | Sequence[str | AnyScore] = option(
        "default, all, or names with commas.", default="default", is_common=True
    )
    by: str | AnyScore | None = option(
        "Score that orders the ranking.", default=None, default_text="logme, or the first of the scores", is_common=True
    )
    ground_truth: str | Path | Mapping[str, float] | None = option(
        "Fine-tuned results to compare with: CSV with a column model and a column of numbers.",
        default=None,
        is_path=True,
    )
    ground_truth_column: str | None = option(
        "Column of numbers in that CSV, where it has several.", default=None, needs="ground_truth"
    )
    all_intervals: bool = option("Compute intervals also for scores that take more than a minute once.", default=False)


@options
class Extraction(Options):
    """How features are computed."""

    group: ClassVar[str] = "Computing"

    batch_size: int | None = option("Images per batch.", default=None, least=1, default_text="what is fastest")


@options
class RankOptions(
    Output,
    Cache,
    Extraction,
    Workers,
    Device,
    Seed,
    Page,
    Strictness,
    InputSize,
    CodeOptions,
    Download,
    InsideCheckpoints,
    Unreadable,
    Subsets,
    Splits,
    Volumes,
    ClassOptions,
    TableOptions,
    ZooOptions,
    Candidates,
):
    """Options of ``rank_models``."""

    fold: int = option("Index of the fold that is held out, from 0.", default=0)


@options
class PublishedOptions(Output):
    """Options of ``evaluate_published``."""


@options
class Published(Options):
    """What the command ``rank`` evaluates instead of images."""

    group: ClassVar[str] = "Models and scores"

    published: str | None = option(
        "Instead of DATA, published results to evaluate again: thesis, itm, sfda_cnn, tmlr, medmnistplus, shift, dart, or a CSV "
        "file of your own.",
        default=None,
    )
