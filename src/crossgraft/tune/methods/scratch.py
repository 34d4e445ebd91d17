"""SCRATCH: the same architecture without its pretrained weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crossgraft.models.classifier import Classifier
from crossgraft.tune.methods._selection import sort_parameters
from crossgraft.tune.protocols import Method, Selection


@dataclass(frozen=True)
class Scratch(Method):
    """Draw every weight at random and train everything: what pretraining is measured against."""

    name: ClassVar[str] = "scratch"
    title: ClassVar[str] = "Training from scratch"
    citation: ClassVar[str] = "He, Girshick, Dollár: Rethinking ImageNet Pre-training, ICCV 2019 (arXiv 1811.08883)"
    starts_from_scratch: ClassVar[bool] = True

    def select(self, classifier: Classifier) -> Selection:
        """Everything that can be trained is."""
        return sort_parameters(
            classifier, lambda _name: True, trained="all is trained, from random weights", frozen="", train_mode=("",)
        )
