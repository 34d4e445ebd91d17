"""What ``run_episodes`` returns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t as student_t

from crossgraft.fewshot.evaluate import EpisodeTable, joined
from crossgraft.fewshot.heads import HEADS
from crossgraft.fewshot.look import AS_IT_IS
from crossgraft.fewshot.record import FewshotRecord, GapPoint, GapSummary, HeadRow, SizeRow, answer_in_words
from crossgraft.records.base import Reference
from crossgraft.result import Result
from crossgraft.statistics import leaderboard_ranks
from crossgraft.statistics.exact_tests import LEAST_VALUES

if TYPE_CHECKING:
    import pandas as pd


LEADERBOARD = Reference(
    key="ranks",
    text="Triantafillou, Zhu, Dumoulin and others, Meta-Dataset: A Dataset of Datasets for Learning to Learn from Few Examples, "
    "ICLR 2020, and its leaderboard.",
)


def describe_heads(of_seeds: Sequence[EpisodeTable], heads: Mapping[str, Any], baseline: str) -> list[HeadRow]:
    """One row per head, best first; of equal ones in the given order.

    Args:
        of_seeds: The same heads on the episodes of each seed.
        heads: Name → head.
        baseline: Head that the others are compared with.
    """
    table = joined(of_seeds)
    means = np.array([[table.accuracy(name).mean for name in table.heads]])
    half_widths = np.array([[table.accuracy(name).half_width for name in table.heads]])
    known = np.nan_to_num(half_widths)  # without intervals means rank as they are
    ranks = leaderboard_ranks(means, known)
    plain = leaderboard_ranks(means, known, ties="exact")
    rows = [
        _row(table, name, heads[name], baseline, rank=float(rank), plain_rank=float(exact)).model_copy(
            update=_over_seeds(of_seeds, name, baseline)
        )
        for name, rank, exact in zip(table.heads, ranks, plain, strict=True)
    ]
    return sorted(rows, key=lambda row: -row.accuracy)


def _over_seeds(of_seeds: Sequence[EpisodeTable], name: str, baseline: str) -> dict[str, Any]:
    """What repeats with other seeds add to a row; nothing for one seed."""
    if len(of_seeds) == 1:
        return {}
    means = np.array([table.accuracy(name).mean for table in of_seeds])
    gaps = np.array([table.difference(name, baseline).mean for table in of_seeds])
    return {
        "by_seed": means.tolist(),
        "seeds_half_width": t_half_width(means),
        "difference_seeds_half_width": None if name == baseline else t_half_width(gaps),
        "no_seeds_interval_reason": None
        if len(means) >= LEAST_VALUES
        else f"{len(means)} seeds, where {LEAST_VALUES} are needed",
    }


def t_half_width(means: np.ndarray) -> float | None:
    """Half of the interval of 95 % of their mean (Student's t), as means of many episodes are about normal; None below three.

    Args:
        means: (n,) one for each seed, or data set.
    """
    if len(means) < LEAST_VALUES:
        return None
    return float(student_t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / math.sqrt(len(means)))


def _row(table: EpisodeTable, name: str, head: Any, baseline: str, *, rank: float, plain_rank: float) -> HeadRow:
    accuracy = table.accuracy(name)
    difference = None if name == baseline else table.difference(name, baseline)
    prefix = f"{name}: "
    warned = {text.removeprefix(prefix): n for text, n in table.warnings.items() if text.startswith(prefix)}
    return HeadRow(
        head=name,
        title=str(getattr(head, "title_in_full", getattr(head, "title", type(head).__name__))),
        accuracy=accuracy.mean,
        half_width=_known(accuracy.half_width),
        no_interval_reason=accuracy.reason,
        difference=None if difference is None else difference.mean,
        difference_half_width=None if difference is None else _known(difference.half_width),
        difference_no_interval_reason=None if difference is None else difference.reason,
        rank=rank,
        plain_rank=plain_rank,
        seconds=float(table.seconds[table.heads.index(name)]),
        warnings=dict.fromkeys(notes_of_head(head), len(table.accuracies)) | warned,
    )


def describe_gaps(of_episodes: Sequence[Sequence[GapPoint]]) -> list[GapSummary]:
    """Means over episodes, in the order in which the points came."""
    by_place: dict[tuple[str, Any, float], list[GapPoint]] = {}
    for points in of_episodes:
        for each in points:
            by_place.setdefault((each.head, each.moved, each.at), []).append(each)
    found: list[GapSummary] = []
    for (head, moved, at), points in by_place.items():
        accuracies = np.array([each.accuracy for each in points])
        last = max(place for name, how, place in by_place if (name, how) == (head, moved))
        usual = by_place[head, moved, AS_IT_IS.get(moved, last)]
        gains = accuracies - np.array([each.accuracy for each in usual])
        known = {
            name: [value for each in points if (value := getattr(each, name)) is not None]
            for name in ("coefficient", "squared_ratio")
        }
        found.append(
            GapSummary(
                head=head,
                moved=moved,
                at=at,
                gap=float(np.mean([each.gap for each in points])),
                gap_by_class=float(np.mean([each.gap_by_class for each in points])),
                accuracy=float(accuracies.mean()),
                **{name: float(np.mean(values)) if values else None for name, values in known.items()},
                difference=float(gains.mean()),
                difference_half_width=t_half_width(gains),
            )
        )
    return found


def notes_of_head(head: Any) -> list[str]:
    """What the options of a head mean for its results, one sentence or two each."""
    if not hasattr(head, "class_weights") or head.class_weights is not None:
        return []
    return [f"No class weights were given, so that prototypes take their place. Give some: {head.name}:class_weights=FILE."]


def leans_towards_large_classes(head: Any, sampler: Any) -> bool:
    """Whether a head weighs classes by their number of images, in episodes where these numbers differ."""
    return getattr(head, "balanced", None) is False and not getattr(sampler, "equal_shots", False)


def _known(half_width: float) -> float | None:
    return None if math.isnan(half_width) else half_width


def describe_sizes(table: EpisodeTable) -> list[SizeRow]:
    """Ways, shots and queries over the episodes."""
    sizes = {
        "Ways": table.num_ways,
        "Support images": table.num_support,
        "Support images per class": table.num_support / table.num_ways,
        "Queries": table.num_query,
    }
    return [
        SizeRow(name=name, least=int(values.min()), mean=float(values.mean()), most=int(np.ceil(values.max())))
        for name, values in sizes.items()
    ]


def cite(heads: Mapping[str, Any]) -> list[Reference]:
    """The papers behind the heads."""
    known = {type(head) for head in heads.values()} & {head for _, head in HEADS}
    return [Reference(key=head.title, text=f"{head.reference}.") for head in sorted(known, key=lambda each: each.title)]


def cite_heads(heads: Mapping[str, Any], sampler: Any) -> list[Reference]:
    """The papers behind the heads and the episodes."""
    return [*cite(heads), Reference(key=sampler.title, text=f"{sampler.reference}."), LEADERBOARD]


@dataclass(frozen=True, eq=False, repr=False)
class FewshotResult(Result[FewshotRecord]):
    """Heads on the same episodes: ``record`` holds the means.

    Attributes:
        table: Accuracy of every head on every episode.
    """

    table: EpisodeTable | None = field(default=None, kw_only=True)

    def summary(self) -> str:
        """The best head, and how it stands to the baseline."""
        return f"{self.record.dataset.name} with {self.record.model.name}: {answer_in_words(self.record)}"

    @property
    def primary(self) -> Mapping[str, object]:
        """The accuracy of the best head."""
        best = self.record.heads[0]
        half = best.half_width
        ends = {} if half is None else {"low": best.accuracy - half, "high": best.accuracy + half}
        return {"metric": "accuracy", "value": best.accuracy, **ends}

    def to_frame(self) -> pd.DataFrame:
        """One row per head, best first."""
        import pandas as pd

        return pd.DataFrame([row.model_dump(exclude={"warnings", "by_seed"}) for row in self.record.heads])

    def gaps(self) -> pd.DataFrame:
        """One row for each head, way of moving its gap and place, a mean over episodes; empty where the gap was left as it is."""
        import pandas as pd

        return pd.DataFrame([row.model_dump() for row in self.record.gaps])

    def episodes(self) -> pd.DataFrame:
        """One row per episode: its repeat where there are several, its sizes, and the accuracy of each head."""
        import pandas as pd

        table = self.table
        if table is None:
            return pd.DataFrame()
        sizes = {"ways": table.num_ways, "support": table.num_support, "query": table.num_query}
        if (count := self.record.num_seeds) > 1:
            sizes = {"repeat": np.repeat(np.arange(count), len(table.num_ways) // count), **sizes}
        return pd.DataFrame({**sizes, **dict(zip(table.heads, table.accuracies.T, strict=True))})
