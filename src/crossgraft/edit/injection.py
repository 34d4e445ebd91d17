"""Which images carry an artefact: drawn by image, so that neither order nor number of processes matters."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool

from crossgraft.errors import DataError

Mask = Bool[np.ndarray, " num_images"]


def draw_carriers(
    candidates: Mask,
    share: float,
    identities: Sequence[str],
    *,
    parts: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    seed: int = 0,
) -> Mask:
    """Which of the candidates carry an artefact: round(share · n) of each part, halves to the even number.

    Draws are nested: who carries it at a share of 0.2 carries it at 0.5, too.

    Args:
        candidates: (n,) which images may carry it, for example the positives.
        share: p_art, in [0, 1].
        identities: Identity of each image, such as the digest of its pixels; it decides the order of the draw.
        parts: (n,) part of each image, of which each gets its own share; None: one part.
        groups: (n,) patient of each image: whole patients carry it, and the share is that of patients. None: images.
        seed: Random seed.

    Raises:
        DataError: The share is not in [0, 1].
    """
    carriers = np.zeros(len(candidates), dtype=bool)
    names = np.zeros(len(candidates), dtype=np.int64) if parts is None else np.asarray(parts)
    for part in np.unique(names):
        rows = np.flatnonzero(candidates & (names == part))
        units = rows if groups is None else np.asarray(groups)[rows]
        keys: dict[Any, bytes] = {
            unit: hashlib.sha256(f"{seed}\x1f{identities[row] if groups is None else f'group {unit}'}".encode()).digest()
            for row, unit in zip(rows.tolist(), units.tolist(), strict=True)
        }
        order = sorted(keys, key=lambda unit: keys[unit])
        chosen = set(order[: num_edited(len(order), share)])
        carriers[rows] = [unit in chosen for unit in units.tolist()]
    return carriers


def num_edited(number: int, share: float) -> int:
    """round(share · number), halves to the even number, as the released code draws them.

    Raises:
        DataError: The share is not in [0, 1].
    """
    if not 0 <= share <= 1:
        raise DataError(f"A share of images must lie in [0, 1], got {share!r}.")
    return round(share * number)
