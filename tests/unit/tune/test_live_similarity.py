"""Similarity to the pretrained network after every epoch: it changes no training, survives a kill, and is computed once."""

import copy
import io
import math

import numpy as np
import pandas as pd
import pytest
import torch

from crossgraft import fine_tune
from crossgraft.data import dataset_from_arrays
from crossgraft.losses import CrossEntropy
from crossgraft.progress import Reporter
from crossgraft.similarity import linear_cka
from crossgraft.tasks import MultiClassTask
from crossgraft.tune.engine.contract import TrainedEpoch
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.measuring import drift as pretrained_features
from crossgraft.tune.measuring.drift import PretrainedFeatures
from crossgraft.tune.measuring.selection_metrics import SelectionMetrics
from crossgraft.tune.planning.choices import GridTraining
from crossgraft.tune.planning.rows import FoldData
from crossgraft.tune.tracking import JobProgress, Tracker
from support.training import build_classifier, build_data, networks_of, same_bits, train_one

FAST = {"model": "tiny_models:tiny", "epochs": 2, "workers": 1, "device": "cpu", "store": False}


def evaluation(*, compared=True, precision="32-true"):
    images, targets = build_data(12)
    number_type = torch.float64 if precision == "64-true" else torch.float32
    pretrained = PretrainedFeatures(
        images, lambda: build_classifier("dropout"), batch_size=5, device="cpu", number_type=number_type
    )
    return SelectionMetrics(
        images,
        targets.argmax(1).numpy(),
        targets,
        CrossEntropy(),
        MultiClassTask(),
        batch_size=5,
        device="cpu",
        pretrained=pretrained if compared else None,
    )


def similarities(result):
    return [(row.metrics["cka"], row.metrics["cka_debiased"]) for row in result.history]


def test_training_is_the_same_with_and_without_it():
    with_it, result = train_one("dropout", evaluate=evaluation())
    without, bare = train_one("dropout", evaluate=evaluation(compared=False))
    assert same_bits(with_it, without)
    assert [row.terms for row in result.history] == [row.terms for row in bare.history]
    assert all(0 < biased < 1 - 1e-6 for biased, _ in similarities(result))


def test_each_epoch_is_the_measure_of_features_computed_by_hand_from_its_weights():
    look, weights = evaluation(), []

    def kept(classifier):
        weights.append({name: value.clone() for name, value in classifier.state_dict().items()})
        return look(classifier)

    _, result = train_one("dropout", evaluate=kept, epochs=3)
    shown = look.images.normalise(look.images.read(torch.arange(12)))

    def features(state):
        network = build_classifier("dropout").eval()
        network.load_state_dict(state)
        with torch.no_grad():
            body = network.body
            maps = torch.relu(body.block(torch.relu(body.norm(body.stem(shown)))))
        return maps.mean((2, 3)).double().numpy()

    before = features(build_classifier("dropout").state_dict())
    for (biased, debiased), state in zip(similarities(result), weights, strict=True):
        now = features(state)
        assert biased == pytest.approx(linear_cka(before, now), abs=1e-6)
        assert debiased == pytest.approx(linear_cka(before, now, debiased=True), abs=1e-6)
    assert len({biased for biased, _ in similarities(result)}) == 3


