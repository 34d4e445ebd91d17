"""Which answered images a page gets, and what is known of each."""

from base64 import b64decode
from io import BytesIO

import numpy as np
from PIL import Image

from crossgraft.data import dataset_from_arrays
from crossgraft.records.base import ImageAnswer
from crossgraft.tasks import MultiClassTask, MultiLabelTask
from crossgraft.tune import pictures
from crossgraft.tune.measuring.evaluation import FoldPredictions
from crossgraft.tune.parts import FoldRows
from crossgraft.tune.pictures import Answered, answers_of_folds, pictures_of_answers


def dataset(labels, *, groups=None, size=4):
    images = np.random.default_rng(0).integers(0, 256, (len(labels), size, size, 3), dtype=np.uint8)
    return dataset_from_arrays(list(images), labels, groups=groups)


def predicted(rows, logits, *, val=(), val_logits=None, fold=None):
    parts = FoldRows(train=np.array([], int), val=np.asarray(val, int), test=np.asarray(rows), fold=fold)
    of_val = np.zeros((0, 2)) if val_logits is None else np.asarray(val_logits, float)
    return FoldPredictions(parts, of_val, np.asarray(logits, float), None, [])


def test_the_answers_of_a_split_are_those_of_test_then_those_of_val():
    data = dataset(["a", "b", "a", "b"])
    fold = predicted([0, 1], [[2, 0], [2, 0]], val=[3], val_logits=[[0, 2]])
    found = answers_of_folds([fold], data, task=MultiClassTask())
    sure = round(float(1 / (1 + np.exp(-2))), 4)
    assert [(one.row, one.split, one.target, *one.answers) for one in found] == [
        (0, "test", "a", ImageAnswer(decision="a", certainty=sure, is_right=True)),
        (1, "test", "b", ImageAnswer(decision="a", certainty=sure, is_right=False)),
        (3, "val", "b", ImageAnswer(decision="b", certainty=sure, is_right=True)),
    ]


def test_every_fold_answers_for_its_own_images():
    data = dataset(["a", "b", "a", "b"])
    folds = [
        predicted([0, 1], [[2, 0], [2, 0]], fold=0),
        predicted([2, 3], [[0, 1], [0, 1]], val=[0], val_logits=[[1, 0]], fold=1),
    ]
    assert [one.split for one in answers_of_folds(folds, data, task=MultiClassTask())] == ["fold 0"] * 2 + ["fold 1"] * 2


def test_of_labels_all_have_to_be_right():
    data = dataset(np.array([[1, 0], [0, 0]]))
    fold = predicted([0, 1], [[3, 3], [-3, -3]])
    wrong, right = answers_of_folds([fold], data, task=MultiLabelTask())
    assert (wrong.answers[0].decision, wrong.answers[0].is_right) == ("; ".join(data.class_names), False)
    assert (right.target, right.answers[0].decision, right.answers[0].is_right) == ("none", "none", True)


def answered(row, target, said, certainty=0.5, split="test"):
    return Answered(row, split, target, (ImageAnswer(decision=said, certainty=certainty, is_right=target == said),))


def test_of_many_each_cell_gives_as_many_as_it_can_and_what_is_needed_stays(monkeypatch):
    monkeypatch.setattr(pictures, "MOST_PICTURES", 6)
    many = [answered(row, "a", "a", row / 100) for row in range(20)]
    few = [answered(20, "b", "a"), answered(21, "b", "b")]
    on_val = [answered(row, "a", "b", split="val") for row in range(22, 30)]
    data = dataset(["a"] * 30)
    shown = pictures_of_answers([*many, *few, *on_val], data, needed=[1])
    assert [each.row for each in shown] == [1, 18, 19, 20, 21, 22]  # the surest of the large cell, all of the small ones
    assert pictures_of_answers(few, data) and len(pictures_of_answers(on_val, data)) == 6


def test_groups_are_numbers_and_photographs_are_jpeg():
    data = dataset(["a", "b"], groups=["Jane", "Jane"], size=64)
    (one, two) = pictures_of_answers([answered(0, "a", "a"), answered(1, "b", "a")], data)
    assert (one.group, two.group) == (1, 1)
    assert one.jpeg_base64 and not one.png_base64
    small = pictures_of_answers([answered(0, "a", "a")], dataset(["a"]))[0]
    assert small.png_base64 and not small.jpeg_base64  # of few pixels a PNG is the smaller


def test_no_more_than_96_pixels_a_side():
    (one,) = pictures_of_answers([answered(0, "a", "a")], dataset(["a"], size=300))
    assert Image.open(BytesIO(b64decode(one.jpeg_base64))).size == (96, 96)
