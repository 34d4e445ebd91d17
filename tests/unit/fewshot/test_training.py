"""Training of heads: whatever the caller has set in torch, seeds and labels of any kind, and nearly singular systems."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from crossgraft.choice import spell
from crossgraft.errors import DataError, UsageError
from crossgraft.fewshot import CopaHead, CopaTsa, FineTuningHead, MetaAdapterHead, NccHead, RidgeHead, TipAdapterHead, TsaAdapter


class Flat(torch.nn.Module):
    """A convolution, and an average over each half."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Conv2d(2, 4, 3, padding=1)

    def forward(self, x):
        return self.layer(x).relu().mean((2, 3))


@pytest.fixture
def task():
    random = np.random.default_rng(0)
    return random.standard_normal((12, 2, 4, 4)).astype(np.float32), np.repeat(["a", "b", "c"], 4)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_heads_train_where_the_caller_has_switched_gradients_off(task, mode):
    torch.manual_seed(0)
    network = Flat()
    images, labels = task
    for head in (TsaAdapter(steps=2, layers="layer"), CopaTsa(steps=2, layers="layer"), FineTuningHead(steps=2)):
        expected = clone(head).set_params(backbone=network).fit(images, labels).loss_curve_
        with mode():
            assert clone(head).set_params(backbone=network).fit(images, labels).loss_curve_ == expected
    rows = images.reshape(12, -1)
    for head in (TipAdapterHead(fine_tune=True, epochs=2), CopaHead(steps=2)):
        expected = clone(head).fit(rows, labels).predict_proba(rows)
        with mode():
            np.testing.assert_array_equal(clone(head).fit(rows, labels).predict_proba(rows), expected)
    expected = MetaAdapterHead(epochs=2).meta_fit(rows, labels).adapter_weights
    with mode():
        found = MetaAdapterHead(epochs=2).meta_fit(rows, labels).adapter_weights
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


SEEDED = [CopaHead(init="random"), MetaAdapterHead(adapter_weights="initial")]


@pytest.mark.parametrize("head", SEEDED, ids=spell)
def test_a_seed_is_any_whole_number(task, head):
    rows, labels = task[0].reshape(12, -1), task[1]
    python, numpy = (clone(head).set_params(seed=seed).fit(rows, labels) for seed in (3, np.int64(3)))
    np.testing.assert_array_equal(python.predict_proba(rows), numpy.predict_proba(rows))


@pytest.mark.parametrize("head", [*SEEDED, TsaAdapter(backbone=Flat(), layers="layer")], ids=lambda head: head.name)
@pytest.mark.parametrize("seed", [None, 1.5, True, -1, 2**70])
def test_other_seeds_are_refused(task, head, seed):
    with pytest.raises(UsageError, match=f"seed of {head.name} must be a whole number"):
        clone(head).set_params(seed=seed).fit(*task)


@pytest.mark.parametrize("width", [6, 100])
def test_ridge_regression_of_repeated_rows(width):
    """The same weights in float32 as in float64, on both sides of n = d."""
    rows = np.repeat(np.random.default_rng(0).standard_normal((4, width)), 10, axis=0).astype(np.float32)
    labels = np.repeat([0, 1, 0, 1], 10)
    single, double = (RidgeHead(penalty=1e-8).fit(rows.astype(kind), labels) for kind in ("float32", "float64"))
    assert single.weights_.dtype == np.float32
    np.testing.assert_allclose(single.weights_, double.weights_, rtol=1e-3, atol=1e-4)
    assert (single.predict(rows) == labels).all()


def test_a_penalty_below_rounding_is_refused():
    rows = np.repeat(np.random.default_rng(0).standard_normal((4, 100)), 10, axis=0)
    with pytest.raises(UsageError, match=r"penalty of ridge is too small .* 1e-30"):
        RidgeHead(penalty=1e-30).fit(rows, np.repeat([0, 1, 0, 1], 10))


@pytest.mark.parametrize(
    ("labels", "kinds"), [(["a", None, "b"], "NoneType, str"), ([1, None, 0], "NoneType, int"), ([None] * 3, "NoneType")]
)
def test_labels_without_an_order_are_refused(task, labels, kinds):
    rows, labels = task[0].reshape(12, -1), np.array(labels * 4, dtype=object)
    for learn in (NccHead().fit, MetaAdapterHead().meta_fit):
        with pytest.raises(DataError, match=f"cannot be sorted: {kinds}\\. Give all the same type"):
            learn(rows, labels)
    with pytest.raises(DataError, match="Unknown label type: continuous"):
        NccHead().fit(rows, np.linspace(0, 1, 12))
