"""GroupDRO: the worst group decides, softly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.conflicts import Situation
from crossgraft.errors import UsageError
from crossgraft.tune.objectives._over_domains import group_means
from crossgraft.tune.protocols import Objective, ObjectiveContext


@dataclass
class GroupDRO(Objective):
    """Σ_g q_g L_g with weights q that follow the losses: q_g ← q_g · exp(η L_g), normalised (algorithm 1).

    L_g is the mean loss of group g in the batch, and q is updated before it is used. Every batch has as many images of each
    group, without which the weights follow the groups' sizes. A group without an image in a batch keeps its weight in
    proportion, and adds nothing there.

    Cost: next to nothing beyond the task loss.

    Attributes:
        eta: η > 0, how fast the weights follow.
        groups: ``domains``, or ``domains_and_classes``: each class of each domain is a group.

    Raises:
        UsageError: η is not a positive number.
    """

    name: ClassVar[str] = "group_dro"
    title: ClassVar[str] = "Group distributionally robust optimisation"
    citation: ClassVar[str] = (
        "Sagawa, Koh, Hashimoto and Liang, Distributionally Robust Neural Networks for Group Shifts, ICLR 2020"
    )
    needs_domains: ClassVar[bool] = True

    eta: float = 0.01
    groups: Literal["domains", "domains_and_classes"] = "domains"

    def __post_init__(self) -> None:
        if not 0 < self.eta < math.inf:
            raise UsageError(f"group_dro: eta must be above 0, not {self.eta}.")
        if self.groups not in ("domains", "domains_and_classes"):
            raise UsageError(f"group_dro: groups is domains or domains_and_classes, not {self.groups}.")
        self._log_weights = torch.zeros(0)

    @property
    def sampler(self) -> str:
        """As many images of each group."""
        return self.groups

    @property
    def weights(self) -> Float[Tensor, " num_groups"]:
        """q, which sum to 1; with classes those of the first domain come first."""
        return self._log_weights.exp()

    def conflicts(self, situation: Situation) -> str | None:
        """Mixed images belong to no class."""
        if self.groups == "domains_and_classes" and situation.mixes:
            return (
                "--objective group_dro:groups=domains_and_classes weighs classes, and mixed images belong to two of them. Leave "
                "out the transforms that mix (--batch-transform), or take groups=domains."
            )
        return None

    def attach(self, *, num_domains: int, num_classes: int) -> None:
        """All groups alike."""
        num_groups = num_domains * (1 if self.groups == "domains" else num_classes)
        self._log_weights = torch.full((num_groups,), -math.log(num_groups), dtype=torch.float64)

    def __call__(self, context: ObjectiveContext) -> dict[str, Tensor]:
        """``risk``, weighted."""
        groups, num_groups = context.domains, context.num_domains
        if self.groups == "domains_and_classes":
            num_classes = context.targets.shape[1]
            groups, num_groups = num_classes * groups + context.targets.argmax(1), num_classes * num_groups
        losses, _ = group_means(context.losses, groups, num_groups)
        weights = self._log_weights.to(losses)
        self._log_weights = (weights + self.eta * losses.detach()).log_softmax(0)
        return {"risk": (self._log_weights.exp() * losses).sum()}

    def state_dict(self) -> dict[str, Tensor]:
        """Log q."""
        return {"log_weights": self._log_weights}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Log q as they were."""
        self._log_weights = state["log_weights"]
