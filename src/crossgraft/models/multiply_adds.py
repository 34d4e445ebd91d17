"""#FLOPs of a forward pass, counted as papers on networks count them: one for a multiplication and its addition."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import torch
from torch import nn

from crossgraft.models.taps import modes_kept


def multiply_adds(run: Callable[[], object]) -> int:
    """Multiply–adds of the convolutions, linear layers and products of matrices, those of attention among them, in ``run``.

    Tables of papers call this #FLOPs (He et al. count a ResNet-50 at 224 pixels as 4.1 · 10⁹), and counters that take a
    multiplication and an addition for two give twice as much. Normalisation, activation, pooling and interpolation are not
    counted, nor is what a layer computes in a kernel of its own, such as an LSTM or a deformable convolution. Random numbers
    that ``run`` draws on the CPU leave no trace.

    >>> layer = nn.Linear(8, 4)
    >>> multiply_adds(lambda: layer(torch.zeros(3, 8)))
    96

    Cost: that of ``run``, with an overhead of microseconds per operation.
    """
    from torch.utils.flop_counter import FlopCounterMode

    counter = FlopCounterMode(display=False)
    with torch.random.fork_rng(devices=[]), _in_single_products(), counter:
        run()
    return counter.get_total_flops() // 2


def forward_multiply_adds(network: nn.Module, run: Callable[[], object]) -> int:
    """Multiply–adds of ``run``, a forward pass of ``network`` in eval mode; modes are as before afterwards, without a graph."""
    with modes_kept(network), torch.no_grad():
        network.eval()
        return multiply_adds(run)


@contextmanager
def _in_single_products() -> Generator[None]:
    """Attention as products of matrices: the counter does not know all of the fused kernels."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    was_fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was_fast)
