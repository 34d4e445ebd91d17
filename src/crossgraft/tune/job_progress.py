"""How the trainings go, for the terminal and for trackers: loss, metric, rate, time left."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from crossgraft.progress import Reporter, Stage
from crossgraft.tune.engine.contract import OnEpoch, OnStep, StepReport, TrainedEpoch
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.planning.fold_data import FoldData
from crossgraft.tune.planning.grid import GridTraining
from crossgraft.tune.planning.plan import steps_per_epoch
from crossgraft.tune.tracking import Tracker
from crossgraft.words.formatting import duration


class JobProgress:
    """Shows one training at a time.

    Args:
        reporter: Reporter that shows it.
        tracker: Tracker of epochs.
        rule: Its metric is shown.
        num_jobs: Number of all jobs.
    """

    def __init__(self, reporter: Reporter, tracker: Tracker, *, rule: SelectionRule, num_jobs: int) -> None:
        self._reporter, self._tracker, self._rule = reporter, tracker, rule
        self._num_jobs, self._number = num_jobs, 0
        self._stage: Stage | None = None
        self._title, self._has_begun = "", False
        self._seen = 0
        self._rate = ""
        self._epochs = 0

    @contextmanager
    def stage(self, job: GridTraining, data: FoldData, settings: TrainerSettings) -> Generator[None]:
        """One training, counted in steps."""
        self._number += 1
        self._seen, self._rate, self._epochs = 0, "", int(job.point.get("epochs", settings.epochs))
        batch_size = int(job.point.get("batch_size", settings.batch_size))
        total = steps_per_epoch(len(data.targets), batch_size) * self._epochs
        which = f" {self._number} of {self._num_jobs} ({job.name})" if self._num_jobs > 1 else ""
        self._title, self._has_begun = f"Training{which}", False
        with self._reporter.stage(self._title, total=total, unit="steps") as stage:
            self._stage = stage
            yield
        self._stage = None

    def on_step(self, _training: GridTraining) -> OnStep:
        """For the trainer."""

        def told(report: StepReport) -> None:
            if self._stage is None:
                return
            if not self._has_begun and report.step > 1:
                of_all = " of the head" if report.phase == "head" else f" of {self._epochs}"
                self._reporter.say(
                    f"{self._title}: going on at epoch {report.epoch + 1}{of_all}, where it was stopped."
                )
            self._has_begun = True
            if report.phase == "head":
                return
            self._stage.advance(max(0, report.step - self._seen))
            self._seen = report.step
            self._rate = f"{report.images_per_second:.0f} images/s, {duration(report.seconds_left)} left"

        return told

    def on_epoch(self, job: GridTraining) -> OnEpoch:
        """For the trainer."""

        def told(row: TrainedEpoch) -> None:
            if self._stage is not None:
                self._stage.note(self._in_words(row))
            prefix = f"{job.name}/" if self._num_jobs > 1 else ""
            values = {**{f"train/{name}": v for name, v in row.terms.items()}, **_defined(row)}
            self._tracker.log({prefix + name: value for name, value in values.items()}, step=row.epoch + 1)

        return told

    def _in_words(self, row: TrainedEpoch) -> str:
        phase = "head, " if row.phase == "head" else ""
        of_all = "" if row.phase == "head" else f" of {self._epochs}"
        parts = [f"{phase}epoch {row.epoch + 1}{of_all}", f"loss {row.terms.get('loss', float('nan')):.3g}"]
        metric = row.metrics.get(self._rule.metric)
        if metric is not None and metric == metric:
            best = " (best so far)" if row.is_best else ""
            parts.append(f"{self._rule.metric.replace('_', ' ')} on val {metric:.3f}{best}")
        similarity = row.metrics.get("cka")
        if similarity is not None and similarity == similarity:
            parts.append(f"CKA {similarity:.2f}")
        return ", ".join([*parts, *([self._rate] if self._rate else [])])


def _defined(row: TrainedEpoch) -> dict[str, float]:
    return {f"val/{name}": value for name, value in row.metrics.items() if value == value}
