"""A tiny network of the user's own in the current folder; processes of a training that start in a moment."""

import sys
import textwrap

import pytest

from crossgraft.tune.engine import launch
from support import forked
from support.tiny import NORMED_MODELS, TINY_MODELS


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
