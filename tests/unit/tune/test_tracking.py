import sys
from types import SimpleNamespace

import pytest

from crossgraft.errors import MissingExtraError, UnknownNameError
from crossgraft.progress import Reporter
from crossgraft.tune.tracking import Tracker, open_tracking


def test_wandb_is_told_settings_numbers_with_their_step_and_how_it_ended(monkeypatch):
    said = []
    run = SimpleNamespace(log=said.append, finish=lambda exit_code: said.append(exit_code))
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=lambda **facts: said.append(facts) or run))
    tracker = open_tracking("wandb", Reporter(quiet=True))
    assert isinstance(tracker, Tracker)
    tracker.begin("a on b", {"epochs": 2})
    tracker.log({"val/auc": 0.5}, step=3)
    tracker.end(failed=True)
    assert said[0]["name"] == "a on b"
    assert said[0]["config"] == {"epochs": 2}
    assert said[1:] == [{"val/auc": 0.5, "step": 3}, 1]


def test_mlflow_gets_names_that_it_allows(monkeypatch):
    said = []
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(log_metrics=lambda values, step: said.append(values)))
    open_tracking("mlflow", Reporter(quiet=True)).log({"learning_rate=0.1,batch_size=8/val/auc": 0.5}, step=1)
    assert said == [{"learning_rate_0.1_batch_size_8/val/auc": 0.5}]


def test_unknown_and_missing_trackers_are_named(monkeypatch):
    with pytest.raises(UnknownNameError, match="Did you mean mlflow"):
        open_tracking("mlflo", Reporter(quiet=True))
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingExtraError, match=r"crossgraft\[track\]"):
        open_tracking("wandb", Reporter(quiet=True))
    assert open_tracking(None, Reporter(quiet=True)).log({}, step=0) is None
