import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from crossgraft.errors import DataError
from crossgraft.tasks import BinaryTask, MultiClassTask, MultiLabelTask
from crossgraft.tune.measuring.thresholds import fit_temperature


def drawn(seed, num_samples=300, num_classes=4, temperature=1.0, *, labels=False):
    """Logits, and targets that were drawn with the probabilities of logits / temperature."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=3, size=(num_samples, num_classes))
    p = (MultiLabelTask() if labels else MultiClassTask()).probabilities(logits, temperature)
    if labels:
        return logits, (rng.random(p.shape) < p).astype(np.int64)
    return logits, (rng.random((num_samples, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)


def literal_likelihood(logits, targets, temperature):
    p = np.exp(logits / temperature)
    p /= p.sum(axis=1, keepdims=True)
    return -np.mean([np.log(p[row, target]) for row, target in enumerate(targets)])


def literal_likelihood_of_labels(logits, targets, temperature):
    p = 1 / (1 + np.exp(-logits / temperature))
    return -np.mean([np.log(np.where(y == 1, row, 1 - row)).sum() for row, y in zip(p, targets, strict=True)])


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
def test_finds_the_temperature_that_the_labels_were_drawn_with(labels, temperature):
    logits, targets = drawn(0, 20_000, temperature=temperature, labels=labels)
    found = fit_temperature(logits, targets, task=MultiLabelTask() if labels else MultiClassTask())
    assert found.value == pytest.approx(temperature, rel=0.05)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), temperature=st.floats(0.3, 4), labels=st.booleans())
def test_is_the_minimum_of_the_likelihood(seed, temperature, labels):
    logits, targets = drawn(seed, 60, 3, temperature, labels=labels)
    found = fit_temperature(logits, targets, task=MultiLabelTask() if labels else MultiClassTask())
    literal = literal_likelihood_of_labels if labels else literal_likelihood
    if found.value is None:
        return
    expected = minimize_scalar(lambda t: literal(logits, targets, t), bounds=(0.05, 50), method="bounded")
    assert literal(logits, targets, found.value) <= expected.fun + 1e-12


@pytest.mark.parametrize("labels", [False, True])
def test_is_exact_to_ten_digits(labels):
    logits, targets = drawn(1, 500, temperature=1.7, labels=labels)
    task = MultiLabelTask() if labels else MultiClassTask()
    found = fit_temperature(logits, targets, task=task)
    # With all logits times 2 the answer is exactly twice as large, and the search takes another way there.
    doubled = fit_temperature(2 * logits, targets, task=task)
    assert doubled.value == pytest.approx(2 * found.value, rel=1e-10)
    p = task.probabilities(logits, found.value)
    truth = targets if labels else np.eye(4)[targets]
    assert abs(np.mean(((p - truth) * logits).sum(axis=1))) < 1e-10


def test_calibrated_data_keep_classes_and_ranks():
    logits, targets = drawn(2, temperature=2.5)
    found = fit_temperature(logits, targets, task=MultiClassTask())
    before, after = (MultiClassTask().probabilities(logits, t) for t in (None, found.value))
    np.testing.assert_array_equal(before.argsort(axis=1), after.argsort(axis=1))
    assert literal_likelihood(logits, targets, found.value) < literal_likelihood(logits, targets, 1.0)
    assert (after.max(axis=1) <= before.max(axis=1)).all()


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_all_right_has_no_temperature(scale):
    logits = scale * np.eye(3)[[0, 1, 2, 0]]
    found = fit_temperature(logits, np.array([0, 1, 2, 0]), task=MultiClassTask())
    assert found.value is None and "of 4 images are right" in found.reason
    as_labels = fit_temperature(logits - scale / 2, np.eye(3, dtype=np.int64)[[0, 1, 2, 0]], task=MultiLabelTask())
    assert as_labels.value is None and "images are right" in as_labels.reason


def test_logits_that_say_nothing_have_no_temperature():
    equal = fit_temperature(np.ones((5, 2)), np.array([0, 1, 0, 1, 1]), task=BinaryTask())
    wrong = fit_temperature(np.eye(2)[[0, 1, 0]], np.array([1, 0, 1]), task=BinaryTask())
    for found in (equal, wrong):
        assert found.value is None and "say nothing" in found.reason


def test_extreme_logits_stay_finite():
    logits = np.array([[1000.0, -1000.0], [-1000.0, 1000.0], [1000.0, -1000.0]])
    found = fit_temperature(logits, np.array([0, 1, 1]), task=BinaryTask())
    # p of the favoured class must be 2/3: 2000 / T = ln 2 — beyond the largest temperature.
    assert found.value is None
    milder = fit_temperature(logits / 100, np.array([0, 1, 1]), task=BinaryTask())
    assert milder.value == pytest.approx(20 / np.log(2), rel=1e-10)
    probabilities = BinaryTask().probabilities(logits)
    assert np.isfinite(probabilities).all() and probabilities.dtype == np.float64


def test_bad_input_is_named(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    for logits, targets, task in [
        (np.zeros((0, 2)), np.zeros(0, dtype=int), BinaryTask()),
        (np.array([[np.nan, 1.0]]), np.array([1]), BinaryTask()),
        (np.ones((2, 2)), np.array([1]), MultiClassTask()),
        (np.ones((2, 2)), np.array([1, 1]), MultiLabelTask()),
    ]:
        with pytest.raises(DataError, match="A temperature needs finite logits"):
            fit_temperature(logits, targets, task=task)
