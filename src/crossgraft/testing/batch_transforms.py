"""What every batch transform promises."""

from __future__ import annotations

import torch
from torch import Tensor

from crossgraft.seeding import torch_generator
from crossgraft.testing.promises import (
    Contract,
    declares_its_facts,
    is_written_and_read_again,
    keep_all,
    leaves_the_global_random_state,
    promise,
    require,
)
from crossgraft.tune.batch_transforms import BatchTransform

_SEEDS = range(5)
"""What happens with some probability should happen with one of them."""


@promise
def keeps_shapes_and_types(transform: BatchTransform) -> None:
    """Images and targets keep shape and number type, also of a batch of one; images stay finite."""
    for num_images in (1, 6):
        batch = _batch(num_images)
        for seed in _SEEDS:
            for part, before, after in zip(("images", "targets"), batch, _apply(transform, batch, seed), strict=True):
                facts = f"{before.dtype} {tuple(before.shape)} become {after.dtype} {tuple(after.shape)}"
                same = before.shape == after.shape and before.dtype == after.dtype
                require(same, transform, f"the {part} {facts}")
                require(bool(after.isfinite().all()), transform, f"the {part} are not finite")


@promise
def keeps_targets_a_distribution(transform: BatchTransform) -> None:
    """Targets stay in [0, 1]; those of classes still sum to 1 for every image."""
    for several in (False, True) if transform.accepts_multi_label else (False,):
        for seed in _SEEDS:
            targets = _apply(transform, _batch(6, several=several), seed)[1]
            low, high = targets.min().item(), targets.max().item()
            require(low >= 0 and high <= 1 + 1e-6, transform, f"targets lie between {low} and {high}")
            sums = targets.sum(dim=1)
            close = torch.allclose(sums, torch.ones_like(sums), atol=1e-5)
            require(several or close, transform, f"the targets of an image sum to {sums.tolist()}")


@promise
def leaves_its_inputs_alone(transform: BatchTransform) -> None:
    """It does not write into the tensors that it is given."""
    batch = _batch(6)
    before = [part.clone() for part in batch]
    for seed in _SEEDS:
        _apply(transform, batch, seed)
    kept = all(torch.equal(part, copy) for part, copy in zip(batch, before, strict=True))
    require(kept, transform, "it overwrites images or targets")


@promise
def draws_from_its_generator_alone(transform: BatchTransform) -> None:
    """The same generator gives the same batch, to the last bit."""
    for seed in _SEEDS:
        first, second = (_apply(transform, _batch(6), seed) for _ in range(2))
        same = torch.equal(first[0], second[0]) and torch.equal(first[1], second[1])
        require(same, transform, "the same generator gives two different batches")
        leaves_the_global_random_state(transform, lambda seed=seed: _apply(transform, _batch(6), seed))


BATCH_TRANSFORM_CONTRACTS: tuple[Contract, ...] = (
    declares_its_facts,
    is_written_and_read_again,
    keeps_shapes_and_types,
    keeps_targets_a_distribution,
    leaves_its_inputs_alone,
    draws_from_its_generator_alone,
)
"""All promises of a batch transform."""


def check_batch_transform(transform: BatchTransform) -> None:
    """Check all promises of one batch transform.

    Args:
        transform: Transform with its options.

    Raises:
        ContractError: The first promise that is broken, or the kind of plug-in that it is not.
    """
    keep_all(BATCH_TRANSFORM_CONTRACTS, transform, BatchTransform)


def _batch(num_images: int, *, several: bool = False) -> tuple[Tensor, Tensor]:
    """Images that are no squares, and one class of four each, or several labels."""
    random = torch_generator(0, "example batch")
    images = torch.randn(num_images, 3, 8, 10, generator=random)
    if several:
        return images, (torch.rand(num_images, 4, generator=random) < 0.5).float()
    return images, torch.eye(4)[torch.arange(num_images) % 4]


def _apply(transform: BatchTransform, batch: tuple[Tensor, Tensor], seed: int) -> tuple[Tensor, Tensor]:
    return transform(*batch, torch_generator(seed, "example draws"))
