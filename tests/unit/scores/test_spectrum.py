from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from crossgraft.scores import ScoreInputs, _symmetric, gbc, h_score, logme, ncti
from crossgraft.scores._symmetric import Spectrum

from .conftest import make_problem


def matrices():
    rng = np.random.default_rng(0)
    tall = rng.standard_normal((80, 30))
    low_rank = rng.standard_normal((30, 4))
    return {
        "regular": tall.T @ tall,
        "decaying": (tall / 10.0 ** np.arange(30)).T @ (tall / 10.0 ** np.arange(30)),
        "low rank": low_rank @ low_rank.T,
        "equal": np.eye(30),
        "zero": np.zeros((30, 30)),
        "tiny": 1e-30 * (tall.T @ tall),
        "one": np.array([[2.0]]),
    }


@pytest.mark.parametrize("name", matrices())
def test_spectrum_is_that_of_the_matrix(name):
    matrix = matrices()[name]
    spectrum = Spectrum(matrix)
    scale = max(np.abs(matrix).max(), np.finfo(np.float64).tiny) * len(matrix)
    values, vectors = spectrum.values, spectrum.vectors
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix), atol=1e-13 * scale)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-13 * scale)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(matrix)), atol=1e-11)
    columns = np.random.default_rng(1).standard_normal((len(matrix), 3))
    np.testing.assert_allclose(spectrum.along(columns), vectors.T @ columns, atol=1e-11)


@pytest.mark.parametrize("name", matrices())
@pytest.mark.parametrize("number", [1, 5, 29, 40])
def test_leading_vectors_come_first_and_span_what_all_vectors_span(name, number):
    matrix = matrices()[name]
    spectrum = Spectrum(matrix)
    leading = spectrum.leading(number)
    number = min(number, len(matrix))
    scale = max(np.abs(matrix).max(), np.finfo(np.float64).tiny) * len(matrix)
    assert leading.shape == (len(matrix), number)
    np.testing.assert_allclose(matrix @ leading, leading * spectrum.values[::-1][:number], atol=1e-13 * scale)
    np.testing.assert_allclose(leading.T @ leading, np.eye(number), atol=1e-11)


def test_leading_vectors_do_not_depend_on_what_was_asked_for_before():
    matrix = matrices()["regular"]
    first, second = Spectrum(matrix), Spectrum(matrix)
    _ = second.vectors
    assert np.array_equal(first.leading(5), second.leading(5))


def test_a_cluster_that_is_not_resolved_gets_another_method(monkeypatch):
    solve = _symmetric.eigh_tridiagonal

    def fails(*args, lapack_driver, **options):
        if lapack_driver == "stemr":
            raise LinAlgError("stemr")
        return solve(*args, lapack_driver=lapack_driver, **options)

    matrix = matrices()["regular"]
    expected = np.abs(Spectrum(matrix).leading(3))
    monkeypatch.setattr(_symmetric, "eigh_tridiagonal", fails)
    np.testing.assert_allclose(np.abs(Spectrum(matrix).leading(3)), expected, atol=1e-11)


@pytest.mark.parametrize("score", [gbc, ncti, logme, h_score], ids=lambda score: score.name)
def test_scores_of_few_directions_need_no_full_set_of_vectors(score, monkeypatch):
    features, labels = make_problem(300, 150)

    def refuse(spectrum):
        raise AssertionError("all vectors of the matrix")

    monkeypatch.setattr(Spectrum, "vectors", property(refuse))
    score.evaluate(ScoreInputs(features=features, labels=labels))


def test_raw_gbc_forms_no_gram_matrix():
    features, labels = make_problem()
    inputs = ScoreInputs(features=features, labels=labels)
    gbc.evaluate(inputs, n_dims=None)
    assert "moments" not in vars(inputs.feature_statistics)
