"""A look at test images, put down in the ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from crossgraft.data.fingerprint import dataset_fingerprint
from crossgraft.data.rows import ImageRows
from crossgraft.metrics.record import MetricRecord
from crossgraft.progress import Reporter
from crossgraft.records.base import Look, LooksRecord
from crossgraft.running.ledger import count_looks


def count_test_look(
    dataset: ImageRows,
    tested: Int[np.ndarray, " _"],
    measured: Sequence[str],
    primary: MetricRecord | None,
    *,
    command: str,
    reporter: Reporter,
    is_result: bool = True,
) -> LooksRecord | None:
    """Count one look; the same networks on the same images are the same look.

    Args:
        dataset: All rows.
        tested: Those that were looked at, in any order.
        measured: What names the networks and nothing else, such as fingerprints of their weights.
        primary: The metric that the page is about, with its interval.
        command: Name of the command that looked.
        reporter: Reporter of a ledger that cannot be used.
        is_result: Whether the look says how good the networks are, so that the best of several can be picked by it.
    """
    look = Look(
        test=fingerprint_of_tested(dataset, tested),
        measured=hashlib.sha256(" ".join(measured).encode()).hexdigest(),
        command=command,
        is_result=is_result,
    )
    low, high = (None, None) if primary is None else (primary.low, primary.high)
    return count_looks(look, low=low, high=high, reporter=reporter)


def fingerprint_of_tested(dataset: ImageRows, tested: Int[np.ndarray, " _"]) -> str:
    """64 hexadecimal digits of pixels and labels: in another order, or without their groups, images are no other images.

    Args:
        dataset: All rows.
        tested: Those that are meant, in any order.
    """
    rows = dataset.take(tested)
    digests, labels = rows.image_digests, rows.labels.tolist()
    ordered = sorted(range(len(rows)), key=lambda row: (digests[row], labels[row]))
    return dataset_fingerprint([digests[row] for row in ordered], rows.labels[ordered], None)
