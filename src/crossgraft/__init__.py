"""crossgraft: select, adapt and audit pretrained vision models for a small labelled image set.

The public verbs load on first use, so that ``import crossgraft`` imports neither torch nor timm.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from crossgraft.faces import lazy_face

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
    from crossgraft.version import __version__ as __version__


def _registered_verb(name: str) -> Any:
    """The verb called ``name`` that another package registered as a command."""
    from crossgraft.cli.commands import COMMANDS

    verbs = [command.verb.partition(":") for _, command in COMMANDS]
    for module, _, function in verbs:
        if function == name:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


lazy_face(__name__, otherwise=_registered_verb)
