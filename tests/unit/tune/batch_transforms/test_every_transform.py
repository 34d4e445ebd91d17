"""What holds for everything that is done to a batch."""

import pytest
import torch

from crossgraft.choice import choose, spell
from crossgraft.errors import UsageError
from crossgraft.tune.batch_transforms import BATCH_TRANSFORMS, BatchTransform

NAMES = BATCH_TRANSFORMS.names()


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def batch(num_images=6, num_classes=4):
    images = torch.randn(num_images, 3, 8, 10, generator=generator(7))
    return images, torch.eye(num_classes)[torch.arange(num_images) % num_classes]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("num_images", [1, 6])
def test_shapes_types_and_the_mass_of_targets_stay(name, num_images):
    transform, (images, targets) = choose(BATCH_TRANSFORMS, name), batch(num_images)
    before = images.clone(), targets.clone()
    for seed in range(5):
        new_images, new_targets = transform(images, targets, generator(seed))
        assert new_images.shape == images.shape and new_images.dtype == images.dtype
        assert new_targets.shape == targets.shape and new_targets.dtype == targets.dtype
        assert (new_targets >= 0).all()
        torch.testing.assert_close(new_targets.sum(1), torch.ones(num_images))
    assert torch.equal(images, before[0]) and torch.equal(targets, before[1])
    assert isinstance(transform, BatchTransform)


@pytest.mark.parametrize("name", NAMES)
def test_the_generator_alone_decides(name):
    transform = choose(BATCH_TRANSFORMS, name)
    for seed in (0, 1):
        first, second = (transform(*batch(), generator(seed)) for _ in range(2))
        assert torch.equal(first[0], second[0]) and torch.equal(first[1], second[1])


@pytest.mark.parametrize("name", ["mixup", "cutmix"])
def test_other_random_numbers_mix_other_images(name):
    first, second = (choose(BATCH_TRANSFORMS, name)(*batch(), generator(seed))[0] for seed in (0, 1))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("name", ["mixup", "cutmix"])
def test_images_in_float64_stay_so(name):
    images, targets = (part.double() for part in batch())
    new_images, new_targets = choose(BATCH_TRANSFORMS, name)(images, targets, generator())
    assert new_images.dtype == new_targets.dtype == torch.float64


def test_label_smoothing_refuses_several_labels():
    accepting = {name: BATCH_TRANSFORMS.get(name).accepts_multi_label for name in ("mixup", "cutmix", "label_smoothing")}
    assert accepting == {"mixup": True, "cutmix": True, "label_smoothing": False}


@pytest.mark.parametrize("choice", [*NAMES, "mixup:0.4", "cutmix:0.5,probability=0.25", "label_smoothing:0.2"])
def test_what_is_spelt_is_chosen_again(choice):
    transform = choose(BATCH_TRANSFORMS, choice)
    assert choose(BATCH_TRANSFORMS, spell(transform)) == transform
    assert ":" not in choice or spell(transform) != choose(BATCH_TRANSFORMS, choice.partition(":")[0])


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("mixup:0.0", "alpha must be above 0"),
        ("mixup:.inf", "alpha must be"),
        ("mixup:.nan", "alpha must be"),
        ("cutmix:-1.0", "alpha must be above 0"),
        ("cutmix:probability=1.5", r"probability must be in \[0, 1\]"),
        ("label_smoothing:1.0", r"epsilon must be in \[0, 1\)"),
        ("label_smoothing:-0.1", "epsilon must be"),
    ],
)
def test_options_out_of_range_are_refused(choice, message):
    with pytest.raises(UsageError, match=message):
        choose(BATCH_TRANSFORMS, choice)
