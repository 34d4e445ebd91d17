"""The learning rate starts above 0, is full after warm-up, and ends where it says."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.choice import choose
from crossgraft.errors import UsageError
from crossgraft.tune.engine.optimizers import ScheduledRate, scheduled_rate
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.schedules import SCHEDULES, Constant, Cosine, Step, Steps


def shares(schedule, *, total, warmup, per_epoch=1):
    rate = ScheduledRate(schedule, Steps(total, warmup, per_epoch))
    return [rate.share(step) for step in range(total)]


def test_cosine_by_hand():
    falling = [0.1 + 0.9 * (1 + math.cos(math.pi * k / 4)) / 2 for k in range(5)]
    assert shares(Cosine(0.1), total=7, warmup=2) == pytest.approx([1 / 3, 2 / 3, *falling])


@given(st.integers(1, 60), st.integers(0, 59), st.floats(0, 1), st.sampled_from(["cosine", "constant", "step"]))
def test_shape(total, warmup, final, name):
    warmup = min(warmup, total - 1)
    schedule = {"cosine": Cosine(final), "constant": Constant(), "step": Step(max(1, total // 2 + warmup))}[name]
    found = shares(schedule, total=total, warmup=warmup)
    assert found[0] > 0 and max(found) == found[warmup] == 1
    assert found[: warmup + 1] == sorted(found[: warmup + 1])
    assert found[warmup:] == sorted(found[warmup:], reverse=True)
    if name == "cosine" and total > warmup + 1:
        assert found[-1] == pytest.approx(final)
    if name == "constant":
        assert set(found[warmup:]) == {1.0}


@given(st.lists(st.integers(1, 20), min_size=1, max_size=4, unique=True), st.floats(0.01, 0.99), st.integers(1, 3))
def test_steps_are_those_of_torch(milestones, factor, per_epoch):
    """torch's MultiStepLR counts epochs; ours is asked step by step."""
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    theirs, epochs = torch.optim.lr_scheduler.MultiStepLR(optimizer, sorted(milestones), factor), 22
    ours = shares(Step(tuple(sorted(milestones)), factor), total=epochs * per_epoch, warmup=0, per_epoch=per_epoch)
    for epoch in range(epochs):
        assert ours[epoch * per_epoch : (epoch + 1) * per_epoch] == pytest.approx([optimizer.param_groups[0]["lr"]] * per_epoch)
        optimizer.step()
        theirs.step()


def test_the_published_schedules_by_hand():
    """SIM, appendix E: CIFAR-10 for 200 epochs, CIFAR-100 with three steps of 0.2."""
    ten = shares(Step((100, 150), 0.1), total=200, warmup=0)
    assert [ten[99], ten[100], ten[149], ten[150], ten[199]] == pytest.approx([1, 0.1, 0.1, 0.01, 0.01])
    hundred = shares(choose(SCHEDULES, "step:at=[60,120,160],factor=0.2"), total=200, warmup=0)
    assert [hundred[59], hundred[60], hundred[120], hundred[160]] == pytest.approx([1, 0.2, 0.04, 0.008])


@pytest.mark.parametrize("text", ["step", "step:at=[3,2]", "step:0", "step:at=[5],factor=1", "step:at=[5],factor=0", "cosine:2"])
def test_what_is_no_schedule_is_refused(text):
    with pytest.raises(UsageError):
        choose(SCHEDULES, text)


def test_warmup_is_counted_in_steps_and_cut_to_half():
    assert scheduled_rate(TrainerSettings(epochs=8, warmup_epochs=1.5), 10).steps.warmup == 15
    assert scheduled_rate(TrainerSettings(epochs=8, warmup_epochs=20.0), 10).steps.warmup == 40
    assert scheduled_rate(TrainerSettings(epochs=1, warmup_epochs=1.0), 1).share(0) == 1
