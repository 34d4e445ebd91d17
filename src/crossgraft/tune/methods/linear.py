"""LINEAR: train the head alone on fixed features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crossgraft.models.classifier import Classifier
from crossgraft.tune.methods._selection import sort_parameters
from crossgraft.tune.protocols import Method, Selection


@dataclass(frozen=True)
class Linear(Method):
    """Keep the pretrained network as it is and train a linear map from its features to the classes.

    The body stays in eval mode, so the features of an image never change and may be computed once.
    """

    name: ClassVar[str] = "linear"
    title: ClassVar[str] = "Linear probing"
    citation: ClassVar[str] = "Kornblith, Shlens, Le: Do Better ImageNet Models Transfer Better?, CVPR 2019 (arXiv 1805.08974)"
    features_are_fixed: ClassVar[bool] = True

    def select(self, classifier: Classifier) -> Selection:
        """Only the head."""
        return sort_parameters(
            classifier, lambda _name: False, trained="", frozen="only the head is trained", train_mode=("head",)
        )
