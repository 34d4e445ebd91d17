"""recipes/benchmark_select.py runs the code of ``select --replay``, and its page says what its rows say."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from crossgraft.select.planning import parse_budget
from crossgraft.select.replay import replay_published

PAGE = Path(__file__).parents[2] / "docs" / "results" / "selection.md"


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("benchmark_select")


def test_a_small_table_gives_what_the_command_gives(recipe, tmp_path):
    file = tmp_path / "selection.md"
    recipe.main(["--smoke", "--out", str(file)])
    text = file.read_text(encoding="utf-8")
    rows = pd.read_csv(file.with_suffix(".csv"))
    for start in recipe.STARTS:
        record = replay_published("dart", [parse_budget(each) for each in recipe.BUDGETS], is_cold=start == "cold")
        some = rows[rows["start"] == start]
        assert list(some["method"]) == [row.method for row in record.rows]
        regrets = [np.nan if row.mean_regret is None else row.mean_regret for row in record.rows]
        np.testing.assert_allclose(some["mean_regret"], regrets, atol=1e-6)
    mean = record.row("select", "25%")
    assert mean.low is None and "15 are needed" in mean.no_interval_reason  # three targets tell too little
    cell = f"{100 * mean.mean_regret:.2f} ({100 * mean.worst_regret:.2f})"
    assert cell in text.split("## dart")[1]
    recipe.main(["--page-only", "--out", str(file)])
    assert file.read_text(encoding="utf-8") == text


def test_where_deviations_are_published_val_is_also_one_run(recipe, monkeypatch):
    seen = []
    monkeypatch.setattr(recipe, "replay", lambda benchmark, *_, **__: seen.append(benchmark) or SimpleNamespace(rows=[]))
    assert len(list(recipe.measure("medmnistplus_auc"))) == 4  # two starts of each
    assert [each.validation is None for each in seen] == [True, True, False, False]
    varied = seen[2].standard_deviations > 0
    drawn = (seen[2].validation - seen[2].results)[varied] / seen[2].standard_deviations[varied]
    assert 0.8 < np.std(drawn) < 1.2
    assert len(list(recipe.measure("dart"))) == 2


def test_a_select_above_the_plain_list_is_said(recipe):
    rows = pd.DataFrame({"method": ["prior_order_best_val"] * 2, recipe.BEYOND: [0.0, -0.0011]})
    assert "above by 0.1100 points at most" in recipe._limit_in_words(rows)
    assert "The condition is broken." in recipe._limit_in_words(rows)
    assert "The condition holds." in recipe._limit_in_words(rows[:1])


def test_the_published_page_equals_its_rows_and_select_is_not_above_the_plain_list(recipe):
    rows = pd.read_csv(PAGE.with_suffix(".csv"))
    assert {name.removesuffix(", one run") for name in rows["table"]} == set(recipe.ALL)
    assert recipe.write_page(rows) == PAGE.read_text(encoding="utf-8")
    plain = rows[(rows["method"] == "prior_order_best_val") & rows["budget"].isin(recipe.JUDGED)]
    assert (-plain[recipe.BEYOND].dropna()).max() <= recipe.LIMIT
