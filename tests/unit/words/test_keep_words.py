"""What was to be kept, and what to do where it was not."""

import pytest

from crossgraft.tune.record import BatchNormRecord, KeepRecord
from crossgraft.tune.words import kept_in_words, missed_in_words


def keep(*found, factors=(2.0,), target=0.8):
    return KeepRecord(target=target, found=list(found), factors=list(factors), tolerance=0.03)


def norms(mode, num_moving, num_layers=19):
    return BatchNormRecord(mode=mode, num_layers=num_layers, num_moving=num_moving)


def test_folds_are_a_range_and_what_is_not_defined_is_said():
    folds = keep(0.81, 0.784, None, factors=[0.5, 120.4, 3.0])
    assert kept_in_words(folds) == (
        "debiased CKA of 0.8 on val asked for, 0.784 to 0.810 found; terms that keep features × 0.5 to 120"
    )
    assert "asked for, not defined; terms" in kept_in_words(keep(None))


def test_it_is_said_where_the_similarity_is_to_the_adapted_network():
    for say, of in ((kept_in_words, "of 0.8 on val asked for"), (missed_in_words, "of 0.500 on val")):
        assert f"debiased CKA to the adapted network {of}" in say(keep(0.5), norms("adapt", 19))
        assert all(f"debiased CKA {of}" in say(keep(0.5), other) for other in (None, norms("train", 19)))


def test_a_near_miss_does_not_look_like_a_hit():
    assert "has a debiased CKA of 0.769 on val" in missed_in_words(keep(0.769))


@pytest.mark.parametrize(
    ("batch_norm", "advises_frozen"),
    [
        (None, False),
        (norms("frozen", 0), False),
        (norms("train", 0), False),
        (norms("train", 0, 0), False),
        (norms("train", 19), True),
        (norms("adapt", 19), True),
    ],
)
def test_frozen_statistics_are_advised_only_where_they_moved(batch_norm, advises_frozen):
    said = missed_in_words(keep(0.5), batch_norm)
    assert "give more epochs or a lower --learning-rate" in said
    assert ("--batch-norm frozen" in said) == advises_frozen
    assert "--batch-norm" not in missed_in_words(keep(0.99), batch_norm)


def test_features_that_keep_more_or_say_nothing_are_told_apart():
    assert missed_in_words(keep(0.95)).endswith("Where more was kept, give more epochs or a higher --learning-rate.")
    assert "is not defined" in missed_in_words(keep(None))


def test_advice_is_about_the_folds_that_miss():
    too_much = missed_in_words(keep(0.79, 0.95))
    assert "1 of 2 models that were kept have a debiased CKA of 0.950 on val" in too_much
    assert "a higher --learning-rate" in too_much and "a lower" not in too_much
    undefined = missed_in_words(keep(0.8, None))
    assert "is not defined for 1 of 2 models" in undefined and "was not reached" not in undefined
    both = missed_in_words(keep(0.5, 0.95, 0.8))
    assert "2 of 3 models" in both and "a higher --learning-rate" in both and "a lower" in both
