"""The model that is handed over: measured, calibrated and saved as ``fine_tune`` does, from the training that is done already."""

from __future__ import annotations

import shutil

from crossgraft.running.ending import Publish
from crossgraft.running.run_directory import RunDirectory
from crossgraft.select.record import SelectionPlanRecord
from crossgraft.select.study import TRAININGS_FOLDER, SelectionStudy
from crossgraft.tune.planning.plan import PLAN_FILE, make_plan
from crossgraft.tune.result import FineTuningResult
from crossgraft.tune.saving.known_images import IMAGES_FILE
from crossgraft.tune.saving.saved_model import FACTS_FILE, MODEL_FOLDER
from crossgraft.tune.tracking import Tracker
from crossgraft.tune.trainings import train_and_evaluate


def hand_over(
    study: SelectionStudy, plan: SelectionPlanRecord, model: str, tracking: Tracker, publish: Publish
) -> FineTuningResult:
    """Open test once, for the selected model, and save it as ``model``.

    Its training is read back. It becomes a run of ``crossgraft tune`` in the folder of its training, with a page of its own.

    Raises:
        CrossgraftError: As ``fine_tune``.
    """
    own = study.inside(study.folder(model))
    own.record = own.record.model_copy(
        update={
            "command": "tune",
            "config": {**own.record.config, "model": study.requests[model].spec.typed},
            "state": "running",
        }
    )
    whole = plan.model(model).plan
    if whole is not None:
        own.write_record(PLAN_FILE, whole)
    prepared = study.prepare(model, run=own)
    tuned = train_and_evaluate(
        prepared,
        make_plan(prepared, run=own, reporter=study.reporter),
        run=own,
        tracking=tracking,
        publish=publish,
        reporter=study.reporter,
    )
    _copy_model(own, study.run)
    return tuned


def tidy(study: SelectionStudy, selected: str) -> None:
    """Remove the trainings of the models that are not handed over."""
    kept = study.run.path / study.folder(selected)
    for folder in (study.run.path / TRAININGS_FOLDER).glob("*"):
        if folder != kept:
            shutil.rmtree(folder, ignore_errors=True)


def begin_anew(run: RunDirectory) -> None:
    """Set aside the trainings of a run that ``--overwrite`` replaces."""
    run.own(f"{TRAININGS_FOLDER}/", f"{MODEL_FOLDER}/")


def _copy_model(own: RunDirectory, run: RunDirectory) -> None:
    """The folder that ``predict`` uses; what makes it whole is written last."""
    run.write(IMAGES_FILE, (own.path / IMAGES_FILE).read_bytes())
    files = sorted((own.path / MODEL_FOLDER).iterdir(), key=lambda file: file.name == FACTS_FILE)
    for file in files:
        run.write(f"{MODEL_FOLDER}/{file.name}", file.read_bytes())
