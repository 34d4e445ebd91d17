"""Every promise of plug-ins of fine-tuning can be broken, and its contract says so."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import pytest
import torch

from crossgraft.losses import CrossEntropy
from crossgraft.testing import (
    ContractError,
    augmentations,
    batch_transforms,
    check_augmentation,
    check_batch_transform,
    check_feature_transform,
    check_loss,
    check_method,
    check_objective,
    check_regularizer,
    feature_transforms,
    losses,
    methods,
    objectives,
    promises,
    regularizers,
)
from crossgraft.tune.augmentations import Light
from crossgraft.tune.batch_transforms import Mixup
from crossgraft.tune.feature_transforms import MixStyle
from crossgraft.tune.methods import Full, Linear, Partial
from crossgraft.tune.objectives import ERM, IRM, GroupDRO, VREx
from crossgraft.tune.regularizers import L2SP, RepSim, SelfIdentityMapping


def plain(owner, **facts):
    """A subclass of a plug-in with something else in it: a docstring, a fact or a method."""
    return dataclass(type(owner.__name__, (owner,), {"__doc__": "Made up.", "__annotations__": {}, **facts}), **FROZEN[owner])


FROZEN = {
    Full: {"frozen": True},
    Linear: {"frozen": True},
    Partial: {"frozen": True},
    L2SP: {},
    RepSim: {},
    SelfIdentityMapping: {},
}
FROZEN |= {IRM: {"frozen": True}, VREx: {"frozen": True}, ERM: {"frozen": True}, GroupDRO: {}, MixStyle: {}}
FROZEN |= {Mixup: {"frozen": True}, Light: {"frozen": True}, CrossEntropy: {"frozen": True}}


def answering(owner, name, change, *arguments, **options):
    """A plug-in whose method ``name`` gives what ``change`` makes of its own and the right answer."""
    right = getattr(owner, name)

    def wrong(self, *given, **named):
        return change(self, right(self, *given, **named), *given)

    return plain(owner, **{name: wrong})(*arguments, **options)


def selecting(change):
    return answering(Full, "select", lambda _, right, classifier: change(right, classifier))


def forget_head(selection, _):
    return replace(selection, trained={name: why for name, why in selection.trained.items() if name != "head.bias"})


def sort_twice(selection, _):
    return replace(selection, frozen={**selection.frozen, "head.bias": "twice"})


def no_reason(selection, _):
    return replace(selection, trained=dict.fromkeys(selection.trained, " "))


def freeze_head(selection, _):
    rest = {name: why for name, why in selection.trained.items() if name != "head.bias"}
    return replace(selection, trained=rest, frozen={**selection.frozen, "head.bias": "frozen"})


def train_all(selection, _):
    return replace(selection, trained={**selection.trained, **selection.frozen}, frozen={})


def unknown_module(selection, _):
    return replace(selection, train_mode=("body.nothing",))


def freeze_at_once(selection, classifier):
    classifier.head.requires_grad_(False)
    return selection


def move_at_once(selection, classifier):
    with torch.no_grad():
        classifier.head.bias += 1
    return selection


def train_at_once(selection, classifier):
    classifier.train()
    return selection


def with_whole_network_in_train_mode():
    return answering(Linear, "select", lambda _, right, classifier: replace(right, train_mode=("",)))


@pytest.mark.parametrize(
    ("contract", "change"),
    [
        (methods.sorts_every_parameter_once, forget_head),
        (methods.sorts_every_parameter_once, sort_twice),
        (methods.sorts_every_parameter_once, no_reason),
        (methods.sorts_every_parameter_once, freeze_head),
        (methods.sorts_every_parameter_once, train_all),
        (methods.names_modules_that_exist, unknown_module),
        (methods.only_looks_at_the_network, freeze_at_once),
        (methods.only_looks_at_the_network, move_at_once),
        (methods.only_looks_at_the_network, train_at_once),
    ],
    ids=lambda value: value.__name__,
)
def test_contract_finds_the_broken_method(contract, change):
    contract(selecting(lambda selection, _: selection))
    with pytest.raises(ContractError):
        contract(selecting(change))


@pytest.mark.parametrize(
    "make", [with_whole_network_in_train_mode, lambda: plain(Full, features_are_fixed=True)()], ids=["train mode", "trained"]
)
def test_contract_finds_features_that_are_not_fixed(make):
    with pytest.raises(ContractError, match="features_are_fixed"):
        methods.keeps_features_where_it_says_so(make())


def with_loss(change):
    return answering(L2SP, "loss", lambda self, terms, context: change(terms, context))


def leave_hook(self, _, classifier, *__):
    classifier.head.register_forward_hook(lambda *_: None)


def leave_attribute(self, _, classifier, *__):
    classifier.body.mark = 1


def freeze(self, _, classifier, *__):
    classifier.head.bias.requires_grad_(False)


def move(self, _, classifier, *__):
    with torch.no_grad():
        classifier.head.bias += 1


def draw(terms, context):
    return {name: term + torch.rand(()) for name, term in terms.items()}


NUMBERS = iter(torch.arange(1.0, 100.0))


def move_by_seed(seed, classifier):
    with torch.no_grad():
        classifier.head.bias += seed


def drawing(draw):
    """ρSIM whose first own parameter is what ``draw`` makes of the seed, and perhaps of the network."""

    def attach(self, classifier, training_set=None, *, seed=0):
        SelfIdentityMapping.attach(self, classifier, training_set, seed=seed)
        drawn = draw(seed, classifier) if draw is move_by_seed else draw(seed)
        if drawn is not None:
            with torch.no_grad():
                self.modules()[0].get_parameter("_parts.0.predictor.bias").fill_(drawn.flatten()[0])

    return plain(SelfIdentityMapping, attach=attach)()


def foreign_group(self, _):
    return [{"params": [torch.nn.Parameter(torch.zeros(1))]}]


@pytest.mark.parametrize(
    ("contract", "make"),
    [
        (regularizers.gives_finite_terms, lambda: with_loss(lambda terms, _: {})),
        (regularizers.gives_finite_terms, lambda: with_loss(lambda terms, _: {"body": terms["body"] / 0})),
        (regularizers.gives_finite_terms, lambda: with_loss(lambda terms, _: {"body": terms["body"].expand(2)})),
        (regularizers.gives_finite_terms, lambda: plain(L2SP, task_weight=float("inf"))()),
        (regularizers.has_a_gradient, lambda: with_loss(lambda t, _: {name: term.detach() for name, term in t.items()})),
        (regularizers.has_a_gradient, lambda: L2SP(alpha=0.0, beta=0.0)),
        (regularizers.is_repeatable, lambda: with_loss(draw)),
        (
            regularizers.goes_on_after_a_checkpoint,
            lambda: plain(RepSim, load_state_dict=lambda self, state: None)(mode="covariance"),
        ),
        (regularizers.leaves_nothing_behind, lambda: answering(L2SP, "attach", leave_hook)),
        (regularizers.leaves_nothing_behind, lambda: answering(L2SP, "attach", leave_attribute)),
        (regularizers.leaves_nothing_behind, lambda: answering(L2SP, "attach", freeze)),
        (regularizers.leaves_nothing_behind, lambda: answering(L2SP, "attach", move)),
        (regularizers.names_its_own_parameters, lambda: answering(L2SP, "parameter_groups", foreign_group)),
        (regularizers.draws_its_parameters_from_the_seed, lambda: drawing(lambda seed: torch.rand(3))),
        (regularizers.draws_its_parameters_from_the_seed, lambda: drawing(lambda seed: next(NUMBERS))),
        (regularizers.draws_its_parameters_from_the_seed, lambda: drawing(move_by_seed)),
    ],
)
def test_contract_finds_the_broken_regularizer(contract, make):
    with pytest.raises(ContractError):
        contract(make())


def mixing(change):
    return answering(Mixup, "__call__", lambda self, right, *given: change(*right, *given))


def overwrite(images, targets, given, *_):
    given.add_(1)
    return images, targets


def draw_anywhere(images, targets, *_):
    return images * torch.rand(()), targets


@pytest.mark.parametrize(
    ("contract", "change"),
    [
        (batch_transforms.keeps_shapes_and_types, lambda images, targets, *_: (images[:, :1], targets)),
        (batch_transforms.keeps_shapes_and_types, lambda images, targets, *_: (images, targets.double())),
        (batch_transforms.keeps_shapes_and_types, lambda images, targets, *_: (images / 0, targets)),
        (batch_transforms.keeps_targets_a_distribution, lambda images, targets, *_: (images, 2 * targets)),
        (batch_transforms.keeps_targets_a_distribution, lambda images, targets, *_: (images, 0.9 * targets)),
        (batch_transforms.keeps_targets_a_distribution, lambda images, targets, *_: (images, targets - 0.1)),
        (batch_transforms.leaves_its_inputs_alone, overwrite),
        (batch_transforms.draws_from_its_generator_alone, draw_anywhere),
    ],
)
def test_contract_finds_the_broken_batch_transform(contract, change):
    contract(mixing(lambda images, targets, *_: (images, targets)))
    with pytest.raises(ContractError):
        contract(mixing(change))


def minimising(change, owner=IRM):
    return answering(owner, "__call__", lambda self, right, context: change(right, context, self))


def count_on(terms, _, objective):
    """Remembers something that no checkpoint knows of."""
    object.__setattr__(objective, "calls", getattr(objective, "calls", 0) + 1)
    return {name: term * objective.calls for name, term in terms.items()}


def write_into(terms, context, _):
    context.domains.add_(1)
    return terms


@pytest.mark.parametrize(
    ("contract", "make"),
    [
        (objectives.says_what_it_needs, lambda: plain(IRM, sampler="balanced")()),
        (objectives.says_what_it_needs, lambda: plain(IRM, needs_domains=False)()),
        (objectives.says_what_it_needs, lambda: plain(IRM, fewest_per_group=0)()),
        (objectives.gives_finite_terms, lambda: minimising(lambda terms, *_: {})),
        (objectives.gives_finite_terms, lambda: minimising(lambda terms, *_: {"risk": terms["risk"].expand(2)})),
        (objectives.gives_finite_terms, lambda: minimising(lambda terms, *_: {"risk": terms["risk"] / 0})),
        (objectives.has_a_gradient, lambda: minimising(lambda t, *_: {name: term.detach() for name, term in t.items()})),
        (objectives.has_a_gradient, lambda: minimising(lambda terms, *_: {"risk": 0 * terms["risk"]})),
        (objectives.is_the_mean_if_it_says_so, lambda: plain(VREx, is_plain_mean=True)()),
        (objectives.leaves_its_inputs_alone, lambda: minimising(write_into)),
        (objectives.is_repeatable, lambda: minimising(lambda terms, *_: {"risk": terms["risk"] * torch.rand(())})),
        (objectives.is_repeatable, lambda: minimising(count_on)),
        (
            objectives.goes_on_after_a_checkpoint,
            lambda: plain(GroupDRO, state_dict=lambda self: {}, load_state_dict=do_nothing)(),
        ),
        (objectives.goes_on_after_a_checkpoint, lambda: minimising(count_on)),
    ],
)
def test_contract_finds_the_broken_objective(contract, make):
    contract(minimising(lambda terms, *_: terms))
    with pytest.raises(ContractError):
        contract(make())


def do_nothing(self, *_):
    """What a plug-in forgot."""


def transforming(name, change):
    return answering(MixStyle, name, change, 1.0, 1.0)


def by_own_images_alone(self, start):
    """Partners are looked for among the images of the process."""
    indices = torch.arange(len(start.places))
    self._start = replace(start, places=indices, batch_size=len(indices), sum_over_processes=lambda tensor: tensor)


def forget_generator(self, _, start):
    self._start = replace(start, generator=torch.default_generator)


@pytest.mark.parametrize(
    ("contract", "make"),
    [
        (feature_transforms.keeps_logits_finite, lambda: transforming("_mix", lambda self, right, *_: right / 0)),
        (feature_transforms.acts_in_a_step_alone, lambda: transforming("_mix", lambda *_: None)),
        (feature_transforms.acts_in_a_step_alone, lambda: plain(MixStyle, after_forward=do_nothing)(1.0, 1.0)),
        (feature_transforms.acts_in_a_step_alone, lambda: plain(MixStyle, detach=do_nothing)(1.0, 1.0)),
        (feature_transforms.draws_from_its_generator_alone, lambda: transforming("before_forward", forget_generator)),
        (
            feature_transforms.is_the_same_for_any_number_of_processes,
            lambda: plain(MixStyle, before_forward=by_own_images_alone)(1.0, 1.0),
        ),
        (feature_transforms.leaves_nothing_behind, lambda: plain(MixStyle, detach=do_nothing)(1.0, 1.0)),
        (feature_transforms.leaves_nothing_behind, lambda: transforming("attach", leave_attribute)),
        (feature_transforms.leaves_nothing_behind, lambda: transforming("attach", move)),
    ],
)
def test_contract_finds_the_broken_feature_transform(contract, make):
    contract(MixStyle(1.0, 1.0))
    with pytest.raises(ContractError):
        contract(make())


def varying(change):
    return answering(Light, "__call__", lambda self, right, *given: change(right, *given))


def brighten_in_place(varied, images, *_):
    images.mul_(0.5)
    return varied


@dataclass(frozen=True)
class AlwaysMirrors(Light):
    """Turns every image round."""

    flip: bool = field(default=True, init=False)


@pytest.mark.parametrize(
    ("contract", "make"),
    [
        (augmentations.keeps_shape_and_range, lambda: varying(lambda varied, *_: varied[..., 1:])),
        (augmentations.keeps_shape_and_range, lambda: varying(lambda varied, *_: varied.double())),
        (augmentations.keeps_shape_and_range, lambda: varying(lambda varied, *_: varied + 0.01)),
        (augmentations.keeps_shape_and_range, lambda: varying(lambda varied, *_: varied - 0.01)),
        (augmentations.leaves_its_inputs_alone, lambda: varying(brighten_in_place)),
        (augmentations.draws_from_its_generator_alone, lambda: varying(lambda v, *_: v * torch.rand(()))),
        (augmentations.lets_mirroring_be_turned_off, AlwaysMirrors),
    ],
)
def test_contract_finds_the_broken_augmentation(contract, make):
    contract(varying(lambda varied, *_: varied))
    with pytest.raises(ContractError):
        contract(make())


def punishing(change):
    return answering(CrossEntropy, "__call__", lambda self, right, *given: change(right, *given))


@pytest.mark.parametrize(
    ("contract", "change"),
    [
        (losses.gives_one_value_an_image, lambda right, *_: right.mean()),
        (losses.gives_one_value_an_image, lambda right, *_: -right),
        (losses.gives_one_value_an_image, lambda right, *_: right.float()),
        (losses.has_a_finite_gradient, lambda _, z, t: -(t * z.softmax(1).float().log()).sum(1)),
        (losses.has_a_finite_gradient, lambda right, z, _: right.detach() + 0 * z.sum(1)),
        (losses.adds_up_over_parts, lambda right, *_: right / right.sum()),
    ],
)
def test_contract_finds_the_broken_loss(contract, change):
    contract(punishing(lambda right, *_: right))
    with pytest.raises(ContractError):
        contract(punishing(change))


def test_contract_finds_a_loss_that_takes_any_task():
    careless = plain(CrossEntropy, resolve=lambda self, targets, *, task: self)()
    with pytest.raises(ContractError, match="multi-label"):
        losses.refuses_other_tasks(careless)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: plain(Full, title=" ")(), "no title"),
        (lambda: plain(Full, citation="")(), "no citation"),
        (lambda: plain(Full, __doc__=None)(), "no docstring"),
        (lambda: plain(Full, name="Full-Speed")(), "snake_case"),
    ],
)
def test_contract_finds_missing_facts(make, message):
    with pytest.raises(ContractError, match=message):
        promises.declares_its_facts(make())


def test_contract_finds_options_that_can_not_be_written():
    @dataclass(frozen=True)
    class Odd(Light):
        """Its option changes on the way."""

        def __post_init__(self):
            object.__setattr__(self, "brightness", self.brightness / 2)

    with pytest.raises(ContractError, match="stands for"):
        promises.is_written_and_read_again(Odd(brightness=0.5))


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (check_method, Full, partial(selecting, forget_head)),
        (check_regularizer, L2SP, partial(L2SP, 0.0, 0.0)),
        (check_batch_transform, Mixup, partial(mixing, overwrite)),
        (check_objective, IRM, partial(minimising, count_on)),
        (check_feature_transform, MixStyle, partial(plain(MixStyle, detach=do_nothing), 1.0)),
        (check_augmentation, Light, AlwaysMirrors),
        (check_loss, CrossEntropy, partial(punishing, lambda right, *_: -right)),
    ],
)
def test_check_goes_through_all_contracts(check, good, bad):
    check(good())
    with pytest.raises(ContractError):
        check(bad())
