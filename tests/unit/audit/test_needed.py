"""How many images a verdict needs."""

import numpy as np
import pytest

from crossgraft.audit.attributes import binary_attribute
from crossgraft.audit.outcomes import cell_size, more_images, needed_of_artefact, needed_of_attribute, times_as_many
from crossgraft.metrics import MetricValue, auc_combination


def value(low, middle, high):
    return MetricValue(middle, low, high, 100, None)


def test_patients_of_each_class_are_counted():
    is_positive = np.array([True, True, True, False, False])
    found = needed_of_artefact("tag", is_positive, np.array(["a", "a", "b", "c", "d"]), "ill")
    assert [(each.what, each.available, each.needed) for each in found] == [
        ("groups of ill", 2, 72), ("groups of other classes", 2, 72)
    ]  # fmt: skip
    assert needed_of_artefact("tag", is_positive, None, "ill")[0].available == 3


def test_cells_of_an_attribute_are_counted():
    sex = binary_attribute(np.array(["F", "F", "M", "M", "unknown"]), "F", name="sex", missing=("unknown",))
    found = needed_of_attribute("sex:F", np.array([True, False, True, True, True]), sex)
    assert [each.available for each in found] == [1, 2, 1, 0] and {each.needed for each in found} == {cell_size(0.8)}


def test_a_cell_of_that_size_lets_four_of_five_sound_models_pass():
    """Scores that know the class alone, at an AUC of 0.8: simulated with the interval that the verdict uses."""
    rng, number = np.random.default_rng(0), cell_size(0.8)
    labels = np.repeat([1, 1, 0, 0], number)
    aligned, against = np.repeat([1, 0, 0, 1], number) == 1, np.repeat([0, 1, 1, 0], number) == 1
    passed = 0
    for _ in range(200):
        scores = rng.normal(0, 1, 4 * number) + 1.19 * labels
        drop = auc_combination([(0.5, scores), (-0.5, scores)], labels, None, among=[aligned, against])
        passed += drop.low > -0.05 and drop.high < 0.05
    assert 140 <= passed <= 178


@pytest.mark.parametrize(
    ("found", "both_sides", "times"),
    [
        (value(-0.07, 0.01, 0.09), False, 4.0),
        (value(-0.1, -0.05, 0.06), False, (0.08 / 0.1) ** 2),
        (value(-0.1, 0.1, 0.3), False, 4.0),
        (value(-0.1, 0.0, 0.1), True, 4.0),
        (value(-0.3, -0.1, 0.1), True, 4.0),
        (value(-0.1, 0.05, 0.2), True, None),
        (MetricValue(0.0, None, None, 4, None), True, None),
    ],
)
def test_how_many_times_as_many_follow_from_the_interval(found, both_sides, times):
    assert times_as_many(found, both_sides=both_sides) == (None if times is None else pytest.approx(times))


def test_sentences():
    assert more_images(value(-0.1, 0.0, 0.1), 30, both_sides=True, what="images") == "About 120 images are needed; there are 30."
    assert "About 72 images" in more_images(value(-0.1, 0.0, 0.1), 30, both_sides=False, what="images")
    assert "more than 100 times" in more_images(value(-0.1, 0.05, 0.2), 30, both_sides=True, what="images")
    assert "About 72" in more_images(MetricValue(0.0, None, None, 4, None), 2, both_sides=False, what="images")
