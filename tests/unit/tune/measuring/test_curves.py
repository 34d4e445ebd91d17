import numpy as np
import pytest

from crossgraft.metrics import auc, calibration_error
from crossgraft.tasks import BinaryTask, MultiClassTask
from crossgraft.tune.measuring.evaluation import confusion_record, reliability_bins, roc_records


def predictions(n=300, classes=3):
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(classes), n)
    return probabilities, rng.integers(0, classes, n)


def test_rows_are_true_classes_and_columns_decided_ones():
    record = confusion_record(np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1]), ["a", "b", "c"], split="test")
    assert record.counts == [[1, 1, 0], [0, 1, 1], [0, 0, 0]]


def test_bins_give_the_calibration_error_again():
    probabilities, targets = predictions()
    bins = [b for b in reliability_bins(probabilities, targets) if b.num_images]
    assert sum(b.num_images for b in bins) == 300
    error = sum(b.num_images * abs(b.mean_probability - b.share_right) for b in bins) / 300
    assert error == pytest.approx(calibration_error(probabilities, targets).value)
    assert all(b.low < b.mean_probability <= b.high for b in bins)


def test_the_area_under_a_curve_is_the_auc_and_the_mark_lies_at_the_threshold():
    probabilities, targets = predictions(classes=2)
    (curve,) = roc_records(probabilities, targets, task=BinaryTask(), class_names=["no", "yes"], thresholds=[0.5], split="test")
    assert curve.class_name == "yes"
    x, y = np.array(curve.false_positive_rates), np.array(curve.true_positive_rates)
    assert len(x) <= 200
    assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1)
    assert np.trapezoid(y, x) == pytest.approx(auc(probabilities[:, 1], targets).value, abs=5e-3)
    called = probabilities[:, 1] >= 0.5
    assert curve.at_threshold == (called[targets == 0].mean(), called[targets == 1].mean())


def test_ties_are_one_step_and_classes_without_images_have_no_curve():
    probabilities = np.array([[0.2, 0.5, 0.3], [0.2, 0.5, 0.3], [0.8, 0.1, 0.1]])
    curves = roc_records(
        probabilities, np.array([0, 1, 0]), task=MultiClassTask(), class_names="abc", thresholds=None, split="test"
    )
    assert [curve.class_name for curve in curves] == ["a", "b"]
    assert curves[0].false_positive_rates == [0, 0, 1]
    assert curves[0].true_positive_rates == [0, 0.5, 1]
