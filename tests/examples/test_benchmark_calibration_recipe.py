"""recipes/benchmark_calibration.py runs with the package alone, and its page says what its rows say."""

from pathlib import Path

import numpy as np
import pytest

from crossgraft.rank.belief import Belief

PAGE = Path(__file__).parents[2] / "docs" / "results" / "calibration.md"


def test_one_small_table_is_measured_and_its_page_can_be_written_again(load_recipe, tmp_path):
    recipe, page = load_recipe("benchmark_calibration"), tmp_path / "calibration.md"
    recipe.main(["--smoke", "--out", str(page)])
    text = page.read_text(encoding="utf-8")
    assert "| other targets | nothing | 3 |" in text and "## dart" in text
    recipe.main(["--page-only", "--out", str(page)])
    assert page.read_text(encoding="utf-8") == text


def test_a_belief_that_is_true_scores_as_it_should(load_recipe):
    recipe, number = load_recipe("benchmark_calibration"), 40
    rng = np.random.default_rng(0)
    root = rng.normal(size=(number, number)) / np.sqrt(number)
    covariance = root @ root.T + 0.5 * np.eye(number)
    mean = np.linspace(-2, 2, number)
    drawn = rng.multivariate_normal(mean, covariance, size=60)
    names = tuple(f"m{i}" for i in range(number))

    def judged(factor, truth):
        belief = Belief(names, mean, factor * covariance)
        return recipe.judge(recipe.Judged(belief, np.arange(number), truth))

    right, sure = (np.mean([judged(factor, truth) for truth in drawn], axis=0) for factor in (1.0, 0.2))
    assert right[1] == pytest.approx(1, abs=0.1) and sure[1] == pytest.approx(5, rel=0.1)
    assert right[2] > sure[2] and right[6] > sure[6]  # log scores, of networks and of pairs
    assert right[3:6] == pytest.approx((0.5, 0.9, 0.95), abs=0.05)
    small, chance, true = sure[7:]
    assert small > 0 and true > 2 * chance


def test_the_published_page_has_every_table_and_equals_its_rows(load_recipe):
    recipe = load_recipe("benchmark_calibration")
    rows = recipe.read_rows(PAGE.with_suffix(".csv"), recipe.Calibration)
    assert {row.table for row in rows} == set(recipe.ALL)
    assert recipe.write_page(rows) == PAGE.read_text(encoding="utf-8")
