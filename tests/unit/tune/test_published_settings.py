"""Settings of published trainings: each does what its name says, and nothing where it is off."""

import math

import numpy as np
import pytest
import torch

from crossgraft import fine_tune
from crossgraft.errors import DataError, UsageError
from crossgraft.losses import SquaredError
from crossgraft.tune.engine.optimizers import make_optimizer
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.engine.step import dropped
from crossgraft.tune.protocols import Selection
from support.small_classifiers import small_classifier
from unit.tune.test_fine_tune import squares

pytestmark = pytest.mark.usefixtures("tiny_models")

FAST = {"model": "tiny_models:tiny", "epochs": 2, "workers": 1, "device": "cpu", "store": False}


@pytest.mark.parametrize(
    ("settings", "theirs"),
    [
        ({"optimizer": "adam"}, lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.01)),
        (
            {"optimizer": "sgd", "nesterov": True},
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
        ),
        ({"optimizer": "sgd", "momentum": 0.0}, lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01)),
    ],
)
def test_optimisers_are_those_of_torch(settings, theirs):
    classifier = small_classifier("cnn")
    weight = classifier.head.weight
    other = torch.nn.Parameter(weight.detach().clone())
    selection = Selection(trained={"head.weight": ""}, frozen={}, train_mode=())
    named = make_optimizer(classifier, selection, (), TrainerSettings(learning_rate=0.1, weight_decay=0.01, **settings))
    reference = theirs([other])
    for seed in range(4):
        gradient = torch.randn(weight.shape, generator=torch.Generator().manual_seed(seed))
        weight.grad, other.grad = gradient.clone(), gradient.clone()
        named.optimizer.step()
        reference.step()
        assert torch.equal(weight, other)


def test_dropout_leaves_out_each_feature_with_its_probability():
    features = torch.ones(400, 50)
    seen = dropped(features, 0.3)
    assert dropped(features, 0.0) is features
    assert seen.unique().tolist() == pytest.approx([0.0, 1 / 0.7])
    assert float((seen == 0).double().mean()) == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("method", ["full", "linear"])
def test_dropout_changes_training_and_not_evaluation(method, tmp_path):
    plain, again = (fine_tune(squares(), method=method, **FAST, dropout=0.5, out=tmp_path / str(n)) for n in range(2))
    without = fine_tune(squares(), method=method, **FAST)
    losses = [[row.train_loss for row in each.record.history] for each in (plain, again, without)]
    assert losses[0] == losses[1] != losses[2]
    saved = [(tmp_path / str(n) / "predictions.csv").read_text() for n in range(2)]
    assert saved[0] == saved[1]  # evaluation draws nothing


def test_patience_looks_at_another_number_than_the_one_that_picks():
    """The AUC of two easy classes is 1 from the first epoch on, the loss goes on falling: stopped by one, picked by the other."""
    common = {**FAST, "epochs": 30, "method": "linear", "patience": 3, "learning_rate": 0.01}
    by_loss = fine_tune(squares(), **common, select_by="loss").record
    by_both = fine_tune(squares(), **common, select_by="loss", stop_by="auc").record
    assert len(by_both.history) < len(by_loss.history)
    assert by_both.grid[0].best_epoch == min(by_both.history, key=lambda row: row.val_loss).epoch


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"stop_by": "auc"}, "--stop-by means nothing without --patience"),
        ({"stop_by": "auc", "patience": 2, "val_fraction": 0.0}, "--patience stops when|--stop-by looks at"),
        ({"nesterov": True}, "--nesterov is a momentum of SGD"),
        ({"nesterov": True, "optimizer": "sgd", "momentum": 0.0}, "along the momentum, which is 0"),
        ({"grid": "momentum=0,0.9"}, "--momentum is of SGD; Adam and AdamW have their own"),
        ({"grid": "head_epochs=1,2"}, "--head-epochs and --head-patience are about the first phase"),
        ({"schedule": "step:at=[1,2,5]"}, r"in epoch 2, 5 \(counted from 0\), which a training of 2 epochs never reaches"),
        ({"schedule": "step:at=1", "epochs": None, "grid": "epochs=1,2"}, "which a training of 1 epochs never reaches"),
        ({"dropout": 1.0}, "dropout must be smaller than 1"),
        ({"val_per_class": 2, "val_fraction": 0.0}, "--val-per-class takes images of val, but there are none"),
        ({"loss": "mse:0 1"}, "must be positive"),
    ],
)
def test_what_means_nothing_is_refused(settings, reason):
    with pytest.raises(UsageError, match=reason):
        fine_tune(squares(), **{**FAST, **settings}, plan=True)


def test_val_has_so_many_images_of_each_class_and_the_rest_is_left_out():
    whole = fine_tune(squares(), **FAST, plan=True).plan.record
    few = fine_tune(squares(), **FAST, val_per_class=2, plan=True).plan.record
    assert (few.num_train, few.num_val) == (whole.num_train, 2 * 2) and whole.num_val > 4
    with pytest.raises(
        DataError, match=r"images? of val; 100 of each class were asked for. Ask for at most \d+ \(--val-per-class\)"
    ):
        fine_tune(squares(), **FAST, val_per_class=100, plan=True)


def test_squared_error_is_that_of_equation_1():
    rng = np.random.default_rng(0)
    outputs, labels = rng.normal(size=(7, 3)), np.eye(3)[rng.integers(0, 3, 7)]
    literal = [
        math.fsum((z - y) ** 2 for z, y in zip(row, label, strict=True)) for row, label in zip(outputs, labels, strict=True)
    ]
    ours = SquaredError()(torch.from_numpy(outputs), torch.from_numpy(labels))
    assert ours.tolist() == pytest.approx(literal, rel=1e-12)
    weighted = SquaredError("1 2 3")(torch.from_numpy(outputs), torch.from_numpy(labels))
    assert weighted.tolist() == pytest.approx(literal * (labels @ [1, 2, 3]), rel=1e-12)


def test_a_grid_varies_every_number_of_the_training():
    plan = fine_tune(
        squares(), **FAST, optimizer="sgd", grid=["momentum=0,0.9", "dropout=0,0.5", "clip_norm=1,5"], plan=True
    ).plan
    assert plan.record.num_jobs == 8
    assert plan.record.settings["dropout"] == "none or 0.5"
