"""What is tried within a budget, and which model comes out of it."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from crossgraft.errors import DataError, UsageError
from crossgraft.rank.foresight import NextLook
from crossgraft.selection import Action, Rung, TableTrials, Trial, TrialPlan, parse_budget, run_selection
from crossgraft.selection.value import Finishable, expected_gain, leading_sets
from support.beliefs import plain_belief

MODELS = ("large", "middling", "small")
COSTS = {"large": 100.0, "middling": 60.0, "small": 40.0}


def table(truth, *, shares=(0.1, 0.5), noise=0.0, seed=0, costs=COSTS):
    """Low resolution and curves that show the truth, and cost a share."""
    rng = np.random.default_rng(seed)
    kinds = {"low:size=0.5": 0.25, **{f"curve:epoch={int(share * 10)}": share for share in shares}, "full": 1.0}
    cells = {Action(model, kind): costs[model] * share for model in truth for kind, share in kinds.items()}
    return TableTrials(cells, {cell: truth[cell.model] + noise * rng.standard_normal() for cell in cells})


class Remembers:
    """A journal in memory that stops the selection when asked to."""

    def __init__(self, stop=None):
        self.kept, self.writes, self.stop = {}, 0, stop

    def read(self, number):
        return self.kept.get(number)

    def write(self, number, decision, trials):
        self.kept[number] = (decision, trials)
        self.writes += 1
        if self.writes == self.stop:
            raise KeyboardInterrupt


def test_evidence_overrules_the_prior_within_the_budget():
    truth = {"large": 0.0, "middling": 2.0, "small": 1.0}
    found = run_selection(table(truth), plain_belief({"large": 1.0, "middling": 0.8, "small": 0.6}), 150.0)
    assert found.model == "middling" and found.state.is_finished("middling")
    assert found.state.booked <= 150 and found.state.decisions[0].gain > 0


def test_a_budget_of_one_training_finishes_the_best_that_fits():
    prior = plain_belief({"large": 5.0, "middling": 1.0, "small": 0.0}, deviation=0.1)
    found = run_selection(table(dict.fromkeys(MODELS, 0.0)), prior, 60.0)
    assert found.model == "middling" and found.state.booked == 60


@settings(max_examples=25, deadline=None)
@given(
    truth=st.lists(st.floats(-2, 2), min_size=1, max_size=4),
    budget=st.floats(1.0, 4.0),
    deviation=st.floats(0.05, 2.0),
    going_on=st.sampled_from([0.0, 3.0]),
)
def test_one_model_is_always_finished_within_the_budget(truth, budget, deviation, going_on):
    names = [f"m{number}" for number in range(len(truth))]
    costs = {name: 10.0 * (1 + number) for number, name in enumerate(names)}
    prior = plain_belief(dict.fromkeys(names, 0.0), deviation=deviation)
    trials = table(dict(zip(names, truth, strict=True)), costs=costs)
    trials = replace(trials, going_on_seconds=dict.fromkeys(names, going_on))
    found = run_selection(trials, prior, 10 * budget)
    assert found.state.is_finished(found.model) and found.state.booked <= 10 * budget + 1e-6
    every = [trial.action for trial in found.state.trials]
    assert len(set(every)) == len(every)  # nothing is done twice


def test_a_training_that_goes_on_costs_what_is_left():
    plan = table(dict.fromkeys(MODELS, 0.0)).plan()
    assert plan.left(Action("large", "full"), ["curve:epoch=5"]) == 50
    assert plan.left(Action("large", "curve:epoch=1"), ["curve:epoch=5"]) is None
    assert plan.left(Action("large", "full"), ["low:size=0.5"]) == 100
    assert plan.left(Action("large", "low:size=0.5"), ["full"]) is None
    loaded = replace(plan, going_on_seconds={"large": 2.0})
    assert loaded.left(Action("large", "full"), ["curve:epoch=5"]) == 52  # it is taken up again once
    assert loaded.left(Action("large", "full"), ["curve:epoch=1", "curve:epoch=5"]) == 52
    assert loaded.left(Action("large", "full"), ["low:size=0.5"]) == 100 == loaded.left(Action("large", "full"), [])
    assert replace(plan, num_parallel=2).makespan([3, 1, 1, 1]) == 3


@pytest.mark.parametrize("stop", range(1, 7))
def test_stopped_anywhere_it_goes_on_with_the_same_decisions(stop):
    truth, prior = {"large": 0.0, "middling": 2.0, "small": 1.9}, plain_belief(dict.fromkeys(MODELS, 0.0))
    whole = run_selection(table(truth, noise=0.3), prior, 190.0)
    assert len(whole.state.decisions) > 2
    journal = Remembers(stop)
    with contextlib.suppress(KeyboardInterrupt):
        run_selection(table(truth, noise=0.3), prior, 190.0, journal=journal)
    again = run_selection(table(truth, noise=0.3), prior, 190.0, journal=journal)
    assert again.model == whole.model and again.state.trials == whole.state.trials
    assert again.state.decisions == whole.state.decisions


def test_a_training_that_fails_is_dropped_with_its_reason():
    trials = table({"large": 3.0, "middling": 1.0, "small": 0.0})
    del trials.values[Action("large", "curve:epoch=1")], trials.values[Action("large", "full")]
    found = run_selection(trials, plain_belief({"large": 3.0, "middling": 1.0, "small": 0.0}), 250.0)
    assert found.model == "middling" and found.state.dropped == {"large": "the table has no value"}
    with pytest.raises(DataError, match=r"No training ended with a model\. large: the table has no value"):
        run_selection(replace(trials, values={}), plain_belief(dict.fromkeys(MODELS, 0.0)), 250.0)


def test_a_budget_below_one_training_names_the_least_that_works():
    with pytest.raises(UsageError, match="the least that works is 40 s, for small"):
        run_selection(table(dict.fromkeys(MODELS, 0.0)), plain_belief(dict.fromkeys(MODELS, 0.0)), 39.0)


def test_one_model_is_finished_without_trials():
    found = run_selection(table({"large": 0.0}), plain_belief({"large": 0.0}), 400.0)
    assert [decision.is_finish for decision in found.state.decisions] == [True] and found.next_hour is None


def test_where_val_tells_nothing_apart_prior_and_cost_decide():
    prior = plain_belief({"large": 0.1, "middling": 0.0, "small": -3.0}, deviation=0.5)
    found = run_selection(table(dict.fromkeys(MODELS, 0.0)), prior, 400.0, is_blind=True)
    assert found.model == "middling" and found.preference.by == "cost" and len(found.state.trials) == 1
    assert found.preference.leader == "large" and found.preference.alike == ("middling",)


@pytest.mark.parametrize(("prefer", "taken"), [("accurate", "large"), ("small", "small"), ("fast", "middling")])
def test_the_smaller_or_faster_of_models_that_are_not_told_apart(prefer, taken):
    prior = plain_belief({"large": 0.1, "middling": 0.0, "small": 0.0}, deviation=0.5)
    sizes, costs = {"large": 3.0, "middling": 2.0, "small": 1.0}, {"large": 50.0, "middling": 40.0, "small": 45.0}
    trials = TableTrials({Action(model, "full"): costs[model] for model in MODELS}, {})
    trials = replace(trials, values=dict.fromkeys(trials.seconds, 0.0))
    found = run_selection(trials, prior, 50.0, prefer=prefer, sizes=sizes)
    assert found.model == taken and found.preference.leader == "large"


def test_the_gain_is_that_of_the_knowledge_gradient():
    """Frazier, Powell and Dayanik (2009), eq. 10, for one observation of the second of two models."""
    now = plain_belief({"a": 0.3, "b": 0.0}, deviation=1.0, noise={"full": 0.5})
    look, every = [NextLook("full", (1,), None)], np.array([True, True])
    moved = 1 / np.sqrt(1 + 0.25)
    z = -0.3 / moved
    expected = moved * (stats.norm.pdf(z) + z * stats.norm.cdf(z))
    assert expected_gain(now, look, [1], Finishable(every, every, every), seed=0) == pytest.approx(expected, rel=0.1)
    second, none = np.array([False, True]), np.array([False, False])
    assert expected_gain(now, look, [1], Finishable(every, second, second), seed=0) == pytest.approx(-0.3)
    assert expected_gain(now, look, [1], Finishable(every, none, none), seed=0) == -np.inf
    blind = plain_belief({"a": 0.3, "b": 0.0}, noise={"full": 1e9})
    assert expected_gain(blind, look, [1], Finishable(every, every, every), seed=0) == pytest.approx(0, abs=1e-6)


def test_sets_of_leading_models():
    assert [len(each) for each in leading_sets("a" * 1)] == [1]
    assert [len(each) for each in leading_sets("a" * 20)] == [1, 2, 3, 4, 6, 8, 12, 16, 20]


@pytest.mark.parametrize(
    ("text", "seconds"), [("30min", 1800), ("2h", 7200), ("1.5 h", 5400), ("45s", 45), ("25%", 250), ("100 %", 1000)]
)
def test_budgets_as_they_are_typed(text, seconds):
    assert parse_budget(text).seconds(1000.0) == seconds


@pytest.mark.parametrize("text", ["30", "half an hour", "0min", "0%", "120%", "3 weeks", "-2h", "", "1e9h", "nan min"])
def test_what_is_no_budget_is_refused_with_examples(text):
    with pytest.raises(UsageError, match="--budget 30min"):
        parse_budget(text)


def test_tables_need_the_cost_of_every_model():
    with pytest.raises(DataError, match="no cost of fine-tuning a fully"):
        TableTrials({Action("a", "curve:epoch=1"): 1.0}, {})


def test_rungs_and_trials_say_what_they_are():
    assert Rung("full", ("a", "b")).actions == [Action("a", "full"), Action("b", "full")]
    assert (
        TrialPlan({Action("a", "full"): 3.0}, {}).seconds_of_all == 3 and Trial(Action("a", "full"), 0.5).reason == ""
    )
