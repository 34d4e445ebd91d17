"""A training that pauses goes on with the schedule of all its epochs, and ends like one that never did."""

from dataclasses import asdict

import pytest

from crossgraft.errors import UsageError
from support.training import LossOnFeed, same_bits, train_one


def rows_of(result):
    return [{name: value for name, value in asdict(row).items() if name != "seconds"} for row in result.history]


@pytest.mark.parametrize("network", ["cnn", "dropout"])
def test_paused_and_gone_on_is_the_same_as_uninterrupted(tmp_path, network):
    whole, result = train_one(network, epochs=4, learning_rate=0.05)
    for pause in (1, 1, 3):  # the second one finds nothing to do
        _, part = train_one(network, epochs=4, learning_rate=0.05, checkpoint_folder=tmp_path, pause_after=pause)
        assert part.is_paused and rows_of(part) == rows_of(result)[:pause]
    rest, done = train_one(network, epochs=4, learning_rate=0.05, checkpoint_folder=tmp_path)
    assert same_bits(whole, rest) and rows_of(done) == rows_of(result) and not done.is_paused


def test_the_schedule_is_that_of_all_epochs(tmp_path):
    _, whole = train_one(epochs=3)
    _, part = train_one(epochs=3, checkpoint_folder=tmp_path, pause_after=1)
    _, short = train_one(epochs=1)
    assert part.history[0].learning_rate == whole.history[0].learning_rate != short.history[0].learning_rate


def test_a_paused_training_holds_the_best_weights_so_far(tmp_path):
    paused, _ = train_one(epochs=3, checkpoint_folder=tmp_path, pause_after=2)
    again, _ = train_one(epochs=3, checkpoint_folder=tmp_path, pause_after=2, evaluate=LossOnFeed())
    assert same_bits(paused, again)


def test_a_pause_beyond_the_end_is_none_and_the_head_alone_never_pauses(tmp_path):
    _, result = train_one(epochs=2, checkpoint_folder=tmp_path / "long", pause_after=9)
    assert not result.is_paused
    _, result = train_one(epochs=3, head_first=True, head_epochs=2, checkpoint_folder=tmp_path / "head", pause_after=1)
    assert [row.phase for row in result.history].count("head") >= 1 and result.history[-1].phase == "all"
    assert result.is_paused


@pytest.mark.parametrize(
    ("changes", "said"), [({"pause_after": 0}, "after 1 epoch"), ({"pause_after": 1}, "checkpoint")]
)
def test_pauses_without_meaning_are_refused(changes, said):
    with pytest.raises(UsageError, match=said):
        train_one(**changes)
