"""What the trainings of one fold share is a function of rows, labels and network alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from crossgraft.data import dataset_from_arrays
from crossgraft.tasks import MultiClassTask
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import FoldRows
from crossgraft.tune.planning.choices import choose_plugins
from crossgraft.tune.planning.rows import make_feed, make_fold_data, target_matrix
from support.training import build_classifier

SETTINGS = TrainerSettings(batch_size=8, device="cpu", epochs=1)
PARTS = FoldRows(np.arange(18), np.arange(18, 24), np.arange(24, 30))


def dataset(labels=None):
    pixels = np.random.default_rng(0).integers(0, 255, (30, 8, 8, 3), dtype=np.uint8)
    return dataset_from_arrays(pixels, np.arange(30) % 3 if labels is None else labels)


def plugins(**choices):
    return choose_plugins(TuneOptions(model="test_resnet", **choices), MultiClassTask())


def fold_data(data=None, parts=PARTS, **choices):
    networks = {"start": build_classifier, "pretrained": build_classifier}
    return make_fold_data(data or dataset(), parts, build_classifier(), plugins(**choices), SETTINGS, 1, **networks)


def test_targets_are_of_the_training_rows_and_weights_are_counted_from_them():
    labels = np.r_[np.zeros(12), np.ones(4), np.full(2, 2), np.arange(12) % 3].astype(int)
    data = fold_data(dataset(labels), class_weights="balanced")
    assert data.targets.sum(0).tolist() == [12, 4, 2]
    weights = torch.as_tensor(data.loss.class_weights)
    torch.testing.assert_close(weights / weights[0], torch.tensor([1.0, 3.0, 6.0]))


def test_the_fingerprint_tells_rows_labels_and_order_apart():
    moved = FoldRows(np.arange(1, 18), np.r_[0, np.arange(18, 24)], PARTS.test)
    other_labels = dataset(np.roll(np.arange(30) % 3, 1))
    found = [fold_data(), fold_data(), fold_data(parts=moved), fold_data(other_labels)]
    prints = [data.fingerprint for data in found]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3


def test_a_feed_follows_seed_sampler_and_batch_size():
    data = fold_data()
    first, again, other = (
        torch.cat([batch.rows for batch in make_feed(data, plugins(), replace(SETTINGS, seed=seed)).batches(0)])
        for seed in (0, 0, 1)
    )
    assert first.sort().values.tolist() == list(range(18))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert make_feed(data, plugins(), replace(SETTINGS, batch_size=6)).steps_per_epoch == 3


@pytest.mark.parametrize(
    ("labels", "task"),
    [(np.arange(30) % 2, "binary"), (np.arange(30) % 3, "multi-class"), (np.eye(3, dtype=int)[np.arange(30) % 3], "multi-label")],
)
def test_the_task_follows_from_the_labels(labels, task):
    data = dataset(labels)
    assert data.task == task
    matrix = target_matrix(data, np.arange(4))
    assert matrix.dtype == torch.float32
    assert matrix.shape == (4, len(data.class_names))
    assert matrix.sum(1).tolist() == [1, 1, 1, 1]
