"""Settings of cuDNN inside a block, and as they were before after it."""

import threading

import pytest
import torch
from torch.backends import cudnn

from crossgraft.compute import limit_threads
from crossgraft.repeatable import repeatable_convolutions


def flags():
    tf32 = [getattr(cudnn, name).fp32_precision for name in ("conv", "rnn") if hasattr(cudnn, name)]
    return cudnn.deterministic, cudnn.benchmark, tf32 or cudnn.allow_tf32


REPEATABLE = (True, False, ["ieee", "ieee"] if hasattr(cudnn, "conv") else False)


@pytest.fixture
def gpu(monkeypatch):
    """As on a machine that has one; the settings exist everywhere."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    before = flags()
    assert before != REPEATABLE
    yield before
    assert flags() == before


@pytest.mark.parametrize("block", [repeatable_convolutions, lambda: limit_threads(1)])
def test_inside_a_block_numbers_repeat_and_afterwards_all_is_as_before(gpu, block):
    with block():
        assert flags() == REPEATABLE
        with block():
            assert flags() == REPEATABLE
        assert flags() == REPEATABLE
    assert flags() == gpu
    with pytest.raises(ValueError, match="inside"), block():
        raise ValueError("inside")
    assert flags() == gpu


def test_what_a_person_has_set_is_back_afterwards(gpu):
    cudnn.benchmark = True
    try:
        with repeatable_convolutions():
            assert flags() == REPEATABLE
        assert cudnn.benchmark is True
    finally:
        cudnn.benchmark = False


def test_of_two_threads_the_first_to_leave_changes_nothing_for_the_other(gpu):
    inside, left = threading.Event(), threading.Event()
    seen = []

    def longer():
        with repeatable_convolutions():
            inside.set()
            left.wait(10)
            seen.append(flags())

    with repeatable_convolutions():
        thread = threading.Thread(target=longer)
        thread.start()
        inside.wait(10)
    left.set()
    thread.join()
    assert seen == [REPEATABLE]


def test_without_a_gpu_nothing_is_touched(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    before = flags()
    with repeatable_convolutions():
        assert flags() == before
