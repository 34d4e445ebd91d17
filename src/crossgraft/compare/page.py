"""The report of a comparison of two models: how alike they see, and whether they fail alike."""

from __future__ import annotations

from crossgraft.compare.caveats import MODEL_COMPARISON_CAVEATS, after_comparison
from crossgraft.compare.page_geometry import GEOMETRY_SECTIONS, geometry_text_section
from crossgraft.compare.page_layers import (
    layer_cca_section,
    layer_pairs_section,
    layer_text_section,
)
from crossgraft.compare.page_mistakes import shared_mistakes_section
from crossgraft.compare.record import ComparedModel, MeasuredFeatures, ModelComparisonRecord, ModelPair
from crossgraft.compare.words import DISTANCES, MEASURES, NUMBERS, answer_in_words, pair_in_words
from crossgraft.data.page import data_facts
from crossgraft.report.blocks import Block, Checks, Facts, Heading, Items, Paragraph, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.provenance import provenance_section
from crossgraft.report.references import references_section
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, Table, number, table_of, whole, words
from crossgraft.report.verdict import caveats_of, in_one_line, verdict_blocks
from crossgraft.words.formatting import counted

_KINDS = {"pretrained": "pretrained", "fine-tuned": "fine-tuned", "features": "features on disk"}


def comparison_heading(source: Source[ModelComparisonRecord]) -> Heading:
    """The two models, and the images."""
    record = source.record
    a, b = record.model("A"), record.model("B")
    where = "" if record.dataset is None else f" on {record.dataset.name}"
    facts = [record.images_in_words, *(f"{each.label}: {each.name}, {_KINDS[each.kind]}" for each in record.models[:2])]
    title = f"What fine-tuning changed in {b.name}" if record.pairs[0].is_a_change else f"{a.name} and {b.name}"
    return Heading(
        title=f"{title}{where}",
        summary=" · ".join(facts),
        advice=in_one_line(answer_in_words(record), caveats_of(source, MODEL_COMPARISON_CAVEATS)),
    )


def comparison_verdict_section(source: Source[ModelComparisonRecord]) -> Section:
    """The answer, with what limits it and what to type next."""
    caveats = caveats_of(source, MODEL_COMPARISON_CAVEATS)
    blocks = verdict_blocks(answer_in_words(source.record), caveats, after_comparison(source))
    return Section(name="verdict", title="Verdict", part="verdict", blocks=blocks)


def models_section(source: Source[ModelComparisonRecord]) -> Section:
    """What each label stands for."""
    table = table_of(
        source.record.models,
        [
            (Column("Label"), lambda row: words(row.label)),
            (Column("Model"), lambda row: words(row.name)),
            (Column("Kind"), lambda row: words(_KINDS[row.kind])),
            (Column("Features", numeric=True), lambda row: whole(row.num_features)),
            (Column("Layers compared", numeric=True), lambda row: whole(len(row.layers))),
            (Column("Predictions"), lambda row: words(_head(row))),
            (Column("Images become", page_only=True), lambda row: words(row.images_become)),
        ],
        caption="Models",
        file_name="models",
    )
    return Section(name="models", title="Models", part="evidence", blocks=[table])


def penultimate_section(source: Source[ModelComparisonRecord]) -> Section:
    """Every measure of the penultimate features of every pair, beside untrained networks."""
    record = source.record
    blocks: list[Block] = [_measures(pair) for pair in record.pairs]
    return Section(name="features", title="Penultimate features", part="evidence", blocks=blocks)


def compared_data_section(source: Source[ModelComparisonRecord]) -> Section:
    """The images, and how layers were compared."""
    record = source.record
    pooled = {"mean": "means over positions", "flatten": "all positions"}
    how = [
        ("Compared on", record.images_in_words),
        ("CKA of layers looks at", pooled[record.pool]),
        ("CCA of layers", f"{record.cca_preset} preset"),
        ("Seed", str(record.seed)),
    ]
    blocks: list[Block] = [] if record.dataset is None else [Facts(data_facts(record.dataset))]
    blocks.append(Facts(how))
    if record.notes:
        blocks.append(Items(record.notes))
    if record.checks:
        blocks.append(Checks(record.checks))
    return Section(name="data", title="Data and checks", part="checks", blocks=blocks)


def _measures(pair: ModelPair) -> Table:
    has_floor = any(row.untrained is not None for row in pair.features)
    notes = [f"{MEASURES[row.measure]}: {said}" for row in pair.features for said in (*row.notes, *_reasons(row))]
    return Table(
        caption=f"Penultimate features: {pair_in_words(pair)}",
        columns=[
            Column("Measure"),
            Column("Value", numeric=True),
            *([Column("Untrained", numeric=True)] if has_floor else []),
            Column("Same features have", numeric=True, page_only=True),
        ],
        rows=[
            [
                words(MEASURES[row.measure]),
                number(row.value, NUMBERS),
                *([number(row.untrained, NUMBERS)] if has_floor else []),
                whole(0 if row.measure in DISTANCES else 1),
            ]
            for row in pair.features
        ],
        file_name=f"features-{pair.first}-{pair.second}".replace(" ", "-").lower(),
        notes=[
            *(["Untrained: two networks of these architectures with random weights."] if has_floor else []),
            *_once(notes),
        ],
        page_only=pair.of != "models" and pair.first.endswith("before"),
    )


def _reasons(row: MeasuredFeatures) -> list[str]:
    return [] if row.reason is None else [row.reason]


def _once(notes: list[str]) -> list[str]:
    """The same warning of several measures is said once."""
    seen: dict[str, list[str]] = {}
    for note in notes:
        name, _, text = note.partition(": ")
        seen.setdefault(text, []).append(name)
    return [f"{', '.join(names)}: {text}" for text, names in seen.items()]


def _head(model: ComparedModel) -> str:
    if model.probe_train_images is not None:
        return f"linear probe on {counted(model.probe_train_images, 'training image')}"
    return "its own head" if model.kind == "fine-tuned" else "none"


def notes_section(source: Source[ModelComparisonRecord]) -> Section | None:
    """Why mistakes are not compared, where they are not."""
    pair = source.record.pairs[0]
    if pair.mistakes is not None or pair.mistakes_reason is None:
        return None
    text = f"Mistakes are not compared: {pair.mistakes_reason}."
    return Section(name="mistakes", title="Shared mistakes", part="evidence", blocks=[Paragraph(text)])


REPORT = Kind(
    ModelComparisonRecord,
    comparison_heading,
    (
        comparison_verdict_section,
        models_section,
        layer_pairs_section,
        layer_cca_section,
        penultimate_section,
        shared_mistakes_section,
        notes_section,
        *GEOMETRY_SECTIONS,
        compared_data_section,
        provenance_section,
        references_section,
    ),
    terminal=(
        models_section,
        layer_text_section,
        penultimate_section,
        shared_mistakes_section,
        notes_section,
        geometry_text_section,
        comparison_verdict_section,
    ),
)
