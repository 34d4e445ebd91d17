"""NCC: the class whose prototype is nearest (ProtoNet without training)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from crossgraft.errors import UnknownNameError
from crossgraft.fewshot.heads._head import Classes, Head, Logits, Members, Prototypes, Rows, scaled_cosines
from crossgraft.types import Features


def _l2(query: Rows, prototypes: Prototypes) -> Logits:
    """−‖q − p‖² up to a number of each query, which softmax does not see; no difference of large squares."""
    middle = prototypes.mean(dim=0)
    query, prototypes = query - middle, prototypes - middle
    return 2 * query @ prototypes.T - prototypes.square().sum(dim=1) - query.square().sum(dim=1, keepdim=True)


DISTANCES: Mapping[str, Callable[[Rows, Prototypes], Logits]] = {
    "cos": scaled_cosines,
    "l2": _l2,
    "lin": lambda query, prototypes: query @ prototypes.T,
}


@dataclass(eq=False, repr=False)
class NccHead(Head):
    """Nearest class centre: nothing is trained.

    Args:
        distance: ``cos``: 10 times the cosine; ``l2``: minus the squared Euclidean distance, as in ProtoNet; ``lin``: the inner
            product.

    Attributes:
        prototypes_: (C, d) mean of the features of each class.

    Cost: n·d for ``fit``, m·C·d for a prediction.

    Source: Snell, Swersky and Zemel, Prototypical Networks for Few-shot Learning, NeurIPS 2017; with cosines as in
    Li, Liu and Bilen, Universal Representation Learning, ICCV 2021.
    """

    name: ClassVar[str] = "ncc"
    title: ClassVar[str] = "NCC"
    reference: ClassVar[str] = "Snell, Swersky and Zemel, Prototypical Networks for Few-shot Learning, NeurIPS 2017"

    distance: str = "cos"

    def check(self) -> None:
        """Refuse a distance that is not known."""
        if self.distance not in DISTANCES:
            raise UnknownNameError("distance of ncc", str(self.distance), DISTANCES)

    def adapt(self, support: Rows, classes: Classes, num_classes: int) -> None:
        """Take the mean of each class."""
        self.prototypes_ = Members.of(classes, num_classes, support).means(support).numpy()

    def logits_of(self, query: Rows) -> Logits:
        """By the chosen distance."""
        return DISTANCES[self.distance](query, torch.from_numpy(self.prototypes_))

    def clouds(self, support: Features) -> tuple[np.ndarray, np.ndarray]:
        """Images as they come, and their prototypes."""
        return np.asarray(support), self.prototypes_
