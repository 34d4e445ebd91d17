"""What the few-shot study keeps: one row per set, network, rule for the episodes and head; beside it accuracies by episode."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from crossgraft.fewshot import EpisodeTable
from crossgraft.storage.atomic import write_atomically

BASELINES = ("logistic", "ridge")
CPU = "cpu"
BALANCED = "balanced"
"""Kind of the pieces whose baselines count classes equally, however many images each has."""


@dataclass(frozen=True)
class HeadResult:
    """One head in one piece; half widths are of intervals of 95 %, differences are paired by episode.

    Attributes:
        less_logistic: Difference to the logistic regression that is a baseline of this kind of piece.
        less_ridge: The same of ridge regression.
        milliseconds: Of a fit and a predict: median over the episodes of the time of the thread. In rows without kept episodes
            the mean of the time of the clock; None on a GPU, for which a thread only waits.
        device: Where the network was: cpu, or the name of a GPU.
    """

    network: str
    kind: str
    sampler: str
    head: str
    episodes: int
    ways: float
    support: float
    accuracy: float
    half_width: float
    less_logistic: float | None
    less_logistic_half: float | None
    less_ridge: float | None
    less_ridge_half: float | None
    milliseconds: float | None
    device: str = CPU

    def less(self, baseline: str) -> tuple[float, float] | None:
        """Difference to a baseline and half of its interval; None for itself."""
        found = getattr(self, f"less_{baseline}")
        return None if found is None else (found, getattr(self, f"less_{baseline}_half"))


def baselines_of(kind: str) -> tuple[str, str]:
    """The logistic and the ridge regression that heads are compared with in pieces of a kind."""
    first, second = (f"{name}:balanced=True" if kind == BALANCED else name for name in BASELINES)
    return first, second


def results(network: str, kind: str, sampler: str, table: EpisodeTable, device: str = CPU) -> Iterator[HeadResult]:
    """One row per head."""
    costs = table.seconds if table.thread_seconds is None else np.median(table.thread_seconds, axis=0)
    for head, seconds in zip(table.heads, costs, strict=True):
        accuracy = table.accuracy(head)
        less = {
            name: table.difference(head, baseline) if head != baseline else None
            for name, baseline in zip(BASELINES, baselines_of(kind), strict=True)
        }
        yield HeadResult(
            network=network,
            kind=kind,
            sampler=sampler,
            head=head,
            episodes=len(table.accuracies),
            ways=round(float(table.num_ways.mean()), 2),
            support=round(float(table.num_support.mean()), 2),
            accuracy=round(accuracy.mean, 5),
            half_width=round(accuracy.half_width, 5),
            **{
                f"less_{name}{suffix}": None if found is None else round(getattr(found, field), 5)
                for name, found in less.items()
                for suffix, field in (("", "mean"), ("_half", "half_width"))
            },
            milliseconds=round(1000 * float(seconds), 2) if device == CPU else None,
            device=device,
        )


def read_rows(folder: Path, name: str) -> list[HeadResult]:
    """Of one set; empty where nothing is done."""
    file = folder / f"{name}.csv"
    if not file.is_file():
        return []
    with file.open(newline="", encoding="utf-8") as opened:
        return [
            HeadResult(**{each.name: _typed(row[each.name], str(each.type)) for each in fields(HeadResult)})
            for row in csv.DictReader(opened)
        ]


def write_rows(folder: Path, name: str, rows: Sequence[HeadResult]) -> None:
    """All rows of one set."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, [each.name for each in fields(HeadResult)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    write_atomically(folder / f"{name}.csv", text.getvalue())


def keep_episodes(folder: Path, name: str, rows: Sequence[HeadResult], table: EpisodeTable) -> None:
    """Add the accuracies of each row, episode by episode, to those of one set: a line per row, numbers between blanks."""
    file = folder / f"{name}-episodes.csv.gz"
    before = gzip.decompress(file.read_bytes()).decode() if file.is_file() else "network,kind,sampler,head,accuracies\n"
    text = io.StringIO(before, newline="")
    text.seek(0, io.SEEK_END)
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        accuracies = table.accuracies[:, table.heads.index(row.head)]
        writer.writerow([row.network, row.kind, row.sampler, row.head, " ".join(f"{each:.4g}" for each in accuracies)])
    write_atomically(file, gzip.compress(text.getvalue().encode(), mtime=0))


def _typed(text: str, kind: str) -> object:
    if kind == "str":
        return text
    return None if text == "" else (int(text) if kind == "int" else float(text))
