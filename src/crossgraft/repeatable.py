"""Convolutions of a GPU that give the same numbers each time, with all bits of a float32."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

_blocks_open = 0
_counting = threading.Lock()
_restore: Callable[[], None] | None = None


@contextmanager
def repeatable_convolutions() -> Generator[None]:
    """Inside the block cuDNN uses algorithms that repeat themselves bit for bit, and no TF32; nothing happens without a GPU.

    By default cuDNN may add up gradients in an order that changes from run to run: two trainings of a MobileNet for two epochs
    with one seed ended up to 0.9 apart in weights or BatchNorm statistics. And it may round what goes into a convolution to 10
    bits (TF32), so that features would differ from those of the CPU in the fourth digit. The settings hold for the whole process;
    at the end of the outermost block those from before are back.

    Source: Reproducibility, and TensorFloat-32, in the notes of the PyTorch documentation.
    """
    global _blocks_open, _restore
    import torch

    if not torch.cuda.is_available():
        yield
        return
    with _counting:
        if _blocks_open == 0:
            _restore = _set_flags()
        _blocks_open += 1
    try:
        yield
    finally:
        with _counting:
            _blocks_open -= 1
            if _blocks_open == 0 and _restore is not None:
                _restore()
                _restore = None


def _set_flags() -> Callable[[], None]:
    """Set them; the function that takes it back."""
    from torch.backends import cudnn

    deterministic, benchmark = cudnn.deterministic, cudnn.benchmark
    cudnn.deterministic, cudnn.benchmark = True, False
    # One name for all operations until torch 2.8; later versions refuse to read it where somebody has set two of them apart.
    operations = [getattr(cudnn, name) for name in ("conv", "rnn") if hasattr(cudnn, name)]
    precisions = [each.fp32_precision for each in operations]
    allow_tf32 = None if operations else cudnn.allow_tf32
    for each in operations:
        each.fp32_precision = "ieee"
    if allow_tf32 is not None:
        cudnn.allow_tf32 = False

    def restore() -> None:
        cudnn.deterministic, cudnn.benchmark = deterministic, benchmark
        for each, precision in zip(operations, precisions, strict=True):
            each.fp32_precision = precision
        if allow_tf32 is not None:
            cudnn.allow_tf32 = allow_tf32

    return restore
