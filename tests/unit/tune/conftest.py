"""A tiny network of the user's own in the current folder."""

import sys
import textwrap

import pytest

from support.tiny import NORMED_MODELS, TINY_MODELS


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
