"""Chapter 3 is what Keras does with these arguments; chapter 6 is its list of changes."""

import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from scipy import ndimage

from crossgraft.tune.augmentations import Thesis, thesis


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def keras_affine(plane, theta, row_shift, column_shift, shear, row_zoom, column_zoom):
    """Keras' `apply_affine_transform` for one channel, angles in radians: rotation · shift · shear · zoom."""
    rotation = [[np.cos(theta), -np.sin(theta), 0], [np.sin(theta), np.cos(theta), 0], [0, 0, 1]]
    shift = [[1, 0, row_shift], [0, 1, column_shift], [0, 0, 1]]
    slant = [[1, -np.sin(shear), 0], [0, np.cos(shear), 0], [0, 0, 1]]
    zoom = np.diag([row_zoom, column_zoom, 1])
    matrix = np.array(rotation) @ shift @ slant @ zoom
    centre = (np.array(plane.shape) - 1) / 2
    offset = matrix[:2, 2] + centre - matrix[:2, :2] @ centre
    return ndimage.affine_transform(plane, matrix[:2, :2], offset, order=1, mode="nearest")


def test_pixels_move_as_keras_moves_them(monkeypatch):
    height, width = 14, 20
    angle, shift, shear, zoom = -0.15, (0.08, -0.05), 0.4, (1.1, 0.92)  # more shear than the thesis, to see it
    draws = iter([torch.tensor([angle]), torch.tensor([shift]), torch.tensor([shear]), torch.tensor([zoom])])
    monkeypatch.setattr(thesis, "uniform", lambda *_, **__: next(draws))
    image = torch.rand(1, 1, height, width, generator=generator())
    moved = Thesis(flip=False)(image, generator())[0, 0].numpy()
    # Ours turns x towards y, Keras rows towards columns: the angle changes its sign, and so does its even distribution.
    expected = keras_affine(image[0, 0].double().numpy(), -angle, shift[1] * height, shift[0] * width, shear, zoom[1], zoom[0])
    np.testing.assert_allclose(moved, expected, atol=2e-5)


def test_the_ranges_are_those_of_chapter_3():
    maps = thesis._keras_maps(4000, 100, 200, generator()).double()
    # linear = rotation · slant · zoom; the second column is rotation · (0, zoom_y), the determinant zoom_x · zoom_y.
    zoom_y = maps[:, :, 1].norm(dim=1)
    zoom_x = torch.det(maps[:, :, :2]) / zoom_y
    degrees = torch.rad2deg(torch.atan2(-maps[:, 0, 1], maps[:, 1, 1]))
    shift = torch.linalg.solve(
        torch.stack([torch.stack([maps[:, 1, 1], maps[:, 0, 1]], -1), torch.stack([-maps[:, 0, 1], maps[:, 1, 1]], -1)], -2)
        / zoom_y[:, None, None],
        maps[:, :, 2],
    )
    for values, limit in ((zoom_x - 1, 0.1), (zoom_y - 1, 0.1), (degrees, 10), (shift[:, 0], 20), (shift[:, 1], 10)):
        assert -limit * 1.001 < values.min() < -0.98 * limit
        assert 0.98 * limit < values.max() < limit * 1.001
    assert abs(np.corrcoef(zoom_x, zoom_y)[0, 1]) < 0.1


def test_the_border_is_repeated():
    image = torch.zeros(50, 1, 30, 30)
    image[..., :3] = 1
    moved = Thesis(flip=False)(image, generator())
    assert (moved[:, 0, 15, -1] == 0).all()
    shifted_right = moved[:, 0, 15, :6].min(1).values == 1
    assert shifted_right.any()  # where other rules would fill in black, or the right rim


def test_crops_of_chapter_6_have_its_area_and_aspect_and_lie_inside():
    height, width = 60, 100
    maps = thesis._crops(3000, height, width, generator()).double()
    side = maps[:, :, :2].norm(dim=2)
    degrees = torch.rad2deg(torch.atan2(maps[:, 1, 0] / side[:, 1], maps[:, 1, 1] / side[:, 1]))
    assert 0 <= degrees.min() < 0.1 and 4.9 < degrees.max() <= 5
    whole = (side > 1 - 1e-6).all(1)
    area, aspect = side.prod(1)[~whole], (side[:, 0] * width / (side[:, 1] * height))[~whole]
    assert 0.08 - 1e-4 <= area.min() < 0.1 and area.max() > 0.75
    assert 3 / 4 - 1e-3 <= aspect.min() < 0.77 and 1.28 < aspect.max() <= 4 / 3 + 1e-3
    reach = maps[:, :, 2].abs() / torch.tensor([width, height]) + side / 2
    assert 0.49 < reach.max() <= 0.5 + 1e-6


def test_colours_of_chapter_6_change_each_with_probability_one_half():
    num_images = 800
    image = torch.linspace(0.2, 0.7, 32 * 32).view(1, 1, 32, 32)[..., torch.randperm(32, generator=generator())]
    image = (image * 65535).round() / 65535
    changed = thesis._change_colours(image.expand(num_images, -1, -1, -1), thesis._changes(num_images, generator()))
    same = (changed == image).all((1, 2, 3)).float().mean().item()
    assert same == pytest.approx(1 / 8, abs=0.04)
    kinds = Counter(tuple(image.flatten().tolist()) for image in changed)
    assert len(kinds) == 2**3
    assert min(kinds.values()) > num_images / 8 * 0.6


@pytest.mark.parametrize("draws", list(itertools.product([False, True], repeat=3)))
def test_each_colour_change_does_what_its_name_says(monkeypatch, draws):
    chosen = torch.tensor(draws).float().sub(1).neg()[:, None]  # 0 is drawn where the change is wanted, else 1
    monkeypatch.setattr(torch, "rand", lambda *_, **__: chosen)
    image = torch.linspace(0, 0.7, 32 * 32).clamp(0.1, 0.5).view(1, 1, 32, 32)
    image = (image * 65535).round() / 65535
    changed = thesis._change_colours(image, thesis._changes(1, generator()))
    sharp, stretched, flat = draws
    if stretched or flat:
        assert changed.min() == 0 and changed.max() == 1
    elif not sharp:
        assert torch.equal(changed, image)
    else:
        assert changed.std() > image.std()
        assert torch.equal(changed[..., 0, :], image[..., 0, :])


def test_the_rounding_of_an_even_area_is_not_stretched():
    noise = torch.tensor([-3e-8, 0, 3e-8]).repeat(300).view(1, 1, 30, 30)
    for level in (1 / 255, 0.7, 30001 / 65535, 128 / 255.999):
        changed = thesis._change_colours((level + noise).expand(40, 3, -1, -1), thesis._changes(40, generator()))
        assert (changed - level).abs().max() < 1e-6
