"""The learning rate starts above 0, is full after warm-up, and ends where it says."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.tune.engine.optimizers import Schedule, make_schedule
from crossgraft.tune.engine.settings import TrainerSettings


def test_cosine_by_hand():
    schedule = Schedule(total_steps=7, warmup_steps=2, name="cosine", final_share=0.1)
    falling = [0.1 + 0.9 * (1 + math.cos(math.pi * k / 4)) / 2 for k in range(5)]
    assert [schedule.share(t) for t in range(7)] == pytest.approx([1 / 3, 2 / 3, *falling])


@given(st.integers(1, 60), st.integers(0, 59), st.floats(0, 1), st.sampled_from(["cosine", "constant"]))
def test_shape(total, warmup, final, name):
    warmup = min(warmup, total - 1)
    shares = [Schedule(total, warmup, name, final).share(t) for t in range(total)]
    assert shares[0] > 0 and max(shares) == shares[warmup] == 1
    assert shares[: warmup + 1] == sorted(shares[: warmup + 1])
    assert shares[warmup:] == sorted(shares[warmup:], reverse=True)
    if name == "cosine" and total > warmup + 1:
        assert shares[-1] == pytest.approx(final)
    if name == "constant":
        assert set(shares[warmup:]) == {1.0}


def test_warmup_is_counted_in_steps_and_cut_to_half():
    assert make_schedule(TrainerSettings(warmup_epochs=1.5), 10, 8).warmup_steps == 15
    assert make_schedule(TrainerSettings(warmup_epochs=20.0), 10, 8).warmup_steps == 40
    assert make_schedule(TrainerSettings(warmup_epochs=1.0), 1, 1).share(0) == 1
