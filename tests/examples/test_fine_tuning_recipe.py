"""recipes/fine_tuning.py runs without data and resumes, and its page says what its records say."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from scipy import stats

RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("fine_tuning")


@pytest.fixture
def page(recipe):
    return sys.modules["fine_tuning_page"]


@pytest.mark.slow
def test_without_data_it_runs_resumes_and_writes_a_page(recipe, tmp_path, capsys, monkeypatch):
    page = tmp_path / "page.md"
    command = ["--smoke", "--results", str(tmp_path / "kept"), "--out", str(page)]
    recipe.main(command)
    assert "4 trainings and 0 cross-validations are there" in capsys.readouterr().out
    first = page.read_text(encoding="utf-8")
    for method in recipe.METHODS:
        assert f"| resnet20 · as built | {method} |" in first
    monkeypatch.setattr(recipe, "train", lambda *_, **__: pytest.fail("a finished training was made again"))
    recipe.main(command)
    assert page.read_text(encoding="utf-8") == first


def made_up(page, target, method, seed, **metrics):
    record = SimpleNamespace(metric=lambda name: SimpleNamespace(value=metrics.get(name), low=None, high=None))
    return page.Result(target, "net", method, seed, record)


def test_differences_are_of_pairs_that_have_both_methods(page):
    results = [
        made_up(page, "a", "full", 0, auc=0.9),
        made_up(page, "a", "full", 1, auc=0.8),
        made_up(page, "a", "linear", 0, auc=0.7),
        made_up(page, "b", "full", 0, auc=0.6),
        made_up(page, "b", "linear", 0, auc=0.65),
        made_up(page, "c", "full", 0, auc=0.1),
    ]
    found = page.difference(results, "full", "linear", "auc")
    expected = stats.ttest_1samp([0.15, -0.05], 0).confidence_interval(0.95)
    assert (found.ahead, found.pairs) == (1, 2)
    assert [found.mean, found.low, found.high] == pytest.approx([0.05, expected.low, expected.high])
    assert page.difference(results, "full", "scratch", "auc") is None


@pytest.mark.parametrize(
    ("low", "high", "says"), [(0.01, 0.2, "holds"), (-0.2, -0.01, "the opposite shows"), (-0.1, 0.1, "not decided")]
)
def test_an_ordering_holds_only_where_the_interval_excludes_zero(page, low, high, says):
    assert page.verdict(page.Difference((low + high) / 2, low, high, ahead=3, pairs=6)).startswith(says)


def test_the_published_page_is_of_the_whole_study():
    text = (RECIPES.parent / "docs" / "results" / "fine-tuning.md").read_text(encoding="utf-8")
    assert "not finished" not in text
    assert len([line for line in text.splitlines() if line.startswith("| mobilenet")]) == 3 * 2 * 4
    assert "| lesions | " in text and "| images | " in text
