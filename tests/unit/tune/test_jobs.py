"""Trainings one by one: what is done is read back, what another one decides is done again, what fails is told."""

import copy
import math
from dataclasses import replace
from unittest.mock import Mock

import pytest
import torch
from torch import nn

from crossgraft.data import dataset_from_arrays
from crossgraft.errors import DataError, DivergedError
from crossgraft.losses import CrossEntropy
from crossgraft.models.backbone import Backbone
from crossgraft.models.classifier import make_classifier
from crossgraft.running.jobs import run_jobs
from crossgraft.running.run_directory import open_run
from crossgraft.tasks import BinaryTask
from crossgraft.tune.engine.contract import TrainedEpoch
from crossgraft.tune.engine.selection_rule import Keep, SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.jobs import JobRecord, Trained, TrainingWork, epoch_rows, pick, point_of, read_weights, trained_network
from crossgraft.tune.measuring.selection_metrics import SelectionMetrics
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.batch_norm import BatchNorm
from crossgraft.tune.planning.choices import GridTraining, choose_plugins
from crossgraft.tune.planning.preparation import Preparation
from crossgraft.tune.planning.rows import FoldData
from crossgraft.tune.record import GridPointRecord
from crossgraft.tune.regularizers import RepSim
from crossgraft.types import Preprocessing
from support.training import networks_of

RULE = SelectionRule("loss", "min")


class Small(nn.Module):
    """One convolution and a head."""

    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(3, 4, 3)
        self.fc = nn.Linear(4, 3)

    def forward(self, images):
        return self.fc(self.body(images).relu().mean((2, 3)))


@pytest.fixture(scope="module")
def classifier():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = Small()
    preprocessing = Preprocessing(8, 8, mean=(0.5,) * 3, std=(0.5,) * 3)
    backbone = Backbone(module, name="small", architecture="small", source="factory", preprocessing=preprocessing, family="small")
    return make_classifier(backbone, 2, seed=0)


@pytest.fixture(scope="module")
def data(classifier):
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 255, (24, 8, 8, 3), generator=generator, dtype=torch.uint8).numpy()
    dataset = dataset_from_arrays(pixels, [0, 1] * 12)
    images = TrainingImages(dataset, classifier.preprocessing)
    targets = nn.functional.one_hot(torch.tensor([0, 1] * 12)).float()
    evaluate = SelectionMetrics(images, dataset.targets, targets, CrossEntropy(), BinaryTask(), batch_size=8, device="cpu")
    networks = networks_of(lambda: copy.deepcopy(classifier), images)
    return FoldData(None, images, targets, CrossEntropy(), evaluate, networks, "of these images")


def work_of(classifier, data, run=None, *, keep=None, batch_norm="train", **changes):
    slots = {name: changes.pop(name) for name in ("method", "regularizer") if name in changes}
    options = TuneOptions(model="small", **slots)
    plugins = choose_plugins(options, BinaryTask())
    prepared = Mock(
        spec=Preparation,
        selection=plugins.method.select(classifier),
        plugins=plugins,
        settings=TrainerSettings(**{"epochs": 2, "batch_size": 8, "device": "cpu", **changes}),
        rule=RULE,
        stop_rule=None,
        request=Mock(options=options, adapter=None),
        keep=keep,
        domains=(),
        batch_norm=BatchNorm(batch_norm, "", 0),
    )
    prepared.request.spec.describe.return_value = "small"
    return TrainingWork(prepared, data, run)


def train(classifier, data, run=None, *, point=None, **changes):
    """The outcome of one training."""
    work = work_of(classifier, data, run, **changes)
    return run_jobs([work.job(point or {})], work, keep_going=False)[0]


def opened(tmp_path):
    return open_run(tmp_path / "run", command="tune", command_line="", config={}, seed=0)


def test_a_training_leaves_its_weights_and_the_start_as_it_was(classifier, data, tmp_path):
    before = copy.deepcopy(classifier.state_dict())
    with opened(tmp_path) as run:
        trained = train(classifier, data, run).result
    assert all(torch.equal(before[name], value) for name, value in classifier.state_dict().items())
    weights = trained.load()
    assert not torch.equal(weights["head.weight"], before["head.weight"])
    folder = tmp_path / "run" / "jobs" / "only"
    assert {path.name for path in folder.iterdir()} == {"result.json", "weights.safetensors"}
    assert trained.record.point.best_epoch in (1, 2)
    assert trained.record.point.num_epochs == 2


