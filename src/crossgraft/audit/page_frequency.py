"""Frequencies of an audit: where networks look, what artefacts change there, and what is left of a model under filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crossgraft.audit.page_numbers import ends_cell, metric_cell
from crossgraft.audit.plots import (
    MOST_DRAWN_ARTEFACTS,
    BandCurve,
    PriorityBar,
    SpectrumCurve,
    bands_figure,
    priority_map_figure,
    spectra_figure,
)
from crossgraft.audit.record import (
    ArtefactFrequencies,
    AuditFrequencies,
    AuditRecord,
    Band,
    BandRecord,
    ModelFrequencies,
    PriorityRecord,
    RiskRankRecord,
)
from crossgraft.audit.words import NUMBERS
from crossgraft.report.blocks import Block, Figure, Items, Section
from crossgraft.report.plots.scatter import Interval, Point, scatter_figure
from crossgraft.report.plots.svg import family_marks
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, interval, number, table_of, whole, words
from crossgraft.words.formatting import NumberFormat

_CUTOFF = NumberFormat(decimals=3)
_MOST_FIGURES = 6
_SPECTRA = (
    "Learning priority: spectrum of the gradient by the image. All curves are at the input of the network, as multiples of a "
    "flat spectrum. Where an artefact lies high and the network does too, it changes what the network looks at."
)
_MAPS = (
    "Learning priority as a heat map, as multiples of a flat spectrum, mean over folds: of the pretrained network (before), and "
    "of networks fine-tuned with the artefact in a share of the positives. ½‖features‖² is the only gradient that all have; "
    "that of the loss needs a head that knows these classes."
)
_OBJECTIVES = {"features": "½‖features‖²", "true labels": "loss"}
_SHARE = NumberFormat(decimals=1)
_BANDS = (
    "AUC with its interval of 95 % on images that lost what lies above the cutoff (low-pass) or below it (high-pass); the line "
    "is chance. What a model keeps under a filter is evidence; it was never shown such images, so what it loses is weaker."
)
_RISKS = "Overlap against SRI with its interval over folds, one dot per model that can be assessed."
_OVERLAP = (
    "Overlap: share of the spectrum of the artefact that lies where the learning priority does, between 0 and 1; flat: the same "
    "with a network that looks at all frequencies alike. It compares models for one artefact, not artefacts, knows nothing of "
    "amplitudes, and is no measurement of reliance."
)
_RANKS = (
    "ρ: Spearman's rank correlation of overlap and SRI; p: one-sided, over permutations of the models, which it takes as "
    "independent."
)


def frequency_section(source: Source[AuditRecord]) -> Section | None:
    """Spectra, overlaps, and either AUC by cutoff or ranks of models; None where nothing was asked."""
    frequencies = source.record.frequency
    if frequencies is None:
        return None
    blocks: list[Block] = [*_spectra(source, frequencies.models), *_overlap_blocks(frequencies)]
    blocks += [*_maps(source, frequencies.models), *_share_blocks(frequencies.models)]
    for model in frequencies.models:
        if model.bands is not None:
            blocks += [_band_figure(source, model.model, model.bands), _band_table(model.bands)]
    blocks += [*_rank_blocks(frequencies), *_rank_figures(source, frequencies.ranks), *_notes(frequencies)]
    return Section(name="frequency", title="Frequencies", part="evidence", blocks=blocks)


def _overlap_blocks(frequencies: AuditFrequencies) -> list[Block]:
    """The table, and what cannot be compared; once for each artefact and reason."""
    if not any(model.artefacts for model in frequencies.models):
        return []
    reasons = [f"{each.confounder}: {each.reason}." for model in frequencies.models for each in model.artefacts if each.reason]
    return [_overlaps(frequencies.models), *([Items(list(dict.fromkeys(reasons)))] if reasons else [])]


def _notes(frequencies: AuditFrequencies) -> list[Block]:
    notes = [note for model in frequencies.models for note in model.notes]
    return [Items(list(dict.fromkeys(notes)))] if notes else []


def _spectra(source: Source[AuditRecord], models: Sequence[ModelFrequencies]) -> list[Block]:
    """Figures of the first models; the others are in frequency.csv."""
    known = [model for model in models if model.frequencies]
    drawings = [
        spectra_figure(model.model, model.frequencies, _curves(model), identifier=f"{source.prefix}spectra-{place}")
        for place, model in enumerate(known[:_MOST_FIGURES])
    ]
    left = len(known) - _MOST_FIGURES
    more = f" {left} more are in frequency.csv." if left > 0 else ""
    hidden = max((len(_drawable(model)) for model in known), default=0) - MOST_DRAWN_ARTEFACTS
    more += f" The first {MOST_DRAWN_ARTEFACTS} artefacts are drawn." if hidden > 0 else ""
    return [Figure(drawings, caption=f"{_SPECTRA}{_same_objective(known)}{more}")] if drawings else []


def _curves(model: ModelFrequencies) -> list[SpectrumCurve]:
    curves = [SpectrumCurve("images", model.images, "images")]
    before, now = _before_and_now(model)
    if before is not None and before.psd is not None:
        curves.append(SpectrumCurve("learning priority before", before.psd, "network before"))
    if now is not None and now.psd is not None:
        name = "learning priority" if before is None else "learning priority after"
        curves.append(SpectrumCurve(name, now.psd, "network"))
    drawn = _drawable(model)[:MOST_DRAWN_ARTEFACTS]
    return curves + [SpectrumCurve(each.confounder, each.psd, "artefact") for each in drawn if each.psd is not None]


def _maps(source: Source[AuditRecord], models: Sequence[ModelFrequencies]) -> list[Block]:
    """Heat maps of the first models and artefacts: before fine-tuning, and after it at each share."""
    known = [(model, each) for model in models for each in model.by_share]
    drawings = [
        priority_map_figure(
            f"{model.model}, {each.confounder}: {_OBJECTIVES.get(each.objective, each.objective)}",
            model.frequencies,
            [
                *([] if each.before is None else [PriorityBar("before", each.before)]),
                *(PriorityBar(f"share {row.share:g}", row.psd) for row in each.rows),
            ],
            identifier=f"{source.prefix}priority-map-{place}",
        )
        for place, (model, each) in enumerate(known[:_MOST_FIGURES])
    ]
    more = f" {len(known) - _MOST_FIGURES} more are in frequency.csv." if len(known) > _MOST_FIGURES else ""
    return [Figure(drawings, caption=_MAPS + more)] if drawings else []


def _share_blocks(models: Sequence[ModelFrequencies]) -> list[Block]:
    """How far the learning priority stayed what it was, and whether it went to the artefact."""
    rows = [(model.model, each, row) for model in models for each in model.by_share for row in each.rows]
    if not rows:
        return []

    table = table_of(
        rows,
        [
            (Column("Model"), lambda row: words(row[0])),
            (Column("Confounder"), lambda row: words(row[1].confounder)),
            (Column("Gradient of"), lambda row: words(_OBJECTIVES.get(row[1].objective, row[1].objective))),
            (Column("Share", numeric=True), lambda row: number(row[2].share, _SHARE)),
            (Column("Overlap with before", numeric=True), lambda row: metric_cell(row[2].kept)),
            (Column("95 % interval", numeric=True, csv_titles=("kept low", "kept high")), lambda row: ends_cell(row[2].kept)),
            (Column("With the artefact", numeric=True), lambda row: metric_cell(row[2].overlap)),
            (
                Column("95 % interval", numeric=True, csv_titles=("overlap low", "overlap high")),
                lambda row: ends_cell(row[2].overlap),
            ),
            (Column("Before", numeric=True, page_only=True), lambda row: number(row[1].overlap_before, NUMBERS)),
        ],
        caption="Learning priority by share of positives with the artefact",
        file_name="priority_by_share",
        notes=[
            "Means over folds. Overlap with before: 1 where fine-tuning left the learning priority as it was. With the artefact: "
            "share of its spectrum that lies where the network looks; before: the same of the pretrained network."
        ],
    )
    return [table]


def _before_and_now(model: ModelFrequencies) -> tuple[PriorityRecord | None, PriorityRecord | None]:
    """Both with the same objective, so that they differ in weights alone; without the first, the network as it is."""
    before = model.priority("pretrained", "features")
    after = model.priority("tuned", "features")
    if before is not None and after is not None:
        return before, after
    return None, model.priorities[0] if model.priorities else None


def _drawable(model: ModelFrequencies) -> list[ArtefactFrequencies]:
    return [each for each in model.artefacts if each.psd is not None]


def _same_objective(models: Sequence[ModelFrequencies]) -> str:
    """What gradients are of."""
    if any(before is not None for before, _ in map(_before_and_now, models)):
        return " Before and after fine-tuning the gradient is that of ½‖features‖², the only one that both networks have."
    objectives = dict.fromkeys(model.priorities[0].objective for model in models if model.priorities)
    in_words = {"features": "½‖features‖², because a pretrained head knows other classes"}
    return "".join(f" The gradient is that of {in_words.get(each, f'the loss with {each}')}." for each in objectives)


def _overlaps(models: Sequence[ModelFrequencies]) -> Table:
    rows = [(model, each) for model in models for each in model.artefacts]
    is_tuned = any(each.overlap_before is not None for _, each in rows)
    both = " Before and after: with the pretrained and the tuned network, gradients of ½‖features‖²." if is_tuned else ""
    return table_of(
        rows,
        [
            (Column("Model"), lambda row: words(row[0].model)),
            (Column("Confounder"), lambda row: words(row[1].confounder)),
            (Column("Overlap", numeric=True), lambda row: number(row[1].overlap, NUMBERS)),
            *([(Column("Before", numeric=True), lambda row: number(row[1].overlap_before, NUMBERS))] if is_tuned else []),
            *([(Column("After", numeric=True), lambda row: number(row[1].overlap_after, NUMBERS))] if is_tuned else []),
            (Column("Flat", numeric=True, page_only=True), lambda row: number(row[1].flat, NUMBERS)),
            (Column("rms at the input", numeric=True, page_only=True), lambda row: number(row[1].input_rms, NUMBERS)),
        ],
        caption="Overlap of artefacts with the learning priority",
        file_name="overlaps",
        notes=[_OVERLAP + both],
    )


def _band_figure(source: Source[AuditRecord], model: str, bands: BandRecord) -> Figure:
    curves = [
        BandCurve(
            name,
            [point.cutoff for point in bands.points if point.kind == kind],
            [Interval.of(point) for point in bands.points if point.kind == kind],
        )
        for kind, name in (("low", "low-pass"), ("high", "high-pass"))
    ]
    drawing = bands_figure(model, curves, clean=bands.clean, chance=bands.chance, identifier=f"{source.prefix}bands")
    return Figure([drawing], caption=_BANDS)


def _band_table(bands: BandRecord) -> Table:
    """One row per cutoff, low-pass and high-pass beside each other."""
    cutoffs = list(dict.fromkeys(point.cutoff for point in bands.points))
    by_filter = {(point.kind, point.cutoff): point for point in bands.points}

    def value(kind: Band) -> Callable[[float], Cell]:
        return lambda cutoff: number(by_filter[kind, cutoff].value, NUMBERS)

    def ends(kind: Band) -> Callable[[float], Cell]:
        return lambda cutoff: interval(by_filter[kind, cutoff].low, by_filter[kind, cutoff].high, NUMBERS)

    return table_of(
        cutoffs,
        [
            (Column("Cutoff", numeric=True), lambda cutoff: number(cutoff, _CUTOFF)),
            (Column("Low-pass AUC", numeric=True), value("low")),
            (Column("95 % interval", numeric=True, csv_titles=("low-pass low", "low-pass high")), ends("low")),
            (Column("High-pass AUC", numeric=True), value("high")),
            (Column("95 % interval", numeric=True, csv_titles=("high-pass low", "high-pass high")), ends("high")),
        ],
        caption="AUC without some frequencies",
        file_name="bands",
        notes=[
            f"{bands.positive} against the rest. Cutoffs are cycles per pixel of the images as they are, before they are resized."
        ],
    )


def _rank_blocks(frequencies: AuditFrequencies) -> list[Block]:
    """The table; of few models, why there are no ranks."""
    if not frequencies.ranks:
        return []
    known_reasons = {each.reason for model in frequencies.models for each in model.artefacts}
    reasons = [
        f"{each.confounder}: {each.reason}" for each in frequencies.ranks if each.reason and each.reason not in known_reasons
    ]
    table = table_of(
        frequencies.ranks,
        [
            (Column("Confounder"), lambda row: words(row.confounder)),
            (Column("Models", numeric=True), lambda row: whole(len(row.points))),
            (Column("ρ", numeric=True), lambda row: number(row.spearman, NUMBERS)),
            (Column("p", numeric=True), lambda row: number(row.p_value, NUMBERS)),
        ],
        caption="Whether models that overlap more rely more",
        file_name="overlap_ranks",
        notes=[_RANKS],
    )
    return [table, *([Items(reasons)] if reasons else [])]


def _rank_figures(source: Source[AuditRecord], ranks: Sequence[RiskRankRecord]) -> list[Block]:
    """One for each artefact whose models have an order."""
    shown = [rank for rank in ranks if rank.spearman is not None][:_MOST_FIGURES]
    if not shown:
        return []
    names = list(dict.fromkeys(point.model for rank in shown for point in rank.points))
    families = {model.name: model.family for model in source.record.models}
    marks = family_marks(families.get(name, name) for name in names)
    drawings = [
        scatter_figure(
            [
                Point(
                    Interval(point.overlap),
                    Interval(point.reliance, point.low, point.high),
                    marks[families.get(point.model, point.model)],
                    names.index(point.model) + 1,
                )
                for point in rank.points
            ],
            x_label="Overlap",
            y_label=f"SRI, {rank.confounder}",
            identifier=f"{source.prefix}risk-{place}",
        )
        for place, rank in enumerate(shown)
    ]
    numbers = "; ".join(f"{number} {name}" for number, name in enumerate(names, start=1))
    return [Figure(drawings, caption=f"{_RISKS} {numbers}. A colour and a marker for each family.")]
