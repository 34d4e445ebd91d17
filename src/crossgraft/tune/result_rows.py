"""A finished fine-tuning as a row of the user's results store, from which later rankings start."""

from __future__ import annotations

from crossgraft.records import KnownResult, TuningRecord
from crossgraft.report.formatting import counted
from crossgraft.tune.planning.preparation import Preparation

_NOT_STATED = "not stated"


def known_result(record: TuningRecord, prepared: Preparation) -> KnownResult | None:
    """The primary metric on unseen rows; None where it has no value, or weights were random.

    Only equal protocols are compared, so the protocol says everything that differs between two ways to tune one model, and
    nothing that differs between models.

    Args:
        record: Of the fine-tuning.
        prepared: What it started from.
    """
    found = record.metric(record.primary_metric)
    if found is None or found.value is None or prepared.plugins.method.starts_from_scratch:
        return None
    model, _, source = (prepared.spec.known_as or "").partition("/")
    return KnownResult(
        model=model or record.model.name,
        weights=record.model.weights_fingerprint,
        source=source or _NOT_STATED,
        target=record.dataset.name,
        target_fingerprint=prepared.rows.ranked_fingerprint,
        protocol=protocol_of(record),
        metric=found.metric,
        value=found.value,
        low=found.low,
        high=found.high,
        origin="crossgraft tune",
    )


def protocol_of(record: TuningRecord) -> str:
    """How a model was tuned and tested, in words that are the same for every model of one study."""
    num_train = next((row.num_images for row in record.splits if row.name == "train"), record.dataset.num_images)
    test = next((row.origin for row in record.splits if row.name == "test"), f"{len(record.folds)} folds")
    slots = [plugin.spelling for plugin in record.plugins]
    head_first = ["head first"] if any(row.stage == "head" for row in record.history) else []
    points = {tuple(sorted(row.values.items())) for row in record.grid}
    grid = [f"grid of {len(points)}"] if len(points) > 1 else []
    how = ", ".join([*slots, *head_first, *grid])
    return f"{how}; {counted(num_train, 'training image')}, test {test}, picked by {record.selection_metric}"
