"""The report of a comparison of two models: how alike they see, and whether they fail alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from crossgraft.compare.page_layers import (
    GEOMETRY_SECTIONS,
    geometry_text_section,
    layer_cca_section,
    layer_pairs_section,
    layer_text_section,
)
from crossgraft.compare.record import ComparedModel, ModelComparisonRecord, ModelPair
from crossgraft.compare.words import DISTANCES, MEASURES, NUMBERS, answer_in_words, pair_in_words
from crossgraft.data.page import data_facts, unreadable_files
from crossgraft.metrics.words import looks_in_words
from crossgraft.options.command import DATA, RUN, Flag, TypedCommand
from crossgraft.report.blocks import Block, Checks, Facts, Figure, Heading, Items, Paragraph, Section
from crossgraft.report.explorer import explorer_of
from crossgraft.report.kinds import Kind
from crossgraft.report.plots.intervals import IntervalRow, intervals_figure
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Cell, Column, Table, interval, number, table_of, whole, words
from crossgraft.report.verdict import (
    Caveat,
    CaveatOf,
    Following,
    Gravity,
    caveats_of,
    in_one_line,
    provenance_section,
    references_section,
    unsound_data,
    verdict_section,
    warned_of_data,
)
from crossgraft.words.formatting import count, counted, magnitude

_FEW_IMAGES = 50


def may_have_learned(source: Source[ModelComparisonRecord]) -> Caveat | None:
    """Images of which nobody knows whether a fine-tuned model learned from them."""
    notes = [note for note in source.record.notes if note.startswith("A fine-tuned model may have learned")]
    return Caveat(notes[0], Gravity.WRONG) if notes else None


def prepared_otherwise(source: Source[ModelComparisonRecord]) -> Caveat | None:
    """A start and its fine-tuning that see the images in two ways."""
    by_label = {each.label: each for each in source.record.models}
    for pair in source.record.pairs:
        first, second = by_label[pair.first], by_label[pair.second]
        if pair.is_a_change and first.images_become != second.images_become:
            return Caveat(
                f"{first.label} and {second.label} take images in two ways ({first.images_become}; {second.images_become}), so "
                "not all that differs is what fine-tuning changed.",
                Gravity.WRONG,
            )
    return None


def no_more_than_untrained(source: Source[ModelComparisonRecord]) -> Caveat | None:
    """Untrained networks are as alike."""
    cka = source.record.pairs[0].measured("cka_debiased")
    if cka is None or cka.value is None or cka.untrained is None or cka.untrained < cka.value:
        return None
    return Caveat(
        "Two untrained networks of these architectures are at least as alike, so the value says little by itself.", Gravity.EMPTY
    )


def by_linear_probes(source: Source[ModelComparisonRecord]) -> Caveat | None:
    """Predictions that are no model's own."""
    mistakes = source.record.pairs[0].mistakes
    if mistakes is None or not mistakes.by_probe:
        return None
    return Caveat("Mistakes are those of linear probes where a model has no head for these classes.", Gravity.LIMITED)


def looked_before(source: Source[ModelComparisonRecord]) -> Caveat | None:
    """A choice among models by these images."""
    text = looks_in_words(source.record.looks, "accuracy")
    return None if text is None else Caveat(text, Gravity.FLATTERED)


def probed_before(source: Source[ModelComparisonRecord]) -> Caveat | None:
    """A choice among models by the images of linear probes."""
    geometry = source.record.geometry
    text = looks_in_words(source.record.probe_looks, "accuracy")
    if text is None or geometry is None or geometry.forgetting is None:
        return None
    return Caveat(f"Linear probes on {geometry.forgetting.data}: {text[0].lower()}{text[1:]}", Gravity.FLATTERED)


def few_images(source: Source[ModelComparisonRecord]) -> Caveat | None:
    """Noise is large."""
    num_images = source.record.num_images
    if num_images >= _FEW_IMAGES:
        return None
    return Caveat(f"{count(num_images)} images are few: similarity of so few is noisy, and CCA tends to 1.", Gravity.LIMITED)


