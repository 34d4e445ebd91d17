"""crossgraft: select, adapt and audit pretrained vision models for a small labelled image set.

The public verbs load on first use, so that ``import crossgraft`` imports neither torch nor timm.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from crossgraft.version import __version__ as __version__

if TYPE_CHECKING:
    from crossgraft.data import open_dataset as open_dataset
    from crossgraft.report import write_report as write_report
    from crossgraft.tune import FineTunedClassifier as FineTunedClassifier
    from crossgraft.tune import FineTuningComparison as FineTuningComparison
    from crossgraft.verbs.audit_model import audit_model as audit_model
    from crossgraft.verbs.check_data import check_data as check_data
    from crossgraft.verbs.compare_fine_tunings import compare_fine_tunings as compare_fine_tunings
    from crossgraft.verbs.compare_models import compare_models as compare_models
    from crossgraft.verbs.distil import distil as distil
    from crossgraft.verbs.edit_data import edit_data as edit_data
    from crossgraft.verbs.evaluate_published import evaluate_published as evaluate_published
    from crossgraft.verbs.export_model import export_model as export_model
    from crossgraft.verbs.fine_tune import fine_tune as fine_tune
    from crossgraft.verbs.interpolate import interpolate as interpolate
    from crossgraft.verbs.interpolate import interpolate_runs as interpolate_runs
    from crossgraft.verbs.predict import predict as predict
    from crossgraft.verbs.predict_from_support import predict_from_support as predict_from_support
    from crossgraft.verbs.rank_models import rank_models as rank_models
    from crossgraft.verbs.replay_selection import replay_selection as replay_selection
    from crossgraft.verbs.run_episodes import run_episodes as run_episodes
    from crossgraft.verbs.select_model import select_model as select_model
    from crossgraft.verbs.show_confounders import show_confounders as show_confounders
    from crossgraft.verbs.split_data import split_data as split_data

_HOME = {
    "FineTunedClassifier": "crossgraft.tune",
    "FineTuningComparison": "crossgraft.tune",
    "check_data": "crossgraft.verbs.check_data",
    "compare_fine_tunings": "crossgraft.verbs.compare_fine_tunings",
    "compare_models": "crossgraft.verbs.compare_models",
    "distil": "crossgraft.verbs.distil",
    "audit_model": "crossgraft.verbs.audit_model",
    "edit_data": "crossgraft.verbs.edit_data",
    "evaluate_published": "crossgraft.verbs.evaluate_published",
    "export_model": "crossgraft.verbs.export_model",
    "fine_tune": "crossgraft.verbs.fine_tune",
    "interpolate": "crossgraft.verbs.interpolate",
    "interpolate_runs": "crossgraft.verbs.interpolate",
    "open_dataset": "crossgraft.data",
    "predict": "crossgraft.verbs.predict",
    "predict_from_support": "crossgraft.verbs.predict_from_support",
    "rank_models": "crossgraft.verbs.rank_models",
    "run_episodes": "crossgraft.verbs.run_episodes",
    "replay_selection": "crossgraft.verbs.replay_selection",
    "select_model": "crossgraft.verbs.select_model",
    "show_confounders": "crossgraft.verbs.show_confounders",
    "split_data": "crossgraft.verbs.split_data",
    "write_report": "crossgraft.report",
}

__all__ = [
    "__version__",
    "FineTunedClassifier",
    "FineTuningComparison",
    "check_data",
    "compare_fine_tunings",
    "compare_models",
    "distil",
    "audit_model",
    "edit_data",
    "evaluate_published",
    "export_model",
    "fine_tune",
    "interpolate",
    "open_dataset",
    "predict",
    "predict_from_support",
    "rank_models",
    "run_episodes",
    "replay_selection",
    "select_model",
    "show_confounders",
    "split_data",
    "write_report",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name) or (None if name.startswith("_") else _home_in_another_package(name))
    if home is None:
        raise AttributeError(f"module 'crossgraft' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def _home_in_another_package(name: str) -> str | None:
    """The module of the verb called ``name`` that another package registered as a command."""
    from crossgraft.cli.commands import COMMANDS

    verbs = [command.verb.partition(":") for _, command in COMMANDS]
    return next((module for module, _, function in verbs if function == name), None)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
