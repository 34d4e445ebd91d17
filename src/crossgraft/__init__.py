"""crossgraft: select, adapt and audit pretrained vision models for a small labelled image set.

The public verbs load on first use, so that ``import crossgraft`` imports neither torch nor timm.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from crossgraft.faces import find_moved_packages, lazy_face

if TYPE_CHECKING:
    from crossgraft.audit.verb import audit_model as audit_model
    from crossgraft.bench.verb import run_study as run_study
    from crossgraft.centre.verb import compare_centre as compare_centre
    from crossgraft.check.verb import check_data as check_data
    from crossgraft.compare.verb import compare_models as compare_models
    from crossgraft.data import open_dataset as open_dataset
    from crossgraft.distil.verb import distil as distil
    from crossgraft.edit.contact_sheets import show_confounders as show_confounders
    from crossgraft.edit.verb import edit_data as edit_data
    from crossgraft.export.verb import export_model as export_model
    from crossgraft.fewshot.averages import average_runs as average_runs
    from crossgraft.fewshot.predict_from_support import predict_from_support as predict_from_support
    from crossgraft.fewshot.verb import run_episodes as run_episodes
    from crossgraft.interpolate.verb import interpolate as interpolate
    from crossgraft.interpolate.verb import interpolate_runs as interpolate_runs
    from crossgraft.predict.verb import predict as predict
    from crossgraft.published.verb import evaluate_published as evaluate_published
    from crossgraft.rank.verb import rank_models as rank_models
    from crossgraft.running.publishing import write_report as write_report
    from crossgraft.select.replay.verb import replay_selection as replay_selection
    from crossgraft.select.verb import select_model as select_model
    from crossgraft.split.verb import split_data as split_data
    from crossgraft.tune import FineTunedClassifier as FineTunedClassifier
    from crossgraft.tune.verb import fine_tune as fine_tune
    from crossgraft.variants import FineTuningComparison as FineTuningComparison
    from crossgraft.variants.verb import compare_fine_tunings as compare_fine_tunings
    from crossgraft.version import __version__ as __version__


def _registered_verb(name: str) -> Any:
    """The verb called ``name`` that another package registered as a command."""
    from crossgraft.options.command import COMMANDS

    verbs = [command.verb.partition(":") for _, command in COMMANDS]
    for module, _, function in verbs:
        if function == name:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


lazy_face(__name__, otherwise=_registered_verb)
find_moved_packages()
