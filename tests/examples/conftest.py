"""The files of examples/own_models as modules, and networks built from them as a zoo builds them."""

import importlib.util
import sys
from pathlib import Path

import pytest

from crossgraft.models import ModelSpec, load_backbone

EXAMPLES = Path(__file__).parents[2] / "examples" / "own_models"


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
def build():
    """A backbone with random weights from ``module:function``."""
    before = set(sys.modules)

    def backbone(source, **kwargs):
        return load_backbone(ModelSpec("example", source, "random", kwargs=kwargs, folder=EXAMPLES))

    yield backbone
    for name in set(sys.modules) - before:
        if (EXAMPLES / f"{name}.py").is_file():
            del sys.modules[name]
