"""The plan of all trainings, with the time of a step measured on this machine."""

from __future__ import annotations

from crossgraft.compute import limit_threads, reuse_freed_memory
from crossgraft.models.classifier import Classifier
from crossgraft.progress import Reporter
from crossgraft.records import PlanRecord
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.methods._method import Selection
from crossgraft.tune.parts import TuningRows
from crossgraft.tune.planning.choices import Plugins
from crossgraft.tune.planning.fold_data import make_feed, make_fold_data
from crossgraft.tune.planning.grid import GridPoint
from crossgraft.tune.planning.plan import make_plan
from crossgraft.tune.planning.settings_in_words import settings_in_words
from crossgraft.tune.planning.situation import TrainingSituation
from crossgraft.tune.planning.step_cost import measure_step


def make_timed_plan(
    rows: TuningRows,
    classifier: Classifier,
    selection: Selection,
    situation: TrainingSituation,
    rule: SelectionRule,
    points: list[GridPoint],
    notes: list[str],
    num_threads: int,
    reporter: Reporter,
) -> PlanRecord:
    """Time a step and count the rest."""
    parts, plugins, settings = rows.parts[0], situation.plugins, situation.settings
    data = make_fold_data(rows.dataset, parts, classifier, plugins, settings, num_threads)
    with limit_threads(num_threads), reuse_freed_memory(), reporter.stage("Timing a step"):
        cost = measure_step(
            classifier,
            make_feed(data, plugins, settings),
            selection,
            loss=data.loss,
            regularizers=plugins.regularizers,
            settings=settings,
            features_are_fixed=plugins.features_are_fixed,
        )
    plan = make_plan(
        classifier,
        selection,
        settings,
        described=settings_in_words(plugins, settings, rule),
        points=points,
        num_folds=len(rows.parts),
        num_train=len(parts.train),
        num_val=len(parts.val),
        cost=cost,
        own_parameters=_own_parameters(plugins, classifier),
        notes=notes,
    )
    return plan.record


def _own_parameters(plugins: Plugins, classifier: Classifier) -> int:
    """Parameters that regularisers bring along, after a look at the network."""
    total = 0
    for regularizer in plugins.regularizers:
        regularizer.attach(classifier)
        try:
            total += sum(p.numel() for module in regularizer.modules() for p in module.parameters())
        finally:
            regularizer.detach()
    return total
