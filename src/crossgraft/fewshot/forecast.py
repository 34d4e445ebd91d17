"""How long episodes will take: heads adapt to a few of them, with made-up features."""

from __future__ import annotations

import warnings
from statistics import mean

import numpy as np
from jaxtyping import Float32

from crossgraft.compute import available_cores
from crossgraft.errors import CrossgraftWarning
from crossgraft.fewshot.images import EpisodeImages
from crossgraft.fewshot.parts import EpisodeSpan, EpisodeTask, EpisodeWork, num_processes
from crossgraft.progress import Piece, TypicalClock
from crossgraft.running.jobs import Job
from crossgraft.seeding import generator

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
    processes = num_processes(num_episodes, num_workers)
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
