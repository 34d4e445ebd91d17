"""The stated ranges, and no bit changes at strength zero."""

import pytest
import torch

from crossgraft.tune.augmentations import Light

NUM_IMAGES = 600


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def ramp(axis, length=40):
    """Brightness is the position along one axis: what is seen tells where the window was."""
    line = (torch.arange(length) + 0.5) / length
    plane = line.expand(length, length) if axis == "x" else line[:, None].expand(length, length)
    return plane.expand(NUM_IMAGES, 1, -1, -1)


def test_no_bit_changes_at_strength_zero():
    images = torch.rand(4, 3, 9, 7, generator=generator())
    still = Light(smallest_side=1.0, brightness=0.0, contrast=0.0, flip=False)
    assert torch.equal(still(images, generator()), images)


def test_windows_have_every_allowed_side_and_place_and_stay_inside():
    window = Light(smallest_side=0.8, brightness=0.0, contrast=0.0, flip=False)
    sides, centres = {}, {}
    for axis in ("x", "y"):
        seen = window(ramp(axis), generator())[:, 0]
        line = seen[:, 20, 2:-2] if axis == "x" else seen[:, 2:-2, 20]
        sides[axis] = (line[:, -1] - line[:, 0]) * 40 / 35
        centres[axis] = (line[:, -1] + line[:, 0]) / 2
        assert 0.8 - 1e-4 < sides[axis].min() < 0.81 and 0.99 < sides[axis].max() < 1 + 1e-4
        room = (1 - sides[axis]) / 2
        place = (centres[axis] - 0.5) / room.clamp(min=1e-2)
        assert (place.abs() < 1 + 1e-2).all()
        assert place.min() < -0.9 and place.max() > 0.9
    torch.testing.assert_close(sides["x"], sides["y"], atol=1e-4, rtol=0)  # the aspect is kept
    assert not torch.allclose(centres["x"], centres["y"], atol=1e-2)


def test_brightness_is_a_factor_of_the_stated_range():
    bright = Light(smallest_side=1.0, brightness=0.2, contrast=0.1, flip=False)
    factors = bright(torch.full((NUM_IMAGES, 3, 4, 4), 0.5), generator()).mean((1, 2, 3)) / 0.5
    assert 0.8 - 1e-6 <= factors.min() < 0.81 and 1.19 < factors.max() <= 1.2 + 1e-6


def test_contrast_spreads_about_the_mean_of_each_image():
    images = torch.rand(NUM_IMAGES, 3, 4, 4, generator=generator()) * 0.5 + 0.25
    flatter = Light(smallest_side=1.0, brightness=0.0, contrast=0.3, flip=False)(images, generator())
    torch.testing.assert_close(flatter.mean((1, 2, 3)), images.mean((1, 2, 3)))
    factors = flatter.std((1, 2, 3)) / images.std((1, 2, 3))
    assert 0.7 - 1e-5 <= factors.min() < 0.72 and 1.28 < factors.max() <= 1.3 + 1e-5


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_too_bright_and_too_dark_are_cut_off(value):
    images = torch.full((50, 1, 4, 4), value)
    images[:, :, 0] = 0.5
    changed = Light(smallest_side=1.0, brightness=0.9, contrast=0.9, flip=False)(images, generator())
    assert changed.min() >= 0 and changed.max() <= 1
    assert (changed == value).any()
