"""The scikit-learn face: images and labels in, probabilities out."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import crossgraft
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.models import ModelSpec
from crossgraft.tune import FineTunedClassifier
from crossgraft.tune.estimator import shape_of_rows
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
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_val_score(quick, images, y, params={"groups": patients}, cv=GroupKFold(2))
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


@pytest.fixture
def inner_splits(monkeypatch):
    """Patients of the training and the validation part of each `fit`."""
    seen = []

    def looked_at(dataset, **options):
        rows = training_rows(dataset, **options)
        (parts,) = rows.parts
        groups = np.arange(len(dataset)) if dataset.groups is None else dataset.groups
        seen.append((set(groups[parts.train]), set(groups[parts.val])))
        return rows

    monkeypatch.setattr(crossgraft.tune.estimator, "training_rows", looked_at)
    return seen


def test_the_printed_page_keeps_patients_apart_inside_fit(estimator, inner_splits, monkeypatch):
    page = Path(__file__).parents[3] / "docs" / "how-to" / "i-use-scikit-learn.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.setattr(crossgraft, "FineTunedClassifier", lambda *_, **__: clone(estimator).set_params(epochs=1))
    images, y = squares(40)
    names = {"images": images, "labels": LABELS[y], "patients": np.arange(40) // 2, "new_images": images[:2]}
    with sklearn.config_context():  # what the page sets is set back
        exec(code, names)
    assert len(inner_splits) == 6  # the whole data, and five folds
    assert [len(train | val) for train, val in inner_splits] == [20, 16, 16, 16, 16, 16]
    assert all(train and val and not train & val for train, val in inner_splits)


def test_a_search_hands_patients_on_as_well(estimator, inner_splits):
    images, y = squares(24)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(clone(estimator).set_params(epochs=1), {"seed": [0, 1]}, cv=GroupKFold(2))
        search.fit(images, y, groups=np.arange(24) // 2)
    assert [len(train | val) for train, val in inner_splits] == [6, 6, 6, 6, 12]
    assert all(not train & val for train, val in inner_splits)


def test_rows_of_numbers_are_images(estimator):
    images, y = squares(24)
    quick = clone(estimator).set_params(epochs=1)
    expected = clone(quick).fit(images, y).predict_proba(images)
    flat = clone(quick).fit(images.reshape(24, -1), y)
    assert (flat.predict_proba(images.reshape(24, -1)) == expected).all()
    assert flat.n_features_in_ == 576
    oblong = clone(quick).set_params(image_shape=(12, -1)).fit(images.reshape(24, -1), y)
    assert (oblong.predict_proba(images.reshape(24, 12, 48)) == oblong.predict_proba(images.reshape(24, -1))).all()
    with pytest.raises(ValueError, match="X has 575 features"):
        flat.predict(images.reshape(24, -1)[:, 1:])
    with pytest.raises(DataError, match=r"Rows of 575 feature\(s\) are no square images"):
        clone(quick).fit(images.reshape(24, -1)[:, 1:], y)


@pytest.mark.parametrize(
    ("num_features", "image_shape", "expected"),
    [(64, None, (8, 8)), (192, None, (8, 8, 3)), (10, (1, -1), (1, 10)), (24, (2, -1, 3), (2, 4, 3)), (6, (2, 3), (2, 3))],
)
def test_the_shape_of_a_row(num_features, image_shape, expected):
    assert shape_of_rows(num_features, image_shape) == expected


@pytest.mark.parametrize("image_shape", [(10,), (-1, -1), (0, 10), (5, -2)])
def test_shapes_that_are_none(image_shape):
    with pytest.raises(UsageError, match="image_shape is"):
        shape_of_rows(10, image_shape)


def test_values_become_black_and_white_as_fit_saw_them(estimator):
    images, y = squares(24)
    hounsfield = images.astype(np.int16) * 4 - 1000
    quick = clone(estimator).set_params(epochs=1, value_range="fit")
    fitted = clone(quick).fit(hounsfield, y)
    assert fitted.value_range_ == (hounsfield.min(), hounsfield.max())
    as_lists = fitted.predict_proba(list(hounsfield))
    np.testing.assert_allclose(as_lists, fitted.predict_proba(hounsfield), atol=1e-6)
    brighter = np.maximum(hounsfield, hounsfield.max() + 500)
    assert (fitted.predict_proba(brighter) == fitted.predict_proba(np.full_like(brighter, hounsfield.max()))).all()
    with pytest.raises(UsageError, match="values of black and white"):
        clone(quick).set_params(value_range=(3, 1)).fit(hounsfield, y)
    with pytest.raises(DataError, match="int16"):
        clone(quick).set_params(value_range=None).fit(hounsfield, y)


def test_tags_say_what_it_takes(estimator):
    tags = get_tags(estimator)
    assert tags.input_tags.two_d_array and tags.input_tags.three_d_array and not tags.input_tags.sparse
    assert tags.classifier_tags.multi_label and tags.classifier_tags.multi_class and tags.target_tags.required
    assert not tags.non_deterministic


@pytest.mark.slow
def test_scikit_learn_finds_nothing_wrong(tiny_models):
    """All its checks; what they make are no images, so their rows are read as images of one line."""
    rows = {"image_shape": (1, -1), "value_range": "fit", "augmentation": "none"}
    network = FineTunedClassifier("tiny_models:tiny", epochs=3, learning_rate=0.06, workers=1, device="cpu", **rows)
    found = check_estimator(network, on_skip=None, on_fail=None)
    assert {each["check_name"] for each in found if each["status"] != "passed"} == {
        "check_array_api_input",  # skipped: numpy alone is here
        "check_classifiers_multilabel_output_format_decision_function",  # skipped: there is no such function
    }
    assert len(found) > 50


def test_a_similarity_that_is_out_of_reach_is_a_warning(estimator):
    images, y = squares()
    asked = {"regularizer": "repsim", "learning_rate": 1e-9, "epochs": 1}
    with pytest.warns(UserWarning, match=r"--keep 0\.3 was not reached: .* to the adapted network"):
        fitted = clone(estimator).set_params(**asked, options={"keep": 0.3, "batch_norm": "adapt"}).fit(images, y)
    assert fitted.keep_.target == 0.3 and not fitted.keep_.is_reached
    assert clone(estimator).set_params(epochs=1).fit(images, y).keep_ is None


def test_mistakes_are_named(estimator):
    images, y = squares(12)
    with pytest.raises(NotFittedError, match="Call fit"):
        clone(estimator).predict(images)
    with pytest.raises(DataError, match="at least two"):
        clone(estimator).fit(images, np.zeros(12))
    with pytest.raises(DataError, match="requires y to be passed"):
        clone(estimator).fit(images, None)
    with pytest.raises(DataError, match="do not belong together"):
        clone(estimator).fit(images, y[:5])
    with pytest.raises(UnknownNameError, match="head_first"):
        clone(estimator).set_params(options={"head_frist": True}).fit(images, y)
    with pytest.raises(UnknownNameError):
        clone(estimator).set_params(options={"folds": 3}).fit(images, y)
    with pytest.raises(UsageError, match="as an argument"):
        clone(estimator).set_params(options={"seed": 3}).fit(images, y)
