"""A pretrained network with a new head: the same features, every parameter where it was, copies, another life as a recipe."""

import copy
import json
import pickle
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import nn

from crossgraft.errors import DataError, UntrustedCodeError, UsageError
from crossgraft.models import Backbone, ModelSpec, load_backbone
from crossgraft.models.classifier import draw_head, make_classifier, read_recipe, rebuild_classifier
from crossgraft.models.penultimate import FIXED, SOURCE_HEAD
from crossgraft.models.trusted_code import trusted_code
from crossgraft.types import Preprocessing

from .conftest import save_checkpoint, tiny_timm

EXAMPLES = Path(__file__).parents[3] / "examples" / "own_models"
VIT = {"img_size": 32, "embed_dim": 12, "depth": 2, "num_heads": 1}
NETWORKS = {
    "resnet": ("test_resnet", {}),
    "resnet10t": ("resnet10t", {}),
    "mobilenetv2": ("mobilenetv2_035", {}),
    "densenet": ("densenet121", {"growth_rate": 4, "block_config": (2, 2, 2, 2)}),
    "convnext": ("convnext_atto", {"depths": (1, 1, 2, 1), "dims": (8, 8, 16, 16)}),
    "vit": ("vit_tiny_patch16_224", VIT),
    "map": ("vit_tiny_patch16_224", {**VIT, "global_pool": "map"}),
    "headless": ("vit_tiny_patch16_224", {**VIT, "num_classes": 0}),
    "two heads": ("deit_tiny_distilled_patch16_224", VIT),
    "swin": ("swin_tiny_patch4_window7_224", {"img_size": 64, "embed_dim": 12, "depths": (1, 2), "num_heads": (1, 1)}),
    "cached biases": (
        "efficientvit_m0",
        {"embed_dim": (16, 16, 16), "key_dim": (4, 4, 4), "depth": (1, 1, 1), "num_heads": (1, 1, 1)},
    ),
    "convolutional head": ("torchvision:squeezenet1_1", {}),
    "torchvision": ("torchvision:shufflenet_v2_x0_5", {}),
}
KEPT_HEAD = {"convolutional head": {"body.classifier.1.weight", "body.classifier.1.bias"}}


def load(architecture, kwargs):
    return load_backbone(
        ModelSpec(architecture, architecture, "random", kwargs=kwargs), image_size=None if "img_size" in kwargs else 64
    )


def images_for(backbone, *, dtype=torch.float32):
    p = backbone.preprocessing
    generator = torch.Generator().manual_seed(1)
    return torch.randn(2, p.channels, p.height_pixels, p.width_pixels, generator=generator).to(dtype)


def wrap(module, *, size=8, **facts):
    facts = {"name": "own", "architecture": "own", "source": "factory", "family": "own", **facts}
    return Backbone(module, preprocessing=Preprocessing(size, size), **facts)


@cache
def build(name):
    backbone = load(*NETWORKS[name])
    return name, backbone, make_classifier(backbone, 3, seed=0)


@pytest.fixture(params=NETWORKS)
def case(request):
    """Built once; no test changes them."""
    return build(request.param)


def test_features_are_those_of_the_backbone_and_can_be_learned(case):
    name, backbone, classifier = case
    images = images_for(backbone)
    expected = backbone(images).features
    with torch.no_grad():
        assert torch.equal(classifier.features(images), expected)
    assert (classifier.num_features, classifier.num_outputs) == (backbone.num_features, 3)
    learner = copy.deepcopy(classifier).train()
    learner(images).square().sum().backward()
    idle = {key for key, parameter in learner.named_parameters() if parameter.grad is None}
    assert idle == set(classifier.untrainable) == KEPT_HEAD.get(name, set())
    assert set(classifier.untrainable.values()) <= {SOURCE_HEAD}


