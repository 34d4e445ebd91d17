"""Many episodes in parts, so that several processes share them and a stopped run goes on; and how long they will take."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32
from torch import Tensor

from crossgraft.compute import available_cores
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import CrossgraftWarning
from crossgraft.fewshot.episodes import Sampler
from crossgraft.fewshot.evaluate import EpisodeTable, episode_of, evaluate, joined
from crossgraft.fewshot.record import EpisodesPart
from crossgraft.progress import Piece, TypicalClock
from crossgraft.running.jobs import Job, Outcome, Work, run_jobs, worker_pool
from crossgraft.running.run_directory import RunDirectory
from crossgraft.seeding import generator
from crossgraft.types import Preprocessing


class EpisodeImages:
    """Row numbers → inputs of a backbone.

    What goes to another process are the pixels of ``rows``; what comes back from there has none.

    Args:
        read: Function from a row number to an image (height, width, channels).
        preprocessing: Preprocessing of the backbone.
        rows: Rows that another process may ask for.
    """

    def __init__(
        self, read: Callable[[int], np.ndarray], preprocessing: Preprocessing, rows: Sequence[int] | np.ndarray = ()
    ) -> None:
        self._read = read
        self._preprocessing = preprocessing
        self._rows = [int(row) for row in rows]

    def __call__(self, rows: Sequence[int] | np.ndarray) -> Float32[Tensor, "_ channels height width"]:
        """(k, channels, height, width) in the order of ``rows``."""
        return prepare_batch([self._read(int(row)) for row in rows], self._preprocessing)

    def of(self, rows: Sequence[int] | np.ndarray) -> EpisodeImages:
        """The same, of which only these rows go to another process."""
        return EpisodeImages(self._read, self._preprocessing, rows)

    def __getstate__(self) -> dict[str, Any]:
        """For ``pickle``."""
        return {"pixels": {row: self._read(row) for row in self._rows}, "preprocessing": self._preprocessing}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["pixels"].__getitem__, state["preprocessing"])


EPISODES_A_PART = 10


class EpisodeSpan(NamedTuple):
    """Some episodes in a row."""

    first: int
    size: int


class EpisodeTask(NamedTuple):
    """Episodes, and their images where a head reads images."""

    span: EpisodeSpan
    images: EpisodeImages | None


@dataclass(frozen=True, eq=False)
class EpisodeWork(Work[EpisodeTask, EpisodesPart]):
    """What is done with each part; goes to other processes.

    Attributes:
        features: (n, d).
        labels: (n,).
        heads: Name → head, unfitted.
        sampler: Rule for the sizes of an episode.
        seed: Random seed of the episodes.
        groups: (n,) patients, or None.
        superclasses: (n,) superclass of each row, or None.
        key: Hash of all of that.
        folder: Where finished parts lie in the run directory.
        gaps: Whether the gap between images and prototypes is moved.
    """

    features: np.ndarray
    labels: np.ndarray
    heads: Mapping[str, Any]
    sampler: Sampler
    seed: int
    groups: np.ndarray | None
    superclasses: np.ndarray | None
    key: str
    folder: str = "episodes"
    gaps: bool = False

    def do(self, job: Job[EpisodeTask]) -> EpisodesPart:
        """Adapt all heads to these episodes."""
        table = evaluate(
            self.features,
            self.labels,
            self.heads,
            sampler=self.sampler,
            num_episodes=job.spec.span.size,
            seed=self.seed,
            groups=self.groups,
            superclasses=self.superclasses,
            first_episode=job.spec.span.first,
            images=job.spec.images,
            gaps=self.gaps,
        )
        return EpisodesPart(
            key=self.key,
            accuracies=table.accuracies.tolist(),
            seconds=table.seconds.tolist(),
            num_ways=table.num_ways.tolist(),
            num_support=table.num_support.tolist(),
            num_query=table.num_query.tolist(),
            warnings=dict(table.warnings),
            gaps=table.gaps,
        )

    def images_of(self, span: EpisodeSpan, images: EpisodeImages | None) -> EpisodeImages | None:
        """Images of these episodes alone, which is what goes to another process."""
        if images is None:
            return None
        rows = [
            episode_of(self.labels, self.sampler, self.seed, number, groups=self.groups, superclasses=self.superclasses)
            for number in range(span.first, span.first + span.size)
        ]
        return images.of(np.unique(np.concatenate([side for each in rows for side in (each.support, each.query)])))


def evaluate_in_parts(
    work: EpisodeWork,
    num_episodes: int,
    *,
    images: EpisodeImages | None,
    num_workers: int,
    run: RunDirectory | None,
    told: Callable[[int], object],
) -> EpisodeTable:
    """All episodes; parts that an earlier attempt of the same run finished are read back.

    Args:
        work: Data, heads and sampler.
        num_episodes: Number of episodes.
        images: Prepared images of the rows, where a head reads images.
        num_workers: Processes, each with one thread.
        run: Where parts are kept, or None.
        told: Callback with the number of episodes that are done, part by part.
    """
    spans = _spans(num_episodes)
    parts: dict[EpisodeSpan, EpisodesPart] = {}

    def take(span: EpisodeSpan, part: EpisodesPart) -> None:
        parts[span] = part
        told(span.size)

    def keep(outcome: Outcome[EpisodeTask, EpisodesPart]) -> None:
        if outcome.result is not None:
            if run is not None:
                run.write_record(_file(work, outcome.job.spec.span), outcome.result)
            take(outcome.job.spec.span, outcome.result)

    for span, part in finished_parts(work, num_episodes, run=run).items():
        take(span, part)
    jobs = [
        Job(f"episodes from {span.first}", EpisodeTask(span, work.images_of(span, images))) for span in spans if span not in parts
    ]
    processes = _processes(len(jobs), num_workers)
    with worker_pool(processes) if processes > 1 else nullcontext() as pool:
        run_jobs(jobs, work, keep_going=False, told=keep, executor=pool)
    return joined([_table(work.heads, parts[span]) for span in spans])


def finished_parts(work: EpisodeWork, num_episodes: int, *, run: RunDirectory | None) -> dict[EpisodeSpan, EpisodesPart]:
    """What earlier attempts of the same run have finished of these episodes."""
    if run is None:
        return {}
    found = {span: run.read_record(_file(work, span), EpisodesPart) for span in _spans(num_episodes)}
    return {
        span: part
        for span, part in found.items()
        if part is not None and part.key == work.key and len(part.accuracies) == span.size
    }


def _spans(num_episodes: int) -> list[EpisodeSpan]:
    return [EpisodeSpan(first, min(EPISODES_A_PART, num_episodes - first)) for first in range(0, num_episodes, EPISODES_A_PART)]


def _processes(num_parts: int, num_workers: int) -> int:
    return max(1, min(num_workers, num_parts))


def _file(work: EpisodeWork, span: EpisodeSpan) -> str:
    return f"{work.folder}/{span.first:05d}.json"


def _table(heads: Sequence[str] | Mapping[str, Any], part: EpisodesPart) -> EpisodeTable:
    columns = (part.accuracies, part.seconds, part.num_ways, part.num_support, part.num_query)
    return EpisodeTable(tuple(heads), *map(np.array, columns), warnings=part.warnings, gaps=part.gaps)


EPISODES = "episodes"
"""The part of the work."""

_LEAST_SECONDS, _SHARE = 0.3, 1 / 25
"""Episodes are timed for as long as they stay within one of the two: so many seconds of an idle machine, this share of all."""
_MOST_TRIES = 8
_BUSY = 1.05
"""From here on a thread is taken to wait for others."""
_START_SECONDS = 5.0
"""Other processes import torch; on a machine that does nothing else."""


def made_up_features(labels: np.ndarray, width: int, *, seed: int) -> Float32[np.ndarray, "n {width}"]:
    """Positive and in clusters, as features of classes are."""
    rng = generator(seed, "made-up features")
    names, numbers = np.unique(labels, return_inverse=True)
    centres = rng.standard_normal((len(names), width), dtype=np.float32)
    return np.maximum(rng.standard_normal((len(labels), width), dtype=np.float32) + centres[numbers], 0)


def foresee_episodes(work: EpisodeWork, num_episodes: int, *, images: EpisodeImages | None, num_workers: int) -> Piece:
    """The episodes as a piece of a forecast.

    Args:
        work: Data, heads and sampler; its features may be made up.
        num_episodes: Number of episodes.
        images: As in ``evaluate_in_parts``.
        num_workers: As there.

    Cost: that of two episodes, or of about 4 % of all.
    """
    seconds = _seconds_of_one(work, num_episodes, images) * num_episodes
    processes = _processes(len(_spans(num_episodes)), num_workers)
    if processes == 1:
        return Piece((EPISODES,), seconds, EPISODES)
    slowdown = TypicalClock().slowdown
    slower = 1.0
    if slowdown > _BUSY:  # all cores are taken, so that processes of one's own take them from each other, too
        slower = 1 + (processes - 1) / (available_cores() * slowdown)
    return Piece((EPISODES,), slower * (seconds / processes + _START_SECONDS * slowdown), EPISODES)


def _seconds_of_one(work: EpisodeWork, num_episodes: int, images: EpisodeImages | None) -> float:
    """The mean of a few, without the first where there are more: it also makes what is kept for the others."""
    now = TypicalClock()
    took: list[float] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrossgraftWarning)  # of made-up features
        while len(took) < min(_MOST_TRIES, num_episodes):
            start = now()
            work.do(Job("timed", EpisodeTask(EpisodeSpan(len(took), 1), images)))
            took.append(now() - start)
            affordable = max(now.slowdown * _LEAST_SECONDS, _SHARE * num_episodes * took[-1])
            if len(took) > 1 and sum(took) + took[-1] > affordable:
                break
    return mean(took[1:] or took)