def test_what_is_done_is_read_back_and_another_choice_is_trained(classifier, data, tmp_path):
    with opened(tmp_path) as run:
        first = train(classifier, data, run)
    with opened(tmp_path) as run:
        same = train(classifier, data, run)
        assert same.was_read_back
        assert all(torch.equal(same.result.load()[name], value) for name, value in first.result.load().items())
        assert same.result.record == first.result.record
        assert not train(classifier, data, run, learning_rate=0.01).was_read_back


def test_a_checkpoint_that_a_kill_left_behind_a_finished_training_goes(classifier, data, tmp_path):
    with opened(tmp_path) as run:
        train(classifier, data, run)
    (tmp_path / "run" / "jobs" / "only" / "checkpoint").mkdir()
    with opened(tmp_path) as run:
        assert train(classifier, data, run).was_read_back
    assert not (tmp_path / "run" / "jobs" / "only" / "checkpoint").exists()


def test_where_and_how_often_is_saved_decides_nothing(classifier, data, tmp_path):
    with opened(tmp_path) as run:
        train(classifier, data, run)
        assert train(classifier, data, run, checkpoint_every_steps=1).was_read_back
        other = replace(data, fingerprint="of other images")
        assert not train(classifier, other, run).was_read_back


def test_regularizers_of_one_training_do_not_reach_the_next(classifier, data):
    work = work_of(classifier, data, regularizer="l2_sp:1.0")
    points = [{"learning_rate": 0.1}, {"learning_rate": 0.001}]
    _, second = run_jobs([work.job(point) for point in points], work, keep_going=False)
    alone = train(classifier, data, point=points[1], regularizer="l2_sp:1.0").result.load()
    assert all(torch.equal(alone[name], value) for name, value in second.result.load().items())


def test_a_failed_training_is_a_row_with_a_reason(classifier, data):
    short = {"optimizer": "sgd", "schedule": "constant", "warmup_epochs": 0.0, "weight_decay": 0.0, "epochs": 6}
    work = work_of(classifier, data, **short)
    jobs = [work.job({"learning_rate": 1e6})]
    (outcome,) = run_jobs(jobs, work, keep_going=True)
    row = point_of(outcome)
    assert (row.job, row.state, row.values) == ("learning_rate=1e+06", "failed", {"learning_rate": 1e6})
    assert "Training stopped in step" in row.reason
    assert row.seconds > 0
    with pytest.raises(DivergedError):
        run_jobs(jobs, work, keep_going=False)


def trained(name, value, load=dict, *, epochs=()):
    point = GridPointRecord(job=name, fold=None, values={}, state="done", val_metric=value)
    return Trained(GridTraining(None, {}), JobRecord(key=name, point=point, history=list(epochs)), load=load)


def test_the_best_on_val_is_picked_and_the_first_of_equal_ones():
    found = [trained("a", 0.5), trained("b", 0.3), trained("c", 0.3), trained("d", None)]
    assert pick(found, RULE).record.key == "b"
    assert pick(found, SelectionRule("auc", "max")).record.key == "a"
    assert pick([trained("x", None), trained("y", 0.9)], RULE).record.key == "y"


@pytest.mark.parametrize("metric", ["cka_debiased", "cka_debiased_adapted"])
def test_with_a_similarity_to_keep_the_nearest_is_picked_and_of_those_that_have_it_the_best(metric):
    def ended_at(name, similarity, auc):
        other = {"cka_debiased", "cka_debiased_adapted"} - {metric}
        history = [
            row("all", 0, 0.5, {metric: 0.8, "auc": 1.0}),  # not the epoch that was kept
            row("all", 1, 0.5, {metric: similarity, other.pop(): 0.8, "auc": auc}),
        ]
        return trained(name, auc, epochs=epoch_rows(GridTraining(None, {}), history, metric="auc", best_epoch=1))

    keep, rule = Keep(0.8, metric), SelectionRule("auc", "max")
    far, near, reached, better = (
        ended_at("far", 0.5, 0.99), ended_at("near", 0.9, 0.95), ended_at("reached", 0.79, 0.7), ended_at("better", 0.82, 0.8)
    )  # fmt: skip
    undefined = ended_at("undefined", math.nan, 1.0)
    assert pick([far, near, undefined, reached, better], rule, keep) is better
    assert pick([better, reached, near], rule, keep) is better
    assert pick([undefined, far, near], rule, keep) is near
    assert pick([undefined, far], rule, keep) is far
    assert pick([undefined, ended_at("too", math.nan, 0.5)], rule, keep) is undefined
    assert pick([far, reached], rule) is far