def test_logits_are_the_head_of_the_features(case):
    _, backbone, classifier = case
    images = images_for(backbone)
    with torch.no_grad():
        features, logits = classifier.features_and_logits(images)
        torch.testing.assert_close(logits, features @ classifier.head.weight.T, rtol=1e-5, atol=1e-6)
        assert torch.equal(classifier(images), logits)
    assert logits.shape == (2, 3)


def test_float64(case):
    _, backbone, classifier = case
    double = copy.deepcopy(classifier).double()
    output = double.features_and_logits(images_for(backbone, dtype=torch.float64))
    assert output.features.dtype == output.logits.dtype == torch.float64
    assert output.features.requires_grad
    torch.testing.assert_close(output.features.float(), classifier.features(images_for(backbone)), rtol=1e-3, atol=1e-4)


def test_copies_after_a_forward_pass_are_equal_and_apart(case):
    _, backbone, classifier = case
    images = images_for(backbone)
    expected = classifier(images).detach()  # part of a graph until here
    for twin in (copy.deepcopy(classifier), pickle.loads(pickle.dumps(classifier))):
        assert torch.equal(twin(images), expected)
        with torch.no_grad():
            twin.head.bias.add_(1)
        assert not torch.equal(twin(images), expected)
    assert torch.equal(classifier(images), expected)


def test_another_life_as_a_recipe(case):
    _, backbone, classifier = case
    images = images_for(backbone)
    text = json.dumps(classifier.recipe.to_json())
    again = rebuild_classifier(json.loads(text))
    assert again.recipe == classifier.recipe
    trained = copy.deepcopy(classifier)
    with torch.no_grad():
        for parameter in trained.parameters():
            parameter.mul_(1.1)
    assert not torch.equal(again(images), trained(images))
    again.load_state_dict(trained.state_dict())
    assert torch.equal(again(images), trained(images))
    assert again.blocks == classifier.blocks


def test_the_backbone_stays_as_it_was(case):
    _, backbone, _ = case
    images = images_for(backbone)
    before = backbone(images)
    learner = make_classifier(backbone, 2, seed=0)
    with torch.no_grad():
        for parameter in learner.parameters():
            parameter.add_(1)
    after = backbone(images)
    assert torch.equal(before.features, after.features)
    if before.source_logits is not None:
        assert torch.equal(before.source_logits, after.source_logits)
    assert all(parameter.grad is None and parameter.requires_grad for parameter in backbone.module.parameters())


def test_names_of_parameters_are_those_of_the_network():
    backbone = load("test_resnet", {})
    names = [name for name, _ in make_classifier(backbone, 3, seed=0).named_parameters()]
    original = [f"body.{name}" for name, _ in backbone.module.named_parameters() if not name.startswith("fc.")]
    assert names == [*original, "head.weight", "head.bias"]


def test_the_head_is_drawn_from_its_seed_alone():
    backbone = load("test_resnet", {})
    state = torch.get_rng_state()
    first = make_classifier(backbone, 500, seed=7)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    second, other = make_classifier(backbone, 500, seed=7), make_classifier(backbone, 500, seed=8)
    assert torch.equal(first.head.weight, second.head.weight)
    assert not torch.equal(first.head.weight, other.head.weight)
    assert first.head.weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert first.head.weight.mean().item() == pytest.approx(0, abs=1e-3)
    assert first.head.weight.requires_grad
    assert not first.head.bias.any()
    draw_head(first, 8)
    assert torch.equal(first.head.weight, other.head.weight)


def test_no_outputs_make_no_classifier():
    with pytest.raises(UsageError, match="at least one output, asked for 0"):
        make_classifier(load("test_resnet", {}), 0, seed=0)


