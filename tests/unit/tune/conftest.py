"""A tiny network of the user's own in the current folder."""

import sys
import textwrap

import pytest

from support.tiny import TINY_MODELS


@pytest.fixture
def tiny_models(tmp_path, monkeypatch):
    """The module of the user's network, in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "tiny_models", raising=False)
    (tmp_path / "tiny_models.py").write_text(textwrap.dedent(TINY_MODELS))
    yield tmp_path
    sys.modules.pop("tiny_models", None)