@pytest.mark.parametrize("precision", ["32-true", "64-true"])
def test_a_killed_training_goes_on_with_the_same_numbers(tmp_path, precision):
    _, whole = train_one("dropout", evaluate=evaluation(precision=precision), precision=precision, epochs=3)

    def kill(row):
        if row.epoch == 1:
            raise KeyboardInterrupt

    common = {"precision": precision, "epochs": 3, "checkpoint_folder": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        train_one("dropout", evaluate=evaluation(precision=precision), on_epoch=kill, **common)
    _, resumed = train_one("dropout", evaluate=evaluation(precision=precision), **common)
    assert resumed.resumed
    assert similarities(resumed) == similarities(whole)


def squares(n=40):
    of_row = np.arange(n) % 2
    pixels = np.random.default_rng(0).integers(0, 90, (n, 16, 16, 3)) + 80 * of_row[:, None, None, None]
    return dataset_from_arrays(pixels.astype(np.uint8), of_row)


def of_history(record):
    return [(row.val_cka, row.val_cka_debiased) for row in record.history]


@pytest.mark.usefixtures("tiny_models")
def test_every_epoch_has_it_in_the_record_and_the_table(tmp_path):
    tuned = fine_tune(squares(), **FAST, learning_rate=0.02, head_first=True, head_epochs=1, out=tmp_path / "run")
    head, *rest = of_history(tuned.record)
    assert head == (pytest.approx(1, abs=1e-9), pytest.approx(1, abs=1e-9))  # the body has not moved
    assert all(biased < 0.9999 and debiased < 0.9999 for biased, debiased in rest)
    table = pd.read_csv(tmp_path / "run" / "history.csv")
    assert table.val_cka.tolist() == pytest.approx([biased for biased, _ in (head, *rest)])
    assert table.val_cka_debiased.tolist() == pytest.approx([debiased for _, debiased in (head, *rest)])
    assert not math.isnan(tuned.record.similarity["cka"])


@pytest.mark.usefixtures("tiny_models")
def test_once_for_all_grid_points_of_a_fold(monkeypatch):
    passes = []
    look = pretrained_features.features_of

    def counted(classifier, images, **options):
        passes.append(copy.deepcopy(classifier.state_dict()))
        return look(classifier, images, **options)

    monkeypatch.setattr(pretrained_features, "features_of", counted)
    record = fine_tune(squares(), **FAST, folds=2, grid="learning_rate=0.05,0.01").record
    assert len(record.history) == 8
    assert len(passes) == 2
    assert all(row is not None for row in of_history(record))
    assert all(torch.equal(passes[0][name], passes[1][name]) for name in passes[0])


@pytest.mark.usefixtures("tiny_models")
def test_from_scratch_it_is_the_pretrained_network_that_counts():
    scratch = of_history(fine_tune(squares(), **FAST, method="scratch", learning_rate=1e-6).record)
    full = of_history(fine_tune(squares(), **FAST, learning_rate=1e-6).record)
    assert full[0][0] == pytest.approx(1, abs=1e-4)
    assert scratch[0][0] < 0.999


@pytest.mark.usefixtures("tiny_models")
@pytest.mark.parametrize("options", [{"method": "linear"}, {"val_fraction": 0.0}])
def test_where_nothing_moves_or_nothing_is_left_out_there_is_none(options):
    assert of_history(fine_tune(squares(), **FAST, **options).record) == [(None, None)] * 2


class Listener(Tracker):
    """A tracker that keeps what it is told."""

    def __init__(self):
        self.values = {}

    def log(self, values, *, step):
        self.values |= values


@pytest.mark.parametrize(("cka", "words"), [(0.834, "auc on val 0.900 (best), debiased CKA 0.83"), (math.nan, "")])
def test_terminal_and_trackers_are_told(cka, words):
    stream, tracker = io.StringIO(), Listener()
    progress = JobProgress(Reporter(stream), tracker, rule=SelectionRule("auc", "max"), num_jobs=1)
    metrics = {"auc": 0.9, "cka": cka + 0.1, "cka_debiased": cka}
    images = build_data(8)[0]
    networks = networks_of(build_classifier, images)
    data = FoldData(None, images, torch.zeros(8, 2), CrossEntropy(), lambda _: {}, networks, "")
    with progress.stage(GridTraining(None, {}), data, TrainerSettings(epochs=2, batch_size=8)):
        progress.on_epoch(TrainedEpoch("all", 0, 0.1, {"loss": 1.0}, metrics, 1.0, True))
    (line,) = [line for line in stream.getvalue().splitlines() if line.startswith("Epoch 1 of 2")]
    assert words in line
    assert ("CKA" in line) == bool(words)
    assert ("val/cka" in tracker.values) == ("val/cka_debiased" in tracker.values) == bool(words)
