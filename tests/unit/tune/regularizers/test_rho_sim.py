"""ρSIM as a regulariser: in plans, steps and checkpoints; the engine has tests of its own."""

from unittest.mock import Mock

import pytest
import torch

from crossgraft.choice import choose, spell
from crossgraft.errors import DivergedError, UnknownNameError, UsageError
from crossgraft.seeding import torch_generator
from crossgraft.testing import check_regularizer
from crossgraft.testing.example_networks import example_classifier
from crossgraft.tune.engine.step import selection_applied
from crossgraft.tune.protocols import Selection, attach, keeps_reference
from crossgraft.tune.regularizers import REGULARIZERS, ForwardStart, RepSim, SelfIdentityMapping
from support.regularizing import context_of
from support.training import (
    DoubleFeed,
    PullToStart,
    build_classifier,
    everything,
    largest_difference,
    same_bits,
    train_one,
    with_lora,
)


@pytest.mark.parametrize("kind", ["convolutions", "transformer"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"order": "paper", "distance": "norm_mse"},
        {"projected": False, "distance": "mse", "rho": 1.0, "reduce": "sum"},
        {"sampling": "v2", "K": 5, "channels": 0.5},
        {"sampling": "norm", "placebo": True},
        {"placebo": True, "sampling": "v1", "distance": "kl"},
    ],
    ids=["as released", "paper", "equation 1", "v2", "norm", "placebo"],
)
def test_it_keeps_all_promises(kind, options):
    check_regularizer(SelfIdentityMapping(**options), classifier=example_classifier(kind))


def test_it_is_chosen_with_its_share_first_and_compares_with_nothing():
    assert choose(REGULARIZERS, "rho_sim:0.5,weight=0.01,K=32") == SelfIdentityMapping(rho=0.5, weight=0.01, K=32)
    assert not keeps_reference(SelfIdentityMapping()) and SelfIdentityMapping().task_weight == 1
    for spelling in ("rho_sim", "rho_sim:K=7", "rho_sim:distance=kl,blocks=body.stem+norm,placebo=True"):
        assert spell(choose(REGULARIZERS, spelling)) == spelling


@pytest.mark.parametrize("spelling", ["rho_sim:rho=0", "rho_sim:K=0", "rho_sim:K=none", "rho_sim:blocks=", "rho_sim:weight=-1"])
def test_options_are_checked(spelling):
    with pytest.raises(UsageError):
        choose(REGULARIZERS, spelling)


@pytest.mark.parametrize(
    ("spelling", "nearest"),
    [("rho_sim:distance=cosin", "cosine"), ("rho_sim:layout=nhcw", "nchw"), ("rho_sim:pacebo=true", "placebo")],
)
def test_unknown_names_get_the_nearest(spelling, nearest):
    with pytest.raises((UsageError, UnknownNameError), match=f"Did you mean {nearest}"):
        choose(REGULARIZERS, spelling)


def test_unknown_blocks_get_the_nearest():
    with pytest.raises(UnknownNameError, match=r"Unknown block: blocs\.1\. Did you mean body\.blocks\.1"):
        SelfIdentityMapping(blocks="blocs.1").attach(example_classifier())


def test_blocks_by_name_with_and_without_the_body_and_by_class():
    found = []
    for blocks in ("blocks.1 + blocks.2", "body.blocks.1+body.blocks.2", "_ConvolutionalBlock"):
        regularizer = SelfIdentityMapping(blocks=blocks)
        regularizer.attach(example_classifier())
        found.append(sorted(name.partition(".projector")[0] for name in regularizer.state_dict() if "projector.0.w" in name))
    assert found[0] == found[1] == ["body.blocks.1", "body.blocks.2"]
    assert len(found[2]) == 3


def start(places, batch_size, seed=0):
    return ForwardStart(torch_generator(seed), torch.as_tensor(places), batch_size)


