from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import nn

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.losses import CrossEntropy
from crossgraft.models.backbone import Backbone
from crossgraft.models.classifier import make_classifier
from crossgraft.tasks import task_named
from crossgraft.tune.engine.selection_rule import Keep, SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.feed.batches import BatchPlan
from crossgraft.tune.methods import Linear
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import FoldRows
from crossgraft.tune.planning.batch_norm import BatchNorm
from crossgraft.tune.planning.choices import choose_plugins, choose_settings, split_choices
from crossgraft.tune.planning.contradictions import (
    REFUSED,
    SAID,
    WARNED,
    TrainingSituation,
    notes_on,
    refuse_contradictions,
    warnings_on,
)
from crossgraft.tune.planning.in_force import InForce
from crossgraft.tune.planning.plan import Plan, plan_record, plan_rows
from crossgraft.tune.planning.preparation import Preparation
from crossgraft.tune.planning.step_cost import UNKNOWN_COST, StepCost, steps_per_epoch
from crossgraft.tune.words import trained_in_words
from crossgraft.types import Preprocessing
from crossgraft.words.formatting import duration

SAID_BY_PLUGINS = {"conflicts": 3, "remarks": 9}
"""Cases of mixstyle, of hcs alone, and of hcs (3), repsim (3), both (2) and focal (1)."""

OPTIONS = TuneOptions(model="test_resnet")
NO_BATCH_NORM = BatchNorm("train", "", 0)

SLOTS = ("method", "regularizer", "batch_transform", "augmentation", "flip", "loss", "class_weights", "sampler", "objective")
SLOTS += ("feature_transform",)


def plugins(task="multi-class", **choices):
    return choose_plugins(TuneOptions(model="test_resnet", **choices), task_named(task))


def situation(*, settings=None, given=(), **fields):
    slots = {name: fields.pop(name) for name in tuple(fields) if name in SLOTS}
    task = task_named(fields.pop("task", "multi-class"))
    base = TrainingSituation(
        plugins=plugins(task, **slots),
        settings=TrainerSettings(**(settings or {})),
        task=task,
        num_train=100,
        num_classes=3,
        has_val=True,
        device="cpu",
        num_jobs=1,
        num_points=1,
        batch_norm="train",
        trained_batch_norms=(),
        moved_batch_norms=(),
        keep=None,
        fewest_val=30,
        given=frozenset(given),
        grid_settings=frozenset(),
        num_trained_blocks=2,
        is_convolutional=True,
    )
    return replace(base, **fields)


@pytest.fixture(scope="module")
def classifier():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))
    module = nn.Sequential()
    module.add_module("body", body[:4])
    module.add_module("fc", body[4])
    backbone = Backbone(
        module, name="tiny", architecture="tiny", source="factory", preprocessing=Preprocessing(8, 8), family="tiny"
    )
    return make_classifier(backbone, 3, seed=0)


