"""How good predictions are, always with an interval."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.metrics._intervals import MetricValue as MetricValue
    from crossgraft.metrics._intervals import share_of_images as share_of_images
    from crossgraft.metrics.accuracy import Accuracy as Accuracy
    from crossgraft.metrics.accuracy import accuracy as accuracy
    from crossgraft.metrics.accuracy import accuracy_difference as accuracy_difference
    from crossgraft.metrics.auc import auc as auc
    from crossgraft.metrics.auc_difference import auc_combination as auc_combination
    from crossgraft.metrics.auc_difference import auc_difference as auc_difference
    from crossgraft.metrics.average_precision import average_precision as average_precision
    from crossgraft.metrics.balanced_accuracy import balanced_accuracy as balanced_accuracy
    from crossgraft.metrics.balanced_accuracy import balanced_accuracy_combination as balanced_accuracy_combination
    from crossgraft.metrics.calibration_error import calibration_error as calibration_error
    from crossgraft.metrics.evaluation import decide as decide
    from crossgraft.metrics.evaluation import evaluate_predictions as evaluate_predictions
    from crossgraft.metrics.f1 import f1 as f1
    from crossgraft.metrics.proper_scores import brier_score as brier_score
    from crossgraft.metrics.proper_scores import negative_log_likelihood as negative_log_likelihood
    from crossgraft.metrics.rows import METRICS as METRICS
    from crossgraft.metrics.rows import MetricFacts as MetricFacts
    from crossgraft.metrics.rows import MetricRow as MetricRow
    from crossgraft.metrics.sensitivity import sensitivity as sensitivity
    from crossgraft.metrics.sensitivity import specificity as specificity

lazy_face(__name__)
