"""recipes/shortcuts.py runs without data and does nothing twice; its page says what its rows say."""

import pytest


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


@pytest.mark.slow
def test_every_artefact_has_options_that_it_knows(recipe):
    from crossgraft.audit.edits import choose_edits

    for name, strengths in recipe.STRENGTHS.items():
        for options in strengths:
            (edit,) = choose_edits(f"{name}:{options}")
            assert edit.name == name
