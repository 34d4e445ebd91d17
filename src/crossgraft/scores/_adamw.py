"""AdamW on a few arrays (Loshchilov and Hutter, Decoupled Weight Decay Regularization, ICLR 2019, algorithm 2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_FIRST_DECAY = 0.9
_SECOND_DECAY = 0.999
_EPSILON = 1e-8


class AdamW:
    """Updates ``parameters`` in place, with a constant learning rate; weights and biases decay alike.

    Args:
        parameters: Arrays of one dtype.
        learning_rate: > 0.
        weight_decay: Share of the parameters that is taken away, per step and learning rate.
    """

    def __init__(self, parameters: Sequence[np.ndarray], *, learning_rate: float, weight_decay: float) -> None:
        self._parameters = list(parameters)
        self._learning_rate = learning_rate
        self._kept = 1 - learning_rate * weight_decay
        # The moments of algorithm 2 over 1 − β, which spares two passes.
        self._first = [np.zeros_like(parameter) for parameter in parameters]
        self._second = [np.zeros_like(parameter) for parameter in parameters]
        self._num_steps = 0

    def step(self, gradients: Sequence[np.ndarray]) -> None:
        """One step against ``gradients``, which are overwritten."""
        self._num_steps += 1
        correction = (1 - _SECOND_DECAY**self._num_steps) ** 0.5 / (1 - _SECOND_DECAY) ** 0.5
        size = self._learning_rate * (1 - _FIRST_DECAY) / (1 - _FIRST_DECAY**self._num_steps) * correction
        state = zip(self._parameters, gradients, self._first, self._second, strict=True)
        for parameter, gradient, first, second in state:
            # In place and in few passes, because for wide features the update takes as long as a product.
            first *= _FIRST_DECAY
            first += gradient
            np.multiply(gradient, gradient, out=gradient)
            second *= _SECOND_DECAY
            second += gradient
            np.sqrt(second, out=gradient)
            gradient += _EPSILON * correction
            np.divide(first, gradient, out=gradient)
            gradient *= size
            parameter *= self._kept
            parameter -= gradient
