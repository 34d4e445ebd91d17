"""The networks that the trainings of one fold start from, and are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from crossgraft.geometry.batch_norm import batch_norms_of, with_estimated_statistics
from crossgraft.models.classifier import Classifier
from crossgraft.models.fingerprint import weights_fingerprint
from crossgraft.tune.feed.images import TrainingImages

Statistics = Mapping[str, Tensor]
"""Means and variances of BatchNorm layers, named as in the state of the network."""


@dataclass(eq=False)
class FoldNetworks:
    """Copies, to be changed by whoever asks for them.

    Statistics of BatchNorm are estimated once, when they are first needed, and only of networks that have some.

    Attributes:
        load_start: Gives the network as it was prepared.
        load_pretrained: Gives the one with pretrained weights; None where they are not here.
        images: Training images of the fold.
        device: Where statistics are estimated.
        adapts: Whether training starts with statistics of these images.
    """

    load_start: Callable[[], Classifier]
    load_pretrained: Callable[[], Classifier | None]
    images: TrainingImages
    device: str
    adapts: bool = False

    def start(self) -> Classifier:
        """What every training of the fold starts from."""
        start = self.load_start()
        return _with(self._statistics, start) if self.adapts and self._statistics else start

    @property
    def start_in_checkpoints(self) -> dict[str, str]:
        """What a checkpoint says of the start, where that is computed: its last digits depend on the number of threads."""
        return {"starting weights": weights_fingerprint(self.load_start())[:16]} if self.adapts else {}

    def pretrained(self) -> Classifier | None:
        """With its weights and statistics as they came; None where they are not here."""
        return self.load_pretrained()

    def adapted(self) -> Classifier | None:
        """The pretrained network with statistics of the training images; None where it has no BatchNorm, or is not here."""
        if not self._statistics:
            return None
        pretrained = self.load_pretrained()
        return None if pretrained is None else _with(self._statistics, pretrained)

    @cached_property
    def _statistics(self) -> Statistics:
        pretrained = self.load_pretrained()
        layers = [] if pretrained is None else batch_norms_of(pretrained)
        if pretrained is None or not layers:
            return {}
        state = with_estimated_statistics(pretrained, self.images, device=self.device).state_dict()
        return {
            f"{name}.{kind}": state[f"{name}.{kind}"] for name in layers for kind in ("running_mean", "running_var")
        }


def _with(statistics: Statistics, network: Classifier) -> Classifier:
    network.load_state_dict(statistics, strict=False)
    return network
