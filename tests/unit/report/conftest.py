"""The example runs, as a fixture: test folders are not packages, so the module is loaded from its file."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def examples() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_runs", Path(__file__).with_name("example_runs.py"))
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
