"""Every registered plug-in of fine-tuning keeps every promise of its slot."""

from __future__ import annotations

import pytest
import torch

from crossgraft.choice import choose
from crossgraft.losses import LOSSES, Loss
from crossgraft.testing import (
    AUGMENTATION_CONTRACTS,
    BATCH_TRANSFORM_CONTRACTS,
    FEATURE_TRANSFORM_CONTRACTS,
    LOSS_CONTRACTS,
    METHOD_CONTRACTS,
    OBJECTIVE_CONTRACTS,
    REGULARIZER_CONTRACTS,
    adapters,
    augmentations,
    batch_transforms,
    check_method,
    check_regularizer,
    feature_transforms,
    losses,
    methods,
    objectives,
    promises,
    regularizers,
)
from crossgraft.tune.augmentations import AUGMENTATIONS, Augmentation
from crossgraft.tune.batch_transforms import BATCH_TRANSFORMS, BatchTransform
from crossgraft.tune.feature_transforms import FEATURE_TRANSFORMS, FeatureTransform
from crossgraft.tune.methods import METHODS, Full, Method
from crossgraft.tune.objectives import OBJECTIVES, Objective
from crossgraft.tune.regularizers import L2SP, REGULARIZERS, Regularizer
from support.small_classifiers import small_classifier

SLOTS = {
    "method": (METHODS, METHOD_CONTRACTS, Method),
    "regularizer": (REGULARIZERS, REGULARIZER_CONTRACTS, Regularizer),
    "batch transform": (BATCH_TRANSFORMS, BATCH_TRANSFORM_CONTRACTS, BatchTransform),
    "feature transform": (FEATURE_TRANSFORMS, FEATURE_TRANSFORM_CONTRACTS, FeatureTransform),
    "objective": (OBJECTIVES, OBJECTIVE_CONTRACTS, Objective),
    "augmentation": (AUGMENTATIONS, AUGMENTATION_CONTRACTS, Augmentation),
    "loss": (LOSSES, LOSS_CONTRACTS, Loss),
}
OPTIONS = {
    "method": [
        "partial:1",
        "partial:names=*",
        "lora:r=2,alpha=3,dropout=0.5",
        "lora:targets=*.mlp.*+qkv,fused=q+k+v",
        "adaptformer:bottleneck=3,norm=in",
        "adaptformer:norm=out,scale=1.0",
    ],
    "regularizer": ["l2_sp:beta=0.0", "repsim:preset=paper", "repsim:mode=covariance", "repsim:mode=procrustes"],
    "batch transform": ["mixup:0.4", "cutmix:probability=1.0", "label_smoothing:0.2"],
    "feature transform": ["mixstyle:p=1.0,alpha=1.0", "mixstyle:layers=blocks.1+stem"],
    "objective": ["irm:weight=7.0,anneal_steps=2", "vrex:anneal_steps=0", "group_dro:eta=0.5,groups=domains_and_classes"],
    "augmentation": ["thesis:4", "thesis:6", "light:flip=false"],
    "loss": ["focal:0.0", "focal:0.5", "cross_entropy:balanced", "multi_label:balanced"],
}
CASES = [
    pytest.param(slot, choice, contract, id=f"{choice}-{contract.__name__}")
    for slot, (registry, contracts, _) in SLOTS.items()
    for choice in [*registry.names(), *OPTIONS[slot]]
    for contract in contracts
    if (choice, contract) != ("none", promises.declares_its_facts)  # to do nothing has no citation
]


@pytest.mark.parametrize(("slot", "choice", "contract"), CASES)
def test_registered_plugin_keeps_promise(slot, choice, contract):
    registry, _, protocol = SLOTS[slot]
    plugin = choose(registry, choice)
    assert isinstance(plugin, protocol)
    contract(plugin)


@pytest.mark.parametrize("network", ["vit", "cnn"])
def test_contracts_take_another_network_and_leave_it_alone(network):
    classifier = small_classifier(network)
    before = {name: value.clone() for name, value in classifier.state_dict().items()}
    check_method(Full(), classifier=classifier)
    check_regularizer(L2SP(), classifier=classifier)
    assert all(torch.equal(value, before[name]) for name, value in classifier.state_dict().items())


MODULES = {
    "method": methods,
    "regularizer": regularizers,
    "batch transform": batch_transforms,
    "feature transform": feature_transforms,
    "objective": objectives,
    "augmentation": augmentations,
    "loss": losses,
}


@pytest.mark.parametrize("slot", SLOTS)
def test_each_contract_of_a_module_is_in_its_tuple(slot):
    module = MODULES[slot]
    _, contracts, _ = SLOTS[slot]
    own = {
        value
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", "") == module.__name__ and not name.startswith(("_", "check"))
    }
    assert own <= set(contracts) and len(set(contracts)) == len(contracts)
    more = {*adapters.ADAPTER_CONTRACTS} if slot == "method" else set()
    assert set(contracts) - own - more == {promises.declares_its_facts, promises.is_written_and_read_again}


def test_each_contract_of_adapters_is_in_its_tuple():
    own = {
        value
        for name, value in vars(adapters).items()
        if getattr(value, "__module__", "") == adapters.__name__ and name != "network_for" and not name.startswith("_")
    }
    assert own == set(adapters.ADAPTER_CONTRACTS) and len(own) == len(adapters.ADAPTER_CONTRACTS)