CONTRADICTIONS = {
    "refers to the pretrained weights": {"method": "scratch", "regularizer": "l2_sp"},
    "varies features for the layers behind them": {"method": "linear", "feature_transform": "mixstyle"},
    "mixes images of a whole batch": {"feature_transform": "mixstyle", "settings": {"accumulate": 2}},
    "it works on tokens": {"feature_transform": "mixstyle", "is_convolutional": False},
    "does not move it at all": {"method": "linear", "regularizer": "l2_sp"},
    "spreads one label over the classes": {"task": "multi-label", "batch_transform": "label_smoothing:0.1"},
    "is not for multi-label targets": {"task": "multi-label", "loss": "cross_entropy"},
    "together they would do it twice": {"sampler": "balanced", "class_weights": "balanced"},
    "trains only the head": {"method": "linear", "settings": {"head_first": True}},
    "starts from random ones": {"method": "scratch", "settings": {"head_first": True}},
    "lowers the learning rate of early layers": {"method": "linear", "settings": {"layer_decay": 0.8}},
    "the first would do nothing": {"method": "linear", "given": ["learning_rate", "head_learning_rate"]},
    "protects pretrained early layers": {"method": "scratch", "settings": {"layer_decay": 0.8}},
    "augmentation none and no --batch-transform": {"regularizer": "hcs:cache=true", "augmentation": "light"},
    "needs at least 4 images at a time, but there are 3": {
        "regularizer": "hcs:debiased=true",
        "settings": {"batch_size": 12, "accumulate": 4},
    },
    "and there is none that compares": {"regularizer": "bss", "keep": Keep(0.8)},
    "of which there are 3": {"regularizer": "repsim", "keep": Keep(0.8), "fewest_val": 3},
    "--patience stops when": {"has_val": False, "settings": {"patience": 3}},
    "--select-by picks": {"has_val": False, "given": ["select_by"]},
    "--grid picks the best": {"has_val": False, "num_points": 2},
    "and --method linear trains none of them": {
        "method": "linear",
        "settings": {"log_gradient_norms": True},
        "num_trained_blocks": 0,
    },
    "learning_rate is given and also varied": {"given": ["learning_rate"], "grid_settings": frozenset({"learning_rate"})},
    "whose own options make them 0": {"regularizer": "repsim:weight=0,hcs:lam=1", "keep": Keep(0.8)},
    "and repsim compares with that": {"regularizer": "repsim", "keep": Keep(0.8), "given": ["adapter"]},
    "whose features have other ones": {"batch_norm": "adapt", "given": ["adapter"]},
    "has to see where a whole training ends": {"regularizer": "repsim", "keep": Keep(0.8), "settings": {"patience": 3}},
    "(--batch-norm frozen)": {
        "trained_batch_norms": ("body.bn",),
        "moved_batch_norms": ("body.bn",),
        "settings": {"num_processes": 2},
    },
    "BatchNorm layers without kept statistics": {"trained_batch_norms": ("body.bn",), "settings": {"num_processes": 2}},
    "some would have no image": {"settings": {"num_processes": 8, "batch_size": 4}},
    "micro-batches without an image": {"settings": {"accumulate": 8, "batch_size": 4}},
    "(--accumulate): some would have none": {"settings": {"num_processes": 4, "accumulate": 4, "batch_size": 8}},
    "is all of --epochs": {"given": ["warmup_epochs"], "settings": {"epochs": 3, "warmup_epochs": 3.0}},
    "16-mixed needs a GPU": {"settings": {"precision": "16-mixed"}},
    "this GPU has no bf16": {"settings": {"precision": "bf16-mixed"}, "device": "cuda"},
    "2 processes need as many GPUs; 1 is here. Ask for --devices 1": {"settings": {"num_processes": 2}, "device": "cuda"},
    "--momentum is of SGD": {"given": ["momentum"]},
    "--nesterov is a momentum of SGD": {"settings": {"nesterov": True}},
    "looks ahead along the momentum, which is 0": {"settings": {"optimizer": "sgd", "nesterov": True, "momentum": 0.0}},
    "in epoch 60 (counted from 0), which a training of 50 epochs": {"settings": {"epochs": 50, "schedule": "step:at=[30,60]"}},
    "--stop-by looks at validation rows": {"given": ["stop_by"], "has_val": False},
    "first phase of --head-first": {"given": ["head_epochs"]},
    "needs two classes or several labels": {"given": ["threshold_rule"]},
    "is fitted on validation rows": {"given": ["threshold_rule"], "has_val": False, "task": "binary"},
}


@pytest.mark.parametrize("said", CONTRADICTIONS)
def test_contradictions_are_refused_with_their_reason(said, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 5))
    with pytest.raises(UsageError) as error:
        refuse_contradictions(situation(**CONTRADICTIONS[said]))
    assert said in str(error.value)
    assert "{" not in str(error.value)


