"""``--log-gradient-norms`` on the whole way: files, record, page, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest

from crossgraft import compare_fine_tunings, fine_tune
from crossgraft.data import dataset_from_arrays
from crossgraft.errors import OtherRunError, UsageError
from crossgraft.tune.engine.gradient_norms import SMOOTHING, GradientNorms
from crossgraft.tune.record import TuningRecord

pytestmark = pytest.mark.usefixtures("normed_models")
FAST = {"model": "normed_models:normed", "epochs": 2, "batch_size": 8, "workers": 1, "device": "cpu", "store": False}
LOGGED = {**FAST, "log_gradient_norms": True}


def squares(n=40):
    """Noise that is brighter in the second class."""
    labels = np.arange(n) % 2
    pixels = np.random.default_rng(0).integers(0, 90, (n, 16, 16, 3)) + 80 * labels[:, None, None, None]
    return dataset_from_arrays(pixels.astype(np.uint8), labels)


def without_times(record):
    """What a record says, but for seconds, the plan's measurements and the norms."""
    found = record.model_dump(exclude={"gradient_norms", "seconds", "plan", "looks"})
    for row in (*found["grid"], *found["history"]):
        row["seconds"] = 0
    return found


def test_every_step_stands_in_the_file_and_nothing_else_changes(tmp_path):
    out = tmp_path / "run"
    tuned, plain = fine_tune(squares(), **LOGGED, out=out), fine_tune(squares(), **FAST, out=tmp_path / "plain")
    assert without_times(tuned.record) == without_times(plain.record)
    weights = [(folder / "model" / "weights.safetensors").read_bytes() for folder in (out, tmp_path / "plain")]
    assert weights[0] == weights[1]
    table = pd.read_csv(out / "gradient_norms.csv")
    pd.testing.assert_frame_equal(table, tuned.gradient_norms())
    record = tuned.record.plan
    steps = record.steps_per_epoch * record.epochs
    blocks = [each.block for each in tuned.record.gradient_norms[0].blocks]
    assert len(blocks) == 2
    assert list(zip(table["step"], table["block"], strict=True)) == [(s, b) for s in range(1, steps + 1) for b in blocks]
    assert set(table["job"]) == {"only"} and (table["norm"] > 0).all()
    alone = pd.read_csv(out / "jobs" / "only" / "gradient_norms.csv")
    pd.testing.assert_frame_equal(alone, table.drop(columns="job"))
    assert TuningRecord.model_validate_json((out / "report.json").read_bytes()) == tuned.record
    assert "Gradients by block" in (out / "report.html").read_text(encoding="utf-8")
    assert not (tmp_path / "plain" / "gradient_norms.csv").exists() and not plain.record.gradient_norms
    assert plain.gradient_norms().empty
    assert "Gradients by block" not in (tmp_path / "plain" / "report.html").read_text(encoding="utf-8")
    assert "log_gradient_norms" not in json.loads((tmp_path / "plain" / "run.json").read_text())["config"]
    again = fine_tune(squares(), **LOGGED, out=out)
    pd.testing.assert_frame_equal(again.gradient_norms(), table)
    (out / "jobs" / "only" / "gradient_norms.csv").unlink()  # a training without it is made again
    pd.testing.assert_frame_equal(fine_tune(squares(), **LOGGED, out=out).gradient_norms(), table)
    with pytest.raises(OtherRunError, match="log_gradient_norms"):
        fine_tune(squares(), **FAST, out=out)


def test_each_training_has_rows_and_those_that_were_picked_are_recorded():
    tuned = fine_tune(squares(), **LOGGED, folds=2, grid="learning_rate=1e-4,1e-3")
    jobs = [point.job for point in tuned.record.grid]
    assert list(dict.fromkeys(tuned.gradient_norms()["job"])) == jobs and len(jobs) == 4
    assert [each.job for each in tuned.record.gradient_norms] == [row.job for row in tuned.record.grid if row.picked]


def test_each_variant_of_a_comparison_has_its_own(tmp_path):
    compare_fine_tunings(squares(), **{**LOGGED, "epochs": 1}, compare="full,l2_sp", out=tmp_path / "run")
    folders = [path.parent.name for path in sorted((tmp_path / "run" / "trainings").glob("*/gradient_norms.csv"))]
    assert folders == ["full-0", "l2_sp-0"]


def test_where_no_block_is_trained_it_is_refused():
    with pytest.raises(UsageError, match="--method linear trains none of them"):
        fine_tune(squares(), **LOGGED, method="linear", plan=True)


def test_a_record_lists_few_steps_and_counts_spikes():
    values = np.ones((1000, 2))
    values[500, 1], values[700, 1], values[3, 0] = 3.0, np.inf, np.inf
    found = GradientNorms(("first", "second"), values).record("only")
    assert (found.num_steps, found.smoothing, len(found.steps)) == (1000, SMOOTHING, 200)
    assert (found.steps[0], found.steps[-1]) == (1, 1000)
    first, second = found.blocks
    assert (first.median, first.largest, first.num_spikes) == (1.0, 1.0, 1)
    assert (second.median, second.largest, second.num_spikes) == (1.0, 3.0, 2)
    assert len(second.averages) == 200 and second.averages[0] == 1.0 and second.averages[-1] == pytest.approx(1.0)
    assert GradientNorms(("first",), values[:3, :1]).record("only").steps == [1, 2, 3]
