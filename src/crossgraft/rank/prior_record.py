"""The static prior of a zoo as a control: which model did best on other data, before anything looks at these images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crossgraft.models.record import ModelRecord
from crossgraft.rank.known_record import PriorRecord, PriorRow
from crossgraft.rank.results_store import KnownTable
from crossgraft.rank.static_prior import static_prior
from crossgraft.records.base import CheckRecord
from crossgraft.words.formatting import counted, joined

NO_HISTORY = (
    "No other target has known results of two of these models, measured in the same way, so the static prior could not be "
    "asked."
)


def describe_prior(history: KnownTable, candidates: Sequence[ModelRecord]) -> PriorRecord | None:
    """Static prior of every candidate, the best first; None when no other target has results of two of them."""
    if not history.targets:
        return None
    prior = static_prior(history.results)
    known = np.isfinite(history.results)
    targets = np.asarray(history.targets)
    order = sorted(range(len(candidates)), key=lambda model: (prior.num_known[model] == 0, -prior.values[model]))
    rows = [
        PriorRow(
            model=candidates[model].name,
            num_targets=len(set(targets[known[:, model]].tolist())),  # one target may be known by several protocols
            mean_rank=float(prior.mean_ranks[model]) if prior.num_known[model] else None,
            prior_rank=place if prior.num_known[model] else None,
            origins=[*history.spoke[model]] if history.spoke else [],
        )
        for place, model in enumerate(order, start=1)
    ]
    number = counted(len(set(history.targets)), "other target")
    return PriorRecord(
        targets=list(dict.fromkeys(history.targets)),
        origins=history.origins,
        rows=rows,
        summary=f"The static prior, which never looks at these images, puts {rows[0].model} first: it did best on average on "
        f"{number}.",
    )


def check_prior(prior: PriorRecord | None) -> CheckRecord:
    """Whether the static prior was computed."""
    if prior is None:
        return CheckRecord(title="Static prior", severity="not assessed", text=NO_HISTORY)
    unknown = [row.model for row in prior.rows if row.num_targets == 0]
    text = f"Results on {counted(len(prior.targets), 'other target')} are known ({'; '.join(prior.origins)})."
    if unknown:
        text += f" Nothing is known of {joined(unknown)}."
    return CheckRecord(title="Static prior", severity="notice" if unknown else "passed", text=text)
