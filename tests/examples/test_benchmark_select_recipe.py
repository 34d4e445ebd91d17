"""recipes/benchmark_select.py runs with the package alone, and its page says what its rows say."""

from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "results" / "selection.md"


def test_two_targets_are_replayed_and_the_page_can_be_written_again(load_recipe, tmp_path):
    recipe, kept, file = (
        load_recipe("benchmark_select"),
        load_recipe("benchmark_select_page"),
        tmp_path / "selection.md",
    )
    recipe.NUM_RUNS, recipe.BUDGETS = 1, (0.25,)
    recipe.main(["--smoke", "--out", str(file)])
    text = file.read_text(encoding="utf-8")
    others = ", ".join(table for table in kept.TABLES if table != "medmnistplus_auc")
    assert "medmnistplus_auc, 2 targets" in text and f"Not measured yet: {others}." in text
    rows = kept.read_rows(file.with_suffix(".csv"), kept.Regret)
    assert {row.method for row in rows} == set(kept.METHODS)
    assert all(row.regret_points >= 0 and row.cost_share <= row.budget + 1e-6 for row in rows)
    mean = np.mean([row.regret_points for row in rows if (row.method, row.budget) == ("select", 0.25)])
    line = next(line for line in text.splitlines() if line.startswith("| select |"))
    assert f"{mean:.2f} (" in line.split("|")[4]
    recipe.main(["--page-only", "--out", str(file)])
    assert file.read_text(encoding="utf-8") == text


def test_chances_are_counted_where_they_belong(load_recipe):
    recipe = load_recipe("benchmark_select")
    chances = [recipe.Chance("t", True, *each) for each in ((0.01, False), (0.06, True), (0.07, False), (1.0, True))]
    found = {row.least: row for row in recipe.reliability(chances)}
    assert [row.number for row in found.values()] == [1, 2, 1]
    assert found[0.05].mean_chance == pytest.approx(0.065) and found[0.05].share_better == 0.5


def test_the_published_page_has_every_table_and_equals_its_rows(load_recipe):
    recipe = load_recipe("benchmark_select_page")
    rows = recipe.read_rows(PAGE.with_suffix(".csv"), recipe.Regret)
    chances = recipe.read_rows(PAGE.with_name("selection_chances.csv"), recipe.Reliability)
    assert {row.table for row in rows} == set(recipe.TABLES)
    assert f"{recipe.HEAD}\n\n{recipe.select_section(rows, chances)}" == PAGE.read_text(encoding="utf-8")
