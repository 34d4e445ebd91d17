"""Commands say once how long they will take, and go through the pieces that they announced."""

import re

import pytest

from crossgraft.progress import Forecast
from crossgraft.tune import forecast
from crossgraft.variants import curves
from support.few_pages import leave_out_pages

RANK = ("rank", "images", "--models", "zoo.yaml", "--code", "tiny_models.py", "--workers", "1")
TUNE = ("tune", "images", "--model", "tiny_models:tiny", "--epochs", "2", "--workers", "1", "--no-store", "--no-images")
FEW = "n_way_k_shot:ways=2,shots=2,queries=2"


@pytest.fixture(autouse=True)
def few_pages(monkeypatch):
    """Pages of trainings take half the time, and are tested elsewhere."""
    leave_out_pages(monkeypatch, of_comparisons=True)


@pytest.fixture
def forecasts(monkeypatch):
    """Every forecast that is made, with the places of its pieces that were begun and ended."""
    made = []
    end, begin = Forecast.end, Forecast.__init__

    def note(forecast, *arguments, **keywords):
        begin(forecast, *arguments, **keywords)
        forecast.ended = []
        made.append(forecast)

    def note_end(forecast):
        forecast.ended.append(forecast._current.place)
        end(forecast)

    monkeypatch.setattr(Forecast, "__init__", note)
    monkeypatch.setattr(Forecast, "end", note_end)
    return made


def announced(outcome):
    assert outcome.code == 0, outcome.err
    return re.findall(r"^About .*", outcome.err, re.MULTILINE)


def goes_through_all(forecast):
    return forecast.ended == [piece.place for piece in forecast.pieces]


@pytest.mark.parametrize("scores", ["leep,logme", pytest.param("itm,logme", marks=pytest.mark.slow)])
def test_rank_says_it_before_it_looks_with_scoring_and_controls(workspace, crossgraft, forecasts, scores):
    outcome = crossgraft(*RANK, "--scores", scores, "--out", "run")
    (line,) = announced(outcome)
    assert line.endswith(": 2 models × 16 images, 2 scores, 2 random controls, 22 rounds each.")
    assert outcome.err.index(line) < outcome.err.index("Looking at 16 images with")
    (made,) = forecasts
    assert goes_through_all(made)
    walks = {"measuring", "scoring"} if "itm" in scores else {"scoring"}
    assert {piece.place[0] for piece in made.pieces} == {*walks, "page"}
    assert {piece.place[-1] for piece in made.pieces} == {"loading", "looking", "rounds", "page"}
    assert min(piece.seconds for piece in made.pieces if piece.place[-1] == "rounds") > 0


def test_a_resumed_ranking_expects_only_what_is_left(workspace, crossgraft, forecasts):
    for _ in range(2):
        assert crossgraft(*RANK, "--scores", "logme", "--out", "run").code == 0
        for path in sorted((workspace / "run" / "models").glob("*.json"))[:2]:
            path.unlink()
    assert len(forecasts[0].pieces) == 4 * 3 + 1
    assert len(forecasts[1].pieces) == 2 * 3 + 1


def test_check_says_it_before_it_looks(workspace, crossgraft, forecasts):
    outcome = crossgraft("check", "images", "--out", "run")
    (line,) = announced(outcome)
    assert outcome.err.index(line) < outcome.err.index("Looking at the images")
    assert [piece.place for piece in forecasts[0].pieces] == [("looking",), ("checking",), ("page",)]
    assert goes_through_all(forecasts[0])


def test_fewshot_says_it_before_it_looks_with_all_episodes(workspace, crossgraft, forecasts):
    words = ("--model", "zoo.yaml:narrow", "--code", "tiny_models.py", "--workers", "1", "--heads", "ncc,logistic")
    outcome = crossgraft("fewshot", "images", *words, "--sampler", FEW, "--episodes", "12", "--out", "run")
    (line,) = announced(outcome)
    assert line.endswith(": 16 images, then 12 episodes × 2 heads.")
    assert outcome.err.index(line) < outcome.err.index("Looking at 16 images with narrow")
    (made,) = forecasts
    assert [piece.place for piece in made.pieces] == [("looking",), ("episodes",), ("page",)]
    assert goes_through_all(made)
    assert made.pieces[1].seconds > 0


def test_a_resumed_fewshot_expects_only_what_is_left(workspace, crossgraft):
    words = (
        "fewshot",
        "images",
        "--model",
        "zoo.yaml:narrow",
        "--code",
        "tiny_models.py",
        "--workers",
        "1",
        "--heads",
        "ncc,logistic",
    )
    words += ("--sampler", FEW, "--episodes", "12", "--seeds", "2", "--out", "run")
    (whole,) = announced(crossgraft(*words))
    assert whole.endswith(": 16 images, then 24 episodes × 2 heads.")
    assert announced(crossgraft(*words)) == []
    for path in (workspace / "run" / "episodes").glob("**/00010.json"):  # the last two of each seed
        path.unlink()
    (left,) = announced(crossgraft(*words))
    assert left.endswith(": 16 images, then 4 episodes × 2 heads.")


def test_tune_says_it_for_all_trainings_and_leaves_a_line_an_epoch_of_each(workspace, crossgraft, forecasts):
    outcome = crossgraft(*TUNE, "--folds", "2", "--grid", "learning_rate=0.01,0.001", "--out", "run")
    (line,) = announced(outcome)
    assert "4 trainings of 2 epochs" in line
    assert goes_through_all(forecasts[0]) and len(forecasts[0].pieces) == 4 + 3
    for fold in (0, 1):
        for rate in ("0.01", "0.001"):
            found = re.findall(rf"^fold-{fold} learning_rate={rate}, epoch (\d) of 2: loss .* s$", outcome.err, re.MULTILINE)
            assert found == ["1", "2"]
    assert "(best)" in outcome.err


def test_a_comparison_says_it_once_and_names_the_training_of_each_epoch(workspace, crossgraft, forecasts, monkeypatch):
    monkeypatch.setattr(curves, "ALPHAS", (0.0, 1.0))
    measure, looks = forecast.measure_cost, []
    monkeypatch.setattr(forecast, "measure_cost", lambda *a, number, **k: looks.append(number) or measure(*a, number=number, **k))
    outcome = crossgraft(*TUNE, "--compare", "full,linear", "--out", "run")
    (line,) = announced(outcome)
    assert "2 variants × 1 seed" in line
    assert min(looks) > 100  # those at eleven networks between two: few timed images would stand for all of them
    assert goes_through_all(forecasts[0]) and len(forecasts) == 1
    assert len(re.findall(r"^full with seed 0, epoch \d of 2: ", outcome.err, re.MULTILINE)) == 2
    assert len(re.findall(r"^linear with seed 0, epoch \d of 2: ", outcome.err, re.MULTILINE)) == 2


def test_quiet_measures_and_leaves_nothing(workspace, crossgraft, forecasts):
    outcome = crossgraft(*TUNE, "--quiet", "--out", "run")
    assert (announced(outcome), forecasts) == ([], [])
    assert "epoch" not in outcome.err
