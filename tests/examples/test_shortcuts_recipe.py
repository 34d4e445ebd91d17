"""recipes/shortcuts.py runs without data and does nothing twice; its page says what its rows say."""

import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "results" / "shortcuts.md"


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("shortcuts")


@pytest.mark.slow
def test_without_data_it_runs_and_does_nothing_twice(recipe, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path / "cache"))
    common = ["--smoke", "--rows", str(tmp_path / "rows"), "--out", str(tmp_path / "page.md")]
    recipe.main([*common, "--confounders", "gamma"])
    assert capsys.readouterr().out.count("noise gamma") == 1
    recipe.main([*common, "--confounders", "gamma", "jpeg"])
    told = capsys.readouterr().out
    assert "noise gamma" not in told and "noise jpeg" in told and "2 rows are there" in told
    page = (tmp_path / "page.md").read_text()
    assert "| gamma:1.1 |" in page and "| jpeg:60 |" in page and "{" not in page


def test_the_page_is_that_of_its_rows(recipe, tmp_path):
    found = [(each.title, recipe.read_rows(PAGE.with_suffix(""), each.name)) for each in recipe.SETS]
    planted = recipe.read_rows(PAGE.with_suffix(""), "planted")
    sys.modules["shortcuts_page"].write_page(tmp_path / "shortcuts.md", found, planted)
    assert (tmp_path / "shortcuts.md").read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")
    wanted = {(name, options) for name, strengths in recipe.STRENGTHS.items() for options in strengths}
    for title, rows in found:
        assert {(row["confounder"], row["options"]) for row in rows} == wanted, title


@pytest.mark.slow
def test_every_artefact_has_options_that_it_knows(recipe):
    from crossgraft.edit.edits import choose_edits

    for name, strengths in recipe.STRENGTHS.items():
        for options in strengths:
            (edit,) = choose_edits(f"{name}:{options}")
            assert edit.name == name


@pytest.mark.slow
def test_planted_heads_are_rows_that_are_made_once(load_recipe, tmp_path, capsys, monkeypatch):
    recipe = load_recipe("shortcuts_planted")
    monkeypatch.setattr(recipe, "NUM_SHAMS", 2)
    monkeypatch.setattr(recipe, "SIDE", 32)
    told = ["--smoke", "--training", "linear", "--work", str(tmp_path / "work"), "--rows", str(tmp_path)]
    recipe.main(told)
    rows = recipe.read_rows(tmp_path)
    assert [row["share"] for row in rows] == ["0", "0.5", "1"] * 2 and {row["training"] for row in rows} == {"linear"}
    assert "6 heads" in capsys.readouterr().out
    recipe.main(told)
    assert recipe.read_rows(tmp_path) == rows and not capsys.readouterr().out
