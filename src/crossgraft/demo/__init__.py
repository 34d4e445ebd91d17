"""The embedded demo: a toy zoo trained on this machine, ranked, and checked against real fine-tuning.

``run_demo`` loads on first use, so that the demo's worker processes import neither timm nor scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossgraft.demo.run_directory import write_demo as write_demo
    from crossgraft.demo.steps import run_demo as run_demo

_HOME = {"run_demo": "crossgraft.demo.steps", "write_demo": "crossgraft.demo.run_directory"}

__all__ = ["run_demo", "write_demo"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'crossgraft.demo' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