class Stubborn(nn.Module):
    """Looks at its head's attributes, so it does not run without it."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.fc = nn.Linear(4, 5)
        self.fixed = nn.Parameter(torch.ones(4), requires_grad=False)

    def forward(self, images):
        pooled = self.conv(images).mean((2, 3)) * self.fixed
        return self.fc(pooled[:, : self.fc.in_features])


def test_a_head_that_the_network_needs_stays_and_is_frozen_with_the_reason():
    backbone = wrap(Stubborn())
    classifier = make_classifier(backbone, 2, seed=0)
    images = torch.rand(2, 3, 8, 8)
    assert torch.equal(classifier.features(images), backbone(images).features)
    assert classifier.untrainable == {"body.fixed": FIXED, "body.fc.weight": SOURCE_HEAD, "body.fc.bias": SOURCE_HEAD}
    assert not classifier.body.fc._forward_pre_hooks


def test_a_network_made_in_python_needs_to_be_given_again():
    classifier = make_classifier(wrap(Stubborn()), 2, seed=0)
    with pytest.raises(UsageError, match=r"made in Python.*network="):
        rebuild_classifier(classifier.recipe.to_json())
    again = rebuild_classifier(classifier.recipe, network=Stubborn())
    again.load_state_dict(classifier.state_dict())
    images = torch.rand(2, 3, 8, 8)
    assert torch.equal(again(images), classifier(images))
    with pytest.raises(UsageError, match="another one than was fine-tuned"):
        rebuild_classifier(make_classifier(load("test_resnet", {}), 2, seed=0).recipe, network=nn.Sequential())


@pytest.mark.parametrize(
    ("source", "kwargs", "size"),
    [
        ("cifar_resnet:resnet20", {}, 32),
        ("conv4:conv4", {"in_chans": 1}, 28),
        ("pneumonia_cnn:pneumonia_cnn", {}, 32),
        ("fractional_mobilenet:mobilenetv1_050", {}, 32),
    ],
)
def test_factories_of_the_examples(source, kwargs, size, monkeypatch):
    module = source.partition(":")[0]
    monkeypatch.delitem(sys.modules, module, raising=False)
    backbone = load_backbone(ModelSpec("mine", source, kwargs=kwargs, folder=EXAMPLES), image_size=size)
    classifier = make_classifier(backbone, 2, seed=0)
    images = images_for(backbone)
    assert torch.equal(classifier.features(images), backbone(images).features)
    assert not classifier.untrainable
    text = json.dumps(classifier.recipe.to_json())
    assert str(EXAMPLES) not in text
    again = rebuild_classifier(json.loads(text), trusted=trusted_code(EXAMPLES))
    again.load_state_dict(classifier.state_dict())
    assert torch.equal(again(images), classifier(images))
    monkeypatch.delitem(sys.modules, module)
    with pytest.raises(UntrustedCodeError, match=f"built by the function {source}"):
        rebuild_classifier(json.loads(text))
    assert module not in sys.modules


def test_a_checkpoint_is_built_again_without_the_file(tmp_path):
    state = tiny_timm(num_classes=4).state_dict()
    path = save_checkpoint(tmp_path / "mine.safetensors", state, architecture="test_resnet")
    backbone = load_backbone(str(path), image_size=32)
    classifier = make_classifier(backbone, 2, seed=0)
    path.unlink()
    values = classifier.recipe.to_json()
    assert str(tmp_path) not in json.dumps(values)
    assert values["weights_fingerprint"] == backbone.weights_fingerprint
    again = rebuild_classifier(values)
    again.load_state_dict(classifier.state_dict())
    assert again.preprocessing == backbone.preprocessing
    assert torch.equal(again.body.conv1[0].weight, state["conv1.0.weight"])


def test_positions_fit_the_size_that_was_fine_tuned():
    backbone = load_backbone(ModelSpec("vit", "test_vit", "random"), image_size=96)
    classifier = make_classifier(backbone, 2, seed=0)
    again = rebuild_classifier(classifier.recipe)
    again.load_state_dict(classifier.state_dict())
    assert again.body.pos_embed.shape == (1, 37, 64)


def test_a_path_among_the_arguments_keeps_its_last_part_only(tmp_path, write_networks):
    write_networks("nets_r", "from torch import nn\nfrom pathlib import Path\n" + SAYS_FILE)
    weights = tmp_path / "deep" / "w.txt"
    weights.parent.mkdir()
    weights.write_text("x")
    spec = ModelSpec("m", "nets_r:net", kwargs={"files": [str(weights)], "width": 4}, folder=tmp_path)
    classifier = make_classifier(load_backbone(spec, image_size=8), 2, seed=0)
    assert classifier.recipe.network.kwargs == {"files": ["w.txt"], "width": 4}
    assert str(tmp_path) not in json.dumps(classifier.recipe.to_json())


SAYS_FILE = """
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3)
        self.fc = nn.Linear(width, 3)

    def forward(self, x):
        return self.fc(self.conv(x).mean((2, 3)))


