"""recipes/benchmark.py runs with the package alone, and its page says what it resampled."""

import re
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "results" / "benchmark.md"


def test_one_small_table_is_replayed_and_its_page_can_be_written_again(load_recipe, tmp_path, capsys):
    recipe = load_recipe("benchmark")
    page = tmp_path / "benchmark.md"
    recipe.main(["--smoke", "--out", str(page)])
    text = page.read_text(encoding="utf-8")
    assert "dart: 3 targets" in capsys.readouterr().out
    assert re.search(r"\| Belief without this table \| 3 \| 3 \| ", text)
    assert "Noise ceiling: not known" in text
    lines = page.with_suffix(".csv").read_text(encoding="utf-8")
    recipe.main(["--page-only", "--out", str(page)])
    assert page.read_text(encoding="utf-8") == text
    assert page.with_suffix(".csv").read_text(encoding="utf-8") == lines


def test_intervals_resample_groups_with_all_their_targets(load_recipe):
    recipe = load_recipe("benchmark_page")
    apart = recipe.clustered_interval(np.array([0.0, 1.0] * 8), [str(i) for i in range(16)])
    together = recipe.clustered_interval(np.array([0.0, 1.0] * 8), ["a", "b"] * 8)
    assert together == (0.0, 1.0)
    assert 0.2 < apart[0] < 0.5 < apart[1] < 0.8


def test_the_published_page_has_forty_targets_and_every_table(load_recipe):
    recipe = load_recipe("benchmark")
    lines = recipe.read_lines(PAGE.with_suffix(".csv"))
    assert {line.table for line in lines} == set(recipe.ALL)
    assert len({(line.table, line.target) for line in lines}) >= 40
    assert recipe.write_page(lines) == PAGE.read_text(encoding="utf-8")
    prior = [line.weighted_kendall for line in lines if (line.table, line.method) == ("sfda_cnn", "Static prior")]
    assert np.mean(prior) == pytest.approx(0.837, abs=0.001)
