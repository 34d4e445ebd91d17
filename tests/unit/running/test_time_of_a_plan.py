"""A plan counts all of its command: what came until now, which the command does again, and its page."""

from types import SimpleNamespace

import pytest

from crossgraft.bench import forecast
from crossgraft.cli.call import Call
from crossgraft.options.running import Output
from crossgraft.progress import Reporter
from crossgraft.running.verb import PAGE, Run
from crossgraft.select.page import selection_plan_in_words
from crossgraft.select.record import PlannedModel, SelectionPlanRecord
from crossgraft.words.formatting import duration


def test_all_that_came_since_the_command_began_is_done_again():
    reporter = Reporter(quiet=True, clock=lambda: 130.0)
    run = Run("tune", Output(), reporter, "fine_tune", ("digits",), began=100.0)
    assert run.seconds_beside >= 30.0 + PAGE.seconds


def test_a_command_begins_before_packages_are_imported(capsys):
    typed = Call({"data": "digits"}, {})
    assert typed.reporter.began is None
    typed.say_first("tune")
    assert typed.reporter.began is not None
    capsys.readouterr()


@pytest.mark.parametrize(("beside", "expected"), [(None, 7.0), (5.0, 12.0)])
def test_a_job_of_a_study_takes_all_of_its_plan(monkeypatch, beside, expected):
    def planned(**_):
        return SimpleNamespace(shown=SimpleNamespace(expected_seconds=7.0, seconds_beside=beside))

    planned.options = SimpleNamespace(__dataclass_fields__={"plan": None})
    monkeypatch.setattr(forecast, "prepared", lambda _: bench_partial(planned))
    assert forecast.planned_seconds(None) == expected


def bench_partial(function):
    call = lambda **keywords: function(**keywords)  # noqa: E731
    call.func = function
    return call


def test_a_selection_says_what_the_whole_command_takes():
    models = [
        PlannedModel(name=name, source=name, num_parameters=1, seconds=seconds, expected=0.0, num_own_targets=0)
        for name, seconds in (("a", 100.0), ("b", 40.0), ("c", 60.0))
    ]
    plan = SelectionPlanRecord(
        budget="1h",
        budget_seconds=3600.0,
        seconds_of_all=200.0,
        num_parallel=2,
        models=models,
        standard_error=0.1,
        rounds=[["a", "b"], ["c"]],
    )
    assert "The whole command" not in selection_plan_in_words(plan)
    whole = selection_plan_in_words(plan.model_copy(update={"seconds_beside": 20.0}))
    assert f"The whole command: about {duration(180.0)}." in whole
