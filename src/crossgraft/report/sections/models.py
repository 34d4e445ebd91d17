"""The models: what they are and how images became their inputs."""

from __future__ import annotations

from crossgraft.records import ModelRecord, RankingRecord
from crossgraft.report.blocks import Section
from crossgraft.report.formatting import NumberFormat, count, short_fingerprint
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, number, whole, words


def models_section(source: Source[RankingRecord]) -> Section:
    """One row a model, controls included."""
    models = source.record.models
    columns = [
        Column("Model"),
        Column("Family"),
        Column("Architecture"),
        Column("Parameters", numeric=True),
        Column("Features", numeric=True),
        Column("Source classes", numeric=True),
        Column("Extraction, s", numeric=True),
        Column("Preprocessing"),
        Column("Licence"),
        Column("Weights fingerprint"),
    ]
    seconds = NumberFormat.for_column([max((model.feature_seconds for model in models), default=0.0)])
    notes = ["No source classes: the model has no classification head, so scores that read one have no value."]
    if any(model.features_from_cache for model in models):
        cached = sum(model.features_from_cache for model in models)
        notes.append(f"Features of {cached} of {len(models)} models came from an earlier run; their seconds are its own.")
    table = Table(
        caption="Models and controls",
        columns=columns,
        rows=[_row(model, seconds) for model in models],
        file_name="models",
        muted_rows=frozenset(index for index, model in enumerate(models) if model.role != "candidate"),
        notes=notes if any(model.num_source_classes is None for model in models) else notes[1:],
    )
    return Section(name="models", title="Models", part="checks", blocks=[table])


def _row(model: ModelRecord, seconds: NumberFormat) -> list[Cell]:
    return [
        words(model.name),
        words(model.family),
        words(f"{model.architecture} ({model.source})"),
        whole(model.num_parameters, count(model.num_parameters)),
        whole(model.num_features, count(model.num_features)),
        whole(model.num_source_classes),
        number(model.feature_seconds, seconds),
        words(model.preprocessing.description),
        words(model.licence or "not stated"),
        words(short_fingerprint(model.weights_fingerprint)),
    ]