def test_every_rule_has_a_case_here_and_sound_choices_pass():
    assert len(CONTRADICTIONS) == len(REFUSED) + SAID_BY_PLUGINS["conflicts"]
    refuse_contradictions(situation())
    refuse_contradictions(situation(method="partial:1", regularizer="l2_sp", batch_transform="mixup:0.2,cutmix"))
    refuse_contradictions(situation(task="multi-label", batch_transform="mixup", settings={"head_first": True}))
    refuse_contradictions(situation(method="scratch", regularizer="bss"))  # compares with nothing
    refuse_contradictions(situation(regularizer="hcs:cache=true", augmentation="none"))
    refuse_contradictions(situation(regularizer="hcs:debiased=true", settings={"batch_size": 4}))
    few = {"batch_size": 2}
    refuse_contradictions(situation(regularizer="hcs:1.0,debiased=true", settings=few))  # has no term
    refuse_contradictions(situation(regularizer="hcs", settings=few))
    refuse_contradictions(situation(regularizer="bss,l2_sp", keep=Keep(0.8), fewest_val=4))
    assert notes_on(situation()) == []
    enough = {"settings": {"batch_size": 64}, "augmentation": "none"}
    assert notes_on(situation(regularizer="repsim:preset=paper", **enough)) == []
    assert notes_on(situation(regularizer="repsim:reference=dataset", **enough)) == []
    (said,) = notes_on(situation(regularizer="repsim:preset=paper", batch_transform="mixup", **enough))
    assert "reference=dataset_aug" in said


@pytest.mark.parametrize("regularizer", ["repsim", "repsim:mode=cka", "repsim:mode=procrustes", "hcs"])
def test_what_compares_images_one_by_one_says_what_that_costs(regularizer):
    """However few they are, as long as there are three."""
    name = regularizer.partition(":")[0]
    for images, augmentation, cost in ((3, "none", "looked up."), (64, "light", "about a third more time per step")):
        (said,) = notes_on(situation(regularizer=regularizer, augmentation=augmentation, settings={"batch_size": images}))
        assert said.startswith(f"{name}: ") and cost in said
    paper = notes_on(situation(regularizer="repsim:preset=paper,reference=batch", settings={"batch_size": 64}))
    assert len(paper) == 1 and "third more time" in paper[0]


@pytest.mark.parametrize(
    ("reference", "sampler", "says"),
    [
        ("dataset", "balanced", True),
        ("dataset", "shuffle", False),
        ("dataset_aug", "balanced", False),
        ("batch", "balanced", False),
    ],
)
def test_proportions_of_classes_that_differ_from_those_of_the_reference_are_said(reference, sampler, says):
    said = " ".join(notes_on(situation(regularizer=f"repsim:reference={reference}", sampler=sampler)))
    assert ("--sampler balanced" in said) is says


@pytest.mark.parametrize(
    ("regularizer", "says"), [("repsim:mode=procrustes", True), ("hcs", True), ("repsim:reference=batch,normalize=ref", False)]
)
def test_any_two_images_are_alike_and_the_plan_says_so(regularizer, says):
    said = " ".join(notes_on(situation(regularizer=regularizer, settings={"batch_size": 2})))
    assert ("there are 2 at a time, so that it pulls at nothing" in said) is says


NOTES = {
    "are computed once; epochs": {"method": "linear"},
    "many times faster": {"method": "linear", "augmentation": "light"},
    "computed once, before the first step, and looked up": {"regularizer": "hcs", "augmentation": "none"},
    "With --augmentation none features": {"regularizer": "hcs", "augmentation": "none", "batch_transform": "mixup"},
    "third more time per step.": {"regularizer": "hcs:cache=false", "augmentation": "none"},
    "dampen each other": {"loss": "focal", "batch_transform": "mixup"},
    "drawn evenly": {"sampler": "balanced", "batch_transform": "mixup"},
    "the last epoch is kept": {"has_val": False},
    "every step sees them all": {"settings": {"batch_size": 128}},
    "will be noisy": {"trained_batch_norms": ("body.bn",), "settings": {"batch_size": 4}},
    "repsim: the pretrained features of each image are computed once": {"regularizer": "repsim", "augmentation": "none"},
    "repsim compares the images of a step with each other": {"regularizer": "repsim", "settings": {"batch_size": 1}},
    "comes from 8 images at a time": {"regularizer": "repsim:preset=paper", "settings": {"batch_size": 64, "accumulate": 8}},
    "reference=dataset_aug": {"regularizer": "repsim:preset=paper", "augmentation": "light"},
    "which has the adapter (--adapter)": {"method": "lora", "regularizer": "l2_sp", "given": ["adapter"]},
    "also pays for the proportions of the classes": {"regularizer": "repsim:preset=paper", "sampler": "balanced"},
    "looks better on validation rows than it is": {"num_jobs": 40},
}


