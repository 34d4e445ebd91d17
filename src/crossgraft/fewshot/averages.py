"""``average_runs``: heads over several data sets, seen and unseen, as the tables of Meta-Dataset have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from crossgraft.errors import RunDirectoryError, UsageError
from crossgraft.fewshot.options import AverageOptions
from crossgraft.fewshot.record import AveragedSet, AverageRow, AveragesRecord, FewshotRecord, HeadRow
from crossgraft.fewshot.result import LEADERBOARD, t_half_width
from crossgraft.report.kinds import read_run
from crossgraft.result import Result
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import open_run
from crossgraft.running.verb import Run, verb
from crossgraft.statistics import leaderboard_ranks
from crossgraft.words.formatting import counted, joined

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Averages(Result[AveragesRecord]):
    """Heads over data sets: ``record`` holds every number."""

    def summary(self) -> str:
        """The best head on average."""
        return averages_in_words(self.record)

    @property
    def primary(self) -> Mapping[str, object]:
        """The average of the best head."""
        best = self.record.heads[0]
        return {"metric": "average", "value": best.average, "head": best.head}

    def to_frame(self) -> pd.DataFrame:
        """One row per head, best first."""
        import pandas as pd

        return pd.DataFrame([row.model_dump() for row in self.record.heads])

    def sets(self) -> pd.DataFrame:
        """One row per data set: whether it is seen, and the accuracy of each head with half of its interval over episodes."""
        import pandas as pd

        rows = [
            {"set": each.name, "seen": each.seen, "head": head, "accuracy": value, "half_width": each.half_widths[head]}
            for each in self.record.sets
            for head, value in each.accuracies.items()
        ]
        return pd.DataFrame(rows)


def averages_in_words(record: AveragesRecord) -> str:
    """The best head on average, over seen and unseen data sets where there are both."""
    best = record.heads[0]
    parts = [f"{name} {value:.3f}" for name, value in (("seen", best.seen), ("unseen", best.unseen)) if value is not None]
    apart = f" ({', '.join(parts)})" if len(parts) > 1 else ""
    answer = (
        f"{best.head} has the best average with {record.model}: {best.average:.3f} over {counted(len(record.sets), 'data set')}"
        f"{apart}, mean rank {best.rank:.2f}"
    )
    return f"{answer}{_beside_the_next(record)}."


def _beside_the_next(record: AveragesRecord) -> str:
    """Whether the best head is surely ahead of the next one: the interval of their difference on the same data sets."""
    if len(record.heads) == 1:
        return ""
    best, second = (row.head for row in record.heads[:2])
    differences = np.array([each.accuracies[best] - each.accuracies[second] for each in record.sets])
    mean, half = float(differences.mean()), t_half_width(differences)
    if half is None:
        return f"; whether that of {second} is surely lower, only three data sets or more can tell"
    surely = "surely ahead of" if mean > half else "not separable from"
    return f", {surely} {second} (paired difference {mean:+.3f} ± {half:.3f}, 95\N{NO-BREAK SPACE}% interval)"


@verb("fewshot", AverageOptions)
def average_runs(runs: str | Path | Sequence[str | Path], options: AverageOptions, run: Run) -> Averages:
    """Average heads over the data sets of finished runs of ``run_episodes``: seen (``seen=True``), unseen, and all.

    Runs of one data set, with other seeds for example, are one: their means are averaged. Heads are matched by what they were
    written as, or, where settings differ from set to set, by their titles.

    Args:
        runs: Run directories, or folders that hold some at any depth; a text may name several with commas.
        {options}

    Returns:
        Means over data sets with intervals over data sets, and mean ranks; with ``out`` also ``report.html``, ``report.json``,
        ``averages.csv`` and ``sets.csv`` there.

    Raises:
        RunDirectoryError: A folder holds no finished run of ``crossgraft fewshot``.
        DataError: A record is damaged.
        UsageError: Runs have different networks or heads, a data set is marked as seen in one run and not in another, or two
            runs have the same tasks and results.

    Cost: reads files.
    """
    folders = {folder.resolve(): folder for given in _listed(runs) for folder in _runs_below(Path(given))}.values()
    record = averages_of([cast("FewshotRecord", read_run(folder).record) for folder in folders])
    result = Averages(record)
    if options.out is None:
        return result
    names = ",".join(str(given) for given in _listed(runs))
    line = run.said_again({}, out=options.out).replace(f"crossgraft {run.command}", f"crossgraft {run.command} --average", 1)
    with open_run(
        Path(options.out),
        command="fewshot --average",
        command_line=line,
        config={"average": names},
        seed=0,
        overwrite=options.overwrite,
    ) as directory:
        tables = {"averages.csv": result.to_frame(), "sets.csv": result.sets()}
        page = publish(directory, record, run.reporter, tables=tables)
        return replace(result, out=directory.path, report=page)


def averages_of(records: Sequence[FewshotRecord]) -> AveragesRecord:
    """The averages of at least one record; errors as of ``average_runs``."""
    networks = {record.model.weights_fingerprint: record for record in records}
    if len(networks) > 1:
        (weights, first), (others, second) = list(networks.items())[:2]
        raise UsageError(
            f"These runs are of different networks: {first.model.name} (weights {str(weights)[:8]}) on {first.dataset.name}, and "
            f"{second.model.name} (weights {str(others)[:8]}) on {second.dataset.name}. Average those of one network at a time."
        )
    by_set: dict[str, list[FewshotRecord]] = {}
    for record in records:
        by_set.setdefault(record.dataset.fingerprint, []).append(record)
    key = _key_of_heads(records)
    of_sets = [_one_set(group, key) for group in by_set.values()]
    heads = list(of_sets[0].accuracies)
    means = np.array([[each.accuracies[head] for head in heads] for each in of_sets])
    half_widths = np.array([[each.half_widths[head] or 0.0 for head in heads] for each in of_sets])
    ranks = leaderboard_ranks(means, half_widths)
    seen = np.array([each.seen for each in of_sets])
    rows = [_row(head, means[:, column], seen, float(ranks[column])) for column, head in enumerate(heads)]
    return AveragesRecord(
        model=records[0].model.name,
        heads=sorted(rows, key=lambda row: -row.average),
        sets=sorted(of_sets, key=lambda each: not each.seen),
        samplers=list(dict.fromkeys(record.sampler for record in records)),
        references=[LEADERBOARD],
    )


def _row(head: str, values: np.ndarray, seen: np.ndarray, rank: float) -> AverageRow:
    of_seen, of_unseen = values[seen], values[~seen]
    return AverageRow(
        head=head,
        seen=float(of_seen.mean()) if len(of_seen) else None,
        seen_half_width=t_half_width(of_seen),
        unseen=float(of_unseen.mean()) if len(of_unseen) else None,
        unseen_half_width=t_half_width(of_unseen),
        average=float(values.mean()),
        half_width=t_half_width(values),
        rank=rank,
    )


def _one_set(records: Sequence[FewshotRecord], key: str) -> AveragedSet:
    """Runs of one data set as one: the mean of their means, and the interval of that mean over all of their episodes."""
    name = records[0].dataset.name
    if len({record.seen for record in records}) > 1:
        raise UsageError(
            f"{name} is marked as seen in one run and not in another. Run one of them again, with or without --seen."
        )
    results = [
        [record.sampler, record.sizes, *sorted((row.head, row.accuracy, row.half_width) for row in record.heads)]
        for record in records
        if any(row.half_width for row in record.heads)
    ]
    if any(each in results[:place] for place, each in enumerate(results)):
        raise UsageError(
            f"Two runs of {name} have the same tasks and results, so their episodes would count twice. Leave one out, or run it "
            "again with another --seed."
        )
    rows: dict[str, list[HeadRow]] = {}
    for record in records:
        for row in record.heads:
            rows.setdefault(getattr(row, key), []).append(row)
    return AveragedSet(
        name=name,
        seen=records[0].seen,
        num_episodes=sum(record.num_episodes * record.num_seeds for record in records),
        accuracies={head: float(np.mean([row.accuracy for row in of])) for head, of in sorted(rows.items())},
        half_widths={head: _half_width_of_mean(of) for head, of in sorted(rows.items())},
    )


def _half_width_of_mean(rows: Sequence[HeadRow]) -> float | None:
    known = [row.half_width for row in rows if row.half_width is not None]
    return float(np.linalg.norm(known)) / len(rows) if len(known) == len(rows) else None


def _key_of_heads(records: Sequence[FewshotRecord]) -> str:
    """``head`` or ``title``: the field by which all runs have the same heads, each once.

    Raises:
        UsageError: There is none.
    """
    for key in ("head", "title"):
        names = [sorted(getattr(row, key) for row in record.heads) for record in records]
        if all(each == names[0] and len({*each}) == len(each) for each in names):
            return key
    first = {row.head for row in records[0].heads}
    other = next(record for record in records if {row.head for row in record.heads} != first)
    odd = sorted(first ^ {row.head for row in other.heads})
    raise UsageError(
        f"The runs of {records[0].dataset.name} and {other.dataset.name} have different heads: {joined(odd)} "
        f"{'is' if len(odd) == 1 else 'are'} in one alone. Average runs of the same heads; their settings may differ."
    )


def _listed(runs: str | Path | Sequence[str | Path]) -> list[str | Path]:
    if isinstance(runs, str | Path):
        return [each.strip() for each in str(runs).split(",") if each.strip()]
    return list(runs)


def _runs_below(folder: Path) -> Iterator[Path]:
    """The folder, if it is a run of few-shot episodes, or all that are below it."""
    if not folder.is_dir():
        raise RunDirectoryError(f"No such folder: {folder}. Name finished runs of crossgraft fewshot, or a folder with some.")
    of_episodes = f'"kind": "{FewshotRecord.model_fields["kind"].default}"'
    found = [
        file.parent
        for file in [folder / "report.json", *sorted(folder.glob("**/*/report.json"))]
        if file.is_file() and of_episodes in file.read_text(encoding="utf-8")[:500]
    ]
    if not found:
        raise RunDirectoryError(
            f"{folder} holds no finished run of tasks drawn from images. Make some: crossgraft fewshot DATA --model MODEL --out …"
        )
    yield from found
