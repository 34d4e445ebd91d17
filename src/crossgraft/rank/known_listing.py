"""Known results as lines of ``crossgraft list results``."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.models.spec import TORCHVISION_PREFIX
from crossgraft.rank.known_record import KnownResult
from crossgraft.rank.published.tables import imagenet_results
from crossgraft.rank.results_store import PUBLISHED_WEIGHTS, known_results
from crossgraft.words.formatting import counted


def known_lines(only_model: str | None, only_target: str | None, only_from: str | None) -> list[dict[str, object]]:
    """Own results, newest first, then each publication on one line; with a filter, every result that fits it.

    Args:
        only_model: Text in the name of the model, whatever its case.
        only_target: In that of the target, or of its group.
        only_from: In that of the publication or command.
    """
    rows = [*known_results(), *_imagenet()]
    if only_model is None and only_target is None and only_from is None:
        own = [row for row in rows if row.weights != PUBLISHED_WEIGHTS]
        return [*map(_line, own), *_publications([row for row in rows if row.weights == PUBLISHED_WEIGHTS])]
    return [
        _line(row)
        for row in rows
        if _holds(only_model, row.model)
        and _holds(only_target, row.target, row.target_group)
        and _holds(only_from, row.origin)
    ]


def _imagenet() -> list[KnownResult]:
    """ImageNet top-1, from which networks that no table knows have their prior."""
    return [
        KnownResult(
            model=result.model,
            weights=PUBLISHED_WEIGHTS,
            source="as published",
            target="ImageNet",
            protocol="as pretrained",
            metric="accuracy",
            value=result.top1_percent / 100,
            origin="torchvision" if result.model.startswith(TORCHVISION_PREFIX) else "timm",
        )
        for result in imagenet_results().values()
    ]


def _holds(text: str | None, *names: str) -> bool:
    return text is None or any(text.lower() in name.lower() for name in names)


def _line(row: KnownResult) -> dict[str, object]:
    return {
        "model": row.model,
        "from": row.origin,
        "target": row.target,
        "metric": row.metric,
        "value": f"{row.value:.4f}",
        "interval": "" if row.low is None or row.high is None else f"[{row.low:.4f}, {row.high:.4f}]",
        "method": row.method,
        "source": row.source,
    }


def _publications(rows: Sequence[KnownResult]) -> list[dict[str, object]]:
    tables: dict[tuple[str, str, str], list[KnownResult]] = {}
    for row in rows:
        tables.setdefault((row.origin, row.protocol, row.metric), []).append(row)
    return [
        {
            "model": counted(len({row.identity for row in members}), "model"),
            "from": origin,
            "target": members[0].target
            if len(targets := {row.target for row in members}) == 1
            else counted(len(targets), "target"),
            "metric": metric,
            "value": counted(len(members), "result"),
            "interval": "",
            "method": members[0].method,
            "source": counted(len(sources), "source")
            if len(sources := {row.source for row in members}) > 1
            else members[0].source,
        }
        for (origin, _, metric), members in tables.items()
    ]
