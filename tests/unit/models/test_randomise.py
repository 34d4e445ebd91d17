"""A classifier without its pretraining."""

import copy

import pytest
import torch
from torch import nn

from crossgraft.errors import UsageError
from crossgraft.models import Backbone, ModelSpec, load_backbone
from crossgraft.models.classifier import make_classifier
from crossgraft.models.randomise import randomise
from crossgraft.types import Preprocessing

from .conftest import save_checkpoint, tiny_timm


def wrap(module):
    facts = {"name": "own", "architecture": "own", "source": "factory", "family": "own"}
    return make_classifier(Backbone(module, preprocessing=Preprocessing(16, 16), **facts), 3, seed=0)


@pytest.fixture
def pretrained(tmp_path):
    """A checkpoint whose every tensor, statistics included, is unlike any that a new network has."""
    generator = torch.Generator().manual_seed(0)
    state = {
        name: torch.rand(value.shape, generator=generator) if value.is_floating_point() else value + 5
        for name, value in tiny_timm(num_classes=3).state_dict().items()
    }
    path = save_checkpoint(tmp_path / "mine.safetensors", state, architecture="test_resnet")
    return make_classifier(load_backbone(str(path), image_size=32), 3, seed=0)


def test_every_tensor_of_the_body_is_new_and_the_head_stays(pretrained):
    before = copy.deepcopy(pretrained.state_dict())
    random_state = torch.get_rng_state()
    randomise(pretrained, 0)
    assert torch.equal(torch.get_rng_state(), random_state)
    after = pretrained.state_dict()
    for name, value in after.items():
        assert torch.equal(value, before[name]) == name.startswith("head."), name
    assert not after["body.bn1.running_mean"].any()
    assert after["body.bn1.num_batches_tracked"] == 0


def test_seeds_decide_and_types_stay(pretrained):
    first, second, other = pretrained.double(), copy.deepcopy(pretrained), copy.deepcopy(pretrained)
    randomise(first, 1)
    torch.rand(5)
    randomise(second, 1)
    randomise(other, 2)
    weights = [each.body.conv1[0].weight for each in (first, second, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert weights[0].dtype == torch.float64
    assert weights[0].requires_grad


OWN_INITIALISATION = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, pretrained):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.fc = nn.Linear(4, 3)
        nn.init.normal_(self.conv.weight, mean=100.0)
        if pretrained:
            nn.init.constant_(self.conv.weight, 7.0)

    def forward(self, x):
        return self.fc(self.conv(x).mean((2, 3)))


def net(pretrained=True):
    return Net(pretrained)
"""


def test_a_factory_draws_as_it_draws(tmp_path, write_networks):
    write_networks("nets_own_init", OWN_INITIALISATION)
    backbone = load_backbone(ModelSpec("m", "nets_own_init:net", folder=tmp_path), image_size=8)
    classifier = make_classifier(backbone, 2, seed=0)
    assert classifier.body.conv.weight.unique().tolist() == [7.0]
    randomise(classifier, 0)  # the module is imported already, so its folder need not be known
    assert classifier.body.conv.weight.mean().item() == pytest.approx(100, abs=1)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
        self.fc = nn.Linear(4, 3)

    def forward(self, images):
        return self.fc(self.conv(images).mean((2, 3)))


class WithToken(Plain):
    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.randn(4))

    def forward(self, images):
        return self.fc(self.conv(images).mean((2, 3)) + self.token)


def test_a_network_made_in_python_resets_every_layer():
    module = Plain()
    module.conv[1].running_mean.fill_(3)
    classifier = wrap(module)
    before = copy.deepcopy(classifier.state_dict())
    randomise(classifier, 0)
    after = classifier.state_dict()
    assert not torch.equal(after["body.conv.0.weight"], before["body.conv.0.weight"])
    assert not torch.equal(after["body.conv.0.bias"], before["body.conv.0.bias"])
    assert not after["body.conv.1.running_mean"].any()


def test_what_nothing_draws_is_refused_and_nothing_changes():
    classifier = wrap(WithToken())
    before = copy.deepcopy(classifier.state_dict())
    with pytest.raises(UsageError, match=r"nothing draws token at random.*reset_parameters"):
        randomise(classifier, 0)
    assert all(torch.equal(value, before[name]) for name, value in classifier.state_dict().items())
