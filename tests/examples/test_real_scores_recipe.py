"""recipes/real_scores.py runs without data and resumes, and its page has the rows that it claims."""

import re
from pathlib import Path

import pytest

from crossgraft.scores import SCORES
from support.few_rounds import leave_out_rounds

REPOSITORY = Path(__file__).parents[2]
RECIPES = REPOSITORY / "recipes"
PAGE = REPOSITORY / "docs" / "results" / "real-scores.md"


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("real_scores")


def section(text, heading):
    """What stands under one heading."""
    return re.split(r"\n#{2,3} ", text.split(f"# {heading}\n", 1)[1])[0]


def rows(text):
    """Cells of the body of the first table."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.slow
def test_without_data_it_runs_resumes_and_writes_a_whole_page(recipe, tmp_path, capsys, monkeypatch):
    page = tmp_path / "page.md"
    leave_out_rounds(monkeypatch)
    monkeypatch.setattr(recipe, "SMOKE_TARGETS", recipe.SMOKE_TARGETS[:1])  # every score of a set takes its seconds
    command = ["--smoke", "--limit", "24", "--results", str(tmp_path / "kept"), "--out", str(page)]
    recipe.main(command)
    first = page.read_text(encoding="utf-8")
    assert "1 of 1 sets are measured" in capsys.readouterr().out
    for target in recipe.SMOKE_TARGETS:
        orders = {row[0]: row[1].replace("=", " ").split() for row in rows(section(first, target.title))}
        assert list(orders) == [SCORES.get(name).title for name in SCORES.names()]
        assert sorted(orders["LogME"]) == ["c4-omniglot", "pneumonia", "r20"]
        assert sorted(orders["Gradient ratio"]) == ["c4-omniglot", "pneumonia", "r20"]
        assert "c4-omniglot" not in orders["LEEP"]  # it has no head
    monkeypatch.setattr(recipe, "rank", lambda *_, **__: pytest.fail("a finished set was measured again"))
    recipe.main(command)
    assert page.read_text(encoding="utf-8") == first


def test_order_joins_equal_values(recipe):
    assert recipe.write_page.__globals__["order_of"]({"a": 1.0, "b": 2.0, "c": 1.0}) == "b a=c"


def test_correlation_of_the_models_that_have_both_values(recipe):
    spearman = recipe.write_page.__globals__["spearman"]
    assert spearman({"a": 1, "b": 2, "c": 3, "d": 0}, {"a": 5, "b": 6, "c": 9, "e": 0}) == pytest.approx(1)
    assert spearman({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 3, "c": 2}) == pytest.approx(0.5)
    assert spearman({"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 3, "c": 2}) != pytest.approx(0)


def test_the_page_has_every_set_score_and_model(recipe):
    text = PAGE.read_text(encoding="utf-8")
    short_names = set(recipe.write_page.__globals__["SHORT_NAMES"].values())
    titles = [SCORES.get(name).title for name in SCORES.names()]
    head = section(text, "Every score on real checkpoints and real images")
    of_sets = {row[0]: row for row in rows(head)}
    known = [target for target in recipe.TARGETS if target.title in of_sets]
    assert list(of_sets) == [target.title for target in known] != []
    assert all(target.title in head for target in recipe.TARGETS)  # as measured, or as not measured yet
    for target in known:
        orders = {row[0]: set(row[1].replace("=", " ").split()) for row in rows(section(text, target.title))}
        assert list(orders) == titles
        left_out = {recipe.write_page.__globals__["short"](target.left_out)} - {""}
        assert orders["LogME"] == orders["Linear probe"] == short_names - left_out
        assert int(of_sets[target.title][4]) == len(orders["LogME"])
    with_probe = rows(section(text, "Do the scores agree?"))
    assert {row[0] for row in with_probe} >= set(titles) - {"Linear probe"}
    assert all(-1 <= float(cell.replace("−", "-")) <= 1 for row in with_probe for cell in row[1:7] if is_number(cell))


def is_number(cell):
    return re.fullmatch(r"−?\d+\.\d+", cell) is not None
