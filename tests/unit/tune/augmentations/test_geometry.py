"""Every output pixel shows what its map points at, as SciPy would look it up."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from crossgraft.tune.augmentations._geometry import chosen_images, mirror, resample, rotations


def pictures(num_images, height=9, width=14):
    return torch.rand(num_images, 2, height, width, generator=torch.Generator().manual_seed(0))


def maps(*matrices):
    return torch.tensor(matrices, dtype=torch.float32)


def looked_up_by_scipy(plane, matrix):
    """The same map with (row, column) first and the corner as origin."""
    linear = np.asarray(matrix, dtype=float)[::-1, 1::-1]
    centre = (np.array(plane.shape) - 1) / 2
    offset = centre - linear @ centre + np.asarray(matrix, dtype=float)[::-1, 2]
    return ndimage.affine_transform(plane.numpy().astype(float), linear, offset, order=1, mode="nearest")


def test_any_map_is_looked_up_as_scipy_does_it():
    rng = np.random.default_rng(0)
    images = pictures(5)
    matrices = np.array([[1, 0, 0], [0, 1, 0]]) + rng.normal(size=(5, 2, 3)) * [0.4, 0.4, 3]
    moved = resample(images, torch.tensor(matrices, dtype=torch.float32))
    for image, result, matrix in zip(images, moved, matrices, strict=True):
        for plane, found in zip(image, result, strict=True):
            np.testing.assert_allclose(found.numpy(), looked_up_by_scipy(plane, matrix), atol=2e-5)


def test_whole_pixels_and_quarter_turns():
    images = pictures(1, 6, 6)
    shifted = resample(images, maps([[1, 0, 2], [0, 1, 0]]))
    torch.testing.assert_close(shifted[..., :4], images[..., 2:])
    torch.testing.assert_close(shifted[..., 4:], images[..., 5:].expand(-1, -1, -1, 2))
    turned = resample(images, torch.cat([rotations(torch.tensor([torch.pi / 2])), torch.zeros(1, 2, 1)], 2))
    torch.testing.assert_close(turned, images.rot90(1, (2, 3)), atol=1e-5, rtol=0)


def test_rotations_keep_lengths_and_turn_x_towards_y():
    matrix = rotations(torch.tensor([0.3]))[0]
    torch.testing.assert_close(matrix @ matrix.T, torch.eye(2))
    torch.testing.assert_close(
        matrix @ torch.tensor([1.0, 0.0]),
        torch.tensor([0.3, 0.3]).sin().add(torch.tensor([np.cos(0.3) - np.sin(0.3), 0.0])).float(),
    )


@pytest.mark.parametrize("probability", [0.0, 0.5, 1.0])
def test_a_mirrored_image_is_exact(probability):
    images = pictures(200)
    result = mirror(images, chosen_images(len(images), torch.Generator().manual_seed(0), probability=probability))
    is_mirrored = (result == images.flip(-1)).all((1, 2, 3))
    is_kept = (result == images).all((1, 2, 3))
    assert (is_mirrored ^ is_kept).all()
    assert is_mirrored.float().mean().item() == pytest.approx(probability, abs=0.1)
