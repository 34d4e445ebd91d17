"""Every registered plug-in of fine-tuning keeps every promise of its slot, and every promise can be broken."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import pytest
import torch

from crossgraft.choice import choose
from crossgraft.losses import LOSSES, CrossEntropy, Loss
from crossgraft.models.adapters import adapters_of
from crossgraft.testing import (
    AUGMENTATION_CONTRACTS,
    BATCH_TRANSFORM_CONTRACTS,
    FEATURE_TRANSFORM_CONTRACTS,
    LOSS_CONTRACTS,
    METHOD_CONTRACTS,
    OBJECTIVE_CONTRACTS,
    REGULARIZER_CONTRACTS,
    ContractError,
    adapters,
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
from crossgraft.tune.augmentations import AUGMENTATIONS, Augmentation, Light
from crossgraft.tune.batch_transforms import BATCH_TRANSFORMS, BatchTransform, Mixup
from crossgraft.tune.feature_transforms import FEATURE_TRANSFORMS, FeatureTransform, MixStyle
from crossgraft.tune.methods import METHODS, Full, Linear, LoRA, Method, Partial
from crossgraft.tune.objectives import ERM, IRM, OBJECTIVES, GroupDRO, Objective, VREx
from crossgraft.tune.regularizers import L2SP, REGULARIZERS, Regularizer, RepSim, SelfIdentityMapping
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
