"""The kinds of reports of this package; each is put together beside its sections."""

from crossgraft.report.kinds import KINDS as KINDS
from crossgraft.report.sections.audit import AUDIT
from crossgraft.report.sections.contact_sheets import CONTACT_SHEETS
from crossgraft.report.sections.data_check import DATA_CHECK
from crossgraft.report.sections.data_split import DATA_SPLIT
from crossgraft.report.sections.demo import DEMO
from crossgraft.report.sections.distillation import DISTILLATION
from crossgraft.report.sections.editing import EDIT
from crossgraft.report.sections.export import EXPORT
from crossgraft.report.sections.fewshot import FEWSHOT
from crossgraft.report.sections.interpolation import INTERPOLATION
from crossgraft.report.sections.model_comparison import MODEL_COMPARISON
from crossgraft.report.sections.prediction import PREDICTION
from crossgraft.report.sections.published import PUBLISHED
from crossgraft.report.sections.ranking import RANKING
from crossgraft.report.sections.replay import REPLAY
from crossgraft.report.sections.selection import SELECTION
from crossgraft.report.sections.tuning import TUNING
from crossgraft.report.sections.tuning_comparison import TUNING_COMPARISON

_ALL = (
    RANKING,
    SELECTION,
    REPLAY,
    DATA_CHECK,
    DATA_SPLIT,
    DEMO,
    PUBLISHED,
    TUNING,
    TUNING_COMPARISON,
    PREDICTION,
    INTERPOLATION,
    EXPORT,
    FEWSHOT,
    DISTILLATION,
    AUDIT,
    EDIT,
    CONTACT_SHEETS,
    MODEL_COMPARISON,
)
for _kind in _ALL:
    KINDS.add(_kind.record_type.model_fields["kind"].default, _kind)
