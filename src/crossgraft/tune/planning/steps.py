"""How many steps a training has."""

from __future__ import annotations


def steps_per_epoch(num_train: int, batch_size: int) -> int:
    """Batches of one epoch, as ``BatchPlan`` makes them: a last batch of one image joins the one before.

    >>> [steps_per_epoch(n, 8) for n in (5, 16, 17, 18)]
    [1, 2, 2, 3]
    """
    full, rest = divmod(num_train, batch_size)
    return max(1, full + (rest > 1 or (rest == 1 and full == 0)))


def fewest_in_a_batch(num_train: int, batch_size: int) -> int:
    """Images of the smallest batch of an epoch.

    >>> [fewest_in_a_batch(n, 8) for n in (5, 16, 17, 18)]
    [5, 8, 8, 2]
    """
    rest = num_train % batch_size
    return min(num_train, batch_size) if rest < 2 else rest
