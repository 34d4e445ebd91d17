"""What every augmentation promises."""

from __future__ import annotations

import dataclasses

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
from crossgraft.tune.augmentations import Augmentation

_SEEDS = range(3)


@promise
def keeps_shape_and_range(augmentation: Augmentation) -> None:
    """Grey and coloured images keep shape and number type, and stay in [0, 1]."""
    for channels in (1, 3):
        for images in (_images(channels), torch.zeros(2, channels, 9, 12), torch.ones(2, channels, 9, 12)):
            for seed in _SEEDS:
                varied = _apply(augmentation, images, seed)
                same = varied.shape == images.shape and varied.dtype == images.dtype
                facts = f"{images.dtype} {tuple(images.shape)} become {varied.dtype} {tuple(varied.shape)}"
                require(same, augmentation, f"images {facts}")
                low, high = varied.min().item(), varied.max().item()
                require(low >= 0 and high <= 1, augmentation, f"images in [0, 1] become values from {low} to {high}")


@promise
def leaves_its_inputs_alone(augmentation: Augmentation) -> None:
    """It does not write into the images that it is given."""
    images = _images()
    before = images.clone()
    for seed in _SEEDS:
        _apply(augmentation, images, seed)
    require(torch.equal(images, before), augmentation, "it overwrites the images")


@promise
def draws_from_its_generator_alone(augmentation: Augmentation) -> None:
    """The same generator gives the same images, to the last bit."""
    for seed in _SEEDS:
        first, second = (_apply(augmentation, _images(), seed) for _ in range(2))
        require(torch.equal(first, second), augmentation, "the same generator gives two different batches")
        leaves_the_global_random_state(augmentation, lambda seed=seed: _apply(augmentation, _images(), seed))


@promise
def lets_mirroring_be_turned_off(augmentation: Augmentation) -> None:
    """``flip`` is an option: ``--no-flip`` must reach every augmentation, for a heart is on one side."""
    has_option = any(
        field.name == "flip" and field.init
        for field in dataclasses.fields(augmentation)  # pyright: ignore[reportArgumentType] - every plug-in is a dataclass
    )
    require(has_option, augmentation, "it has no option flip")
    without = dataclasses.replace(augmentation, flip=False)  # pyright: ignore[reportArgumentType, reportCallIssue]
    require(without.flip is False, augmentation, f"with flip=False its flip is {without.flip}")


AUGMENTATION_CONTRACTS: tuple[Contract, ...] = (
    declares_its_facts,
    is_written_and_read_again,
    keeps_shape_and_range,
    leaves_its_inputs_alone,
    draws_from_its_generator_alone,
    lets_mirroring_be_turned_off,
)
"""All promises of an augmentation."""


def check_augmentation(augmentation: Augmentation) -> None:
    """Check all promises of one augmentation.

    Args:
        augmentation: Augmentation with its options.

    Raises:
        ContractError: The first promise that is broken, or the kind of plug-in that it is not.
    """
    keep_all(AUGMENTATION_CONTRACTS, augmentation, Augmentation)


def _images(channels: int = 3) -> Tensor:
    """Eight images of 9 × 12 with values in [0, 1]."""
    return torch.rand(8, channels, 9, 12, generator=torch_generator(0, "example images"))


def _apply(augmentation: Augmentation, images: Tensor, seed: int) -> Tensor:
    return augmentation(images, torch_generator(seed, "example draws"))
