"""What a regulariser says that learns nothing of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from crossgraft.tune.regularizers._regularizer import StepUpdate


class NothingLearned:
    """No parameters, no modules, and no state: a resumed run attaches to the starting weights again."""

    def after_step(self, update: StepUpdate) -> None:
        """Nothing."""

    def parameter_groups(self) -> list[dict[str, Any]]:
        """None."""
        return []

    def modules(self) -> list[nn.Module]:
        """None: a frozen copy of the network is nobody's module."""
        return []

    def state_dict(self) -> dict[str, Tensor]:
        """Nothing."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Nothing."""
