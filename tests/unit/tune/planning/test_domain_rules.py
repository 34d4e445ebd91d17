"""What domains allow is said before the first step, with what to do."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from crossgraft.data import dataset_from_arrays
from crossgraft.data.domains import Domains
from crossgraft.errors import UsageError
from crossgraft.tasks import task_named
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.feed.batches import BatchPlan
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import FoldRows, TuningRows
from crossgraft.tune.planning.choices import choose_plugins
from crossgraft.tune.planning.contradictions import refuse_contradictions
from crossgraft.tune.planning.domain_rules import (
    in_whole_shares,
    notes_by_domains,
    refusal_by_domains,
    training_domains,
    warnings_by_domains,
)
from unit.tune.planning.test_plan import situation

LABELS = np.array([0, 1] * 6 + [0, 1] * 5 + [0, 0, 1, 0])
HOSPITALS = np.array([0] * 12 + [1] * 10 + [2] * 4)


def domains_of(labels=LABELS, hospitals=HOSPITALS, folds=None):
    dataset = dataset_from_arrays(np.zeros((len(labels), 4, 4), np.uint8), labels, class_names=["benign", "malignant"])
    none, known = np.arange(0), Domains("hospital", ("north", "south", "west"), hospitals)
    everything = [np.arange(len(labels))]
    parts = [FoldRows(rows, none, none, fold=None if folds is None else k) for k, rows in enumerate(folds or everything)]
    return training_domains(TuningRows(dataset, tuple(parts), {}, domains=known))


def asked(folds=None, *, task="multi-class", batch_size=12, accumulate=1, **choices):
    known = task_named(task)
    plugins = choose_plugins(TuneOptions(model="test_resnet", **choices), known)
    settings = TrainerSettings(batch_size=batch_size, accumulate=accumulate)
    return refusal_by_domains(plugins, settings, known, domains_of() if folds is None else folds)


REFUSED = {
    "--domains COLUMN (of tune and select), or leave --objective irm out.": {"folds": (), "objective": "irm"},
    "or leave --sampler domains out.": {"folds": (), "sampler": "domains"},
    "--sampler shuffle does not see to that. Leave --sampler out, or say --sampler domains.": {
        "objective": "vrex",
        "sampler": "shuffle",
    },
    "or say --sampler domains_and_classes.": {"objective": "group_dro:groups=domains_and_classes", "sampler": "domains"},
    "--accumulate 2 cuts it": {"objective": "irm", "accumulate": 2},
    "these images may have several labels": {"sampler": "domains_and_classes", "task": "multi-label"},
    "has no place for 2 images of each of 3 domains, which --objective irm needs. Say --batch-size 6 or more.": {
        "objective": "irm",
        "batch_size": 5,
    },
    "have 4 of hospital west: a batch would show the same ones twice. Say --batch-size 12 or less": {
        "objective": "vrex",
        "batch_size": 15,
    },
    "have 1 of class malignant of hospital west: a batch would": {"sampler": "domains_and_classes"},
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_cannot_be_is_refused_with_what_to_do(said):
    assert said in asked(**REFUSED[said])


def test_what_can_be_is_not():
    assert asked() is asked(()) is asked(objective="erm", accumulate=2) is None
    for objective in ("irm", "vrex", "group_dro", "irm:weight=2"):
        assert asked(objective=objective) is asked(objective=objective, sampler="domains") is None
    assert asked(objective="group_dro:groups=domains_and_classes", batch_size=6) is None
    assert asked(objective="vrex", sampler="domains_and_classes", batch_size=6) is None


def test_a_domain_needs_as_many_images_as_the_objective():
    single = domains_of(LABELS[:23], HOSPITALS[:23])
    assert "have 1 of hospital west. Bring more" in asked(single, objective="irm", batch_size=6)
    assert asked(single, objective="vrex", batch_size=3) is None


def test_one_domain_and_empty_groups_are_looked_for_in_every_fold():
    whole = np.arange(len(LABELS))
    north = domains_of(folds=[whole, whole[:12]])
    assert "All training images of fold 1 come from hospital north, and --objective irm needs two" in asked(
        north, objective="irm"
    )
    assert "and --sampler domains needs two" in asked(north, sampler="domains")
    assert asked(north) is None
    empty = domains_of(folds=[whole, np.delete(whole, 24)])
    said = asked(empty, objective="group_dro:groups=domains_and_classes", batch_size=6)
    assert "the training images of fold 1 have none of class malignant of hospital west." in said


def test_mixed_images_belong_to_no_group_of_classes():
    choices = {"objective": "group_dro:groups=domains_and_classes", "settings": {"batch_size": 6}, "domains": domains_of()}
    with pytest.raises(UsageError, match="mixed images belong to two of them"):
        refuse_contradictions(situation(**choices, batch_transform="mixup"))
    refuse_contradictions(situation(**choices))
    with pytest.raises(UsageError, match="--sampler domains_and_classes and weights of classes both"):
        refuse_contradictions(situation(sampler="domains_and_classes", class_weights="balanced"))


def warned(folds, objective="erm", **settings):
    plugins = choose_plugins(TuneOptions(model="test_resnet", objective=objective), task_named("multi-class"))
    return warnings_by_domains(plugins, TrainerSettings(**settings), folds)


def test_a_class_of_one_domain_is_told():
    assert warned(domains_of()) == warned(()) == []
    alone = domains_of(np.where(HOSPITALS == 0, LABELS, 0))
    (said,) = warned(alone)
    assert "in one domain alone: malignant (hospital north)." in said
    assert warned(domains_of(hospitals=np.zeros(26, int))) == []


def test_a_training_that_ends_before_the_weight_of_its_objective_is_told_and_the_advice_works():
    (said,) = warned(domains_of(), "vrex", epochs=4, batch_size=12)  # two steps an epoch, and one of two images
    assert "weight of 3 after 500 steps, and this training has 12: the weight is 1 all along" in said
    advised = said.rpartition("--objective ")[2].removesuffix(".")
    assert advised == "vrex:weight=3,anneal_steps=3"
    assert warned(domains_of(), advised, epochs=4, batch_size=12) == warned(domains_of(), "irm", epochs=4, batch_size=12) == []
    assert warned(domains_of(), "vrex:anneal_steps=12", epochs=4, batch_size=12)  # the last step has the number 11
    assert warned(domains_of(), "vrex:anneal_steps=11", epochs=4, batch_size=12) == []


def test_notes_say_what_a_batch_is_made_of():
    plugins = choose_plugins(
        TuneOptions(model="test_resnet", objective="irm", batch_transform="mixup"), task_named("multi-class")
    )
    shares, mixed = notes_by_domains(plugins, TrainerSettings(batch_size=12), domains_of())
    assert "4 images of each of 3 domains" in shares and "(4 to 12)" in shares
    assert "their own domain only" in mixed
    assert notes_by_domains(plugins, TrainerSettings(), ()) == []


@pytest.mark.parametrize(
    ("objective", "batch_size", "is_asked", "expected"),
    [
        ("irm", 11, True, 9),
        ("irm", 5, True, 5),  # is refused
        ("irm", 4, False, 6),
        ("vrex", 4, False, 3),
        ("irm", 64, False, 12),
        ("irm", 64, True, 63),
        ("erm", 64, False, 64),
    ],
)
def test_batches_are_whole_shares(objective, batch_size, is_asked, expected):
    plugins = choose_plugins(TuneOptions(model="test_resnet", objective=objective), task_named("multi-class"))
    settings = in_whole_shares(TrainerSettings(batch_size=batch_size), plugins, domains_of(), is_asked=is_asked)
    assert settings.batch_size == expected
    if expected in (6, 9, 12):
        plan = BatchPlan(torch.ones(26, 2), batch_size=expected, sampler="domains", domains=torch.from_numpy(HOSPITALS))
        assert {len(rows) for rows in plan.epoch(0)} == {expected}
        full = replace(situation(), settings=settings, plugins=plugins, domains=domains_of(), num_train=26)
        assert full.fewest_images == expected