@pytest.mark.parametrize("said", NOTES)
def test_what_should_be_known_is_noted(said):
    assert any(said in note for note in notes_on(situation(**NOTES[said])))
    assert len(NOTES) == len(SAID) + SAID_BY_PLUGINS["remarks"]


def test_what_is_seldom_meant_is_warned_of():
    parts = {"trained_batch_norms": ("body.bn",), "settings": {"batch_size": 64, "accumulate": 4}}
    (warning,) = warnings_on(situation(**parts))
    assert "--accumulate 4 cuts each batch into micro-batches of about" in warning
    assert "(body.bn …)" in warning
    assert "--method linear" in warning and "--batch-norm frozen" in warning
    assert len(WARNED) == 1
    assert warnings_on(situation(settings=parts["settings"])) == []
    assert warnings_on(situation(trained_batch_norms=("body.bn",))) == []


def test_plugins_with_commas_keep_their_options():
    assert split_choices("l2_sp:alpha=0.1,beta=0.2,bss") == ["l2_sp:alpha=0.1,beta=0.2", "bss"]
    (regularizer,) = plugins(regularizer=["l2_sp:alpha=0.1,beta=0.2"]).regularizers
    assert (regularizer.alpha, regularizer.beta) == (0.1, 0.2)
    both = plugins(batch_transform="mixup:0.4,cutmix").batch_transforms
    assert [each.name for each in both] == ["mixup", "cutmix"]
    assert plugins(regularizer="none").regularizers == ()


def test_what_is_left_open_suits_task_and_method():
    assert plugins().augmentation.name == "light"
    assert plugins(method="linear").augmentation.name == "none"
    assert plugins(method="linear").features_are_fixed
    assert not plugins(method="linear", augmentation="light").features_are_fixed
    assert plugins(task="multi-label").loss.name == "multi_label"
    assert plugins(class_weights="balanced").loss.class_weights == "balanced"
    assert not plugins(flip=False).augmentation.flip


def test_wrong_choices_name_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean full"):
        plugins(method="ful")
    with pytest.raises(UnknownNameError, match="Did you mean balanced"):
        plugins(sampler="balancd")
    with pytest.raises(UsageError, match="given twice"):
        plugins(batch_transform=["mixup", "mixup:0.4"])
    with pytest.raises(UsageError, match="given twice"):
        plugins(loss="focal:class_weights=balanced", class_weights="balanced")


def test_settings_follow_number_of_images_size_and_method():
    small = choose_settings({}, plugins(), num_train=500, num_parameters=4_000_000)
    assert (small.batch_size, small.epochs, small.learning_rate, small.weight_decay) == (32, 38, 1e-3, 0.05)
    assert small.warmup_epochs == pytest.approx(3.8)
    large = choose_settings({}, plugins(), num_train=60_000, num_parameters=90_000_000)
    assert (large.batch_size, large.epochs, large.learning_rate) == (128, 10, 1e-4)
    assert choose_settings({}, plugins(method="linear"), num_train=40, num_parameters=1).learning_rate == 3e-3
    sgd = choose_settings({"optimizer": "sgd"}, plugins(), num_train=40, num_parameters=1)
    assert (sgd.learning_rate, sgd.epochs) == (1e-2, 50)
    assert choose_settings({}, plugins(regularizer="l2_sp"), num_train=40, num_parameters=1).weight_decay == 0
    given = choose_settings({"epochs": 3, "learning_rate": 0.5}, plugins(), num_train=40, num_parameters=1)
    assert (given.epochs, given.learning_rate) == (3, 0.5)


