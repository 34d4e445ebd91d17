"""The models: what they are and how images became their inputs."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.records import ModelRecord, RankingRecord
from crossgraft.report.blocks import Section
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, Table, number, whole, words
from crossgraft.words.formatting import NumberFormat, count, short_fingerprint


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
    columns = [
        Column("Model"),
        Column("Family"),
        Column("Architecture"),
        Column("Parameters", numeric=True),
        Column("Features", numeric=True),
        Column("Source classes", numeric=True),
        Column("Licence"),
    ]
    headless = any(model.num_source_classes is None for model in models)
    return Table(
        caption="Models and controls",
        columns=columns,
        rows=[
            [
                words(model.name),
                words(model.family),
                words(f"{model.architecture} ({model.source})"),
                whole(model.num_parameters, count(model.num_parameters)),
                whole(model.num_features, count(model.num_features)),
                whole(model.num_source_classes),
                words(model.licence or "not stated"),
            ]
            for model in models
        ],
        file_name="models",
        muted_rows=controls,
        notes=["No source classes: the model has no classification head; scores that need one skip it."] * headless,
    )


def _use(models: Sequence[ModelRecord], controls: frozenset[int]) -> Table:
    seconds = NumberFormat.for_column([max((model.feature_seconds for model in models), default=0.0)])
    cached = sum(model.features_from_cache for model in models)
    return Table(
        caption="How images became the inputs of each model, and how long it looked at them",
        columns=[
            Column("Model"),
            Column("Preprocessing"),
            Column("Seconds", numeric=True),
            Column("Weights fingerprint"),
        ],
        rows=[
            [
                words(model.name),
                words(model.preprocessing.description),
                number(model.feature_seconds, seconds),
                words(short_fingerprint(model.weights_fingerprint)),
            ]
            for model in models
        ],
        file_name="preprocessing",
        muted_rows=controls,
        notes=[f"Features of {cached} of {len(models)} models were kept from an earlier run."] if cached else [],
    )
