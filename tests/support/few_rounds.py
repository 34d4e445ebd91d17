"""A ranking evaluates each score 26 times; tests that are about something else do with a few rounds of each kind."""

from functools import partial

from crossgraft.rank import evaluate


def leave_out_rounds(monkeypatch):
    """Four jackknife blocks, which are enough for intervals, and two permutations of labels."""
    monkeypatch.setattr(evaluate, "jackknife_blocks", partial(evaluate.jackknife_blocks, num_blocks=4))
    monkeypatch.setattr(evaluate, "NUM_SHUFFLES", 2)