@pytest.mark.parametrize("num_train", [1, 5, 8, 9, 16, 17, 18, 100])
def test_steps_are_those_of_the_batches(num_train):
    plan = BatchPlan(torch.ones(num_train, 1), batch_size=8)
    assert steps_per_epoch(num_train, 8) == plan.steps_per_epoch


def test_batch_norm_over_several_processes_names_the_ways_out():
    moved = {"trained_batch_norms": ("body.bn",), "moved_batch_norms": ("body.bn",)}
    with pytest.raises(UsageError, match=r"one process, keep their statistics \(--batch-norm frozen\), .*--method linear"):
        refuse_contradictions(situation(**moved, settings={"num_processes": 2}))


def test_fewer_images_than_a_debiased_cka_needs_are_refused_before_training():
    few = {"settings": {"batch_size": 3}}
    with pytest.raises(UsageError, match="at least 4 images at a time, and there are 3"):
        refuse_contradictions(situation(plugins=plugins(regularizer="repsim"), **few))
    refuse_contradictions(situation(plugins=plugins(regularizer="repsim:mode=procrustes"), **few))
    refuse_contradictions(situation(plugins=plugins(regularizer="repsim:0"), **few))  # it pulls at nothing anyway
    with pytest.raises(UsageError, match=r"or a smaller --accumulate\.$"):
        refuse_contradictions(situation(plugins=plugins(regularizer="repsim"), settings={"batch_size": 2}))
    refuse_contradictions(situation(plugins=plugins(regularizer="repsim"), settings={"batch_size": 4}))


def test_covariances_beside_trained_batch_norm_are_remarked():
    def said(regularizer, *moved, mode="train"):
        fields = {"trained_batch_norms": ("body.bn",), "moved_batch_norms": moved, "batch_norm": mode}
        return " ".join(notes_on(situation(plugins=plugins(regularizer=regularizer), **fields)))

    assert "--batch-norm frozen or adapt" in said("repsim:preset=paper", "body.bn")
    assert "--batch-norm frozen, or" in said("repsim:preset=paper", "body.bn", mode="adapt")
    assert "--batch-norm" not in said("repsim:preset=paper") and "--batch-norm" not in said("repsim", "body.bn")


def planned(classifier, method, *, points=({},), num_folds=1, notes=(), cost=None, **choices):
    """The record of a plan for 100 training and 30 validation rows."""
    chosen = plugins(method=method, **choices)
    prepared = Mock(
        spec=Preparation,
        classifier=classifier,
        plugins=chosen,
        selection=chosen.method.select(classifier),
        settings=TrainerSettings(epochs=10, batch_size=20),
        rule=SelectionRule(),
        keep=None,
        batch_norm=NO_BATCH_NORM,
        request=Mock(points=points, options=OPTIONS),
        domains=(),
        rows=Mock(parts=[FoldRows(*map(np.arange, (100, 30, 10)))] * num_folds, edits=None, left_out=None),
    )
    measured = StepCost(seconds_per_image=0.01, peak_bytes=2**20, time_reason="from one timed step")
    return plan_record(prepared, cost or measured, notes)


def test_what_compares_with_nothing_goes_with_random_weights_and_is_not_said_to_keep_anything():
    refuse_contradictions(situation(method="scratch", regularizer="rho_sim", batch_transform="mixup"))
    refuse_contradictions(situation(method="lora", regularizer=["rho_sim", "repsim"]))
    with pytest.raises(UsageError, match="rho_sim acts on the pretrained part, but --method linear does not move it"):
        refuse_contradictions(situation(method="linear", regularizer="rho_sim"))
    with pytest.raises(UsageError, match="there is none that compares features"):
        refuse_contradictions(situation(regularizer="rho_sim", keep=Keep(0.8)))


