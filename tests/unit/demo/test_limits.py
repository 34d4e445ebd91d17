import numpy as np
import pytest

from crossgraft.data.record import DatasetRecord
from crossgraft.demo.best_model import HonestCheck
from crossgraft.demo.steps import limits_of
from crossgraft.rank.record import AgreementRecord, RankingByScore, RankingRecord, RankRow, ScoreRecord
from support.model_records import model_record

WRITERS = np.repeat([f"writer {number}" for number in range(20)], 5)
CANDIDATES = ["net · digits", "net · photos", "net · shuffled labels"]
CONTROL = "net · random weights"


def agreement(family=None, **numbers):
    values = {"weighted_kendall": None, "p_value": None, "low": None, "high": None} | numbers
    return AgreementRecord(score="logme", family=family, num_models=3, **values)


def make_ranking(*agreements, order=CANDIDATES):
    rows = [RankRow(model=name, role="candidate", rank=rank, not_separable_from=[]) for rank, name in enumerate(order, 1)]
    rows.append(RankRow(model=CONTROL, role="random weights", rank=None, not_separable_from=[]))
    return RankingRecord(
        dataset=DatasetRecord(
            name="digits",
            source="digits",
            num_images=50,
            class_names=["5", "6"],
            class_counts=[25, 25],
            rows_used="",
            split_method="",
            group_column="writer",
            num_groups=7,
            fingerprint="",
            image_kinds={},
        ),
        models=[
            *(model_record(name, family="net") for name in CANDIDATES),
            model_record(CONTROL, family="net", role="random weights").model_copy(update={"num_parameters": 12_345}),
        ],
        scores=[
            ScoreRecord(name="logme", title="LogME", reference="", inputs=[], origin="crossgraft"),
            ScoreRecord(name="leep", title="LEEP", reference="", inputs=[], origin="crossgraft"),
        ],
        cells=[],
        primary_score="logme",
        primary_reason="",
        rankings=[RankingByScore(score="logme", rows=rows, pairs=[], best_shuffled=None, num_shuffled=0)],
        advice="",
        agreement=list(agreements),
    )


def shares(accuracy, *, seed=0):
    return (np.random.default_rng(seed).random(100) < accuracy).astype(float)


def make_check(**full_shares):
    values = {CANDIDATES[0]: shares(0.9), CANDIDATES[1]: shares(0.9), CANDIDATES[2]: shares(0.4), CONTROL: shares(0.6)}
    values |= full_shares
    return HonestCheck(rows=[], family=dict.fromkeys(values, "net"), full_shares=values, writers=WRITERS)


@pytest.fixture
def limits(demo_data):
    return lambda ranking, check: limits_of(ranking, check, demo_data.train)


def the_one_with(words, sentences):
    (sentence,) = [sentence for sentence in sentences if words in sentence]
    return sentence


def test_they_say_that_the_models_are_toys_and_what_the_test_is(limits):
    sentences = limits(make_ranking(), make_check())
    assert "at most 12,345 parameters" in the_one_with("toy models", sentences)
    writers = the_one_with("stand in for patients", sentences)
    assert "100 images of 20 writers" in writers
    assert "50 training images from 7 writers" in writers


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"weighted_kendall": 0.7, "low": 0.3, "high": 0.9}, "of +0.70, 95 % interval [+0.30, +0.90]: better than chance"),
        ({"weighted_kendall": 0.4, "low": -0.1, "high": 0.9}, "[−0.10, +0.90]: this does not show"),
        ({"weighted_kendall": 0.4, "reason": "no interval: two models"}, "of +0.40, without an interval: no interval: two"),
        ({"reason": "needs at least 3 models"}, "LogME cannot be compared with fine-tuning: needs at least 3 models"),
    ],
)
def test_agreement_claims_no_more_than_its_interval(limits, numbers, expected):
    sentence = the_one_with(
        "Among the 3 models of the family net", limits(make_ranking(agreement("net", **numbers)), make_check())
    )
    assert expected in sentence
    assert ("better than chance" in expected) == ("better than chance, with" in sentence)


def test_only_the_primary_score_is_discussed(limits):
    other = agreement(weighted_kendall=0.9, low=0.8, high=1.0).model_copy(update={"score": "leep"})
    assert not any("weighted Kendall" in sentence for sentence in limits(make_ranking(other), make_check()))


def test_pairs_are_counted_by_the_interval_of_their_difference(limits):
    # Two equal networks, one clearly worse, the control between, which is told apart from the equal ones alone.
    sentence = the_one_with("pairs within the family net", limits(make_ranking(), make_check()))
    assert "4 of the 6 pairs" in sentence
    equal = {name: shares(0.9) for name in (*CANDIDATES, CONTROL)}
    assert "0 of the 6 pairs" in the_one_with("pairs within", limits(make_ranking(), make_check(**equal)))


def test_the_place_of_the_shuffled_labels_is_read_off_the_ranking(limits):
    first = limits(make_ranking(order=CANDIDATES[::-1]), make_check())
    assert "net · shuffled labels at rank 1" in the_one_with("shuffled labels stand", first)
    last = limits(make_ranking(), make_check())
    assert "net · shuffled labels at rank 3" in the_one_with("shuffled labels stand", last)
    absent = limits(make_ranking(order=CANDIDATES[:2]), make_check())
    assert not any("shuffled labels stand" in sentence for sentence in absent)


def test_pretraining_is_compared_with_random_weights(limits):
    def sentence(**full_shares):
        return the_one_with("Fine-tuned from random weights", limits(make_ranking(), make_check(**full_shares)))

    # Two of the three are far better than the control, which is right on 0.6 of the images.
    expected = f"the net reaches {shares(0.6).mean():.3f}. Of its 3 pretrained versions, 2 can be said to do better"
    assert expected in sentence()
    assert "reaches 1.000. Of its 3 pretrained versions, none can" in sentence(**{CONTROL: np.ones(100)})
    # One image more is right: better, but not by more than the interval.
    slightly_worse = shares(0.9)
    slightly_worse[np.argmax(slightly_worse)] = 0
    assert "Of its 3 pretrained versions, none can" in sentence(**{CONTROL: slightly_worse})
