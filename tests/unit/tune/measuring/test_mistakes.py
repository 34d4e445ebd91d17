"""The wrong answers that a model is surest of."""

import numpy as np
import pytest

from crossgraft.tasks import BinaryTask, MultiClassTask, MultiLabelTask, OrdinalTask
from crossgraft.tune.measuring.evaluation import MOST_SHOWN, find_mistakes


def mistakes(probabilities, targets, task, *, names="abc", decisions=None, rows=None):
    probabilities, targets = np.asarray(probabilities, dtype=float), np.asarray(targets)
    return find_mistakes(
        probabilities,
        task.decide(probabilities) if decisions is None else np.asarray(decisions),
        targets,
        task=task,
        class_names=list(names[: probabilities.shape[1]]),
        rows=np.arange(len(targets)) if rows is None else np.asarray(rows),
    )


def said(found):
    return [(each.row, each.answer, each.target, round(each.probability, 2)) for each in found.most_certain]


@pytest.mark.parametrize("task", [MultiClassTask(), OrdinalTask()])
def test_of_classes_the_surest_wrong_decision_comes_first(task):
    stated = [[0.9, 0.1, 0.0], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.05, 0.95, 0.0]]
    found = mistakes(stated, [0, 1, 0, 1], task, rows=[10, 30, 20, 40])
    assert said(found) == [(21, "c", "a", 0.8), (31, "a", "b", 0.6)]
    assert (found.num_wrong, found.num_images) == (2, 4)


def test_a_threshold_decides_what_is_wrong_and_the_probability_is_that_of_the_decision():
    found = mistakes([[0.55, 0.45], [0.2, 0.8]], [0, 1], BinaryTask(), decisions=[1, 1])
    assert said(found) == [(1, "b", "a", 0.45)]


def test_of_labels_the_surest_wrong_one_of_an_image_is_named_also_where_it_was_left_out():
    stated = [[0.9, 0.03, 0.2], [0.1, 0.1, 0.1], [0.7, 0.6, 0.2]]
    found = mistakes(stated, [[1, 1, 0], [0, 0, 0], [0, 0, 0]], MultiLabelTask())
    assert said(found) == [(1, "no b", "a; b", 0.97), (3, "a", "none", 0.7)]


def test_few_are_listed_of_many_and_equal_ones_in_the_order_of_the_data():
    found = mistakes([[1.0, 0.0]] * 20, [1] * 20, BinaryTask(), rows=np.arange(20)[::-1])
    assert [each.row for each in found.most_certain] == list(range(1, MOST_SHOWN + 1))
    assert found.num_wrong == 20
    assert mistakes([[1.0, 0.0]] * 3, [0] * 3, BinaryTask()).most_certain == []
