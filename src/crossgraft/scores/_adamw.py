"""AdamW on a few arrays (Loshchilov and Hutter, Decoupled Weight Decay Regularization, ICLR 2019, algorithm 2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_FIRST_DECAY = 0.9
_SECOND_DECAY = 0.999
_EPSILON = 1e-8
_AT_ONCE = 8192
"""Numbers of one update, so that all its passes stay in the processor's cache."""


class AdamW:
    """Updates ``parameters`` in place, with a constant learning rate; weights and biases decay alike.

    Args:
        parameters: Contiguous arrays of one dtype.
        learning_rate: > 0.
        weight_decay: Share of the parameters that is taken away, per step and learning rate.
    """

    def __init__(self, parameters: Sequence[np.ndarray], *, learning_rate: float, weight_decay: float) -> None:
        self._parameters = list(parameters)
        self._learning_rate = learning_rate
        self._kept = 1 - learning_rate * weight_decay
        self._first = [np.zeros_like(parameter) for parameter in parameters]
        self._second = [np.zeros_like(parameter) for parameter in parameters]
        self._buffer = np.empty(_AT_ONCE, dtype=self._parameters[0].dtype)
        self._num_steps = 0

    def step(self, gradients: Sequence[np.ndarray]) -> None:
        """One step against ``gradients``, which are overwritten."""
        self._num_steps += 1
        size = self._learning_rate / (1 - _FIRST_DECAY**self._num_steps)
        correction = (1 - _SECOND_DECAY**self._num_steps) ** -0.5
        state = zip(self._parameters, gradients, self._first, self._second, strict=True)
        for arrays in state:
            flat = [array.reshape(-1) for array in arrays]
            for start in range(0, flat[0].size, _AT_ONCE):
                parameter, gradient, first, second = (array[start : start + _AT_ONCE] for array in flat)
                buffer = self._buffer[: len(parameter)]
                self._update(parameter, gradient, first, second, buffer, size, correction)

    def _update(
        self,
        parameter: np.ndarray,
        gradient: np.ndarray,
        first: np.ndarray,
        second: np.ndarray,
        buffer: np.ndarray,
        size: float,
        correction: float,
    ) -> None:
        """One piece, in place: for wide features the update, not the product, is what takes time."""
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
