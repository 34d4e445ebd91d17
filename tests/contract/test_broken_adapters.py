"""Every promise of adapters can be broken, and its contract says so."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from crossgraft.models.adapters import adapters_of
from crossgraft.testing import ContractError, adapters
from crossgraft.tune.methods import LoRA


class Careless(LoRA):
    """Adapters that are not what they should be."""

    change = staticmethod(lambda classifier: None)

    def add_adapters(self, classifier, *, seed):
        super().add_adapters(classifier, seed=seed)
        type(self).change(classifier)


def begin_as_something(classifier):
    with torch.no_grad():
        for _, adapter in adapters_of(classifier).values():
            adapter.B.fill_(0.3)


def move_the_network(classifier):
    with torch.no_grad():
        classifier.body.stem.weight.add_(0.1)


def do_nothing_whatever_the_weights(classifier):
    for _, adapter in adapters_of(classifier).values():
        adapter.scaling = 0.0


def forget_the_recipe(classifier):
    classifier.recipe = replace(classifier.recipe, adapters=classifier.recipe.adapters[:1])


def merge_something_else(classifier):
    for _, adapter in adapters_of(classifier).values():
        adapter.weight_change = lambda host: 0.1 * torch.ones_like(host.weight, dtype=torch.float64)


def draw_globally(classifier):
    with torch.no_grad():
        for _, adapter in adapters_of(classifier).values():
            adapter.A.copy_(torch.rand(adapter.A.shape))


def draw_the_same(classifier):
    with torch.no_grad():
        for _, adapter in adapters_of(classifier).values():
            adapter.A.fill_(0.1)


@pytest.mark.parametrize(
    ("contract", "change"),
    [
        (adapters.adds_nothing_at_first, begin_as_something),
        (adapters.adds_nothing_at_first, do_nothing_whatever_the_weights),
        (adapters.is_switched_off, move_the_network),
        (adapters.merges_or_says_why_not, merge_something_else),
        (adapters.comes_back_from_its_recipe, forget_the_recipe),
        (adapters.draws_from_its_seed_alone, draw_globally),
        (adapters.draws_from_its_seed_alone, draw_the_same),
    ],
    ids=lambda value: value.__name__,
)
def test_contract_finds_the_broken_adapters(contract, change, monkeypatch):
    contract(Careless(r=2))
    monkeypatch.setattr(Careless, "change", staticmethod(change))
    with pytest.raises((ContractError, RuntimeError)):
        contract(Careless(r=2))


@pytest.mark.parametrize(
    "change",
    [
        lambda right: replace(right, trained={**right.trained, "body.stem.weight": "why not"}),
        lambda right: replace(right, train_mode=("body.stem", *right.train_mode)),
    ],
    ids=["trains more", "train mode"],
)
def test_contract_finds_a_method_that_trains_more_than_its_adapters(change, monkeypatch):
    right = LoRA.select
    monkeypatch.setattr(Careless, "select", lambda self, classifier: change(right(self, classifier)))
    with pytest.raises(ContractError):
        adapters.trains_adapters_and_head_alone(Careless(r=2))
