"""The models: what they are and how images became their inputs."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.models.record import ModelRecord
from crossgraft.rank.record import RankingRecord
from crossgraft.report.blocks import Section
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, Table, counts, number, table_of, whole, words
from crossgraft.words.formatting import NumberFormat, short_fingerprint


def models_section(source: Source[RankingRecord]) -> Section:
    """What each model is, then how it was used; controls included."""
    models = source.record.models
    controls = frozenset(index for index, model in enumerate(models) if model.role != "candidate")
    return Section(
        name="models",
        title="Models",
        part="checks",
        blocks=[_identity(models, controls), _use(models, controls)],
    )


def _identity(models: Sequence[ModelRecord], controls: frozenset[int]) -> Table:
    headless = any(model.num_source_classes is None for model in models)
    return table_of(
        models,
        [
            (Column("Model"), lambda model: words(model.name)),
            (Column("Family"), lambda model: words(model.family)),
            (Column("Architecture"), lambda model: words(f"{model.architecture} ({model.source})")),
            (Column("Parameters", numeric=True), lambda model: counts(model.num_parameters)),
            (Column("Features", numeric=True), lambda model: counts(model.num_features)),
            (Column("Source classes", numeric=True), lambda model: whole(model.num_source_classes)),
            (Column("Licence"), lambda model: words(model.licence or "not stated")),
        ],
        caption="Models and controls",
        file_name="models",
        muted_rows=controls,
        notes=["No source classes: the model has no classification head; scores that need one skip it."] * headless,
    )


def _use(models: Sequence[ModelRecord], controls: frozenset[int]) -> Table:
    seconds = NumberFormat.for_column([max((model.feature_seconds or 0.0 for model in models), default=0.0)])
    cached = sum(model.features_from_cache for model in models)
    return table_of(
        models,
        [
            (Column("Model"), lambda model: words(model.name)),
            (Column("Preprocessing"), lambda model: words(model.preprocessing.description)),
            (Column("Seconds", numeric=True), lambda model: number(model.feature_seconds, seconds)),
            (Column("Weights fingerprint"), lambda model: words(short_fingerprint(model.weights_fingerprint))),
        ],
        caption="How images became the inputs of each model, and how long it looked at them",
        file_name="preprocessing",
        muted_rows=controls,
        notes=[f"Features of {cached} of {len(models)} models were kept from an earlier run."] if cached else [],
    )