def without_patients(source: Source[ModelComparisonRecord]) -> Caveat | None:
    """Images of one patient count as independent."""
    data = source.record.dataset
    if data is None or data.num_groups is not None or source.record.pairs[0].mistakes is None:
        return None
    return Caveat("Without a column of patients, intervals take images as independent: --group-column.", Gravity.UNCHECKED)


def after_comparison(source: Source[ModelComparisonRecord]) -> Following | None:
    """What fine-tuning changed, what lies between, or which of some pretrained models suits the images."""
    record, typed = source.record, source.typed
    if record.dataset is None:
        return None
    tuned = [each for each in record.models if each.kind == "fine-tuned"]
    if not tuned:
        names = ",".join(typed.inputs) or "MODELS"
        line = typed.then("rank", typed.value("--data") or DATA, flags=[("--models", names)])
        return Following(line, "to rank them for these images")
    if len(record.models) > 2:
        return None
    if record.pairs[0].is_a_change:
        return _between(typed)
    starts = [each.started_with.get("--model", f"PRETRAINED_{each.label}") for each in tuned]
    flags = [flag for flag in _named_in(tuned) if not typed.has(flag[0])]
    if len(tuned) == 2:
        line = typed.again(("--before", ",".join(dict.fromkeys(starts))), *flags)
        return Following(line, "to see what fine-tuning changed in each model")
    run = typed.inputs[record.models.index(tuned[0])] if len(typed.inputs) == 2 else RUN
    line = replace(typed, inputs=(starts[0], run)).again(*flags)
    return Following(line, f"to see what fine-tuning changed in {tuned[0].name}")


def _between(typed: TypedCommand) -> Following:
    """To mix the weights of a model before and after fine-tuning."""
    start, run = typed.inputs if len(typed.inputs) == 2 else ("PRETRAINED", RUN)
    data = typed.value("--data") or DATA
    line = typed.then("interpolate", run, data, flags=[("--model", start)])
    return Following(line, "to measure the networks between the two")


def _named_in(models: Sequence[ComparedModel]) -> list[Flag]:
    """Flags that the names of their starts need beside them."""
    flags = {flag: value for each in models for flag, value in each.started_with.items() if flag != "--model"}
    return list(flags.items())


MODEL_COMPARISON_CAVEATS: tuple[CaveatOf[ModelComparisonRecord], ...] = (
    unsound_data,
    unreadable_files,
    warned_of_data,
    may_have_learned,
    prepared_otherwise,
    no_more_than_untrained,
    by_linear_probes,
    looked_before,
    probed_before,
    few_images,
    without_patients,
)


_NOTES = (
    "P: share of images that both get right or both get wrong, with a 95 % interval. Independent: a₁a₂ + (1 − a₁)(1 − a₂), with "
    "the central 95 % over all permutations of the mistakes of one model, which p is from, too: there, images of one patient "
    "count as independent.",
    "κ = (P − independent) / (1 − independent): 0 for independent mistakes, 1 for the same ones. Agreement: share of images "
    "with the same prediction.",
)
_PROBE = "*: a model without a head for these classes; its predictions are those of a linear probe on its training images."


