"""Terms on features and feature maps against published formulas and libraries (see feature_terms.json)."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from crossgraft.tune.regularizers import HCS
from crossgraft.tune.regularizers._batch_cka import batch_cka
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
