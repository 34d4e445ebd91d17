import pickle
from types import SimpleNamespace

import pytest

from crossgraft.data import open_dataset
from crossgraft.demo import steps, write_demo
from crossgraft.demo.toy_zoo import divide_digits, make_source_tasks
from support.here import Here
from support.short_demo import few_digits, shorten


class InProcessPool(Here):
    """Keeps what was asked for, and sends jobs and results as to a worker process; those have tests of their own."""

    def __init__(self):
        self.jobs = []

    def submit(self, fn, /, *args, **kwargs):
        self.jobs += [job.spec for job in args]
        fn, args, kwargs = sent((fn, args, kwargs))
        return super().submit(lambda: sent(fn(*args, **kwargs)))


def sent(value):
    return pickle.loads(pickle.dumps(value))


@pytest.fixture
def pool():
    return InProcessPool()


@pytest.fixture(scope="session")
def digits():
    return open_dataset("digits")


@pytest.fixture(scope="session")
def demo_data(digits):
    return divide_digits(digits, seed=0)


@pytest.fixture(scope="session")
def few_data():
    """The data of a demo that is shortened."""
    return divide_digits(few_digits(), seed=0)


@pytest.fixture(scope="session")
def source_tasks(demo_data):
    return make_source_tasks(demo_data.source, seed=0)


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """A demo and what it was made of: its result, its jobs, and the folder of run, cache and where it was started."""
    folder, pool = tmp_path_factory.mktemp("whole"), InProcessPool()
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch, pool)
        (folder / "elsewhere").mkdir()
        patch.chdir(folder / "elsewhere")
        patch.setenv("CROSSGRAFT_CACHE", str(folder / "cache"))
        result = write_demo(out=folder / "demo", fast=True)
    return SimpleNamespace(result=result, record=result.record, folder=folder, jobs=pool.jobs)


@pytest.fixture
def short(monkeypatch, pool):
    """As ``shorten`` says, with the pool of the test."""
    shorten(monkeypatch, pool)


def skip_best_model(monkeypatch, best=None):
    """Select, fine-tune and audit no model, to save seconds; ``best`` stands in the record instead."""
    monkeypatch.setattr(steps, "select_from_zoo", lambda *_, **__: None)
    monkeypatch.setattr(steps, "tune_best_model", lambda *_, **__: best)
    monkeypatch.setattr(steps, "audit_best_model", lambda best, *_, **__: best)