def test_rows_group_parameters_by_reason_and_count_all_of_them(classifier):
    rows = plan_rows(classifier, Linear().select(classifier))
    assert [(row.trained, row.num_parameters) for row in rows] == [(True, 15), (False, 112)]
    assert rows[1].reason == "only the head is trained"
    plan = planned(classifier, "linear")
    assert (plan.num_trained, plan.num_frozen) == (15, 112)
    with_own = planned(classifier, "full", regularizer="repsim:reference=dataset")
    assert with_own.num_own_parameters >= 4 * 4  # an orthogonal map of its four features
    assert with_own.num_trained == 127


def test_what_a_regulariser_learns_is_no_part_of_the_trained_share(classifier):
    """Q of RepSim has more parameters than LoRA trains of a network."""
    repsim = "repsim:reference=dataset"
    plain, regularized = (planned(classifier, "linear", regularizer=name) for name in ("none", repsim))
    assert regularized.num_own_parameters > regularized.num_trained
    assert trained_in_words(regularized) == trained_in_words(plain) == "15 of 127 parameters trained (12\N{NO-BREAK SPACE}%)"
    own = f"Regularisers: {regularized.num_own_parameters} parameters of their own, trained too."
    assert own in Plan(regularized).summary().splitlines()
    added = StepCost(seconds_per_image=0.05, added_seconds_per_image=0.01, added_bytes=2**21)
    measured = planned(classifier, "linear", regularizer=repsim, cost=added)
    said = " a step more (25\N{NO-BREAK SPACE}%) and 2 MiB of memory."
    assert f"{own[:-1]}; about {duration(0.01 * measured.batch_size)}{said}" in Plan(measured).summary().splitlines()
    assert "Regularisers" not in Plan(plain).summary()


def test_products_of_a_forward_pass_and_of_reconstructors_are_those_counted_by_hand(classifier):
    alone = planned(classifier, "full", regularizer="repsim")
    assert alone.multiply_adds == 6 * 6 * 4 * (3 * 3 * 3) + 4 * 3
    assert alone.added_multiply_adds is None and "added_multiply_adds" not in alone.model_dump()
    sim = planned(classifier, "full", regularizer="rho_sim:blocks=Conv2d")
    tokens, to_taken = 7, 4 * 3  # a fifth of 6 × 6; the output has 4 channels and the input 3, which are K
    projected = 3 * 6 + 6 * 3 + 3 * 3
    assert sim.added_multiply_adds == tokens * (to_taken + 2 * projected + 3 * 3)
    assert sim.multiply_adds == alone.multiply_adds
    said = "#FLOPs: 3.90 k multiply–adds to look at an image; 4.68 k in training, with reconstructors (+20 %)."
    assert said in Plan(sim).summary().replace("\N{NO-BREAK SPACE}", " ").splitlines()


def test_what_was_not_added_is_not_written(classifier):
    plain = planned(classifier, "full")
    assert not {"added_seconds_per_step", "added_bytes"} & plain.model_dump().keys()
    cost = StepCost(seconds_per_image=0.05, added_seconds_per_image=0.01, added_bytes=100)
    added = planned(classifier, "full", cost=cost)
    for each in (plain, added):
        assert type(each).model_validate_json(each.model_dump_json()) == each
    assert added.model_dump()["added_bytes"] == 100


def test_the_time_of_a_plan_is_that_of_the_whole_command_where_it_is_known(classifier):
    training = planned(classifier, "full")
    assert f"Time: about {duration(11.0)} at most (" in Plan(training).summary()
    whole = training.model_copy(update={"seconds_beside": 49.0})
    assert f"Time: about {duration(60.0)} at most; training takes {duration(11.0)} of it (" in Plan(whole).summary()
    assert "seconds_beside" in whole.model_dump() and "seconds_beside" not in training.model_dump()


