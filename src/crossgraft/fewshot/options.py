"""Options of ``run_episodes``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from crossgraft.options._objects import ModelSpec
from crossgraft.options._option import Options, option, options
from crossgraft.options.data import ClassOptions, ImageOptions, Splits, Subsets, TableOptions, Unreadable, Volumes
from crossgraft.options.models import CodeOptions, Download, InputSize, InsideCheckpoints
from crossgraft.options.running import Cache, Device, Looking, Output, Page, Seed, Strictness, Workers
from crossgraft.rank.options import Extraction


@options
class EpisodeOptions(Options):
    """What is adapted, and to which tasks."""

    group: ClassVar[str] = "Model and heads"

    model: str | Path | ModelSpec = option(
        "Name, checkpoint, zoo.yaml:NAME or package.module:factory of the frozen backbone.", is_common=True
    )
    heads: str | Sequence[Any] = option(
        "Heads with commas, each perhaps with options: ncc,copa:learning_rate=0.005,logistic; or all.",
        default="ncc,copa,logistic",
        is_common=True,
        takes="names with commas or a list of names and scikit-learn classifiers",
    )
    episodes: int = option("Number of episodes.", default=600, least=1, is_common=True)
    sampler: Any = option(
        "Rule for the sizes of an episode: meta_dataset, or n_way_k_shot:ways=5,shots=5.",
        default="meta_dataset",
        is_common=True,
        takes="a name, perhaps with options, or a Sampler of crossgraft.fewshot",
    )
    baseline: str | None = option(
        "Head that the others are compared with.", default=None, default_text="logistic, or the first head"
    )
    superclass_column: str | None = option(
        "Column with the superclass of each class: an episode has classes of one.", default=None
    )
    base_classes: str | Sequence[str] | None = option(
        "Classes that heads with meta_fit learn from, with commas; episodes are drawn from the others.", default=None
    )


@options
class HeadSeed(Seed):
    """Randomness of episodes, or of a head."""

    seed: int = option(
        "Random seed of episodes; with --query that of the head. Heads on episodes have their own: copa:init=random,seed=1.",
        default=0,
        is_common=True,
    )


@options
class FewshotOptions(
    Output,
    Cache,
    Extraction,
    Workers,
    Device,
    HeadSeed,
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
    EpisodeOptions,
):
    """Options of ``run_episodes``."""

    fold: int = option("Index of the fold that is held out, from 0.", default=0)


@options
class SupportSet(Options):
    """What is learned, and from which images."""

    group: ClassVar[str] = "Model and heads"

    support: Any = option(
        "Labelled images to learn from: folder, table, .npz file …",
        is_path=True,
        is_common=True,
        takes="a path, a Dataset, a DataFrame or a list of files",
    )
    query: Any = option(
        "Images to predict, with or without labels.",
        is_path=True,
        is_common=True,
        takes="a path, a Dataset, a DataFrame or a list of files",
    )
    model: str | Path | ModelSpec = option(
        "Name, checkpoint, zoo.yaml:NAME or package.module:factory of the frozen backbone.", is_common=True
    )
    head: Any = option(
        "Head that learns, perhaps with options: copa:learning_rate=0.005.",
        default="copa",
        is_common=True,
        takes="a name, perhaps with options, or a scikit-learn classifier",
    )


@options
class SupportOptions(
    Output,
    Cache,
    Extraction,
    Workers,
    Device,
    HeadSeed,
    Looking,
    Page,
    InputSize,
    CodeOptions,
    InsideCheckpoints,
    ImageOptions,
    SupportSet,
):
    """Options of ``predict_from_support``."""
