"""Decisions and trials of a selection, kept in its run directory as they come."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.records import JournalRecord, RungRecord, TrialRecord
from crossgraft.runs import RunDirectory
from crossgraft.selection.state import Decision
from crossgraft.selection.trials import Action, Rung, Trial

JOURNAL_FILE = "journal.json"


class RunJournal:
    """A journal that is one file, replaced whole at each change.

    Args:
        run: Run directory of the selection.
    """

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        found = run.read_record(JOURNAL_FILE, JournalRecord) if run.resumed else None
        self._rungs = [] if found is None else list(found.rungs)

    def read(self, number: int) -> tuple[Decision, list[Trial] | None] | None:
        """A decision of an earlier attempt and, where it was carried out, its trials."""
        if number >= len(self._rungs):
            return None
        record = self._rungs[number]
        trials = None if record.trials is None else [_trial(each) for each in record.trials]
        return decision_of(record), trials

    def write(self, number: int, decision: Decision, trials: Sequence[Trial] | None) -> None:
        """Keep a decision before it is carried out, and again afterwards."""
        self._rungs[number:] = [rung_record(decision, trials)]
        self._run.write_record(JOURNAL_FILE, JournalRecord(rungs=self._rungs))


def rung_record(decision: Decision, trials: Sequence[Trial] | None) -> RungRecord:
    """A decision with what came of it."""
    return RungRecord(
        kind=decision.rung.kind,
        models=list(decision.rung.models),
        booked_seconds=decision.seconds,
        gain=decision.gain,
        is_finish=decision.is_finish,
        trials=None if trials is None else [_record(trial) for trial in trials],
    )


def decision_of(record: RungRecord) -> Decision:
    """The decision that a record keeps."""
    rung = Rung(record.kind, tuple(record.models))
    return Decision(rung, record.booked_seconds, record.gain, record.is_finish)


def _record(trial: Trial) -> TrialRecord:
    return TrialRecord(
        model=trial.action.model,
        kind=trial.action.kind,
        value=trial.value,
        standard_error=trial.standard_error,
        reason=trial.reason or None,
        seconds=trial.seconds,
    )


def _trial(record: TrialRecord) -> Trial:
    action = Action(record.model, record.kind)
    return Trial(action, record.value, record.standard_error, record.reason or "", record.seconds)
