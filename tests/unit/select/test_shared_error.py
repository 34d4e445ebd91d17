"""What networks share of the errors of val, from published results on val and test."""

import numpy as np
import pytest

from crossgraft.select.val_error import _share, shared_share


@pytest.mark.parametrize("shared", [0.0, 0.6])
def test_a_shared_part_of_binomial_errors_is_found_again(shared):
    rng = np.random.default_rng(0)
    test = rng.uniform(0.6, 0.9, size=4000)
    error = np.sqrt(np.mean(test * (1 - test)) / 200)
    val = test + error * (np.sqrt(shared) * 1.3 + np.sqrt(1 - shared) * rng.standard_normal(4000))
    val[:100] -= 0.4  # val and test differ by more than chance
    assert _share(val, test, 200) == pytest.approx(shared, abs=0.1)


def test_it_is_learned_without_the_target():
    assert 0.2 < shared_share() < 0.6
    assert len({shared_share(group) for group in (None, "DTD", "Retinopathy", "SVHN", "Pets")}) > 1
