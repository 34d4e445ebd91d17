"""The whole path of the demo in seconds: in this process, on few digits, with hardly any training."""

import functools
from bisect import bisect_left
from contextlib import nullcontext
from dataclasses import replace

import sklearn.datasets

from crossgraft.audit import explained
from crossgraft.data import open_dataset
from crossgraft.data.sources import digits
from crossgraft.demo import best_model, steps
from crossgraft.variants import curves

EVERY = 5


@functools.cache
def few_digits():
    """Some digits of every writer; the demo looks at all unseen ones dozens of times."""
    digits = open_dataset("digits")
    return digits.take(range(0, len(digits), EVERY))


def fewer_digits(monkeypatch):
    """Two of three digits of every writer, for whole commands that train on 30 of each class of half of the writers."""
    counts, labels = sklearn.datasets.load_digits(return_X_y=True)
    kept = [row for row in range(len(labels)) if row % 3]
    monkeypatch.setattr(sklearn.datasets, "load_digits", lambda **_: (counts[kept], labels[kept]))
    monkeypatch.setattr(digits, "WRITER_BOUNDARIES", tuple(bisect_left(kept, row) for row in digits.WRITER_BOUNDARIES))


def shorten(monkeypatch, pool):
    """Jobs go to ``pool``; worker processes have tests of their own, and one that starts a demo as a script."""
    few_digits()  # of all digits
    monkeypatch.setattr(steps, "worker_pool", lambda: nullcontext(pool))
    monkeypatch.setattr(steps, "open_dataset", lambda _: few_digits())
    monkeypatch.setattr(explained, "NUM_SHAMS", 2)  # each is a look at all unseen digits
    monkeypatch.setattr(curves, "ALPHAS", (0.0, 0.5, 1.0))
    monkeypatch.setattr(best_model, "CONFOUNDERS", best_model.CONFOUNDERS[-1:])  # tests of the best model have all
    for name in ("FULL", "FAST"):
        plan = getattr(steps, name)
        few = {"pretraining": replace(plan.pretraining, steps=3), "fine_tuning": replace(plan.fine_tuning, steps=4)}
        monkeypatch.setattr(steps, name, replace(plan, **few, num_seeds=1, tune_epochs=1))
