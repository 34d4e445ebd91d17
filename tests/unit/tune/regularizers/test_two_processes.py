"""Regularisers of a batch in two processes; all in one training, because starting a process takes seconds."""

import pytest

from crossgraft.tune.regularizers import BSS, DELTA, HCS, L2SP, SelfIdentityMapping
from support import forked
from support.training import DoubleFeed, largest_difference, train_one


class SummedDelta(DELTA):
    name = "summed_delta"


class DecoupledL2SP(L2SP):
    name = "decoupled_l2_sp"


class EachImage(SelfIdentityMapping):
    name = "each_image"


class DebiasedHCS(HCS):
    name = "debiased_hcs"


def regularizers():
    return [
        DELTA(alpha=0.1, reduction="mean"),
        SummedDelta(alpha=0.1, reduction="tllib"),
        HCS(lam=0.3),
        DebiasedHCS(lam=0.3, debiased=True),
        BSS(weight=1.0, k=2),
        L2SP(alpha=0.5),
        DecoupledL2SP(alpha=0.5, decoupled=True),
        SelfIdentityMapping(weight=0.5),
        EachImage(weight=0.5, sampling="v2", channels=0.5),
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("forked_processes")
@pytest.mark.xdist_group(forked.GROUP)
def test_two_processes_with_uneven_shares_are_one_with_the_whole_batch():
    common = {"feed": DoubleFeed(7), "precision": "64-true"}
    one, alone = train_one("plain", **common, regularizers=regularizers())
    two, together = train_one("plain", num_processes=2, **common, regularizers=regularizers())
    assert largest_difference(one, two) < 1e-10
    for first, second in zip(alone.history, together.history, strict=True):
        assert {name.partition("/")[0] for name in first.terms} >= {part.name for part in regularizers()}
        assert first.terms == pytest.approx(second.terms, abs=1e-10)
    task, _ = train_one("plain", **common)
    for regularizer in regularizers():  # each of them moves what is compared
        moved, _ = train_one("plain", **common, regularizers=[regularizer])
        assert largest_difference(moved, task) > 1e-6, regularizer.name
