"""What all trainings of a selection share, and how one of them is made of it."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace

from crossgraft.errors import UsageError
from crossgraft.models import ModelSpec
from crossgraft.options._option import Options, from_mapping, options_of
from crossgraft.progress import Reporter
from crossgraft.records.base import CheckRecord
from crossgraft.running.names import portable_name
from crossgraft.running.run_directory import RunDirectory
from crossgraft.tune.jobs import TrainingWork
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import TuningRows
from crossgraft.tune.planning.preparation import Preparation, prepare
from crossgraft.tune.planning.request import Request

TRAININGS_FOLDER = "trainings"
"""In the run directory: one folder per model, with its training at full resolution."""


def tune_options(options: Options, spec: ModelSpec) -> TuneOptions:
    """Those of ``select`` that ``fine_tune`` has, for one model; it can be sent to another process."""
    known = {name: getattr(options, name) for name in options_of(TuneOptions) if hasattr(options, name)}
    return from_mapping(TuneOptions, {**known, "model": spec, "reporter": None, "plan": False})


@dataclass(frozen=True, eq=False)
class SelectionStudy:
    """What all trainings of a selection share; goes with its jobs to other processes.

    Attributes:
        rows: Opened once, with one split for all.
        checks: Findings about them.
        requests: What is asked for of each model, by its name.
        run: Run directory of the selection.
        reporter: Reporter of what a training finds.
    """

    rows: TuningRows
    checks: list[CheckRecord]
    requests: Mapping[str, Request]
    run: RunDirectory
    reporter: Reporter

    @property
    def models(self) -> list[str]:
        """Names, in the order of the zoo."""
        return list(self.requests)

    def prepare(self, model: str, *, run: RunDirectory | None = None) -> Preparation:
        """Everything before the first step of one training."""
        return prepare(self.rows, self.requests[model], run=run, reporter=self.reporter, checks=list(self.checks))

    def work(self, model: str) -> TrainingWork:
        """The training of one model."""
        prepared = self.prepare(model)
        return TrainingWork(prepared, prepared.fold_data(self.rows.parts[0]), self.inside(self.folder(model)))

    def folder(self, model: str) -> str:
        """Where the training of one model lies in the run directory; two models never share it."""
        names = [portable_name(each).casefold() for each in self.requests]
        place = list(self.requests).index(model)
        twins = names[:place].count(names[place])
        return f"{TRAININGS_FOLDER}/{portable_name(model)}" + (f"-{twins + 1}" if twins else "")

    def inside(self, folder: str) -> RunDirectory:
        """A folder of the run as a run directory of its own, guarded by the lock of the selection."""
        path = self.run.path / folder
        path.mkdir(parents=True, exist_ok=True)
        record = self.run.record.model_copy(update={"machine": {}, "stages": []})
        return RunDirectory(path, record, earlier=record)

    def quiet(self) -> SelectionStudy:
        """The same, which shows nothing."""
        return replace(self, reporter=Reporter(quiet=True))

    def refuse_unsendable(self) -> None:
        """Raise where trainings cannot be done in other processes.

        Raises:
            UsageError: Something cannot be sent to them.
        """
        try:
            pickle.dumps(self)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise UsageError(
                f"Several trainings at a time are made in processes of their own, and something cannot be sent to them: {error}. "
                "Define functions and classes at the top of a module, or train one at a time with --workers 1."
            ) from error

    def __getstate__(self) -> dict[str, object]:
        """Without what shows progress, which stays in this process."""
        return {**vars(self), "reporter": None}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        """In the other process."""
        vars(self).update({**state, "reporter": Reporter(quiet=True)})
