"""Train and eval mode, changed for a while."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from torch import nn


@contextmanager
def modes_kept(module: nn.Module) -> Generator[None]:
    """Inside the block modes may be changed; after it every part of ``module`` has the mode that it had."""
    modes = [(part, part.training) for part in module.modules()]
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training
