"""RepSim against numbers that were computed apart from it (see repsim.json)."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from crossgraft.tune.regularizers._moment_terms import MomentMatching, Moments

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "repsim.json").read_text(encoding="utf-8"))["values"]


@pytest.fixture(scope="module")
def arrays():
    with np.load(HERE / "repsim.npz", allow_pickle=False) as stored:
        return {name: torch.from_numpy(stored[name]) for name in stored.files}


def matching(q=None, **options):
    facts = {"learn_q": True, "learn_alpha": False, "normalize": "none", "mean_weight": 1.0, **options}
    made = MomentMatching(24, torch.zeros((), dtype=torch.float64), **facts)
    if q is not None:
        made.rotation.value.copy_(q)
    return made


def moments(features, ddof=1):
    return Moments(features.mean(0), features.T.cov(correction=ddof))


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("name", ["I", "cayley"])
def test_equation_14(arrays, name, ddof):
    ours = matching(arrays["Q_cayley"] if name == "cayley" else None)
    terms = ours.terms(moments(arrays["F"], ddof), moments(arrays["F0"], ddof))
    assert terms["covariance"].item() == pytest.approx(GOLDEN[f"cov_Q{name}_ddof{ddof}"], rel=1e-12)


def test_the_means_are_turned_as_equation_10_asks_for_and_not_as_equation_11_is_printed(arrays):
    start, now = moments(arrays["F0"]), moments(arrays["F"])
    assert matching().terms(now, start)["mean"].item() == pytest.approx(GOLDEN["mu_term_QI_alpha1"], rel=1e-12)
    turned = matching(arrays["Q_cayley"]).terms(now, start)["mean"].item()
    assert turned == pytest.approx(GOLDEN["mu_term_Qcayley_QT"], rel=1e-12)
    assert turned != pytest.approx(GOLDEN["mu_term_Qcayley_Q"], rel=0.1)


def test_both_gradients(arrays):
    features, q = arrays["F"].clone().requires_grad_(True), arrays["Q_cayley"]
    ours = matching(q)
    term = ours.terms(moments(features), moments(arrays["F0"]))["covariance"]
    of_features, of_step = torch.autograd.grad(term, [features, ours.rotation.skew])
    torch.testing.assert_close(of_features, arrays["grad_F_Qcayley"], rtol=0, atol=1e-10)
    euclidean = arrays["grad_Q_closed"]
    torch.testing.assert_close(of_step, q.T @ euclidean - euclidean.T @ q, rtol=0, atol=1e-10)


def test_the_best_rotation_leaves_the_difference_of_the_spectra(arrays):
    start, now = moments(arrays["F0"]), moments(arrays["F"])
    (old, at_start), (new, here) = torch.linalg.eigh(start.covariance), torch.linalg.eigh(now.covariance)
    ours = matching(at_start @ here.T)
    term = ours.terms(now, start)["covariance"]
    assert term.item() == pytest.approx(GOLDEN["best_Q_residual"], rel=1e-11)
    assert (old - new).square().sum().item() == pytest.approx(GOLDEN["best_Q_residual"], rel=1e-11)
    (of_step,) = torch.autograd.grad(term, [ours.rotation.skew])
    assert of_step.abs().max() < 1e-11 * term.item() * 100
