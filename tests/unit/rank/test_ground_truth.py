import numpy as np
import pytest

from crossgraft.errors import DataError, UsageError
from crossgraft.rank.ground_truth import agreement, read_ground_truth
from crossgraft.rank.record import GroundTruthRecord, ScoreCell
from crossgraft.statistics import weighted_kendall, weighted_kendall_interval
from support.model_records import model_record


def cells(values):
    return [ScoreCell(model=name, score="s", value=value) for name, value in values.items()]


def agree(values, truth, families=None):
    models = [model_record(name, family=(families or {}).get(name, "f")) for name in values]
    return agreement("s", cells(values), models, GroundTruthRecord(column="accuracy", values=truth), seed=0)


def test_agreement_over_all_models_equals_weighted_kendall_with_its_jackknife():
    values = dict(zip("abcdef", [0.1, 0.5, 0.3, 0.7, 0.9, 0.2], strict=True))
    truth = dict(zip("abcdef", [0.2, 0.6, 0.1, 0.8, 0.7, 0.3], strict=True))
    (row,) = agree(values, truth)
    x, y = np.array(list(values.values())), np.array(list(truth.values()))
    assert row.weighted_kendall == weighted_kendall(x, y)
    expected = weighted_kendall_interval(x, y)
    assert (row.low, row.high) == (expected.low, expected.high) and row.low < row.weighted_kendall < row.high
    assert row.num_models == 6
    assert 0 < row.p_value <= 1


def test_controls_never_count_as_models():
    truth = dict(zip("abcd", [0.2, 0.6, 0.7, 0.1], strict=True))
    values = dict(zip("abcd", [0.1, 0.5, 0.6, 0.9], strict=True))
    models = [model_record(name, role="random weights" if name == "d" else "candidate") for name in values]
    (row,) = agreement("s", cells(values), models, GroundTruthRecord(column="accuracy", values=truth), seed=0)
    assert (row.num_models, row.weighted_kendall) == (3, 1.0)


def test_families_of_four_are_compared_within_themselves():
    names = "abcdefg"
    values = {name: float(i) for i, name in enumerate(names)}
    families = {name: "big" if name in "abcd" else "small" for name in names}
    rows = agree(values, values, families)
    assert [(row.family, row.num_models) for row in rows] == [(None, 7), ("big", 4)]


@pytest.mark.parametrize(
    ("values", "truth", "reason"),
    [
        ({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.0}, "at least 3"),
        ({"a": 1.0, "b": 1.0, "c": 1.0}, {"a": 1.0, "b": 2.0, "c": 3.0}, "same for every model"),
        ({"a": 1.0, "b": 1.0, "c": 2.0}, {"a": 1.0, "b": 2.0, "c": 3.0}, "no interval"),
    ],
)
def test_what_can_not_be_computed_is_said(values, truth, reason):
    (row,) = agree(values, truth)
    assert reason in row.reason
    assert row.low is None


def write(tmp_path, text):
    path = tmp_path / "results.csv"
    path.write_text(text)
    return path


def test_a_csv_with_one_column_of_numbers_needs_no_name(tmp_path):
    path = write(tmp_path, "model,note,auc\na,fast,0.9\nb,slow,0.8\nz,none,0.1\n")
    record = read_ground_truth(path, ["a", "b", "c"])
    assert (record.column, record.values, record.unmatched) == ("auc", {"a": 0.9, "b": 0.8}, ["z"])


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("name,auc\na,0.9\n", DataError, "needs a column `model`; it has: name, auc"),
        ("model,auc,f1\na,0.9,0.8\n", UsageError, "found: auc, f1"),
        ("model,auc\na,0.9\na,0.8\n", DataError, "row 3: the model a appears twice"),
        ("model,auc\na,nan\n", DataError, "must be a finite number"),
        ("model,auc\nb1,0.9\n", DataError, "Did you mean b instead of b1"),
        ("model,auc\n", UsageError, "found: none"),
    ],
)
def test_bad_results_are_named(tmp_path, text, error, message):
    with pytest.raises(error, match=message):
        read_ground_truth(write(tmp_path, text), ["a", "b"])


def test_a_value_that_is_no_number_is_named_with_its_row(tmp_path):
    path = write(tmp_path, "model,auc\na,0.9\nb,high\n")
    with pytest.raises(DataError, match="row 3: auc is 'high', not a number"):
        read_ground_truth(path, ["a", "b"], column="auc")
    with pytest.raises(UsageError, match="has no column accuracy"):
        read_ground_truth(path, ["a", "b"], column="accuracy")
    with pytest.raises(DataError, match="No such file"):
        read_ground_truth(tmp_path / "none.csv", ["a"])


def test_a_file_in_another_encoding_is_refused(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("model,auc\nrésumé,0.9\n".encode("latin-1"))
    with pytest.raises(DataError, match="is not UTF-8 text"):
        read_ground_truth(path, ["a"])
