"""Do two models fail alike: against enumeration of all permutations."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.errors import DataError, NotApplicable
from crossgraft.similarity import prediction_similarity

WRONG = st.lists(st.booleans(), min_size=6, max_size=6)


@settings(max_examples=25, deadline=None)
@given(WRONG, WRONG, st.booleans())
def test_the_distribution_is_that_of_all_permutations(wrong_a, wrong_b, in_folds):
    labels = np.zeros(6, dtype=int)
    folds = np.array([0, 0, 0, 1, 1, 1]) if in_folds else None
    a, b = np.array(wrong_a, dtype=int), np.array(wrong_b, dtype=int)
    found = prediction_similarity(a, b, labels, folds=folds)
    if in_folds:
        orders = [(*one, *(3 + place for place in other)) for one in permutations(range(3)) for other in permutations(range(3))]
    else:
        orders = list(permutations(range(6)))
    values = np.sort([(a == b[list(order)]).mean() for order in orders])
    assert found == (a == b).mean()
    assert found.p_value == pytest.approx((values >= found - 1e-12).mean(), abs=1e-9)
    assert (values >= found.low - 1e-9).mean() >= 0.975 - 1e-9 and (values <= found.high + 1e-9).mean() >= 0.975 - 1e-9
    accuracy_a, accuracy_b = 1 - a.mean(), 1 - b.mean()
    independent = accuracy_a * accuracy_b + (1 - accuracy_a) * (1 - accuracy_b)
    assert found.independent == pytest.approx(independent)
    if not in_folds:
        assert values.mean() == pytest.approx(independent)
    if independent < 1:
        assert found.kappa == pytest.approx((found - independent) / (1 - independent))
    else:
        assert found.kappa is None


def test_other_wrong_classes_are_the_same_mistake_but_no_agreement():
    found = prediction_similarity(["a", "b", "c"], ["a", "c", "c"], ["a", "a", "c"])
    assert found == 1 and found.agreement == pytest.approx(2 / 3) and found.kappa == pytest.approx(1)
    assert prediction_similarity([0, 1], [0, 1], [0, 1]).kappa is None


@settings(max_examples=20, deadline=None)
@given(WRONG, WRONG)
def test_the_order_of_models_and_the_names_of_classes_do_not_matter(a, b):
    labels = np.zeros(6, dtype=int)
    one, other = (prediction_similarity(*models, labels) for models in ((a, b), (b, a)))
    assert (one, one.low, one.high) == pytest.approx((other, other.low, other.high))
    named = prediction_similarity(*(np.array(["no", "yes"])[np.array(side, dtype=int)] for side in (a, b)), ["no"] * 6)
    assert named == one and 0 <= one <= 1


def test_many_images_take_no_time():
    random = np.random.default_rng(0)
    labels = random.integers(0, 9, 200_000)
    wrong = random.random(200_000) < 0.3
    found = prediction_similarity(labels + wrong, labels + random.permutation(wrong), labels)
    assert found.low < found.independent < found.high and found.high - found.low < 0.01


def test_what_has_no_meaning_is_named():
    with pytest.raises(DataError, match="found 2, 3 and 2 of them"):
        prediction_similarity([0, 1], [0, 1, 1], [0, 1])
    with pytest.raises(DataError, match="and 3 folds"):
        prediction_similarity([0, 1], [0, 1], [0, 1], folds=[0, 0, 1])
    with pytest.raises(DataError, match=r"one class per image; predictions_b has the shape \(2, 2\)"):
        prediction_similarity([0, 1], [[0.1, 0.9], [1, 0]], [0, 1])
    for missing in ([0.0, np.nan], ["a", None]):
        with pytest.raises(DataError, match="labels has missing ones"):
            prediction_similarity([0, 1], [0, 1], missing)
    with pytest.raises(NotApplicable, match="at least one image"):
        prediction_similarity([], [], [])
