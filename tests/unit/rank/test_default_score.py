import pytest

from crossgraft.rank.default_score import DEFAULT_PRIMARY, MOST_IMAGES, default_evidence, default_reason, scores_left_out
from crossgraft.rank.verb import choose_scores
from crossgraft.scores import SCORES


def test_no_plain_score_is_separably_better_than_the_default():
    assert default_evidence().better == []
    assert default_evidence().gains.keys() == {"nleep", "sfda"}
    assert DEFAULT_PRIMARY == "logme"


def test_another_default_would_not_be_better_either():
    """The comparison is symmetric: seen from SFDA, LogME is as far away."""
    forth, back = default_evidence().gains["sfda"], default_evidence("sfda").gains["logme"]
    assert abs(forth.value + back.value) < 1e-12


def test_scores_count_as_they_are_and_not_turned_round_after_the_fact():
    """Table 6.3 reverses N-LEEP, which makes its mean 0.14 there; as it is, it is −0.15."""
    assert default_evidence().means["nleep"].value < 0.2


def test_the_reason_says_what_the_evidence_says():
    reason = default_reason()
    assert "published results do not separate LogME from N-LEEP and SFDA" in reason
    assert "LogME 0.19, N-LEEP 0.13 and SFDA 0.22" in reason
    assert "nothing beats the static prior (0.49)" in reason
    assert not reason.endswith(".")


@pytest.mark.parametrize(
    ("asked", "by", "expected"),
    [
        ("default", None, ["knn_probe"]),
        (["default", "sfda"], None, ["knn_probe"]),
        ("default, knn_probe", None, []),
        (["knn_probe"], None, []),
        ("default", "knn_probe", []),
        ("all", None, []),
    ],
)
def test_scores_that_are_quadratic_are_left_out_of_many_images_unless_they_are_asked_for(asked, by, expected):
    chosen = choose_scores(asked)
    assert list(scores_left_out(asked, by, chosen, MOST_IMAGES + 1)) == expected
    assert scores_left_out(asked, by, chosen, MOST_IMAGES) == {}


def test_what_orders_a_ranking_by_default_is_never_left_out():
    assert not SCORES.get(DEFAULT_PRIMARY).is_quadratic
