"""crossgraft: select, adapt and audit pretrained vision models for a small labelled image set.

The public verbs load on first use, so that ``import crossgraft`` imports neither torch nor timm.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from crossgraft.version import __version__ as __version__

if TYPE_CHECKING:
    from crossgraft.data import open_dataset as open_dataset
    from crossgraft.data.checks import check_data as check_data
    from crossgraft.rank import rank_models as rank_models
    from crossgraft.report import write_report as write_report
    from crossgraft.tune import FineTunedClassifier as FineTunedClassifier
    from crossgraft.tune import FineTuningComparison as FineTuningComparison
    from crossgraft.tune import compare_fine_tunings as compare_fine_tunings
    from crossgraft.tune import fine_tune as fine_tune
    from crossgraft.tune.exporting import export_model as export_model
    from crossgraft.tune.predict import predict as predict

_HOME = {
    "FineTunedClassifier": "crossgraft.tune",
    "FineTuningComparison": "crossgraft.tune",
    "check_data": "crossgraft.data.checks",
    "compare_fine_tunings": "crossgraft.tune",
    "export_model": "crossgraft.tune.exporting",
    "fine_tune": "crossgraft.tune",
    "open_dataset": "crossgraft.data",
    "predict": "crossgraft.tune.predict",
    "rank_models": "crossgraft.rank",
    "write_report": "crossgraft.report",
}

__all__ = [
    "__version__",
    "FineTunedClassifier",
    "FineTuningComparison",
    "check_data",
    "compare_fine_tunings",
    "export_model",
    "fine_tune",
    "open_dataset",
    "predict",
    "rank_models",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'crossgraft' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
