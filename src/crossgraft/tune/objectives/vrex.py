"""VREx: mean losses of the domains that are not only small but alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from crossgraft.tune.objectives._over_domains import AnnealedPenalty, group_means, mean_of_present
from crossgraft.tune.protocols import ObjectiveContext


@dataclass(frozen=True)
class VREx(AnnealedPenalty):
    """Mean over domains e of R_e + weight · Var_e(R_e) (eq. 8), with the population variance.

    Cost: next to nothing beyond the task loss.

    Attributes:
        weight: Factor of the variance from ``anneal_steps`` on; 3, as in the Transfer Learning Library. The paper takes larger
            ones where domains differ in one known way.
        anneal_steps: Steps before that, with a factor of 1; then the optimiser begins anew.
    """

    name: ClassVar[str] = "vrex"
    title: ClassVar[str] = "Variance risk extrapolation"
    citation: ClassVar[str] = (
        "Krueger, Caballero, Jacobsen, Zhang, Binas, Zhang, Le Priol and Courville, Out-of-Distribution Generalization via Risk "
        "Extrapolation (REx), ICML 2021"
    )

    weight: float = 3.0

    def __call__(self, context: ObjectiveContext) -> dict[str, Tensor]:
        """``risk``, the mean over domains, and ``penalty``."""
        risks, present = group_means(context.losses, context.domains, context.num_domains)
        mean = mean_of_present(risks, present)
        variance = mean_of_present((risks - mean).square(), present)
        return {"risk": mean, "penalty": self.factor(context.step) * variance}
