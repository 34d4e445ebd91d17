"""The example runs (test folders are not packages, so their module is loaded from its file); a network of the user's own."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from crossgraft.tune.engine import launch
from support import forked
from support.tiny import NORMED_MODELS, TINY_MODELS


@pytest.fixture(scope="session")
def examples() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_runs", Path(__file__).parent / "report" / "example_runs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def ranking(examples):
    return examples.ranking_record()


@pytest.fixture(scope="session")
def source_of(examples):
    """Put a record into the source that section builders take."""
    from crossgraft.report.source import Source

    def make(record, *, thumbnails=(), run=None):
        return Source(run=run or examples.run_record(), record=record, thumbnails=tuple(thumbnails))

    return make


@pytest.fixture
def forked_processes(monkeypatch):
    """Processes of a training are forks; those of ``test_a_script_without_main_guard_is_not_run_again`` start as users' do."""
    monkeypatch.setattr(launch, "get_context", lambda _: forked.context())


@pytest.fixture
def tiny_models(tmp_path, monkeypatch):
    """The module of the user's network, in the current folder."""
    yield from module_of_networks("tiny_models", TINY_MODELS, tmp_path, monkeypatch)


@pytest.fixture
def normed_models(tmp_path, monkeypatch):
    """The same of a network with BatchNorm."""
    yield from module_of_networks("normed_models", NORMED_MODELS, tmp_path, monkeypatch)


def module_of_networks(name, source, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    (folder / f"{name}.py").write_text(textwrap.dedent(source))
    yield folder
    sys.modules.pop(name, None)
