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
        self._first = [np.zeros_like(parameter) for parameter in parameters]
        self._second = [np.zeros_like(parameter) for parameter in parameters]
        self._buffers = [np.empty_like(parameter) for parameter in parameters]
        self._num_steps = 0

    def step(self, gradients: Sequence[np.ndarray]) -> None:
        """One step against ``gradients``, which are overwritten."""
        self._num_steps += 1
        size = self._learning_rate / (1 - _FIRST_DECAY**self._num_steps)
        correction = (1 - _SECOND_DECAY**self._num_steps) ** -0.5
        state = zip(self._parameters, gradients, self._first, self._second, self._buffers, strict=True)
        for parameter, gradient, first, second, buffer in state:
            # In place, because for wide features the update, not the product, is what takes time.
            first *= _FIRST_DECAY
            np.multiply(gradient, 1 - _FIRST_DECAY, out=buffer)
            first += buffer
            second *= _SECOND_DECAY
            np.multiply(gradient, gradient, out=gradient)
            gradient *= 1 - _SECOND_DECAY
            second += gradient
            np.sqrt(second, out=buffer)
            buffer *= correction
            buffer += _EPSILON
            np.divide(first, buffer, out=buffer)
            buffer *= size
            parameter *= self._kept
            parameter -= buffer
