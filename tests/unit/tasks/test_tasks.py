"""Each task alone: the form of its targets, probabilities, decisions, and what is refused."""

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crossgraft import types
from crossgraft.data.record import DatasetRecord
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.losses import LOSSES, activate
from crossgraft.metrics import METRICS
from crossgraft.tasks import (
    TASKS,
    BinaryTask,
    MultiClassTask,
    MultiLabelTask,
    OrdinalBinaryTask,
    OrdinalTask,
    recorded_task,
    task_named,
    task_of,
)

EVERY_TASK = [MultiClassTask(), BinaryTask(), MultiLabelTask(), OrdinalTask(), OrdinalBinaryTask()]
every_task = pytest.mark.parametrize("task", EVERY_TASK, ids=repr)


def num_classes(task):
    return 2 if task.is_question else 3


@st.composite
def predictions(draw, task, largest=30.0):
    """Logits and targets of one to eight images."""
    number, columns = draw(st.integers(1, 8)), num_classes(task)
    logits = draw(arrays(np.float64, (number, columns), elements=st.floats(-largest, largest)))
    shape = task.target_shape(logits.shape)
    return logits, draw(arrays(np.int64, shape, elements=st.integers(0, columns - 1 if len(shape) == 1 else 1)))


def slope_by_differences(value, inverse, step=1e-5):
    return (value(inverse + step) - value(inverse - step)) / (2 * step)


@every_task
@given(data=st.data())
def test_probabilities_and_targets_belong_together(task, data):
    logits, targets = data.draw(predictions(task))
    probabilities = task.probabilities(logits)
    task.check_predictions(probabilities, targets, task.num_outputs(num_classes(task)))
    if task.activation == "softmax":
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(activate(torch.from_numpy(logits), task).numpy(), probabilities, atol=1e-12)
    sure = task.certainty(probabilities)
    assert ((sure >= task.lowest_certainty(num_classes(task)) - 1e-12) & (sure <= 1)).all()


@every_task
@given(data=st.data())
def test_decisions_have_the_form_of_targets(task, data):
    logits, targets = data.draw(predictions(task))
    decided = task.decide(task.probabilities(logits))
    assert decided.shape == targets.shape
    right = task.shares_right(decided, targets)
    assert right.shape == (len(logits),)
    assert task.shares_right(targets, targets).min() == 1
    np.testing.assert_array_equal(right == 1, (decided == targets).reshape(len(targets), -1).all(axis=1))


@every_task
@given(data=st.data())
def test_targets_as_marks_as_members_and_as_names_say_the_same(task, data):
    _, targets = data.draw(predictions(task))
    names = ["a", "b", "c"][: num_classes(task)]
    marks = task.marks(targets, len(names))
    for index, name in enumerate(names):
        np.testing.assert_array_equal(task.members(targets, index), marks[:, index])
        assert [name in task.names_of(row, names) for row in targets] == marks[:, index].tolist()
    if task.partitions:
        assert marks.sum(axis=1).tolist() == [1] * len(targets)


@every_task
@given(data=st.data())
def test_the_slope_of_the_likelihood_is_its_derivative(task, data):
    logits, targets = data.draw(predictions(task, largest=9.0))
    marks = task.marks(targets, num_classes(task))

    def value(inverse):
        return -np.log(task.chances(task.probabilities(inverse * logits), marks)).sum(axis=1).mean()

    slope = task.likelihood_slope(logits, targets)(0.7)
    np.testing.assert_allclose(slope, slope_by_differences(value, 0.7), rtol=1e-3, atol=1e-5)


@every_task
@given(data=st.data())
def test_the_squared_error_keeps_its_bound(task, data):
    logits, targets = data.draw(predictions(task))
    squares = np.square(task.probabilities(logits) - task.marks(targets, num_classes(task)))
    assert task.squared_error(squares).max() <= task.largest_squared_error + 1e-12


@given(st.floats(0.01, 1), st.floats(0, 1))
def test_a_threshold_is_reached_at_its_own_value(threshold, probability):
    (binary,) = BinaryTask().decide(np.array([[1 - probability, probability]]), threshold)
    ((label,),) = MultiLabelTask().decide(np.array([[probability]]), [threshold])
    assert binary == label == (probability >= threshold)


