"""The optimiser knows its parameters by name and gives each group its own learning rate."""

import pytest
import torch

from crossgraft.tune.engine.optimizers import make_optimizer
from crossgraft.tune.engine.settings import TrainerSettings
from support.training import PullToStart, build_classifier, everything, only_head


def build(classifier, *, selection=everything, regularizers=(), **settings):
    return make_optimizer(classifier, selection(classifier), regularizers, TrainerSettings(**settings))


def group_of(named, name):
    parameter = named.parameters[name]
    return next(g for g in named.optimizer.param_groups if any(p is parameter for p in g["params"]))


def test_every_trained_parameter_is_in_one_group_and_no_other():
    classifier = build_classifier()
    for selection in (everything, only_head):
        named = build(classifier, selection=selection)
        inside = [id(p) for group in named.optimizer.param_groups for p in group["params"]]
        assert sorted(inside) == sorted(id(p) for n, p in classifier.named_parameters() if n in selection(classifier).trained)


def test_learning_rates_follow_the_share_group_by_group():
    named = build(build_classifier(), learning_rate=0.1, head_learning_rate=0.4, weight_decay=0.2)
    named.set_learning_rate_share(0.5)
    named.set_learning_rate_share(0.25)
    assert group_of(named, "body.stem.weight")["lr"] == pytest.approx(0.025)
    assert named.head_learning_rate == group_of(named, "head.weight")["lr"] == pytest.approx(0.1)
    assert group_of(named, "body.stem.weight")["weight_decay"] == 0.2
    assert group_of(named, "body.norm.weight")["weight_decay"] == group_of(named, "head.bias")["weight_decay"] == 0


def test_layer_decay_slows_the_first_layers():
    named = build(build_classifier("vit"), learning_rate=1.0, layer_decay=0.5)
    rates = [group_of(named, f"body.blocks.{i}.mlp.fc1.weight")["lr"] for i in range(3)]
    assert rates == pytest.approx([rates[2] / 4, rates[2] / 2, rates[2]])


def test_what_a_regulariser_learns_takes_part():
    pull, classifier = PullToStart(), build_classifier()
    pull.attach(classifier)
    named = build(classifier, regularizers=[pull], learning_rate=0.1)
    assert named.parameters["pull/0"] is pull.factor.weight
    group = group_of(named, "pull/0")
    assert group["lr"] == 0.1 and group["weight_decay"] == 0


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_steps_go_on_from_a_saved_state(optimizer):
    def steps(named, count):
        for _ in range(count):
            for number, parameter in enumerate(named.parameters.values()):
                parameter.grad = torch.full_like(parameter, 0.1 * (number + 1))
            named.optimizer.step()

    whole, halved, rest = build_classifier(), build_classifier(), build_classifier()
    settings = {"optimizer": optimizer, "learning_rate": 0.01}
    steps(build(whole, **settings), 4)
    first = build(halved, **settings)
    steps(first, 2)
    rest.load_state_dict(halved.state_dict())
    second = build(rest, **settings)
    second.load_state({name: value.clone() for name, value in first.state().items()})
    steps(second, 2)
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), rest.parameters(), strict=True))
    assert not torch.equal(whole.head.weight, halved.head.weight)


def test_sgd_is_torchs_with_momentum_and_without_look_ahead():
    named = build(build_classifier(), optimizer="sgd", momentum=0.7)
    assert isinstance(named.optimizer, torch.optim.SGD)
    assert {(g["momentum"], g["nesterov"]) for g in named.optimizer.param_groups} == {(0.7, False)}
