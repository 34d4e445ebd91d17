"""FULL: train everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crossgraft.models.classifier import Classifier
from crossgraft.tune.methods._selection import sort_parameters
from crossgraft.tune.protocols import Method, Selection


@dataclass(frozen=True)
class Full(Method):
    """Start at the pretrained weights and train all of them, and the new head."""

    name: ClassVar[str] = "full"
    title: ClassVar[str] = "Full fine-tuning"
    citation: ClassVar[str] = "Yosinski, Clune, Bengio, Lipson: How transferable are features in deep neural networks?, NIPS 2014"

    def select(self, classifier: Classifier) -> Selection:
        """Everything that can be trained is."""
        return sort_parameters(classifier, lambda _name: True, trained="all is trained", frozen="", train_mode=("",))
