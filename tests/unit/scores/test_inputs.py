from __future__ import annotations

import numpy as np
import pytest

from crossgraft.errors import DataError, UsageError
from crossgraft.scores import SCORES, ScoreInputs

from .conftest import make_problem


def test_arrays_are_checked_and_labels_mapped():
    inputs = ScoreInputs(features=[[1, 2], [3, 4]], labels=["b", "a"], groups=["p", "q"], source_logits=np.ones((2, 5)))
    assert inputs.labels.tolist() == [1, 0]
    assert inputs.class_names.tolist() == ["a", "b"]
    assert inputs.groups.tolist() == [0, 1]
    assert inputs.num_samples == 2


@pytest.mark.parametrize("exponent", [-100, -70, 63, 120])
@pytest.mark.parametrize("name", ["logme", "h_score", "regularized_h_score", "lfc", "itm", "lead", "parc"])
def test_features_of_any_size_keep_their_scores(name, exponent):
    features, labels = make_problem(60, 12)
    features = features.astype(np.float32)
    score = SCORES.get(name)
    plain = score(features=features, labels=labels)
    assert score(features=np.ldexp(features, exponent), labels=labels) == pytest.approx(plain, abs=1e-3)


@pytest.mark.parametrize("size", [1e39, 1e300, 1e-46, 1e-300])
def test_numbers_whose_squares_nothing_holds_are_refused(size):
    with pytest.raises(DataError, match=r"The largest number of `features` has the size 1e.*scale them"):
        ScoreInputs(features=[[0.0, size], [-size / 2, 0.0]])
    assert not ScoreInputs(features=np.zeros((2, 2))).features.any()


def test_nothing_given():
    inputs = ScoreInputs()
    assert inputs.num_samples == 0
    with pytest.raises(UsageError, match="no labels"):
        _ = inputs.statistics
    with pytest.raises(UsageError, match="no features"):
        _ = inputs.feature_statistics


@pytest.mark.parametrize(
    "other", [{"labels": [0, 1]}, {"groups": [0, 1]}, {"source_logits": np.ones((2, 4))}, {"images": [0, 1]}]
)
def test_rows_must_match(other):
    with pytest.raises(DataError, match="has 2"):
        ScoreInputs(features=np.ones((3, 2)), **other)


def test_source_features_need_the_same_columns_but_not_rows():
    ScoreInputs(features=np.ones((3, 2)), source_features=np.ones((5, 2)))
    with pytest.raises(DataError, match="`features` has 2 columns and `source_features` has 4"):
        ScoreInputs(features=np.ones((3, 2)), source_features=np.ones((3, 4)))


@pytest.mark.parametrize("images", [np.arange(12).reshape(6, 2), list("abcdef")], ids=["array", "list"])
def test_without_leaves_rows_out_everywhere(images):
    features, labels = make_problem(6, 2, 3)
    inputs = ScoreInputs(
        features=features,
        labels=labels,
        groups=[0, 0, 1, 1, 2, 2],
        source_logits=np.arange(24).reshape(6, 4),
        source_features=np.ones((3, 2)),
        model="net",
        images=images,
    )
    smaller = inputs.without([4, 2])
    kept = [0, 1, 3, 5]
    assert np.array_equal(smaller.features, features[kept])
    assert smaller.labels.tolist() == labels[kept].tolist()
    assert smaller.groups.tolist() == [0, 0, 1, 2]
    assert smaller.source_logits[:, 0].tolist() == [0, 4, 12, 20]
    assert [str(image) for image in smaller.images] == [str(images[row]) for row in kept]
    assert smaller.source_features.shape == (3, 2) and smaller.model == "net"
    assert inputs.num_samples == 6 and inputs.statistics is not smaller.statistics


def test_without_a_whole_class_maps_the_labels_again():
    features, _ = make_problem(6, 2, 3)
    smaller = ScoreInputs(features=features, labels=["a", "a", "b", "c", "c", "c"]).without([2])
    assert smaller.labels.tolist() == [0, 0, 1, 1, 1]
    assert smaller.class_names.tolist() == ["a", "c"]
    assert smaller.statistics.num_classes == 2


def test_without_refuses_rows_that_do_not_exist_and_too_many():
    inputs = ScoreInputs(features=np.eye(4), labels=[0, 0, 1, 1])
    with pytest.raises(UsageError, match=r"0 … 3"):
        inputs.without([4])
    with pytest.raises(UsageError, match=r"0 … 3"):
        inputs.without([-1])
    with pytest.raises(DataError, match="at least 2 classes"):
        inputs.without([0, 1])


def test_with_labels_shares_label_free_statistics():
    features, labels = make_problem()
    inputs = ScoreInputs(features=features, labels=labels)
    other = inputs.with_labels(labels[::-1])
    assert other.feature_statistics is inputs.feature_statistics
    assert other.statistics is not inputs.statistics
    assert other.labels.tolist() == labels[::-1].tolist()
    with pytest.raises(DataError, match="has 2"):
        inputs.with_labels([0, 1])


def test_inputs_work_without_features():
    inputs = ScoreInputs(source_logits=np.eye(4), labels=[0, 0, 1, 1])
    assert inputs.without([0]).num_samples == 3
    assert inputs.with_labels([0, 1, 0, 1]).labels.tolist() == [0, 1, 0, 1]


def test_torch_tensors_are_taken_as_they_are():
    import torch

    inputs = ScoreInputs(labels=[0, 1, 0, 1], images=torch.arange(8).reshape(4, 2))
    assert inputs.without([0]).images.tolist() == [[2, 3], [4, 5], [6, 7]]
