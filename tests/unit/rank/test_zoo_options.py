import numpy as np
import pytest

from crossgraft.rank.evaluate import Rounds, choose_options, evaluate_scores, measure_rounds, plan_resampling
from crossgraft.scores import ScoreInputs, ScoreValue, ZooOption, adaptive_etas, itm, itm_dispersion, score


class Silent:
    def advance(self, amount=1):
        pass

    def note(self, text):
        pass


@score(
    title="Shows its option",
    reference="made up",
    zoo_option=ZooOption("scale", measure=lambda features, labels: float(features.std()), choose=lambda sizes: sizes),
)
def shows(features, labels, *, scale=-1.0, seed=0):
    return ScoreValue(scale, parts={"seed": seed})


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    return [rng.normal(size=(60, 8)) + width * labels[:, None] for width in (0.3, 1.0, 3.0)], labels


def rounds(value):
    return {"itm": Rounds(full=[value], blocks=[[value + 0.1], [value + 0.2]], shuffled=[[value + 0.5]])}


def test_every_round_has_the_option_that_the_zoo_gives_it():
    chosen = choose_options([itm], [rounds(1.0), rounds(2.0), rounds(4.0)], ["candidate"] * 3)
    assert [one["itm"].full for one in chosen] == [[eta] for eta in adaptive_etas([1.0, 2.0, 4.0])]
    assert chosen[0]["itm"].blocks[1] == [adaptive_etas([1.2, 2.2, 4.2])[0]]
    assert chosen[0]["itm"].shuffled == [[adaptive_etas([1.5, 2.0, 4.0])[0]]]  # the others keep their own labels


def test_a_control_never_moves_the_candidates():
    roles = ["candidate", "candidate", "random weights"]
    near, far = (choose_options([itm], [rounds(1.0), rounds(2.0), rounds(c)], roles) for c in (1.5, 90.0))
    assert near[:2] == far[:2]
    assert near[2] != far[2]


def test_a_single_candidate_keeps_the_default():
    assert choose_options([itm], [rounds(1.0), rounds(2.0)], ["candidate", "random weights"]) == [{}, {}]


def test_measurements_follow_the_rounds_of_the_evaluation(problem):
    features, labels = problem
    resampling = plan_resampling(labels, None, seed=0)
    inputs = ScoreInputs(features=features[0], labels=labels)
    measured = measure_rounds([itm], inputs, resampling, stage=Silent())["itm"]
    block = resampling.blocks[3]
    assert measured.full == [itm_dispersion(features[0], labels)]
    assert measured.blocks[3] == [itm_dispersion(np.delete(features[0], block, axis=0), np.delete(labels, block))]
    assert measured.shuffled[2] == [itm_dispersion(features[0], resampling.shuffled_labels[2])]
    options = {"shows": measured}
    found = evaluate_scores([shows], inputs, resampling, stage=Silent(), options=options)[0]
    assert [raw.value for raw in found.blocks] == [values[0] for values in measured.blocks]
    assert [raw.value for raw in found.shuffled] == [values[0] for values in measured.shuffled]
    assert {raw.parts["seed"] for raw in [found.full, *found.blocks, *found.shuffled]} == {0.0}
    plain = evaluate_scores([shows], inputs, resampling, stage=Silent())[0]
    assert plain.full.value == -1.0


def test_several_labels_have_an_option_each(problem):
    features, _ = problem
    targets = (np.random.default_rng(1).random((60, 2)) < 0.5).astype(np.int64)
    resampling = plan_resampling(targets, None, seed=0)
    measured = measure_rounds([itm], ScoreInputs(features=features[0]), resampling, stage=Silent())["itm"]
    assert measured.full == [itm_dispersion(features[0], targets[:, label]) for label in range(2)]
