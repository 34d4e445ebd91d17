"""A pull: in standard deviations, both classes alike, and beside draws of something else."""

import numpy as np
import pytest

from crossgraft.audit.outcomes import UNCHANGED
from crossgraft.audit.pull import Pull, beside_shams, beside_start, excess, pull_of, shifts
from crossgraft.audit.trained import verdict
from crossgraft.errors import DataError
from crossgraft.metrics import MetricValue, auc_difference

POSITIVE = np.arange(90) < 30


def known(value, half):
    return MetricValue(value, value - half, value + half, 90, None)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_shifts_do_not_depend_on_the_scale_of_logits(rng):
    clean = np.where(POSITIVE, 2, -2) + rng.normal(0, 1, 90)
    moved = clean + 0.5
    spread = np.sqrt((clean[POSITIVE].var(ddof=1) + clean[~POSITIVE].var(ddof=1)) / 2)
    found = shifts(clean, moved, POSITIVE)
    assert found == pytest.approx(0.5 / spread)
    assert shifts(7 * clean + 3, 7 * moved + 3, POSITIVE) == pytest.approx(found)
    assert shifts(clean, np.stack([moved, clean]), POSITIVE)[1].tolist() == [0] * 90


def test_both_classes_count_the_same(rng):
    shift = np.where(POSITIVE, 1.0, 0.0) + rng.normal(0, 0.01, 90)
    found = pull_of(shift, POSITIVE)
    assert found.of_model.value == pytest.approx((found.of_positives + found.of_negatives) / 2) == pytest.approx(0.5, abs=0.01)
    assert found.may_rely and not pull_of(0.01 * shift, POSITIVE).may_rely  # sure, and too small


def test_intervals_cover_what_patients_share(rng):
    """95 % of the intervals of 400 draws hold the mean; images of a patient have half of their variance in common."""
    patients = np.repeat(np.arange(45), 2)
    inside = 0
    for _ in range(400):
        shift = 0.3 + rng.normal(0, 1, 45)[patients] + rng.normal(0, 1, 90)
        found = pull_of(shift, POSITIVE, patients).of_model
        inside += found.low < 0.3 < found.high
    assert 365 <= inside <= 395


def test_one_more_draw_lies_in_the_interval(rng):
    inside = {True: 0, False: 0}
    for _ in range(300):
        draws = rng.normal(0, 1, (9, 1)) + rng.normal(0, 0.1, (9, 90))
        model = rng.normal(0, 1) + rng.normal(0, 0.1, 90)
        for of_one_more in inside:
            found = excess(model, draws, POSITIVE, of_one_more=of_one_more)
            inside[of_one_more] += found.low < 0 < found.high
    assert inside[True] >= 273 and inside[False] < 200  # a mean of draws is another question


def test_the_model_stands_beside_the_start_and_beside_shams(rng):
    noise = rng.normal(0, 0.05, (12, 90))
    shift, start, shams = 1.0 + noise[0], 0.4 + noise[1:4], 0.9 + noise[4:8]
    plain = pull_of(shift, POSITIVE)
    found = beside_start(plain, shift, start, POSITIVE)
    assert found.over_start.value == pytest.approx(0.6, abs=0.05) and found.is_beyond_start and not found.relies
    found = beside_shams(found, shift, shams, POSITIVE)
    assert found.over_shams.value == pytest.approx(0.1, abs=0.05) and found.relies
    assert not beside_shams(plain, shift, shams, POSITIVE).relies  # nothing is known of the start
    assert not beside_shams(found, shift, shams + 0.2, POSITIVE).relies


@pytest.mark.parametrize(
    ("pull", "start", "shams", "relies"),
    [
        (0.5, (0.4, 0.3), (0.2, 0.1), True),
        (0.5, (0.4, 0.5), (0.2, 0.1), False),
        (0.5, (0.4, 0.3), (0.2, 0.3), False),
        (0.5, None, (0.2, 0.1), False),
        (0.5, (0.4, 0.3), None, False),
        (-0.5, (-0.4, 0.3), (-0.2, 0.1), True),
        (-0.5, (0.4, 0.3), (0.2, 0.1), False),  # it pulls less than the start does
        (0.04, (0.4, 0.3), (0.2, 0.1), False),
    ],
)
def test_reliance_is_beyond_the_start_and_beyond_shams(pull, start, shams, relies):
    beside = [None if each is None else known(*each) for each in (start, shams)]
    assert Pull(known(pull, 0.02), pull, pull, *beside).relies == relies


@pytest.mark.parametrize(
    ("clean", "drop", "reverse", "relies", "seen", "expected"),
    [
        (0.8, (0.12, 0.03), (-0.1, 0.03), True, True, "relies"),
        (0.8, (0.12, 0.03), (-0.1, 0.03), False, True, "sensitive"),  # the heads: they were said to rely on it
        (0.8, (-0.1, 0.03), (0.12, 0.03), False, True, "sensitive"),
        (0.8, (0.02, 0.01), (0.0, 0.01), True, True, "passes"),  # surely hardly any harm
        (0.8, (0.02, 0.01), (0.0, 0.01), False, True, "passes"),
        (0.8, (0.02, 0.01), (0.0, 0.2), False, True, "sensitive"),
        (0.8, (-0.02, 0.01), (0.0, 0.2), False, True, "undecided"),
        (0.8, (0.0, 0.0), (0.0, 0.0), False, True, "passes"),
        (0.8, (0.12, 0.03), (-0.1, 0.03), True, False, "undetectable"),
        (0.4, (0.12, 0.03), (-0.1, 0.03), True, True, "relies"),
        (0.4, (0.12, 0.03), (-0.1, 0.03), False, True, "untrained"),
    ],
)
def test_verdicts(clean, drop, reverse, relies, seen, expected):
    beyond = known(0.4, 0.3 if relies else 0.5)
    pull = Pull(known(0.5, 0.1), 0.5, 0.5, beyond, beyond)
    found = verdict(known(clean, 0.05), known(*drop), known(*reverse), pull, is_seen=seen)
    assert found == expected


@pytest.mark.parametrize(("number", "expected"), [(UNCHANGED - 1, "undecided"), (UNCHANGED, "passes")])
def test_a_drop_of_0_passes_from_as_many_on_as_the_plan_says(rng, number, expected):
    labels = np.repeat([0, 1, 1], number)
    answers = rng.random(3 * number) / 2 + labels / 2
    same = np.column_stack([1 - answers, answers])
    nothing = auc_difference(same, same, labels)
    assert nothing.value == 0 and verdict(known(0.8, 0.1), nothing, nothing, None) == expected


def test_bad_input(rng):
    with pytest.raises(DataError, match="at least two images of each class; one has 1"):
        pull_of(np.zeros(5), np.arange(5) == 0)
    with pytest.raises(DataError, match="the same answer"):
        shifts(np.where(POSITIVE, 1.0, 0.0), np.zeros(90), POSITIVE)
    with pytest.raises(DataError, match="at least two draws, got 1"):
        excess(np.zeros(90), np.zeros((1, 90)), POSITIVE, of_one_more=True)
    one_patient = np.where(POSITIVE, 0, np.arange(90))
    assert pull_of(rng.normal(1, 1, 90), POSITIVE, one_patient).of_model.low is None
