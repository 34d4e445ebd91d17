"""The whole path of the demo in seconds: in this process, with hardly any training."""

from contextlib import nullcontext
from dataclasses import replace

from crossgraft.demo import audited, steps
from crossgraft.tune.variants import curves


def shorten(monkeypatch, pool):
    """Jobs go to ``pool``; worker processes have tests of their own, and one that starts a demo as a script."""
    monkeypatch.setattr(steps, "worker_pool", lambda: nullcontext(pool))
    monkeypatch.setattr(curves, "ALPHAS", (0.0, 0.5, 1.0))
    monkeypatch.setattr(audited, "CONFOUNDERS", audited.CONFOUNDERS[-1:])  # tests of the best model have all
    for name in ("FULL", "FAST"):
        plan = getattr(steps, name)
        few = {"pretraining": replace(plan.pretraining, steps=3), "fine_tuning": replace(plan.fine_tuning, steps=4)}
        monkeypatch.setattr(steps, name, replace(plan, **few, num_seeds=1, tune_epochs=1))
