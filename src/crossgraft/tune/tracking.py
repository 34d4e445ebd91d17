"""Also log to MLflow or Weights & Biases, if the user asks and has installed them; the run directory stays complete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from crossgraft.errors import UnknownNameError
from crossgraft.optional import require

TRACKERS = ("mlflow", "wandb")


@runtime_checkable
class Tracker(Protocol):
    """Where a run is also logged."""

    def begin(self, name: str, settings: Mapping[str, object]) -> None:
        """A run begins."""
        ...

    def log(self, values: Mapping[str, float], *, step: int) -> None:
        """Numbers of one epoch, or of the end."""
        ...

    def end(self, *, failed: bool) -> None:
        """The run is over."""
        ...


class NoTracker:
    """Logs nowhere."""

    def begin(self, name: str, settings: Mapping[str, object]) -> None:
        """Nothing to do."""

    def log(self, values: Mapping[str, float], *, step: int) -> None:
        """Nothing to do."""

    def end(self, *, failed: bool) -> None:
        """Nothing to do."""


class MlflowTracker:
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


class WandbTracker:
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


def open_tracking(name: str | None) -> Tracker:
    """The tracker called ``mlflow`` or ``wandb``; one that does nothing for None.

    Raises:
        UnknownNameError: Another name.
        MissingExtraError: Its package is not installed.
    """
    if name is None:
        return NoTracker()
    if name not in TRACKERS:
        raise UnknownNameError("tracker", name, TRACKERS)
    module = require(name, extra="track", needed_for=f"--track {name}")
    return MlflowTracker(module) if name == "mlflow" else WandbTracker(module)


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-./ " else "_" for letter in name)
