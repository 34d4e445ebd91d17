"""The learning priority of networks whose gradient is known, and what it leaves as it was."""

import numpy as np
import pytest
import torch
from torch import nn

from crossgraft.audit import learning_priority, low_pass, normalized_psd, radial_psd
from crossgraft.errors import DataError, UsageError
from crossgraft.models import ModelSpec, load_backbone


@pytest.fixture
def images():
    return torch.rand(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))


class Template(nn.Module):
    """Two logits, of which one is the product with a picture: its gradient is that picture, up to scale."""

    def __init__(self, picture):
        super().__init__()
        self.picture = nn.Parameter(torch.from_numpy(picture).float())
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        match = (self.drop(x) * self.picture).sum((1, 2, 3))
        return torch.stack([match, 0 * match], dim=1)


def test_it_is_the_spectrum_of_what_the_network_looks_for(images):
    picture = low_pass(np.random.default_rng(0).standard_normal((16, 16)), 0.2)
    network = Template(np.broadcast_to(picture, (3, 16, 16)).copy()).train()
    network.picture.requires_grad_(True)
    found = learning_priority(network, images, np.array([0, 1, 0, 1, 0]), batch_size=2)
    np.testing.assert_allclose(found.psd, normalized_psd(radial_psd(picture)), atol=1e-5)
    assert found.psd[5:].max() < 1e-5 and found.num_saturated == 0
    assert network.training and network.picture.requires_grad and network.picture.grad is None
    predicted = learning_priority(network, images, "predicted")
    np.testing.assert_allclose(predicted.psd, found.psd, atol=1e-5)


def test_a_backbone_without_a_matching_head_has_an_objective_of_its_own(images):
    backbone = load_backbone(ModelSpec("small", "test_resnet", weights="random"), image_size=16)
    watched = images.clone().requires_grad_(True)
    (backbone.read_out(watched).features.square().sum() / 2).backward()
    expected = [normalized_psd(radial_psd(np.moveaxis(each, 0, 2))) for each in watched.grad.double().numpy()]
    np.testing.assert_allclose(learning_priority(backbone, images).psd, np.mean(expected, axis=0), rtol=1e-4)
    own = learning_priority(backbone, images, "predicted")
    assert not np.allclose(own.psd, learning_priority(backbone, images).psd)


def test_images_that_the_network_is_sure_of_are_counted(images):
    network = Template(1e4 * np.ones((3, 16, 16)))
    images[2] = -images[2]
    found = learning_priority(network, images, np.zeros(5, dtype=np.int64))
    assert found.num_saturated == 4 and len(found.per_image) == 1
    with pytest.raises(DataError, match="gradients of all 4 images are 0"):
        learning_priority(network, images[[0, 1, 3, 4]], np.zeros(4, dtype=np.int64))


def test_bad_input(images):
    network = Template(np.ones((3, 16, 16)))
    with pytest.raises(UsageError, match="needs the class of each image"):
        learning_priority(network, images)
    with pytest.raises((UsageError, TypeError)):
        learning_priority(network, images, np.zeros(5, dtype=np.int64), weighting="loss")
    with pytest.raises((DataError, TypeError)):
        learning_priority(network, images, np.zeros(4, dtype=np.int64))
