"""Terms on features and feature maps against published formulas and libraries (see feature_terms.json)."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from crossgraft.tune.regularizers import BSS, HCS
from crossgraft.tune.regularizers._batch_cka import batch_cka
from crossgraft.tune.regularizers.delta import squared_distance, weighed_distance
from support.regularizing import context_of
from support.small_classifiers import small_classifier

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "feature_terms.json").read_text(encoding="utf-8"))["values"]


@pytest.fixture(scope="module")
def arrays():
    with np.load(HERE / "feature_terms.npz", allow_pickle=False) as stored:
        return {name: torch.from_numpy(stored[name]) for name in stored.files}


def test_hcs_is_the_published_combination(arrays, monkeypatch):
    classifier, regularizer = small_classifier("cnn").double(), HCS()
    regularizer.attach(classifier)
    monkeypatch.setattr(regularizer._pretrained, "features", lambda context: arrays["rs_F0"])
    term = regularizer.loss(context_of(classifier, features=arrays["rs_F"]))["cka"]
    assert 1 - term.item() / 0.2 == pytest.approx(GOLDEN["hcs_cka"], rel=1e-12)
    loss = regularizer.task_weight * 1.25 + term.item()
    assert loss == pytest.approx(GOLDEN["hcs_loss_at_task_1.25"], rel=1e-12)
    assert float(batch_cka(arrays["rs_F"], arrays["rs_F0"]).value) == pytest.approx(GOLDEN["hcs_cka"], rel=1e-12)


@pytest.mark.parametrize("k", [1, 3])
def test_bss_equals_the_library(arrays, k):
    classifier = small_classifier("cnn").double()
    term = BSS(weight=1.0, k=k).loss(context_of(classifier, features=arrays["rs_F0"]))["weakest"]
    assert term.item() == pytest.approx(GOLDEN[f"bss_{k}"], rel=1e-9)


def test_both_forms_of_delta_equal_the_library(arrays):
    ours, theirs = arrays["fm_tgt"], arrays["fm_src"]
    assert 0.5 * squared_distance(ours, theirs).item() == pytest.approx(GOLDEN["delta_behavioral"], rel=1e-12)
    weighed = weighed_distance(ours, theirs, arrays["fm_att"], 1).item()
    assert 0.5 * weighed == pytest.approx(GOLDEN["delta_attention"], rel=1e-12)
