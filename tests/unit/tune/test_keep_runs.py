"""``--keep`` on the whole way: what is recorded, what is said where it is out of reach, what is refused."""

import io
import re

import numpy as np
import pytest

from crossgraft import fine_tune
from crossgraft.data import dataset_from_arrays
from crossgraft.errors import UsageError
from crossgraft.progress import Reporter
from crossgraft.tune.engine.selection_rule import MOST_TRAININGS, TOLERANCE
from crossgraft.tune.record import TuningRecord

pytestmark = pytest.mark.usefixtures("normed_models")
FAST = {"model": "normed_models:normed", "epochs": 3, "batch_size": 8, "workers": 1, "device": "cpu", "store": False}
KEPT = {**FAST, "learning_rate": 0.01, "regularizer": "repsim"}


def squares(n=60):
    """Noise that is brighter in the second class."""
    labels = np.arange(n) % 2
    pixels = np.random.default_rng(0).integers(0, 90, (n, 16, 16, 3)) + 80 * labels[:, None, None, None]
    return dataset_from_arrays(pixels.astype(np.uint8), labels)


def test_what_was_asked_for_and_what_was_kept_is_recorded(tmp_path):
    record = fine_tune(squares(), **KEPT, keep=0.9, out=tmp_path / "run").record
    assert record == TuningRecord.model_validate_json((tmp_path / "run" / "report.json").read_bytes())
    (picked,) = [row for row in record.grid if row.picked]
    (kept,) = [row for row in record.history if row.is_best and row.job == picked.job]
    assert (record.keep.target, record.keep.tolerance) == (0.9, TOLERANCE)
    assert record.keep.found == [kept.val_cka_debiased] and record.keep.factors == [picked.values["keep_factor"]]
    assert record.keep.is_reached == (abs(kept.val_cka_debiased - 0.9) <= TOLERANCE)
    misses = {row.job: abs(row.val_cka_debiased - 0.9) for row in record.history if row.is_best}
    assert misses[picked.job] == min(misses.values()) or misses[picked.job] <= TOLERANCE
    assert record.grid[0].values == {"keep_factor": 1.0} and 1 <= len(record.grid) <= MOST_TRAININGS
    assert record.plan.num_jobs == MOST_TRAININGS and record.plan.seeks_factor


def test_with_adapted_statistics_it_is_the_similarity_to_the_adapted_network():
    record = fine_tune(squares(), **KEPT, keep=0.9, batch_norm="adapt").record
    (picked,) = [row for row in record.grid if row.picked]
    (kept,) = [row for row in record.history if row.is_best and row.job == picked.job]
    assert record.keep.found == [kept.val_cka_debiased_adapted] != [kept.val_cka_debiased]


def test_what_is_out_of_reach_is_said_with_what_was_reached():
    """A learning rate at which next to nothing moves keeps all of it."""
    said = io.StringIO()
    record = fine_tune(squares(), **{**KEPT, "learning_rate": 1e-9}, keep=0.5, reporter=Reporter(said)).record
    assert not record.keep.is_reached
    (warning,) = [each for each in record.warnings if "--keep 0.5 was not reached" in each]
    assert re.search(r"has a debiased CKA of (0\.9\d+|1\.000) on val", warning) and "a higher --learning-rate" in warning


def test_each_fold_has_its_own_and_the_nearest_grid_point_is_picked():
    record = fine_tune(squares(), **{**FAST, "regularizer": "repsim"}, keep=0.97, folds=2, grid="learning_rate=1e-9,0.01").record
    assert len(record.keep.found) == len(record.keep.factors) == 2
    ended = {row.job: row.val_cka_debiased for row in record.history if row.is_best}
    assert len(ended) >= 4
    for picked, found in zip([row for row in record.grid if row.picked], record.keep.found, strict=True):
        assert found == ended[picked.job]
        others = [value for job, value in ended.items() if job.startswith(f"fold-{picked.fold}")]
        misses = [max(0.0, abs(value - 0.97) - TOLERANCE) for value in others]
        assert max(0.0, abs(found - 0.97) - TOLERANCE) == min(misses)


def test_another_similarity_is_another_training(tmp_path):
    keys = []
    for keep in (0.9, 0.8, None):
        fine_tune(squares(), **{**KEPT, "epochs": 1}, keep=keep, out=tmp_path / str(keep))
        record = (tmp_path / str(keep) / "jobs" / ("only" if keep is None else "keep_factor=1") / "result.json").read_text()
        keys.append(record.split('"key"')[1].split('"')[1])
    assert len(set(keys)) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keep": 1.0}, "between 0 and 1"),
        ({"keep": 0.0}, "between 0 and 1"),
        ({"keep": 0.8, "regularizer": "none"}, r"--keep 0\.8 .* there is none that compares .*--regularizer repsim"),
        ({"keep": 0.8, "regularizer": "bss"}, "there is none that compares"),
        ({"keep": 0.8, "val_fraction": 0.0}, "of which there are 0"),
        ({"keep": 0.8, "val_fraction": 0.05}, r"of which there are [23]; a debiased CKA needs four"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_is_trained(changes, message):
    with pytest.raises(UsageError, match=message):
        fine_tune(squares(), **{**KEPT, **changes}, plan=True)


def test_the_plan_says_that_there_is_nothing_it_could_not_do():
    plan = fine_tune(squares(), **KEPT, keep=0.8, plan=True).plan
    assert plan.record.settings["regularizer"] == "repsim:mode=cka,weight=0.3·√(d/64)"