def test_steps_and_time_count_every_job(classifier):
    one = planned(classifier, "full")
    assert (one.num_steps, one.num_jobs) == (50, 1)
    assert one.expected_seconds == pytest.approx(10 * (100 + 10) * 0.01)
    many = planned(classifier, "full", points=[{"batch_size": 10}, {"epochs": 5}], num_folds=3)
    assert many.num_steps == 3 * (10 * 10 + 5 * 5)
    assert many.num_jobs == 6
    once = StepCost(seconds_per_image=0.01, features_once=True, seconds_of_head_step=0.001)
    assert planned(classifier, "linear", cost=once).expected_seconds == pytest.approx(1.1 + 0.05)


def test_the_summary_says_what_trains_what_is_frozen_and_why(classifier):
    text = Plan(planned(classifier, "linear", notes=["Know this."])).summary()
    assert "Trained: 15 parameters. Frozen: 112." in text
    assert "only the head is trained" in text
    assert "10 epochs × 5 steps of 20 images = 50 at most" in text
    assert "about 1 MiB" in text
    settings = text.split("chosen for you too:\n")[1].split("\n\n")[0].splitlines()
    assert len({len(line) - len(line.split("  ", 2)[2].lstrip()) for line in settings}) == 1  # values are lined up
    assert "about 11 s at most (from one timed step)" in text
    assert text.endswith("Note: Know this.")
    assert "not measured" in Plan(planned(classifier, "linear", cost=UNKNOWN_COST)).summary()


def test_losses_of_the_plan_are_those_that_were_asked_for():
    assert isinstance(plugins().loss, CrossEntropy)


def words(settings=None, augmentation="none", batch_norm=NO_BATCH_NORM, keep=None, **choices):
    chosen, trainer = plugins(augmentation=augmentation, **choices), TrainerSettings(**(settings or {}))
    return InForce(OPTIONS, chosen, trainer, SelectionRule("auc", "max"), batch_norm, keep).in_words()


def test_what_is_off_is_left_out():
    plain = words()
    assert plain["learning rate"] == "0.0001"
    assert plain["schedule"] == "cosine after 5 epochs of warm-up"
    assert not {"mirroring", "regularizer", "keep", "layer decay", "head first", "accumulate", "patience"} & set(plain)
    assert "batch norm" not in plain


def test_batch_norm_has_a_line_with_its_reason_where_there_is_some():
    assert words(batch_norm=BatchNorm("adapt", "", 2))["batch norm"] == "adapt"
    assert words(batch_norm=BatchNorm("frozen", "because it must", 2))["batch norm"] == "frozen (because it must)"


def test_the_similarity_that_is_to_be_kept_has_a_line():
    assert words(keep=Keep.of(0.8, adapted=False))["keep"] == "debiased CKA of 0.8 on val, within 0.03"
    assert words(keep=Keep.of(0.8, adapted=True))["keep"].startswith("debiased CKA to the adapted network of 0.8 on val")


def test_several_plugins_of_a_slot_stand_together():
    assert words(batch_transform="mixup:0.2,cutmix")["batch transform"].count(" + ") == 1


@pytest.mark.parametrize(
    ("settings", "line", "text"),
    [
        ({"head_learning_rate": 0.01}, "learning rate", "0.0001 (head 0.01)"),
        ({"num_processes": 2, "device": "cuda"}, "device", "cuda × 2"),
        ({"layer_decay": 0.8}, "layer decay", "0.8"),
        ({"head_first": True, "head_epochs": 7}, "head first", "at most 7 epochs, patience 10"),
        ({"accumulate": 4}, "accumulate", "4"),
        ({"patience": 3}, "patience", "3"),
    ],
)
def test_what_is_on_has_a_line(settings, line, text):
    assert words(settings)[line] == text


def test_mirroring_is_said_where_images_are_changed():
    assert words(augmentation="light")["mirroring"] == "yes"
    assert words(augmentation="light", flip=False)["mirroring"] == "no"
