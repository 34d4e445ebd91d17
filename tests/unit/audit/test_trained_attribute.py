"""A trained model and an attribute: sound where scores depend on the class alone, found where they depend on who it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from crossgraft.audit.attribute_sweep import audit_trained_attribute
from crossgraft.audit.attributes import binary_attribute
from crossgraft.audit.outcomes import conclude_attribute
from crossgraft.audit.subjects import subject_of
from crossgraft.data import dataset_from_arrays
from crossgraft.errors import DataError

NAMES = ("healthy", "ill")


def study(of_class, of_sex, number=400, seed=0):
    """Images whose brightness says the class, and whose contrast says the sex; a model that reads both."""
    rng = np.random.default_rng(seed)
    labels, woman = rng.integers(0, 2, number), rng.integers(0, 2, number)
    middle = 100 + 20 * labels[:, None, None, None] + rng.normal(0, 8, (number, 1, 1, 1))
    spread = 4 + 8 * woman[:, None, None, None]
    pixels = np.clip(middle + spread * rng.standard_normal((number, 12, 12, 1)), 0, 255).astype(np.uint8)
    images = dataset_from_arrays(pixels, np.array(NAMES)[labels], name="some")

    def model(rows):
        said = [of_class * (row.mean() - 110) / 8 + of_sex * (row.std() - 8) for row in rows]
        return 1 / (1 + np.exp(-np.array(said)))

    return subject_of(model, class_names=list(NAMES)), images, labels, woman


def sex_of(woman):
    return binary_attribute(np.array(["M", "F"])[woman], "F", name="sex", missing=("unknown",))


def audited(of_class, of_sex, **how):
    subject, images, labels, woman = study(of_class, of_sex, **how)
    attribute = sex_of(woman)
    return audit_trained_attribute(subject, images, attribute), subject, images, labels, woman


def test_areas_are_those_between_cells():
    found, subject, images, labels, woman = audited(1.0, 0.5)
    scores = subject.probabilities(images)[:, 1]

    def area(positives, negatives):
        rows = ((labels == 1) & (woman == positives)) | ((labels == 0) & (woman == negatives))
        return roc_auc_score(labels[rows], scores[rows])

    expected = {"clean": area(0, 0), "aligned": area(1, 0), "ood": area(0, 1), "both": area(1, 1)}
    assert {name: getattr(found, name).value for name in expected} == pytest.approx(expected)
    assert found.drop.value == pytest.approx((expected["aligned"] - expected["ood"]) / 2)
    assert found.overall.value == pytest.approx(roc_auc_score(labels, scores))
    assert [cell.num_images for cell in found.groups.cells] == [
        int(((labels == y) & (woman == a)).sum()) for y, a in ((0, 0), (0, 1), (1, 0), (1, 1))
    ]


@pytest.mark.parametrize(
    ("of_class", "of_sex", "outcome", "said"),
    [
        (1.0, 0.0, "passes", "within"),
        (1.0, 0.6, "sensitive", "the positive class"),
        (1.0, -0.6, "sensitive", "the negative class"),
        (0.0, 0.0, "untrained", "learned nothing"),
    ],
)
def test_each_outcome_has_its_reason(of_class, of_sex, outcome, said):
    found, *_ = audited(of_class, of_sex, number=1200)
    concluded = conclude_attribute(found)
    assert concluded.outcome == outcome and said in concluded.reason
    assert np.sign(found.drop.value) == np.sign(of_sex) or outcome in ("passes", "untrained")


def test_few_images_leave_it_undecided():
    found, *_ = audited(1.0, 0.0, number=24)
    concluded = conclude_attribute(found)
    assert concluded.outcome == "undecided" and "of each class with and without it are needed; there are" in concluded.reason


@pytest.mark.parametrize(
    ("half", "said"),
    [
        ((0.02, -0.04, 0.08), "+0.02 [-0.04, +0.08], reaches beyond ±0.05, and contains 0."),
        ((0.04, 0.01, 0.08), "+0.04 [+0.01, +0.08], reaches beyond ±0.05, though the difference itself does not."),
        ((0.04, None, None), "There is no interval of half the difference of both AUCs, +0.04."),
    ],
)
def test_an_undecided_attribute_says_which_of_two_reasons_it_is(half, said):
    found, *_ = audited(1.0, 0.0, number=24)
    value, low, high = half
    drop = found.drop._replace(value=value, low=low, high=high)
    assert said in conclude_attribute(replace(found, outcome="undecided", drop=drop)).reason


def test_an_empty_cell_is_named():
    subject, images, labels, woman = study(1.0, 0.0)
    rows = np.flatnonzero((labels == 0) | (woman == 0))
    kept, attribute = images.take(rows), sex_of(woman[rows])
    with pytest.raises(DataError, match="There are no"):
        audit_trained_attribute(subject, kept, attribute)
