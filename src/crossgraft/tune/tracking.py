"""Also log to MLflow or Weights & Biases, if the user asks and has installed them; the run directory stays complete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from crossgraft.errors import UnknownNameError
from crossgraft.optional import require
from crossgraft.progress import Reporter

TRACKERS = ("mlflow", "wandb")


class Tracker:
    """Where a run is also logged; this one logs nowhere."""

    def begin(self, name: str, settings: Mapping[str, object]) -> None:
        """A run begins."""

    def log(self, values: Mapping[str, float], *, step: int) -> None:
        """Numbers of one epoch, or of the end."""

    def end(self, *, failed: bool) -> None:
        """The run is over."""


class MlflowTracker(Tracker):
    """Logs to MLflow, as its own environment variables say where."""

    def __init__(self, mlflow: Any) -> None:
        self._mlflow = mlflow

    def begin(self, name: str, settings: Mapping[str, object]) -> None:
        """Start a run."""
        self._mlflow.start_run(run_name=name)
        self._mlflow.log_params({key: str(value)[:500] for key, value in settings.items()})

    def log(self, values: Mapping[str, float], *, step: int) -> None:
        """MLflow allows fewer letters in names than we use."""
        self._mlflow.log_metrics({_plain(name): value for name, value in values.items()}, step=step)

    def end(self, *, failed: bool) -> None:
        """Close the run."""
        self._mlflow.end_run(status="FAILED" if failed else "FINISHED")


class WandbTracker(Tracker):
    """Logs to Weights & Biases, as its own environment variables say where."""

    def __init__(self, wandb: Any) -> None:
        self._wandb = wandb
        self._run: Any = None

    def begin(self, name: str, settings: Mapping[str, object]) -> None:
        """Start a run."""
        self._run = self._wandb.init(name=name, config=dict(settings), reinit=True)

    def log(self, values: Mapping[str, float], *, step: int) -> None:
        """The step is a number like the others, because several trainings share one run."""
        self._run.log({**values, "step": step})

    def end(self, *, failed: bool) -> None:
        """Close the run."""
        self._run.finish(exit_code=int(failed))


class GuardedTracker(Tracker):
    """Passes on to a tracker until that fails; then says so, and the training goes on without it."""

    def __init__(self, tracker: Tracker, name: str, reporter: Reporter) -> None:
        self._tracker, self._name, self._reporter = tracker, name, reporter
        self._works = True

    def begin(self, name: str, settings: Mapping[str, object]) -> None:
        """Another try, after a training whose tracking failed."""
        self._works = True
        self._try(lambda: self._tracker.begin(name, settings))

    def log(self, values: Mapping[str, float], *, step: int) -> None:
        """Only while it works."""
        if self._works:
            self._try(lambda: self._tracker.log(values, step=step))

    def end(self, *, failed: bool) -> None:
        """Also of a run that could not be logged to, so that it is not left open there."""
        self._try(lambda: self._tracker.end(failed=failed))

    def _try(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:  # trackers pass on what their clients raise: errors of many kinds, also of the network
            if self._works:
                reason = (str(error).strip().splitlines() or [""])[0].rstrip(".") or type(error).__name__
                self._reporter.warn(
                    f"--track {self._name} failed, and the training goes on without it: {reason}. Every number is also in the "
                    "tables of the run directory (history.csv, metrics.csv)."
                )
            self._works = False


def open_tracking(name: str | None, reporter: Reporter) -> Tracker:
    """The tracker called ``mlflow`` or ``wandb``, whose failures are warnings; one that does nothing for None.

    Raises:
        UnknownNameError: Another name.
        MissingExtraError: Its package is not installed.
    """
    if name is None:
        return Tracker()
    if name not in TRACKERS:
        raise UnknownNameError("tracker", name, TRACKERS)
    module = require(name, extra="track", needed_for=f"--track {name}")
    tracker = MlflowTracker(module) if name == "mlflow" else WandbTracker(module)
    return GuardedTracker(tracker, name, reporter)


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-./ " else "_" for letter in name)
