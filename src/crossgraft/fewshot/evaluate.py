"""Many heads on the same episodes: accuracies, their intervals, and paired differences."""

from __future__ import annotations

import math
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from jaxtyping import Float64, Int
from sklearn.base import clone
from torch import Tensor

from crossgraft.compute import is_out_of_memory, limit_threads, reuse_freed_memory
from crossgraft.errors import CrossgraftError, DataError, UsageError, located
from crossgraft.fewshot.episodes import Episode, MetaDataset, Sampler, sample_episode
from crossgraft.fewshot.heads import reads_images
from crossgraft.fewshot.look import gap_points, sets_gaps
from crossgraft.fewshot.record import GapPoint
from crossgraft.seeding import generator
from crossgraft.statistics import mean_interval
from crossgraft.types import Features, Groups, Labels

ImagesOfRows = Callable[[np.ndarray], Tensor]
FEWEST_EPISODES = 5
"""Fewer do not show how far accuracies lean to one side."""


class MeanWithInterval(NamedTuple):
    """A mean over episodes.

    Attributes:
        mean: Mean.
        half_width: Half of the width of its interval of 95 % over episodes: the farther end of ``skewed_reach``, which is 1.96
            standard errors, as in the published tables, where episodes are many. It tells how sure the mean over episodes of this
            data set is, and nothing of other data. NaN where ``reason`` says why.
        reason: Reason that there is no interval.
    """

    mean: float
    half_width: float
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class EpisodeTable:
    """What the heads reached.

    Attributes:
        heads: (H,) names, in the order of the columns.
        accuracies: (E, H) share of the queries that are right, by episode and head.
        seconds: (H,) mean time of a ``fit`` and a ``predict``, in seconds.
        num_ways: (E,) classes of each episode.
        num_support: (E,) support images.
        num_query: (E,) queries.
        warnings: What heads warned of → in how many episodes.
        thread_seconds: (E, H) processor time of the thread, which other work on the machine does not lengthen; nothing of what a
            GPU does. None in a table that was put together from parts.
        gaps: By episode, what the heads reach with their gap set; empty where it was not asked for.
    """

    heads: tuple[str, ...]
    accuracies: Float64[np.ndarray, "episodes heads"]
    seconds: Float64[np.ndarray, " heads"]
    num_ways: Int[np.ndarray, " episodes"]
    num_support: Int[np.ndarray, " episodes"]
    num_query: Int[np.ndarray, " episodes"]
    warnings: Mapping[str, int] = field(default_factory=dict[str, int])
    thread_seconds: Float64[np.ndarray, "episodes heads"] | None = None
    gaps: list[list[GapPoint]] = field(default_factory=list[list[GapPoint]])

    def accuracy(self, head: str) -> MeanWithInterval:
        """Mean accuracy of one head, in [0, 1]."""
        return _mean(self._column(head))

    def difference(self, head: str, other: str) -> MeanWithInterval:
        """Accuracy of one head less that of another, paired by episode."""
        return _mean(self._column(head) - self._column(other))

    def _column(self, head: str) -> Float64[np.ndarray, " episodes"]:
        if head not in self.heads:
            raise UsageError(f"No head {head} was evaluated. There are: {', '.join(self.heads)}.")
        return self.accuracies[:, self.heads.index(head)]


