"""Options of ``rank_models``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from crossgraft.errors import UsageError
from crossgraft.models.options import Candidates
from crossgraft.options import options_of
from crossgraft.options._option import FromProgram, Options, option, options
from crossgraft.options.command import DATA_HELP, Command, Input, Typed, VerbCall, flag_of
from crossgraft.options.data import ClassOptions, Splits, Subsets, TableOptions, Unreadable, Volumes
from crossgraft.options.models import CodeOptions, Download, InputSize, InsideCheckpoints
from crossgraft.options.running import Cache, Device, LookingPrecision, Output, Page, Seed, Strictness, Terminal, Workers

if TYPE_CHECKING:
    from crossgraft.scores import AnyScore
else:
    AnyScore = FromProgram

INTERVAL_SECONDS = 60.0
"""A score that takes longer once has no interval unless asked for: the jackknife would take it twenty times more."""


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
        "Fine-tuned results to compare with: CSV with a column model and a column of numbers.", default=None, is_path=True
    )
    ground_truth_column: str | None = option(
        "Column of numbers in that CSV, where it has several.", default=None, needs="ground_truth"
    )
    scenario: Literal["datasets", "architectures"] = option(
        "What nca_gradient compares: one architecture from several data sets, or several architectures.",
        default="datasets",
        only_if_given=True,
    )
    feature_maps: int | None = option(
        "Draw the features of so many of the best models, and compare those of all.", default=None, least=1, only_if_given=True
    )
    all_intervals: bool = option("Compute intervals of all scores, however long they take.", default=False)
    interval_seconds: float = option(
        "Compute intervals of scores that take at most so many seconds once (those of images together); 0: of none.",
        default=INTERVAL_SECONDS,
        least=0,
        only_if_given=True,
    )

    @property
    def longest_with_interval(self) -> float:
        """Seconds that a score may take once and still have an interval."""
        return math.inf if self.all_intervals else self.interval_seconds


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
    LookingPrecision,
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


def _rank(call: Typed) -> VerbCall:
    """``crossgraft rank``, of images or of published results."""
    data = call.inputs["data"]
    if "published" in call.typed:
        surplus = {*call.typed} - {*options_of(Published), *options_of(PublishedOptions), *_OF_A_TERMINAL}
        if data is not None or surplus:
            what = "DATA" if data is not None else flag_of(min(surplus))
            raise UsageError(f"--published evaluates results that are there already; it cannot be used with {what}.")
        verb = "crossgraft.published.verb:evaluate_published"
        return VerbCall(verb, PublishedOptions, (call.typed["published"],), named="rank")
    if data is None:
        raise UsageError("Name the images to rank for, for example: crossgraft rank digits (or --published thesis).")
    return VerbCall("crossgraft.rank.verb:rank_models", RankOptions, (data,), named="rank")


_OF_A_TERMINAL = ("json", "quiet", "verbose", "debug")

COMMAND = Command(
    "rank",
    "Rank pretrained models for your labelled images, without fine-tuning them.",
    example="rank digits --models resnet18,mobilenetv2_100",
    inputs=(Input("data", DATA_HELP, is_required=False),),
    options=(RankOptions, Published, Terminal),
    action=_rank,
    notes="Only training rows are read. Where the data have no split, the one that tune uses is drawn, so no model is "
    "selected with images that it will be tested on; --holdout 0 reads all rows.",
    place=40,
)
