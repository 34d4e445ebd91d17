"""Also log to MLflow or Weights & Biases, if the user asks and has installed them; the run directory stays complete."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from crossgraft.errors import UnknownNameError
from crossgraft.optional import require
from crossgraft.progress import Reporter, Stage
from crossgraft.tune.engine.contract import StepReport, TrainedEpoch
from crossgraft.tune.engine.selection_rule import Keep, SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.planning.choices import GridTraining, further_factors
from crossgraft.tune.planning.rows import FoldData
from crossgraft.tune.planning.step_cost import steps_per_epoch
from crossgraft.words.formatting import duration

TRACKERS = ("mlflow", "wandb")


class Tracker:
    """Where a run is also logged; this one logs nowhere."""

    def begin(self, name: str, settings: Mapping[str, object]) -> None:
        """A run begins."""

    def log(self, values: Mapping[str, float], *, step: int) -> None:
        """Numbers of one epoch, or of the end."""

    def end(self, *, failed: bool) -> None:
        """The run is over."""

    @contextmanager
    def run(self, name: str, settings: Mapping[str, object]) -> Generator[None]:
        """Around a run, which has failed where the block raises."""
        self.begin(name, settings)
        failed = True
        try:
            yield
            failed = False
        finally:
            self.end(failed=failed)


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


class JobProgress:
    """Shows one training at a time, and leaves one line per epoch.

    The metric of ``rule`` is the one that is shown, and of the similarities the debiased one to the network that training
    started from: whose BatchNorm statistics were re-estimated, where it ``adapts``. What is marked as best is the epoch that is
    kept so far: by the similarity with ``keep``, else by the metric. Where there are several trainings, each line begins with the
    name of its own.
    """

    def __init__(
        self,
        reporter: Reporter,
        tracker: Tracker,
        *,
        rule: SelectionRule,
        num_jobs: int,
        keep: Keep | None = None,
        adapts: bool = False,
    ) -> None:
        self._reporter, self._tracker, self._rule, self._keep = reporter, tracker, rule, keep
        self._similarity = "cka_debiased_adapted" if adapts else "cka_debiased"
        self._num_jobs, self._number = num_jobs, 0
        self._stage: Stage | None = None
        self._title, self._name, self._prefix, self._has_begun = "", "", "", False
        self._seen, self._epochs = 0, 0
        self._outer = reporter.parts

    @contextmanager
    def stage(self, job: GridTraining, data: FoldData, settings: TrainerSettings) -> Generator[None]:
        """One training, counted in steps."""
        self._number += 1
        self._seen, self._epochs = 0, int(job.point.get("epochs", settings.epochs))
        batch_size = int(job.point.get("batch_size", settings.batch_size))
        total = steps_per_epoch(len(data.targets), batch_size) * self._epochs
        is_one_of_several = self._num_jobs > 1
        which = f" {self._number} of {self._num_jobs} ({job.name})" if is_one_of_several else ""
        self._title, self._prefix = f"Training{which}", f"{job.name}/" if is_one_of_several else ""
        self._name, self._has_begun = job.name, False
        part = self._reporter.part(job.name)
        with part, self._reporter.stage(self._title, total=total, unit="steps") as stage:
            self._stage = stage
            yield
        self._stage = None

    def further(self, job: GridTraining) -> AbstractContextManager[None]:
        """Around the trainings that look for a factor, after the first one."""
        return self._reporter.part(further_factors(job))

    def on_step(self, report: StepReport) -> None:
        """For the trainer."""
        if self._stage is None:
            return
        if not self._has_begun and report.step > 1:
            of_all = " of the head" if report.phase == "head" else f" of {self._epochs}"
            self._reporter.say(f"{self._title}: going on at epoch {report.epoch + 1}{of_all}, where it was stopped.")
        self._has_begun = True
        if report.phase == "head":
            return
        self._stage.advance(max(0, report.step - self._seen))
        self._seen = report.step

    def on_epoch(self, row: TrainedEpoch) -> None:
        """For the trainer."""
        if self._stage is not None:
            self._reporter.leave(self._in_words(row))
        values = {f"train/{name}": value for name, value in row.terms.items()}
        values |= {f"val/{name}": value for name, value in row.metrics.items() if value == value}
        self._tracker.log({self._prefix + name: value for name, value in values.items()}, step=row.epoch + 1)

    def _in_words(self, row: TrainedEpoch) -> str:
        which = [*self._outer, *([self._name] if self._prefix else [])]
        epoch = f"{'epoch' if which else 'Epoch'} {row.epoch + 1:>{len(str(self._epochs))}} of {self._epochs}"
        epoch = f"{'head' if which else 'Head'}, epoch {row.epoch + 1}" if row.phase == "head" else epoch
        where = ", ".join([*which, epoch])
        parts = [f"loss {row.terms.get('loss', float('nan')):.3g}"]
        best = " (best)" if row.is_best else ""
        metric = row.metrics.get(self._rule.metric)
        if metric is not None and metric == metric:
            parts.append(f"{self._rule.metric.replace('_', ' ')} on val {metric:.3f}{'' if self._keep else best}")
        similarity = row.metrics.get(self._similarity)
        if similarity is not None and similarity == similarity:
            asked = f", to be {self._keep.target:g}{best}" if self._keep else ""
            parts.append(f"debiased CKA {similarity:.2f}{asked}")
        return f"{where}: {', '.join([*parts, duration(row.seconds)])}"