def net(files, width):
    assert Path(files[0]).read_text()
    return Net(width)
"""


def test_arguments_that_json_can_not_say_leave_no_way_to_build():
    spec = ModelSpec("m", "test_resnet", "random", kwargs={"act_layer": nn.ReLU})
    classifier = make_classifier(load_backbone(spec), 2, seed=0)
    assert classifier.recipe.network is None
    json.dumps(classifier.recipe.to_json())


@pytest.mark.parametrize(("key", "value"), [("num_outputs", "many"), ("cut", None), ("preprocessing", {"mean": 1})])
def test_a_damaged_recipe_is_named(key, value):
    values = make_classifier(load("test_resnet", {}), 2, seed=0).recipe.to_json()
    assert read_recipe(values).num_outputs == 2
    with pytest.raises(DataError, match=f"damaged: {key}"):
        read_recipe({**values, key: value})


class Remembers(nn.Module):
    """Keeps what it computes from a weight in eval mode, as LeViT does."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.fc = nn.Linear(3, 2)
        self.kept = None

    def train(self, mode=True):
        self.kept = None
        return super().train(mode)

    def forward(self, images):
        if self.training or self.kept is None:
            self.kept = 2 * self.scale
        return self.fc(images.mean((2, 3)) * self.kept)


def test_loaded_weights_leave_no_stale_numbers():
    classifier = make_classifier(wrap(Remembers()), 2, seed=0)
    images = torch.rand(2, 3, 8, 8)
    before = classifier.features(images).detach()
    classifier.head.train()  # train() and eval() of the whole would make it forget
    classifier.load_state_dict({**classifier.state_dict(), "body.scale": torch.full((3,), 5.0)})
    assert [name for name, module in classifier.named_modules() if module.training] == ["head"]
    torch.testing.assert_close(classifier.features(images), 5 * before)


def test_a_new_classifier_keeps_nothing_of_the_passes_that_made_it():
    backbone = load(*NETWORKS["cached biases"])
    classifier = make_classifier(backbone, 2, seed=0)
    classifier(images_for(backbone)).sum().backward()  # in eval mode, through what a first pass would have kept
    biases = [p for name, p in classifier.named_parameters() if name.endswith("attention_biases")]
    assert biases
    assert all(parameter.grad is not None for parameter in biases)


@pytest.mark.real_data
def test_pretrained_weights_are_not_needed_again(real_data, monkeypatch):
    path = real_data / "weights" / "cifar10_resnet20.safetensors"
    monkeypatch.delitem(sys.modules, "cifar_resnet", raising=False)
    spec = ModelSpec("resnet20", "cifar_resnet:resnet20", str(path), folder=EXAMPLES)
    backbone = load_backbone(spec)
    classifier = make_classifier(backbone, 2, seed=0)
    again = rebuild_classifier(classifier.recipe.to_json(), trusted=trusted_code(EXAMPLES))
    again.load_state_dict(classifier.state_dict())
    images = images_for(backbone)
    with torch.no_grad():
        assert torch.equal(again.features(images), backbone(images).features)
    assert str(real_data) not in json.dumps(classifier.recipe.to_json())
    monkeypatch.delitem(sys.modules, "cifar_resnet")
