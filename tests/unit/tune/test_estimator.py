"""The scikit-learn face: images and labels in, probabilities out."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, cross_val_score

from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.models import ModelSpec
from crossgraft.tune import FineTunedClassifier
from crossgraft.tune.planning.rows import training_rows

LABELS = np.asarray(["dark", "light"])


def squares(num_images=24, *, levels=2, seed=0):
    """Noise that is brighter from class to class: easy for any network."""
    rng = np.random.default_rng(seed)
    y = np.arange(num_images) % levels
    return (rng.integers(0, 60, (num_images, 24, 24)) + 150 * y[:, None, None] // (levels - 1)).astype(np.uint8), y


@pytest.fixture(scope="module")
def estimator():
    return FineTunedClassifier(
        ModelSpec("tiny", "test_resnet", weights="random"),
        epochs=8, learning_rate=0.01, batch_size=8, image_size=24, seed=1, device="cpu", workers=1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def fitted(estimator):
    images, y = squares()
    return clone(estimator).fit(images, LABELS[y])


def test_what_was_learned_is_predicted_under_the_users_own_labels(fitted):
    images, y = squares(seed=5)
    assert fitted.classes_.tolist() == ["dark", "light"]
    assert fitted.score(images, LABELS[y]) == 1
    probabilities = fitted.predict_proba(images)
    assert probabilities.shape == (24, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (fitted.predict(images) == LABELS[probabilities.argmax(axis=1)]).all()
    assert fitted.score(images, LABELS[1 - y]) == 0
    assert len(fitted.history_) == 8


def test_the_same_seed_gives_the_same_and_pickling_keeps_it(estimator, fitted):
    images, y = squares()
    again = clone(estimator).fit(images, LABELS[y])
    expected = fitted.predict_proba(images)
    assert (again.predict_proba(images) == expected).all()
    assert (pickle.loads(pickle.dumps(fitted)).predict_proba(images) == expected).all()
    other = clone(estimator).set_params(seed=2).fit(images, LABELS[y])
    assert (other.predict_proba(images) != expected).any()


def test_scikit_learn_can_cross_validate_it(estimator):
    images, y = squares(36)
    quick = clone(estimator).set_params(epochs=10)
    patients = np.arange(36) // 2
    scores = cross_val_score(quick, images, y, groups=patients, cv=GroupKFold(2))
    assert scores.tolist() == [1, 1]
    assert quick.get_params()["epochs"] == 10
    assert not hasattr(quick, "classifier_")


def test_lists_of_images_of_any_size_and_depth_are_taken(estimator):
    images, y = squares(16, levels=3)
    mixed = [image[: 20 + row % 3].astype(np.float32) / 255 if row % 2 else image for row, image in enumerate(images)]
    fitted = clone(estimator).set_params(val_fraction=0, epochs=2).fit(mixed, y)
    assert fitted.predict_proba(mixed).shape == (16, 3)
    assert fitted.temperature_ is None


def test_several_labels_an_image_are_answered_one_by_one(estimator):
    images, y = squares(24)
    labels = np.stack([y, 1 - y, np.arange(24) // 12], axis=1)
    fitted = clone(estimator).set_params(epochs=3, val_fraction=0).fit(images, labels)
    probabilities = fitted.predict_proba(images)
    assert probabilities.shape == (24, 3)
    assert not np.allclose(probabilities.sum(axis=1), 1)
    assert (fitted.predict(images) == (probabilities >= 0.5)).all()


def test_no_patient_is_in_training_and_validation():
    from crossgraft.data import dataset_from_arrays

    images, y = squares(40)
    dataset = dataset_from_arrays(images, y, groups=np.arange(40) // 4)
    rows = training_rows(dataset, val_fraction=0.25, seed=0)
    (parts,) = rows.parts
    assert not set(dataset.groups[parts.train]) & set(dataset.groups[parts.val])
    assert sorted([*parts.train, *parts.val]) == list(range(40))
    assert parts.test.size == 0
    assert 8 <= parts.val.size <= 12


def test_mistakes_are_named(estimator):
    images, y = squares(12)
    with pytest.raises(NotFittedError, match="Call fit"):
        clone(estimator).predict(images)
    with pytest.raises(DataError, match="at least two"):
        clone(estimator).fit(images, np.zeros(12))
    with pytest.raises(DataError, match="do not belong together"):
        clone(estimator).fit(images, y[:5])
    with pytest.raises(UnknownNameError, match="head_first"):
        clone(estimator).set_params(options={"head_frist": True}).fit(images, y)
    with pytest.raises(UnknownNameError):
        clone(estimator).set_params(options={"folds": 3}).fit(images, y)
    with pytest.raises(UsageError, match="as an argument"):
        clone(estimator).set_params(options={"seed": 3}).fit(images, y)
