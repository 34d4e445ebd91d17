"""A ranking evaluates each score 26 times; tests that are about something else do with a few rounds of each kind."""

import importlib
from functools import partial

ranking = importlib.import_module("crossgraft.rank.aggregate")  # the package has a function of this name


def leave_out_rounds(monkeypatch):
    """Four jackknife blocks, which are enough for intervals, and two permutations of labels."""
    monkeypatch.setattr(ranking, "jackknife_blocks", partial(ranking.jackknife_blocks, num_blocks=4))
    monkeypatch.setattr(ranking, "NUM_SHUFFLES", 2)
