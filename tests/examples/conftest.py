"""The files of examples/own_models and the scripts of studies as modules, and networks built from them as a zoo builds them."""

import importlib.util
import sys
from pathlib import Path

import pytest

from crossgraft.models import ModelSpec, load_backbone
from support.few_pages import leave_out_pages

EXAMPLES = Path(__file__).parents[2] / "examples" / "own_models"
STUDIES = Path(__file__).parents[2] / "studies"


@pytest.fixture
def example():
    """Import one example by its name."""

    def load(name):
        spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def load_script(monkeypatch):
    """Import a script of studies/ by its name; what it imports from its own folder is forgotten afterwards.

    Nobody reads the pages of its trainings.
    """
    leave_out_pages(monkeypatch, of_comparisons=True)
    monkeypatch.syspath_prepend(str(STUDIES))
    before = set(sys.modules)

    def load(name):
        spec = importlib.util.spec_from_file_location(f"script_{name}", STUDIES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield load
    forget(set(sys.modules) - before)


@pytest.fixture
def build():
    """A backbone with random weights from ``module:function``."""
    before = set(sys.modules)

    def backbone(source, **kwargs):
        return load_backbone(ModelSpec("example", source, "random", kwargs=kwargs, folder=EXAMPLES))

    yield backbone
    forget(set(sys.modules) - before)


def forget(names):
    """Modules of these two folders: another test may import others of the same name."""
    for name in names:
        if any((folder / f"{name}.py").is_file() for folder in (EXAMPLES, STUDIES)):
            del sys.modules[name]