def evaluate(
    features: Features,
    labels: Labels,
    heads: Mapping[str, Any],
    *,
    sampler: Sampler | None = None,
    num_episodes: int = 600,
    seed: int = 0,
    groups: Groups | None = None,
    superclasses: Labels | None = None,
    first_episode: int = 0,
    images: ImagesOfRows | None = None,
    gaps: bool = False,
) -> EpisodeTable:
    """Adapt every head to the same episodes, with one thread, and count its hits on the queries.

    Episode i depends on the data, the sampler, the seed and i alone, so that parts can be computed apart (``first_episode``) and
    put together with ``joined``.

    Args:
        features: (n, d) penultimate features of a frozen backbone.
        labels: (n,) class of each row.
        heads: Name → scikit-learn classifier, unfitted; it is cloned for each episode.
        sampler: Rule for the sizes of an episode; Meta-Dataset's by default.
        num_episodes: Number of episodes.
        seed: Random seed of the episodes.
        groups: (n,) patient of each row: support and queries share none.
        superclasses: (n,) superclass of each row: an episode has classes of one.
        first_episode: Number of the first episode.
        images: Function from row numbers to prepared images (k, channels, height, width), for heads that read images
            (``TsaAdapter``, ``CopaTsa``, ``FineTuningHead``).
        gaps: Set the gap between images and prototypes of heads that have both, see ``EpisodeTable.gaps``.

    Raises:
        DataError: NaN, or arrays that do not belong together; too few classes, images or patients for an episode.
        UsageError: There is no head or no episode; a head reads images and there are none; class weights are an array without a
            row for each class of the data; or a head raises an error, which is the cause of this one.

    Cost: that of the heads, times the episodes.

    Example:
        >>> from crossgraft.fewshot import LogisticHead, NccHead, NWayKShot
        >>> y = np.repeat(np.arange(6), 20)
        >>> X = np.eye(6)[y] + np.random.default_rng(0).normal(scale=0.1, size=(120, 6))
        >>> table = evaluate(X, y, {"ncc": NccHead(), "logistic": LogisticHead()}, sampler=NWayKShot(), num_episodes=3)
        >>> table.accuracy("ncc").mean, table.difference("ncc", "logistic").mean
        (1.0, 0.0)
    """
    features, labels = _checked(features, labels, heads, num_episodes)
    readers = [name for name, head in heads.items() if reads_images(head)]
    if readers and images is None:
        raise UsageError(f"The head {readers[0]} trains inside the network and reads images. Give them: images=.")
    sampler = MetaDataset() if sampler is None else sampler
    if not isinstance(cast("Any", sampler), Sampler):
        raise UsageError(f"sampler must be a Sampler, NWayKShot() for example, got {sampler!r}.")
    _refuse_unnamed_weights(heads, labels)
    accuracies = np.empty((num_episodes, len(heads)))
    seconds = np.zeros(len(heads))
    thread_seconds = np.empty((num_episodes, len(heads)))
    sizes = np.empty((num_episodes, 3), dtype=int)
    warned: Counter[str] = Counter()
    of_gaps: list[list[GapPoint]] = []
    with limit_threads(1), reuse_freed_memory():
        for place, number in enumerate(range(first_episode, first_episode + num_episodes)):
            try:
                episode = episode_of(labels, sampler, seed, number, groups=groups, superclasses=superclasses)
            except CrossgraftError as error:
                raise located(error, f"Episode {number}") from error
            classes = np.unique(labels[episode.support])
            sizes[place] = len(classes), len(episode.support), len(episode.query)
            points: list[GapPoint] = []
            for column, result in enumerate(_results(features, labels, heads, episode, number, images)):
                if gaps and sets_gaps(result.head):
                    points += gap_points(list(heads)[column], result.head, features, labels, episode)
                accuracies[place, column] = result.accuracy
                seconds[column] += result.seconds / num_episodes
                thread_seconds[place, column] = result.thread_seconds
                warned.update(result.warnings)
            if gaps:
                of_gaps.append(points)
    found = EpisodeTable(tuple(heads), accuracies, seconds, *sizes.T, warnings=dict(warned), thread_seconds=thread_seconds)
    return replace(found, gaps=of_gaps)


def episode_of(
    labels: np.ndarray,
    sampler: Sampler,
    seed: int,
    number: int,
    *,
    groups: Groups | None = None,
    superclasses: Labels | None = None,
) -> Episode:
    """The episode of this number."""
    random = generator(seed, "episode", number)
    return sample_episode(labels, sampler, random, groups=groups, superclasses=superclasses)


def joined(parts: Sequence[EpisodeTable]) -> EpisodeTable:
    """Tables of the same heads on different episodes, as one.

    Raises:
        DataError: There is none, or heads differ.
    """
    if not parts or any(part.heads != parts[0].heads for part in parts):
        raise DataError("Only tables of the same heads can be joined, and at least one.")
    warned: Counter[str] = Counter()
    for part in parts:
        warned.update(part.warnings)
    counts = [len(part.accuracies) for part in parts]
    return EpisodeTable(
        parts[0].heads,
        np.concatenate([part.accuracies for part in parts]),
        np.average([part.seconds for part in parts], axis=0, weights=counts),
        np.concatenate([part.num_ways for part in parts]),
        np.concatenate([part.num_support for part in parts]),
        np.concatenate([part.num_query for part in parts]),
        warnings=dict(warned),
        gaps=[points for part in parts for points in part.gaps],
    )


