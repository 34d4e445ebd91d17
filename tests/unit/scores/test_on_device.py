"""The algebra of a device, by torch in float64: it gives what numpy gives. On a card where there is one, else on the CPU."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from crossgraft.scores import SCORES, FeatureStatistics, ScoreInputs, ZooScore, _on_device, logme, regularized_h_score
from crossgraft.scores._statistics import factor_of, spectrum_of
from crossgraft.scores._symmetric import Factor, Spectrum

from .conftest import make_problem

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BY_MOMENTS = (
    *("logme", "h_score", "regularized_h_score", "gbc", "sfda", "etran", "ncti", "transrate", "lfc"),
    *("parc", "nleep", "pactran", "lead", "knn_probe"),
)
SHAPES = {"n>d": (90, 12), "n<d": (40, 70)}


def numbers(name, inputs):
    score = SCORES.get(name)
    if isinstance(score, ZooScore):
        return score.parts(inputs)
    value = score.evaluate(inputs)
    return {"value": float(value), **value.parts}


def inputs_of(features, labels, *, device=None):
    inputs = ScoreInputs(features=features, labels=labels)
    inputs.feature_statistics = FeatureStatistics(inputs.features, device=device)
    return inputs


def require_equal(found, expected, tolerance):
    for part, value in expected.items():
        if part not in ("iterations", "miss"):  # steps of Newton's method; 1 − hit without cancellation
            assert math.isclose(found[part], value, rel_tol=tolerance, abs_tol=tolerance), part


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("name", BY_MOMENTS)
def test_value_block_and_shuffled_labels_are_those_of_numpy(name, shape):
    features, labels = make_problem(*shape)
    here, there = (inputs_of(features, labels, device=device) for device in (None, DEVICE))
    shuffled = labels[::-1].copy()
    block = np.arange(0, len(labels), 9)
    for change in (
        lambda x: x,
        lambda x: x.without(block),
        lambda x: x.without(block).without([1]),
        lambda x: x.with_labels(shuffled),
    ):
        require_equal(numbers(name, change(there)), numbers(name, change(here)), 1e-9)
    assert isinstance(there.feature_statistics.moments.product, torch.Tensor)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("name", ["logme", "regularized_h_score", "h_score", "gbc", "lfc"])
def test_float32_features_are_multiplied_in_float64(name, shape):
    features, labels = make_problem(*shape, offset=30.0)
    single = features.astype(np.float32)
    there = inputs_of(single, labels, device=DEVICE)
    assert there.feature_statistics.has_double_products
    require_equal(numbers(name, there), numbers(name, inputs_of(single.astype(np.float64), labels)), 1e-5)


@pytest.mark.parametrize("value", [0.0, 0.1])
@pytest.mark.parametrize("shape", [(50, 4), (4, 50)])
def test_constant_features_are_recognised(shape, value):
    features = np.full(shape, value, dtype=np.float32)
    assert FeatureStatistics(features, device=DEVICE).is_constant
    inputs = inputs_of(features, np.arange(shape[0]) % 2, device=DEVICE)
    assert np.isnan(regularized_h_score.evaluate(inputs)) and np.isfinite(logme.evaluate(inputs))


def test_a_full_memory_leaves_the_moments_on_the_host_and_says_so(monkeypatch):
    features, labels = make_problem(60, 8)

    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(_on_device, "primal_products", full)
    value = logme.evaluate(inputs_of(features, labels, device=DEVICE))
    assert float(value) == float(logme(features, labels))
    assert value.warnings == (f"The memory of {DEVICE} was full, so second moments were computed on the host.",)


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, torch.linalg.LinAlgError])
def test_what_the_device_cannot_solve_is_solved_on_the_host(error, monkeypatch):
    matrix = torch.diag(torch.arange(1.0, 5.0, dtype=torch.float64)).to(DEVICE)

    def refuse(*_):
        raise error("no")

    monkeypatch.setattr(torch.linalg, "eigh", refuse)
    monkeypatch.setattr(torch.linalg, "cholesky_ex", refuse)
    assert type(spectrum_of(matrix)) is Spectrum and spectrum_of(matrix).values.tolist() == [1, 2, 3, 4]
    assert type(factor_of(matrix)) is Factor


@pytest.mark.parametrize("kind", [np.asarray, lambda matrix: torch.tensor(matrix, device=DEVICE)], ids=["numpy", "torch"])
def test_factors_solve_or_say_that_there_is_none(kind):
    matrix = np.array([[4.0, 1.0], [1.0, 3.0]])
    factor = factor_of(kind(matrix))
    np.testing.assert_allclose(matrix @ factor.solve(np.eye(2)), np.eye(2), atol=1e-15)
    assert factor.smallest_pivot() == pytest.approx(2.75)
    assert factor_of(kind(np.array([[1.0, 2.0], [2.0, 1.0]]))) is None


def test_inputs_on_the_host_or_without_float64_use_numpy():
    for device in ("cpu", "mps"):
        inputs = ScoreInputs(features=np.eye(4), labels=[0, 0, 1, 1], device=device)
        assert inputs.feature_statistics.device is None
    assert ScoreInputs(features=np.eye(4), labels=[0, 0, 1, 1], device="cuda:1").feature_statistics.device == torch.device(
        "cuda:1"
    )


@pytest.mark.parametrize("device", [None, torch.device("cpu")])
def test_energies_are_those_of_the_solution(device):
    rng = np.random.default_rng(0)
    root, columns = rng.standard_normal((9, 9)), rng.standard_normal((9, 3))
    matrix = root @ root.T + np.eye(9)
    factor = factor_of(matrix, device)
    assert factor is not None
    literal = np.diag(columns.T @ np.linalg.inv(matrix) @ columns)
    assert factor.energies(columns) == pytest.approx(literal, rel=1e-12)
