"""One record of each kind that has a page, as the commands write them."""

from crossgraft import evaluate_published
from crossgraft.centre.record import CentredNetwork, CentreRecord
from crossgraft.fewshot.averages import averages_of
from crossgraft.geometry.record import WeightDistance
from crossgraft.interpolate.interpolation import REFERENCE
from crossgraft.records.base import Reference
from crossgraft.report.kinds import KINDS
from crossgraft.select import parse_budget
from crossgraft.select.replay import replay_published
from support.audit_records import audit_record
from support.comparison_records import comparison_record
from support.contact_sheet_records import sheets_record
from support.distillation_records import distillation_record
from support.editing_records import edit_record
from support.fewshot_records import fewshot_record
from support.model_comparison_records import model_comparison_record
from support.selection_records import selection_record
from support.story_records import story_record
from support.study_records import study_record
from support.tuning_records import prediction_record, tuning_record

EXAMPLES = [name for name in KINDS.names() if name not in ("export", "data_split")]
"""Kinds with a record here."""


def centre_record():
    """Two runs around their mean, without a start."""
    distance = WeightDistance(l2=1.0, rms=0.1, relative=0.5)
    shared = {"name": "net", "ways": ["full"], "weights_fingerprint": "1", "start_fingerprint": "0", "to_centre": distance}
    networks = [CentredNetwork(label=task, task=task, **shared) for task in ("breast", "retina")]
    reference = Reference(key="Centre", text="RepSim, Table 3.")
    return CentreRecord(networks=networks, start=None, num_weights=100, references=[reference], seconds=1.0)


def record_of(kind, examples):
    """The record; ``examples`` is the module of realistic runs."""
    return {
        "ranking": examples.ranking_record,
        "demo": examples.demo_record,
        "data_check": examples.data_check_record,
        "published": lambda: evaluate_published("thesis").record,
        "tuning": lambda: tuning_record(num_folds=2),
        "prediction": prediction_record,
        "tuning-comparison": comparison_record,
        "interpolation": lambda: comparison_record().interpolation[0].model_copy(update={"references": [REFERENCE]}),
        "edit": lambda: edit_record(examples.ranking_record().dataset),
        "contact_sheets": lambda: sheets_record(examples.ranking_record().dataset),
        "audit": lambda: audit_record(examples.ranking_record().dataset, examples.ranking_record().models[0]),
        "distillation": lambda: distillation_record(examples.ranking_record().models[0]),
        "fewshot": lambda: fewshot_record(examples.ranking_record().dataset, examples.ranking_record().models[0]),
        "model_comparison": lambda: model_comparison_record(examples.ranking_record().dataset),
        "selection": selection_record,
        "study": study_record,
        "selection-replay": lambda: replay_published("dart", [parse_budget("25%")]),
        "fewshot-averages": lambda: averages_of(
            [fewshot_record(examples.ranking_record().dataset, examples.ranking_record().models[0])]
        ),
        "centre": centre_record,
        "story": story_record,
    }[kind]()