@pytest.mark.parametrize(
    ("changes", "others"),
    [({"keep": Keep(0.8)}, [{}, {"keep": Keep(0.7)}]), ({"batch_norm": "frozen"}, [{}, {"batch_norm": "adapt"}])],
)
def test_what_is_kept_is_part_of_what_a_training_is(classifier, data, changes, others):
    def key(changes):
        return work_of(classifier, data, regularizer="repsim", **changes).job({}).key

    assert key(changes) == key(dict(changes))
    assert key(changes) not in map(key, others)


KEYS = {
    "5c1bbe6c70128dc3ae5d": {},
    "2a6b07d2435d90a00ad9": {
        "learning_rate": 0.25,
        "epochs": 3,
        "batch_size": 4,
        "seed": 7,
        "momentum": 0.5,
        "precision": "64-true",
    },
    "ec707cf183be6e5cd632": {
        "head_first": True,
        "head_epochs": 7,
        "patience": 3,
        "clip_norm": 1.0,
        "keep": Keep(0.8),
        "batch_norm": "frozen",
    },
}
"""Key of a finished training of an earlier version → what it was trained with."""
MACHINE = {"log_gradient_norms": True, "device": "cuda", "num_processes": 2, "checkpoint_every_steps": 5}


@pytest.mark.parametrize(("key", "changes"), KEYS.items())
def test_what_earlier_versions_have_trained_keeps_its_key(classifier, data, key, changes):
    for more in ({}, MACHINE):
        assert work_of(classifier, data, regularizer="repsim", **changes, **more).job({}).key == key


def test_a_spelling_that_means_something_else_is_another_training(classifier, data, monkeypatch):
    def key():
        return work_of(classifier, data, regularizer="repsim").job({}).key

    now = key()
    monkeypatch.setattr(RepSim, "definition", RepSim.definition + 1)
    assert key() != now


def test_a_trained_network_has_the_weights_of_its_training_in_their_number_type(classifier):
    state = {name: value.double() + 1 for name, value in classifier.state_dict().items()}
    found = trained_network(copy.deepcopy(classifier), trained("a", 0.1, load=lambda: state))
    assert found.head.weight.dtype == torch.float64
    assert all(torch.equal(value, state[name]) for name, value in found.state_dict().items())


def row(phase, epoch, loss, metrics=None):
    metrics = {"loss": loss, "auc": math.nan, **(metrics or {})}
    return TrainedEpoch(phase, epoch, 0.1, {"loss": 1.0, "l2_sp/body": 0.2}, metrics, 1.0, False)


def test_epochs_count_on_after_those_of_the_head_and_one_is_the_best():
    similarity = {"cka": 0.4, "cka_debiased": 0.3, "cka_adapted": 0.2, "cka_debiased_adapted": 0.1}
    history = [row("head", 0, 0.9), row("all", 0, 0.8), row("all", 1, 0.7, similarity)]
    rows = epoch_rows(GridTraining(2, {"batch_size": 8}), history, metric="auc", best_epoch=1)
    assert [(r.epoch, r.stage, r.is_best) for r in rows] == [(1, "head", False), (2, "all", False), (3, "all", True)]
    assert {r.job for r in rows} == {"fold-2 batch_size=8"}
    assert rows[0].terms == {"l2_sp/body": 0.2}
    assert rows[0].val_metric is None
    similarity = [rows[2].val_cka, rows[2].val_cka_debiased, rows[2].val_cka_adapted, rows[2].val_cka_debiased_adapted]
    assert similarity == [0.4, 0.3, 0.2, 0.1]
    assert rows[1].val_cka_debiased_adapted is None
    assert rows[0].metric_reason == "not defined on the validation rows"


def test_damaged_weights_are_named(tmp_path):
    (tmp_path / "weights.safetensors").write_bytes(b"half")
    with pytest.raises(DataError, match="Cannot read the weights"):
        read_weights(tmp_path / "weights.safetensors")
