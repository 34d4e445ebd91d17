"""The kinds of reports of this package; each is put together beside its sections."""

from crossgraft.audit.page import AUDIT
from crossgraft.check.page import DATA_CHECK
from crossgraft.compare.page import MODEL_COMPARISON
from crossgraft.demo.page import DEMO
from crossgraft.distil.page import DISTILLATION
from crossgraft.edit.page import EDIT
from crossgraft.edit.page_contact_sheets import CONTACT_SHEETS
from crossgraft.export.page import EXPORT
from crossgraft.fewshot.page import FEWSHOT
from crossgraft.interpolate.page import INTERPOLATION
from crossgraft.predict.page import PREDICTION
from crossgraft.published.page import PUBLISHED
from crossgraft.rank.page import RANKING
from crossgraft.report.kinds import KINDS as KINDS
from crossgraft.select.page import SELECTION
from crossgraft.select.replay.page import REPLAY
from crossgraft.split.page import DATA_SPLIT
from crossgraft.tune.page import TUNING
from crossgraft.variants.page import TUNING_COMPARISON

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
