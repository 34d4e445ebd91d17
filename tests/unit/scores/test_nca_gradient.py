from __future__ import annotations

import json
from importlib import resources

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import weightedtau

from crossgraft.errors import UsageError
from crossgraft.scores import nca_gradient

ZOO = [
    {"nca": 0.5, "gradient_ratio": 3.0},
    {"nca": 0.9, "gradient_ratio": 2.0},
    {"nca": 0.7, "gradient_ratio": 4.0},
    {"nca": 0.8, "gradient_ratio": 2.5},
]


def test_datasets_multiply_the_scaled_parts():
    assert nca_gradient.combine(ZOO) == pytest.approx([0 * 0.5, 1 * 0, 0.5 * 1, 0.75 * 0.25])


def test_architectures_multiply_what_is_missing_to_one():
    values = nca_gradient.combine(ZOO, scenario="architectures")
    assert values == pytest.approx([1 * 0.5, 0 * 1, 0.5 * 0, 0.25 * 0.75])
    assert values != pytest.approx([1 - value for value in nca_gradient.combine(ZOO)])


@pytest.mark.parametrize("scenario", ["datasets", "architectures"])
def test_a_part_in_which_all_are_equal_counts_one_half(scenario):
    rows = [{"nca": 0.8, "gradient_ratio": ratio} for ratio in (1.0, 2.0)]
    expected = [0.0, 0.5] if scenario == "datasets" else [0.5, 0.0]
    assert nca_gradient.combine(rows, scenario=scenario) == expected


parts = st.fixed_dictionaries({"nca": st.floats(0, 1), "gradient_ratio": st.floats(0, 100)})


@given(st.lists(parts, min_size=1, max_size=8), st.sampled_from(["datasets", "architectures"]))
def test_values_lie_between_zero_and_one(rows, scenario):
    assert all(0 <= value <= 1 for value in nca_gradient.combine(rows, scenario=scenario))


def test_unknown_scenario():
    with pytest.raises(UsageError, match="no scenario 'both'"):
        nca_gradient.combine(ZOO, scenario="both")


@pytest.mark.parametrize(("table", "scenario"), [("dataset", "datasets"), ("model", "architectures")])
def test_rows_of_the_published_tables_follow_from_the_published_parts(table, scenario):
    """NCA × gradient in Tables 6.2 and 6.3 (and Fig. 6.6), over the sources that are not the target, to two decimals."""
    text = resources.files("crossgraft.rank.published").joinpath("data/thesis.json").read_text(encoding="utf-8")
    published = json.loads(text)[table]
    for target in published["targets"]:
        lp, fu, auc = (
            np.array(column[target], dtype=float)
            for column in (published["scores"]["lp"], published["scores"]["fu"], published["auc"])
        )
        known = np.isfinite(lp) & np.isfinite(fu) & np.isfinite(auc)
        parts = [{"nca": a, "gradient_ratio": b} for a, b in zip(lp[known], fu[known], strict=True)]
        tau = weightedtau(nca_gradient.combine(parts, scenario=scenario), auc[known]).statistic
        assert abs(tau - published["printed_tau"][target]["ours"]) <= 0.005 + 1e-9, target
