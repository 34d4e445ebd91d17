"""A mitigation beside plain training, on the shares at which label and artefact can be told apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crossgraft.audit.fold_scores import FoldScores
from crossgraft.audit.mitigation import Mitigation
from crossgraft.audit.probing import Features, sweep_features
from crossgraft.audit.reliance import LEAST_SHARES
from crossgraft.audit.rows import AuditRows, Unit
from crossgraft.errors import UsageError


@dataclass(frozen=True, eq=False)
class MitigatedSweep:
    """What a mitigation gives.

    Attributes:
        scores: Every fold at every share that it can be used at, and plain training at share 0 where it has nothing to weigh.
        plain: Plain training at the same shares.
        left_out: Shares at which it was refused.
    """

    scores: list[FoldScores]
    plain: list[FoldScores]
    left_out: tuple[float, ...]


def sweep_mitigated(
    clean: Features,
    edited: Features,
    rows: AuditRows,
    plain: Sequence[FoldScores],
    mitigation: Mitigation,
    *,
    negatives: float,
    unit: Unit,
    seed: int,
    told: Callable[[], object] = lambda: None,
) -> MitigatedSweep:
    """Fit a mitigation at every share of ``plain``.

    Args:
        clean: (n, d) features of all images as they are.
        edited: (n, d) of the same images with the artefact.
        rows: What each image is for.
        plain: Scores of plain training, from ``sweep_features``.
        mitigation: The strategy.
        negatives: Share of the negatives that carry the artefact.
        unit: What is drawn.
        seed: Random seed.
        told: Called after each model.

    Raises:
        UsageError: It is refused at so many shares that fewer than three are left; the message is that of the refusal.
    """
    found: list[FoldScores] = []
    left_out: list[float] = []
    refusal = ""
    for share in sorted({each.share for each in plain}):
        try:
            found += sweep_features(
                clean, edited, rows, [share], mitigation, negatives=negatives, unit=unit, seed=seed, told=told
            )
        except UsageError as error:
            if share > 0:
                left_out.append(share)
                refusal = str(error)
            else:  # no positive carries it, so there is nothing to weigh
                found += [each for each in plain if each.share == 0]
    kept = {each.share for each in found}
    if len(kept) < LEAST_SHARES:
        raise UsageError(refusal or f"{mitigation.name} needs at least {LEAST_SHARES} shares.")
    return MitigatedSweep(found, [each for each in plain if each.share in kept], tuple(left_out))