@pytest.mark.parametrize(("task", "wrong"), [(BinaryTask(), [0.5, 0.5]), (MultiLabelTask(), [0.5, 0.5]), (BinaryTask(), np.nan)])
def test_thresholds_that_do_not_fit_are_refused(task, wrong):
    with pytest.raises(DataError, match="one threshold"):
        task.decide(np.full((4, num_classes(task)), 0.5), wrong)


def test_classes_have_no_thresholds():
    with pytest.raises(DataError, match="leave the thresholds out"):
        MultiClassTask().decide(np.eye(3), 0.5)
    assert [task.threshold_columns(num_classes(task)) for task in EVERY_TASK] == [[], [1], [0, 1, 2], [], [1]]
    assert [task.curve_columns(num_classes(task)) for task in EVERY_TASK] == [[0, 1, 2], [1], [0, 1, 2], [0, 1, 2], [1]]


@every_task
def test_a_task_is_its_name_also_in_another_process(task):
    assert task == task.name
    assert f"{task}" == task.name
    again = pickle.loads(pickle.dumps(task))
    assert type(again) is type(copy.deepcopy(task)) is type(task)
    assert task_named(task) is task
    assert task_named(task.name) == task


@every_task
def test_the_usual_loss_and_the_primary_metric_are_there(task):
    assert task.name in LOSSES.get(task.usual_loss).tasks
    assert task.primary_metric in METRICS


def test_the_task_of_arrays_and_of_names():
    classes, labels = np.array([0, 1, 1]), np.array([[0, 1], [1, 1]])
    found = [task_of(classes), task_of(classes, 2), task_of(classes, 2, ordinal=True), task_of(classes, 3, ordinal=True)]
    assert [repr(task) for task in [*found, task_of(labels, 2)]] == [
        "MultiClassTask()", "BinaryTask()", "OrdinalBinaryTask()", "OrdinalTask()", "MultiLabelTask()"
    ]  # fmt: skip
    with pytest.raises(UsageError, match="--ordinal is for classes"):
        task_of(labels, ordinal=True)
    with pytest.raises(UnknownNameError, match="multi-label"):
        task_named("multilabel")


@every_task
def test_a_record_tells_its_task(task):
    names = ["a", "b", "c"][: num_classes(task)]
    record = DatasetRecord(
        name="x", source="arrays", num_images=0, class_names=names, class_counts=[0] * len(names), rows_used="all rows",
        split_method="no split", group_column=None, num_groups=None, fingerprint="", image_kinds={}, task=task.recorded,
        ordinal=task.in_order,
    )  # fmt: skip
    assert repr(recorded_task(record)) == repr(task)
    assert type(record.task) is str


def test_scores_see_classes_at_once_and_labels_one_by_one():
    classes, labels = np.array([0, 2, 2]), np.array([[0, 1], [1, 1]])
    assert MultiClassTask().classes_of_scores(classes) is classes
    assert MultiLabelTask().classes_of_scores(labels) is None
    assert [view.tolist() for view in MultiClassTask().views(classes)] == [[0, 2, 2]]
    assert [view.tolist() for view in MultiLabelTask().views(labels)] == [[0, 1], [1, 1]]
    assert MultiClassTask().present(classes, 3) == [0, 2]
    assert MultiLabelTask().present(labels * 0, 2) == [0, 1]


@pytest.mark.parametrize(
    ("task", "targets", "names", "reason"),
    [
        (MultiClassTask(), np.zeros(4, dtype=int), ["a"], "At least two classes"),
        (MultiClassTask(), np.arange(4), list("abcd"), "label of its own"),
        (MultiLabelTask(), np.zeros((4, 2), dtype=int), list("ab"), "has any label"),
        (MultiLabelTask(), np.eye(3, dtype=int), list("abc"), "label of its own"),
    ],
)
def test_targets_that_tell_nothing_apart_are_refused(task, targets, names, reason):
    with pytest.raises(DataError, match=reason):
        task.refuse_useless(targets, names, "the data")


def test_one_of_two_classes_for_two_images_is_no_name():
    BinaryTask().refuse_useless(np.array([0, 1]), ["a", "b"], "the data")
    MultiLabelTask().refuse_useless(np.eye(2, dtype=int), ["a", "b"], "the data")
    assert set(TASKS) == {"multi-class", "binary", "multi-label"}


def test_the_old_name_of_the_names_stays_for_one_release():
    with pytest.warns(DeprecationWarning, match="TaskName"):
        assert types.Task is types.TaskName
    with pytest.raises(AttributeError, match="no attribute 'Other'"):
        _ = types.Other
