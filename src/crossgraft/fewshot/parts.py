"""Many episodes in parts, so that several processes share them and a stopped run goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crossgraft.fewshot.episodes import Sampler
from crossgraft.fewshot.evaluate import EpisodeTable, evaluate, joined
from crossgraft.records import EpisodesPart
from crossgraft.runs import RunDirectory
from crossgraft.runs.jobs import Job, Outcome, Work, run_jobs
from crossgraft.runs.workers import worker_pool

EPISODES_A_PART = 10


class EpisodeSpan(NamedTuple):
    """Some episodes in a row."""

    first: int
    size: int


@dataclass(frozen=True, eq=False)
class EpisodeWork(Work[EpisodeSpan, EpisodesPart]):
    """What is done with each part; goes to other processes.

    Attributes:
        features: (n, d).
        labels: (n,).
        heads: Name → head, unfitted.
        sampler: Rule for the sizes of an episode.
        seed: Random seed of the episodes.
        groups: (n,) patients, or None.
        key: Hash of all of that.
    """

    features: np.ndarray
    labels: np.ndarray
    heads: Mapping[str, Any]
    sampler: Sampler
    seed: int
    groups: np.ndarray | None
    key: str

    def do(self, job: Job[EpisodeSpan]) -> EpisodesPart:
        """Adapt all heads to these episodes."""
        table = evaluate(
            self.features,
            self.labels,
            self.heads,
            sampler=self.sampler,
            num_episodes=job.spec.size,
            seed=self.seed,
            groups=self.groups,
            first_episode=job.spec.first,
        )
        return EpisodesPart(
            key=self.key,
            accuracies=table.accuracies.tolist(),
            seconds=table.seconds.tolist(),
            num_ways=table.num_ways.tolist(),
            num_support=table.num_support.tolist(),
            num_query=table.num_query.tolist(),
            warnings=dict(table.warnings),
        )


def evaluate_in_parts(
    work: EpisodeWork,
    num_episodes: int,
    *,
    num_workers: int,
    run: RunDirectory | None,
    told: Callable[[int], object],
) -> EpisodeTable:
    """All episodes; parts that an earlier attempt of the same run finished are read back.

    Args:
        work: Data, heads and sampler.
        num_episodes: Number of episodes.
        num_workers: Processes, each with one thread.
        run: Where parts are kept, or None.
        told: Callback with the number of episodes that are done, part by part.
    """
    spans = [
        EpisodeSpan(first, min(EPISODES_A_PART, num_episodes - first))
        for first in range(0, num_episodes, EPISODES_A_PART)
    ]
    parts: dict[EpisodeSpan, EpisodesPart] = {}

    def take(span: EpisodeSpan, part: EpisodesPart) -> None:
        parts[span] = part
        told(span.size)

    def keep(outcome: Outcome[EpisodeSpan, EpisodesPart]) -> None:
        if outcome.result is not None:
            if run is not None:
                run.write_record(_file(outcome.job.spec), outcome.result)
            take(outcome.job.spec, outcome.result)

    for span in spans:
        before = None if run is None else run.read_record(_file(span), EpisodesPart)
        if before is not None and before.key == work.key and len(before.accuracies) == span.size:
            take(span, before)
    jobs = [Job(f"episodes from {span.first}", span) for span in spans if span not in parts]
    several = num_workers > 1 and len(jobs) > 1
    with worker_pool(min(num_workers, len(jobs))) if several else nullcontext() as pool:
        run_jobs(jobs, work, keep_going=False, told=keep, executor=pool)
    return joined([_table(work.heads, parts[span]) for span in spans])


def _file(span: EpisodeSpan) -> str:
    return f"episodes/{span.first:05d}.json"


def _table(heads: Sequence[str] | Mapping[str, Any], part: EpisodesPart) -> EpisodeTable:
    return EpisodeTable(
        tuple(heads),
        np.array(part.accuracies),
        np.array(part.seconds),
        np.array(part.num_ways),
        np.array(part.num_support),
        np.array(part.num_query),
        warnings=part.warnings,
    )
