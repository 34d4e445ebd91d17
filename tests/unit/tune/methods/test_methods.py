"""Promises of every method: each parameter sorted once, exactly the trained ones move, frozen parts stay in eval mode."""

import copy

import pytest
import torch
from torch import nn

from crossgraft.choice import choose, spell
from crossgraft.models.adapters import adapters_of
from crossgraft.models.penultimate import FIXED, SOURCE_HEAD
from crossgraft.tune.engine.step import apply_modes, apply_selection
from crossgraft.tune.methods import METHODS, Method, put_adapters_in
from support.small_classifiers import small_classifier, wrap

CHOICES = ["partial:1", "partial:blocks=2", "partial:names=0"]
CHOICES += ["lora:2", "lora:2,targets=blocks.1,dropout=0.3", "adaptformer:4", "adaptformer:4,norm=in"]
WITH_OPTIONS = {choice.partition(":")[0] for choice in CHOICES}
CHOICES = [*(name for name in METHODS.names() if name not in WITH_OPTIONS), *CHOICES]
NETWORKS = ["cnn", "vit", "convnext"]
CASES = [(choice, network) for choice in CHOICES for network in NETWORKS]
CASES = [(choice, network) for choice, network in CASES if not choice.startswith("adaptformer") or network == "vit"]
CASES = [case for case in CASES if "targets" not in case[0]] + [
    (next(choice for choice in CHOICES if "targets" in choice), "vit")
]


def method_of(choice):
    return choose(METHODS, choice)


def network_of(choice, network):
    """With the adapters of the method, whose first weights are of no use to a test of what moves."""
    classifier = small_classifier(network)
    put_adapters_in(method_of(choice), classifier, seed=0)
    with torch.no_grad():
        for _, adapter in adapters_of(classifier).values():
            for parameter in adapter.parameters():
                parameter += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
    return classifier


def train(classifier, selection, steps=3):
    """Plain SGD, every parameter of the optimiser: what is frozen is frozen by the selection alone."""
    apply_selection(classifier, selection)
    apply_modes(classifier, selection)
    optimizer = torch.optim.SGD([p for p in classifier.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(0)
    p = classifier.preprocessing
    for _ in range(steps):
        images = torch.randn(6, 3, p.height_pixels, p.width_pixels, generator=generator)
        optimizer.zero_grad()
        nn.functional.cross_entropy(classifier(images), torch.arange(6) % classifier.num_outputs).backward()
        optimizer.step()


def test_every_method_is_a_method():
    for choice in CHOICES:
        method = method_of(choice)
        assert isinstance(method, Method)
        assert choose(METHODS, spell(method)) == method
        assert METHODS.get(method.name) is type(method)
        assert method.title and method.citation


def test_flags():
    flags = {
        name: (method_of(name).starts_from_scratch, method_of(name).features_are_fixed) for name in ("full", "scratch", "linear")
    }
    assert flags == {"full": (False, False), "scratch": (True, False), "linear": (False, True)}


@pytest.mark.parametrize(("choice", "network"), CASES)
def test_each_parameter_is_sorted_once_with_a_reason(network, choice):
    classifier = network_of(choice, network)
    before = {name: parameter.requires_grad for name, parameter in classifier.named_parameters()}
    selection = method_of(choice).select(classifier)
    names = sorted([*selection.trained, *selection.frozen])
    assert names == sorted(name for name, _ in classifier.named_parameters())
    assert all([*selection.trained.values(), *selection.frozen.values()])
    assert {"head.weight", "head.bias"} <= set(selection.trained)
    assert before == {name: parameter.requires_grad for name, parameter in classifier.named_parameters()}
    for name in selection.train_mode:
        classifier.get_submodule(name)


@pytest.mark.parametrize(("choice", "network"), CASES)
def test_exactly_the_trained_parameters_move_and_no_statistics_of_frozen_parts(network, choice):
    classifier = network_of(choice, network)
    selection = method_of(choice).select(classifier)
    before = copy.deepcopy(classifier.state_dict())
    train(classifier, selection)
    moved = {name for name, value in classifier.state_dict().items() if not torch.equal(value, before[name])}
    statistics = {name for name, _ in classifier.named_buffers()}
    assert moved - statistics == set(selection.trained)
    for name in statistics:
        norm = name.rpartition(".")[0]
        assert (name in moved) == (f"{norm}.weight" in selection.trained), name
    assert {name for name, parameter in classifier.named_parameters() if parameter.grad is not None} == set(selection.trained)


def test_full_trains_all_in_train_mode():
    classifier = small_classifier("dropout")
    selection = method_of("full").select(classifier)
    apply_modes(classifier, selection)
    assert not selection.frozen
    assert all(module.training for module in classifier.modules())


def test_linear_keeps_the_features_of_every_image_fixed():
    classifier = small_classifier("dropout")
    images = torch.rand(4, 3, 32, 32)
    before = classifier.features(images)
    train(classifier, method_of("linear").select(classifier))
    assert [name for name, module in classifier.named_modules() if module.training] == ["head"]
    assert torch.equal(classifier.features(images), before)


class Half(nn.Module):
    """The author has fixed the first block and a table."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
        self.second = nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4))
        self.classifier = nn.Sequential(nn.Dropout(0.1), nn.Conv2d(4, 7, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.first.requires_grad_(False)

    def forward(self, images):
        return self.classifier(self.second(self.first(images)))


@pytest.mark.parametrize("choice", ["full", "scratch", "partial:names=*"])
def test_what_the_author_fixed_and_an_unused_head_stay_with_their_reasons(choice):
    classifier = wrap(Half())
    selection = method_of(choice).select(classifier)
    fixed = {f"body.first.{name}" for name in ("0.weight", "0.bias", "1.weight", "1.bias")}
    head = {"body.classifier.1.weight", "body.classifier.1.bias"}
    assert dict(selection.frozen) == {**dict.fromkeys(fixed, FIXED), **dict.fromkeys(head, SOURCE_HEAD)}
    before = copy.deepcopy(classifier.state_dict())
    train(classifier, selection)
    after = classifier.state_dict()
    for name in ("body.first.1.running_mean", "body.first.1.weight", "body.classifier.1.weight"):
        assert torch.equal(after[name], before[name]), name
    assert not torch.equal(after["body.second.1.running_mean"], before["body.second.1.running_mean"])
