"""One seed in, named generators out; nothing here or above leaves a trace in a global random state.

A name ("k-means", "permutation 3") gives a stream of its own, so adding a step never changes the numbers of another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive_seed(seed: int, *names: object) -> int:
    """A 32-bit seed for the stream called ``names``, for libraries that take an integer.

    >>> derive_seed(0, "k-means") == derive_seed(0, "k-means") != derive_seed(0, "split")
    True
    """
    key = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "little")


def generator(seed: int, *names: object) -> np.random.Generator:
    """A numpy generator for the stream called ``names``."""
    return np.random.default_rng(derive_seed(seed, *names))


def torch_generator(seed: int, *names: object, device: str = "cpu") -> torch.Generator:
    """A torch generator for the stream called ``names``."""
    import torch

    return torch.Generator(device=device).manual_seed(derive_seed(seed, *names))


@contextmanager
def torch_draws(device: torch.device, seed: int, *names: object) -> Generator[None]:
    """Inside the block torch draws from the stream called ``names``; afterwards its global streams are as they were."""
    import torch

    on_gpu, derived = device.type == "cuda", derive_seed(seed, *names)
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(derived)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(derived)
        yield
