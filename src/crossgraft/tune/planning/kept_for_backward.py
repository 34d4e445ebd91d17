"""How much memory a step keeps for its backward pass."""

from __future__ import annotations

from functools import cached_property

from torch import Tensor

from crossgraft.models.classifier import Classifier


class KeptForBackward:
    """Counts what autograd keeps in the first step; weights are not counted, because they are there anyway."""

    def __init__(self, classifier: Classifier) -> None:
        self._classifier = classifier
        self._sizes: dict[int, int] = {}
        self.most, self.is_done = 0, False

    @cached_property
    def _weights(self) -> set[int]:
        """Their places when the first tensor is kept: training has then put them in the order of memory that it wants."""
        return {parameter.data_ptr() for parameter in self._classifier.parameters()}

    def pack(self, tensor: Tensor) -> Tensor:
        """Remember the size of a tensor that is kept."""
        place = tensor.data_ptr()
        if not self.is_done and place not in self._weights:
            self._sizes[place] = max(self._sizes.get(place, 0), tensor.nbytes)
            self.most = max(self.most, sum(self._sizes.values()))
        return tensor.detach()  # an output that is kept by what made it would never go where no backward pass follows

    def unpack(self, tensor: Tensor) -> Tensor:
        """The backward pass has begun, so that the next step starts from nothing."""
        self._sizes.clear()
        return tensor