def test_before_attach_and_before_the_forward_pass_it_says_what_is_missing():
    regularizer, classifier = SelfIdentityMapping(), example_classifier()
    with pytest.raises(UsageError, match=r"Call attach\(classifier\)"):
        regularizer.loss(context_of(classifier, torch.zeros(2, 3, 16, 16)))
    regularizer.attach(classifier)
    with pytest.raises(UsageError, match="no forward pass with gradients"):  # nobody said that this one is of a step
        regularizer.loss(context_of(classifier, torch.zeros(2, 3, 16, 16)))


def test_a_nan_names_its_block_and_stops_the_training_before_a_weight_moves():
    regularizer, classifier = SelfIdentityMapping(blocks="_ConvolutionalBlock"), example_classifier()
    regularizer.attach(classifier)
    with torch.no_grad():
        classifier.body.blocks[1].norm.bias.fill_(float("nan"))
    regularizer.before_forward(start([0, 1], 2))
    context = context_of(classifier, torch.rand(2, 3, 16, 16))
    with pytest.raises(DivergedError, match=r"not finite in body\.blocks\.1, body\.blocks\.2"):
        regularizer.loss(context)


def test_blocks_before_everything_that_is_trained_are_left_out_and_named():
    classifier = example_classifier()
    names = [name for name, _ in classifier.named_parameters()]
    late = {name: "" for name in names if name.startswith(("body.blocks.2", "head"))}
    selection = Selection(late, {name: "" for name in names if name not in late}, ("body.blocks.2",))
    regularizer = SelfIdentityMapping(blocks="_ConvolutionalBlock")
    with selection_applied(classifier, selection):
        regularizer.attach(classifier)
    assert regularizer.findings() == ["ρSIM leaves out blocks.0 and blocks.1, each because its output needs no gradient."]
    assert {name.rpartition(".projector")[0] for name in regularizer.state_dict() if "projector" in name} == {"body.blocks.2"}


class Noting(SelfIdentityMapping):
    def loss(self, context):
        Noting.found = self.findings()
        return super().loss(context)


def test_a_training_knows_what_is_trained_when_it_attaches():
    def late(classifier):
        names = [name for name, _ in classifier.named_parameters()]
        trained = {name: "" for name in names if name.startswith(("body.blocks.2", "body.norm", "head"))}
        return Selection(trained, {name: "" for name in names if name not in trained}, ("body.blocks.2", "head"))

    train_one("vit", selection=late, epochs=1, regularizers=[Noting(rho=1.0)])
    assert Noting.found == ["ρSIM leaves out blocks.0 and blocks.1, each because its output needs no gradient."]


def test_the_seed_changes_the_reconstructors_and_nothing_else():
    classifier = build_classifier("vit")
    before = {name: tensor.clone() for name, tensor in classifier.state_dict().items()}
    states = []
    for seed in (0, 0, 1):
        regularizer = SelfIdentityMapping()
        attach(regularizer, classifier, seed=seed)
        states.append({name: tensor.clone() for name, tensor in regularizer.state_dict().items()})
        regularizer.detach()
    first, again, other = states
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first if name != "steps")
    assert all(torch.equal(tensor, before[name]) for name, tensor in classifier.state_dict().items())


def test_it_gets_the_seed_of_the_training(monkeypatch):
    seeds = []
    monkeypatch.setattr(SelfIdentityMapping, "attach", lambda self, *_, seed, **__: seeds.append(seed))
    with pytest.raises(UsageError, match="Call attach"):
        train_one("vit", epochs=1, seed=7, regularizers=[SelfIdentityMapping()])
    assert seeds == [7]


def test_the_placebo_needs_two_images():
    one, two = Mock(fewest_images=1), Mock(fewest_images=2)
    assert "another image" in SelfIdentityMapping(placebo=True).conflicts(one)
    assert SelfIdentityMapping().conflicts(one) is None
    assert SelfIdentityMapping(placebo=True).conflicts(two) is None


