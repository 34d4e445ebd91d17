"""Every regulariser of strength 0 leaves a whole training as it is without one, bit for bit."""

import pytest

from crossgraft.tune.regularizers import BSS, DELTA, HCS, L2SP, RepSim, SelfIdentityMapping
from support.training import same_bits, train_one


@pytest.fixture(scope="module")
def without():
    return train_one("dropout", epochs=1)[0]


@pytest.mark.parametrize(
    ("at_zero", "above"),
    [
        (HCS(lam=1.0), HCS(lam=0.9)),
        (RepSim(weight=0.0), RepSim(weight=0.1)),
        (RepSim(weight=0.0, preset="paper"), RepSim(weight=0.1, preset="paper")),
        (RepSim(weight=0.0, mode="covariance"), RepSim(weight=0.1, mode="covariance")),
        (RepSim(weight=0.0, mode="procrustes"), RepSim(weight=0.1, mode="procrustes")),
        (L2SP(alpha=0.0, beta=0.0), L2SP(alpha=0.1, beta=0.0)),
        (L2SP(alpha=0.0, beta=0.0, decoupled=True), L2SP(alpha=0.1, beta=0.0, decoupled=True)),
        (DELTA(alpha=0.0, beta=0.0), DELTA(alpha=0.1, beta=0.0)),
        (BSS(weight=0.0), BSS(weight=0.1)),
        (SelfIdentityMapping(weight=0.0), SelfIdentityMapping(weight=0.1)),
    ],
    ids=[
        "hcs",
        "repsim",
        "repsim of the paper",
        "covariance",
        "procrustes",
        "l2_sp",
        "l2_sp decoupled",
        "delta",
        "bss",
        "rho_sim",
    ],
)
def test_nothing_moves_a_bit_at_strength_zero(at_zero, above, without):
    assert same_bits(train_one("dropout", epochs=1, regularizers=[at_zero])[0], without)
    assert not same_bits(train_one("dropout", epochs=1, regularizers=[above])[0], without)