class _Result(NamedTuple):
    head: Any
    accuracy: float
    seconds: float
    thread_seconds: float
    warnings: set[str]


def _results(
    features: np.ndarray, labels: np.ndarray, heads: Mapping[str, Any], episode: Episode, number: int, images: ImagesOfRows | None
) -> Iterator[_Result]:
    """One result per head, on one episode."""
    sides = (episode.support, episode.query)
    of_features = [features[side] for side in sides]
    of_images = [] if images is None else [images(side).numpy() for side in sides]
    for name, head in heads.items():
        support, query = of_images if reads_images(head) else of_features
        start, of_thread = time.perf_counter(), time.thread_time()
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fresh: Any = clone(head)
                predicted = fresh.fit(support, labels[episode.support]).predict(query)
        except CrossgraftError as error:
            raise located(error, f"Head {name} in episode {number}") from error
        except Exception as error:  # heads of others raise many kinds
            refuse_faulty(head, f"Head {name} in episode {number}", error)
            raise
        if np.shape(predicted) != (len(query),):
            raise UsageError(f"Head {name} in episode {number} named {np.shape(predicted)} classes for {len(query)} queries.")
        seconds, thread_seconds = time.perf_counter() - start, time.thread_time() - of_thread
        right = float(np.mean(predicted == labels[episode.query]))
        yield _Result(fresh, right, seconds, thread_seconds, {f"{name}: {warning.message}" for warning in caught})


def refuse_faulty(head: Any, where: str, error: Exception) -> None:
    """Blame a head for what it raised, unless memory was wanted or a head of this package has an error in its own code.

    Raises:
        UsageError: With ``error`` as its cause.
    """
    *_, (innermost, _) = traceback.walk_tb(error.__traceback__)
    is_internal = all(
        str(name).startswith("crossgraft.") for name in (type(head).__module__, innermost.f_globals.get("__name__"))
    )
    if not (is_internal or is_out_of_memory(error)):
        raise UsageError(f"{where}: {type(error).__name__}: {error}") from error


def _checked(features: Features, labels: Labels, heads: Mapping[str, Any], num_episodes: int) -> tuple[np.ndarray, np.ndarray]:
    features, labels = _numbers(features), np.asarray(labels)
    if not isinstance(cast("Any", heads), Mapping):
        raise UsageError(f"heads must be name → head, got {type(heads).__name__}.")
    if isinstance(num_episodes, bool) or not isinstance(num_episodes, Integral):
        raise UsageError(f"num_episodes must be a whole number, got {num_episodes!r}.")
    if not heads or num_episodes < 1:
        raise UsageError("Give at least one head and one episode.")
    if features.ndim != 2 or labels.shape != (len(features),):
        raise DataError(f"features must be (n, d) with one label per row; found {features.shape} and labels {labels.shape}.")
    bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
    if len(bad):
        raise DataError(f"{len(bad)} rows of features hold NaN or infinite values; the first is row {bad[0]}.")
    return features, labels


def _refuse_unnamed_weights(heads: Mapping[str, Any], labels: np.ndarray) -> None:
    """An array of class weights has a row per class of the data, of which episodes have some: it would be taken for others."""
    for name, head in heads.items():
        weights = getattr(head, "class_weights", None)
        if weights is None or isinstance(weights, Mapping | str | Path):
            continue
        num_classes = len(np.unique(labels))
        if len(weights) != num_classes:
            raise UsageError(
                f"class_weights of {name} has {len(weights)} rows, and the data {num_classes} classes, of which every episode "
                "has others. Give label → vector, or a file with an array for each label."
            )


def _numbers(features: Features) -> np.ndarray:
    try:
        array = np.asarray(features)
        return array if array.dtype.kind in "biuf" else array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"features must be (n, d) numbers: {error}") from error


def _mean(values: Float64[np.ndarray, " episodes"]) -> MeanWithInterval:
    if len(values) < FEWEST_EPISODES:
        number_in_words = "1 episode" if len(values) == 1 else f"{len(values)} episodes"
        return MeanWithInterval(float(values.mean()), math.nan, f"{number_in_words}, where {FEWEST_EPISODES} are needed")
    interval = mean_interval(values)
    if interval.low is None or interval.high is None:
        return MeanWithInterval(interval.mean, math.nan, "all episodes gave the same")
    return MeanWithInterval(interval.mean, max(interval.mean - interval.low, interval.high - interval.mean))