def shared_mistakes_section(source: Source[ModelComparisonRecord]) -> Section | None:
    """A figure and a table; None where no pair has predictions."""
    compared = [(pair, pair.mistakes) for pair in source.record.pairs if pair.mistakes is not None]
    if not compared:
        return None
    rows: list[IntervalRow] = []
    for pair, mistakes in compared:
        rows.append(IntervalRow(pair_in_words(pair), Interval.of(mistakes)))
        beside = Interval(mistakes.independent, mistakes.independent_low, mistakes.independent_high)
        rows.append(IntervalRow("if mistakes were independent", beside, is_overall=True))
    drawing = intervals_figure(rows, x_label="Both right or both wrong", identifier=f"{source.prefix}mistakes")
    table = table_of(
        compared,
        [
            (Column("Pair"), lambda row: words(pair_in_words(row[0]) + ("*" if row[1].by_probe else ""))),
            (Column("Accuracies"), lambda row: words(f"{NUMBERS(row[1].accuracy)}, {NUMBERS(row[1].other_accuracy)}")),
            (Column("P", numeric=True), lambda row: number(row[1].value, NUMBERS)),
            (INTERVAL, lambda row: interval(row[1].low, row[1].high, NUMBERS)),
            (Column("Independent", numeric=True), lambda row: number(row[1].independent, NUMBERS)),
            (
                Column("Its 95 %", numeric=True, csv_titles=("independent_low", "independent_high")),
                lambda row: interval(row[1].independent_low, row[1].independent_high, NUMBERS),
            ),
            (Column("κ", numeric=True), lambda row: number(row[1].kappa, NUMBERS)),
            (Column("p", numeric=True), lambda row: number(row[1].p_value, NUMBERS)),
            (Column("Agreement", numeric=True, page_only=True), lambda row: number(row[1].agreement, NUMBERS)),
        ],
        caption="Shared mistakes",
        file_name="mistakes",
        notes=[
            *_NOTES,
            *dict.fromkeys(mistakes.no_interval_reason for _, mistakes in compared if mistakes.no_interval_reason),
            *([_PROBE] if any(mistakes.by_probe for _, mistakes in compared) else []),
        ],
    )
    blocks: list[Block] = [
        Figure([drawing], caption="Shared mistakes of each pair, and what independent ones would give."),
        table,
    ]
    return Section(name="mistakes", title="Shared mistakes", part="evidence", blocks=blocks)


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
    return verdict_section(answer_in_words(source.record), caveats, after_comparison(source))


def side_by_side_section(source: Source[ModelComparisonRecord]) -> Section | None:
    """Every image with what both models said of it; None without images or answers."""
    data = source.record.dataset
    if data is None or not any(each.answers for each in source.thumbnails):
        return None
    explorer = explorer_of(
        source.thumbnails,
        data.class_names,
        identifier=f"{source.prefix}explorer",
        caption="Those with a wrong answer come first; open one to see both answers. Certainty is the probability of an answer, "
        "not calibrated.",
    )
    return Section(name="answers", title="Image by image", part="evidence", blocks=[explorer], is_first=True)


def models_section(source: Source[ModelComparisonRecord]) -> Section:
    """What each label stands for."""
    table = table_of(
        source.record.models,
        [
            (Column("Label"), lambda row: words(row.label)),
            (Column("Model"), lambda row: words(row.name)),
            (Column("Kind"), lambda row: words(_KINDS[row.kind])),
            (Column("Features", numeric=True), lambda row: whole(row.num_features)),
            *(_costs() if any(row.num_parameters is not None for row in source.record.models) else []),
            (Column("Layers compared", numeric=True), lambda row: whole(len(row.layers))),
            (Column("Predictions"), lambda row: words(_head(row))),
            (Column("Images become", page_only=True), lambda row: words(row.images_become)),
        ],
        caption="Models",
        file_name="models",
    )
    return Section(name="models", title="Models", part="evidence", blocks=[table])


def _costs() -> list[tuple[Column, Callable[[ComparedModel], Cell]]]:
    """What a network takes to look at an image; one FLOP is a multiplication with its addition."""
    return [
        (Column("#Params", numeric=True), lambda row: _large(row.num_parameters)),
        (Column("#FLOPs", numeric=True), lambda row: _large(row.multiply_adds)),
    ]


def _large(number: int | None) -> Cell:
    return whole(number, None if number is None else magnitude(number))


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
    notes = [
        f"{MEASURES[row.measure]}: {sentence}"
        for row in pair.features
        for sentence in (*row.notes, row.reason)
        if sentence is not None
    ]
    return table_of(
        pair.features,
        [
            (Column("Measure"), lambda row: words(MEASURES[row.measure])),
            (Column("Value", numeric=True), lambda row: number(row.value, NUMBERS)),
            *([(Column("Untrained", numeric=True), lambda row: number(row.untrained, NUMBERS))] if has_floor else []),
            (Column("Same features have", numeric=True, page_only=True), lambda row: whole(int(row.measure not in DISTANCES))),
        ],
        caption=f"Penultimate features: {pair_in_words(pair)}",
        file_name=f"features-{pair.first}-{pair.second}".replace(" ", "-").lower(),
        notes=[*(["Untrained: two networks of these architectures with random weights."] if has_floor else []), *_once(notes)],
        page_only=pair.of != "models" and pair.first.endswith("before"),
    )


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
        side_by_side_section,
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