@pytest.mark.parametrize("sampling", ["v0", "v1", "v2", "norm"])
def test_micro_batches_make_the_step_of_the_whole_batch(sampling):
    common = {"feed": DoubleFeed(7), "precision": "64-true", "epochs": 1}
    sim = SelfIdentityMapping(weight=0.5, sampling=sampling)
    whole, parts, other = (
        train_one("plain", **common, **more)[0]
        for more in ({"regularizers": [sim]}, {"regularizers": [sim], "accumulate": 3}, {})
    )
    assert largest_difference(whole, parts) < 1e-10 < 1e-4 < largest_difference(whole, other)


@pytest.mark.parametrize("method", [everything, with_lora], ids=["full", "lora"])
def test_its_term_is_logged_falls_and_moves_the_network(method):
    plain, _ = train_one("vit", selection=method, epochs=4)
    moved, result = train_one("vit", selection=method, epochs=4, regularizers=[SelfIdentityMapping(weight=0.1)])
    terms = [row.terms["rho_sim/blocks"] for row in result.history]
    assert terms[-1] < terms[0] and largest_difference(plain, moved) > 1e-5
    assert plain.state_dict().keys() == moved.state_dict().keys()
    assert all(not part._forward_hooks or method is with_lora for part in moved.modules())


def test_the_head_alone_is_trained_without_it():
    """Its phase is the same with and without, and keeps nothing of its forward passes."""
    settings = {"head_first": True, "head_epochs": 2, "epochs": 1}
    _, plain = train_one("cnn", **settings)
    _, ours = train_one("cnn", **settings, regularizers=[SelfIdentityMapping()])
    heads = [[row for row in each.history if row.phase == "head"] for each in (plain, ours)]
    assert [row.terms for row in heads[0]] == [row.terms for row in heads[1]]
    assert "rho_sim/blocks" in ours.history[-1].terms


def test_beside_repsim_and_in_bfloat16():
    classifier, result = train_one(
        "vit", epochs=1, precision="bf16-mixed", regularizers=[SelfIdentityMapping(weight=0.1), RepSim(0.1)]
    )
    assert {"rho_sim/blocks", "repsim/cka"} <= set(result.history[-1].terms)
    assert {p.dtype for p in classifier.parameters()} == {torch.float32}


def test_clipping_counts_the_reconstructors(monkeypatch):
    """The norm that is clipped is of all parameters of the optimiser, so that theirs shrinks the step of the network."""
    from lightning_fabric import Fabric

    norms = []
    right = Fabric.clip_gradients

    def clip(self, module, optimizer, **options):
        own = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        norm = right(self, module, optimizer, **options)
        norms.append((float(norm), len(own)))
        return norm

    monkeypatch.setattr(Fabric, "clip_gradients", clip)
    for weight in (0.0, 50.0):
        train_one(
            "vit", epochs=1, clip_norm=1e9, optimizer="sgd", learning_rate=1e-9, regularizers=[SelfIdentityMapping(weight=weight)]
        )
    (plain, few), (ours, many) = norms[0], norms[len(norms) // 2]
    assert many > few and ours > 2 * plain


def test_weight_zero_brings_nothing_along():
    regularizer, classifier = SelfIdentityMapping(weight=0.0), build_classifier("vit")
    regularizer.attach(classifier)
    assert not regularizer.modules() and not regularizer.parameter_groups() and not regularizer.state_dict()
    assert all(not part._forward_hooks for part in classifier.modules())
    zero, _ = train_one("vit", epochs=1, clip_norm=0.1, regularizers=[regularizer])
    assert same_bits(zero, train_one("vit", epochs=1, clip_norm=0.1)[0])


class Open(PullToStart):
    def attach(self, classifier, training_set=None, **more):
        super().attach(classifier, training_set)
        self.given = more


def test_a_regulariser_that_takes_no_seed_is_attached_without_it():
    older, open_ = PullToStart(), Open()
    for each in (older, open_):
        attach(each, example_classifier(), None, seed=3)
    assert older.attached and open_.given == {"seed": 3}
