import math

import numpy as np
import pytest
import torch

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.losses import CrossEntropy
from crossgraft.similarity import linear_cka
from crossgraft.tasks import MultiClassTask
from crossgraft.tune.engine.cached_features import features_of
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.measuring.drift import PretrainedFeatures
from crossgraft.tune.measuring.selection_metrics import SELECTION_METRICS, SelectionMetrics, choose_rule
from support.training import build_classifier, build_data

BOTH = np.array([0, 1, 0, 1])
ONE = np.array([1, 1, 1, 1])
NONE = np.zeros(0, dtype=np.int64)


def test_left_open_every_fold_must_know_every_class():
    assert choose_rule(None, [BOTH, BOTH], 2) == SelectionRule("auc", "max")
    assert choose_rule(None, [BOTH, ONE], 2) == SelectionRule("loss", "min")
    assert choose_rule(None, [BOTH], 3) == SelectionRule("loss", "min")


def test_without_rows_the_last_epoch_is_kept():
    assert choose_rule(None, [NONE], 2).keep == "last"
    with pytest.raises(UnknownNameError):
        choose_rule("acu", [NONE], 2)


def test_what_has_no_meaning_in_one_fold_is_refused():
    with pytest.raises(UsageError, match="auc has no meaning on the 4 validation rows of training 2 of 2"):
        choose_rule("auc", [BOTH, ONE], 2)
    assert choose_rule("accuracy", [BOTH, ONE], 2) == SelectionRule("accuracy", "max")
    with pytest.raises(UsageError, match="auc has no meaning"):
        choose_rule("auc", [np.ones((3, 2), dtype=np.int64)], 2)
    assert choose_rule("auc", [np.array([[1, 0], [1, 1]])], 2) == SelectionRule("auc", "max")


def on_rows(count, **changes):
    images, targets = build_data(count)
    pretrained = PretrainedFeatures(
        images, changes.pop("load", build_classifier), batch_size=4, device="cpu", number_type=torch.float32
    )
    classes = targets.argmax(1).numpy()
    fields = {"batch_size": 4, "device": "cpu", "pretrained": pretrained, **changes}
    return SelectionMetrics(images, classes, targets, CrossEntropy(), MultiClassTask(), **fields)


def moved(amount):
    classifier = build_classifier().eval()
    with torch.no_grad():
        classifier.body.block.weight[:3].mul_(1 - amount)
        classifier.body.norm.weight[2:].mul_(1 + 2 * amount)
    return classifier


def test_similarity_is_of_the_features_before_and_after_on_these_rows():
    metrics = on_rows(24)
    images = metrics.images
    before, after = (features_of(each, images, batch_size=4, device="cpu") for each in (moved(0), moved(0.8)))
    with torch.no_grad():
        found = metrics(moved(0.8))
    assert found["cka"] == linear_cka(before, after)
    assert found["cka_debiased"] == linear_cka(before, after, debiased=True)
    assert found["cka"] < 0.99
    assert metrics(moved(0))["cka"] == pytest.approx(1, abs=1e-12)
    assert set(found) == {*SELECTION_METRICS, "cka", "cka_debiased"}


def test_only_one_pass_is_made_each_time(monkeypatch):
    metrics = on_rows(12)
    classifier = build_classifier().eval()
    seen = []
    look = type(classifier).features
    monkeypatch.setattr(type(classifier), "features", lambda self, images: seen.append(len(images)) or look(self, images))
    metrics(classifier)
    first = list(seen)
    assert sum(first) == 24  # the pretrained network and this one
    metrics(classifier)
    assert sum(seen[len(first) :]) == 12


def test_without_something_to_compare_with_there_is_no_similarity():
    assert set(on_rows(12, pretrained=None)(moved(0))) == set(SELECTION_METRICS)
    assert set(on_rows(12, load=lambda: None)(moved(0))) == set(SELECTION_METRICS)


def test_what_can_not_be_compared_is_nan_and_ends_no_training():
    few = on_rows(3)(moved(0))
    assert math.isnan(few["cka"])
    assert math.isnan(few["cka_debiased"])
    collapsed = moved(0)
    with torch.no_grad():
        collapsed.body.block.weight.zero_()
    assert math.isnan(on_rows(12)(collapsed)["cka"])
    with torch.no_grad():
        collapsed.body.block.weight.fill_(math.inf)
    assert math.isnan(on_rows(12)(collapsed)["cka_debiased"])
