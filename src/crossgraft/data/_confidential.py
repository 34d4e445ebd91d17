"""What objects show of the people whose images they hold: nothing, neither on a screen nor in a pickle."""

from __future__ import annotations

from typing import Any

import numpy as np


class Confidential:
    """Base of objects that hold patients, ages or sites: shown by their class alone, and sent to no other process."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __getstate__(self) -> dict[str, Any]:
        """For ``pickle``.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"{type(self).__name__} holds what data say of people, and is not pickled. Pickle a Dataset.")


def group_numbers(groups: np.ndarray | None) -> np.ndarray | None:
    """0 … G−1 instead of names, in the order of the names: splits and folds come out as with the names themselves."""
    return None if groups is None else np.unique(groups, return_inverse=True)[1]
