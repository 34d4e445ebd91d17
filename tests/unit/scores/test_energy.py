from __future__ import annotations

import numpy as np
import pytest

from crossgraft.errors import UsageError
from crossgraft.scores import energy


def literal(values, share):
    per_image = np.sort(np.log(np.exp(values).sum(axis=1)))
    return per_image[: max(1, int(share * len(values)))].mean()


@pytest.mark.parametrize("share", [0.005, 0.1, 1.0])
def test_equals_the_definition(share):
    rng = np.random.default_rng(0)
    features, logits = rng.standard_normal((2, 300, 7))
    assert energy(features=features, fraction=share) == pytest.approx(literal(features, share))
    assert energy(features=features, source_logits=logits, fraction=share) == pytest.approx(literal(logits, share))


def test_few_images_keep_one():
    value = energy(features=np.eye(5), fraction=0.005)
    assert value.parts["images"] == 1


def test_large_logits_do_not_overflow():
    assert energy(features=np.full((4, 2), 1e5)) == pytest.approx(1e5 + np.log(2))


@pytest.mark.parametrize("share", [0.0, 1.5])
def test_shares_outside_the_range_are_refused(share):
    with pytest.raises(UsageError, match="`fraction`"):
        energy(features=np.eye(5), fraction=share)
