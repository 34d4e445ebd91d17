"""What a ranking shows of the features: maps of the best models, size and spread, kinds of networks, ITM's loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import scipy

from crossgraft.rank.record import FeaturesRecord, ItmWay, MappedPanel, NetworkKind, ProjectedFeatures, RankingRecord
from crossgraft.report.blocks import Block, Figure, Folded, Paragraph, Section, figure_for_screens
from crossgraft.report.plots.intervals import DotRow, IntervalRow, dot_rows_figure, intervals_figure
from crossgraft.report.plots.layers import MOST_NAMED_CLASSES, Panel, layer_pca_figure
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, number, table_of, whole, words
from crossgraft.statistics import weighted_kendall
from crossgraft.words.formatting import NumberFormat, counted, joined

_TWO = NumberFormat(decimals=2)
_THREE = NumberFormat(decimals=3)
_MOST_SERIES = 5
_STRIP = ("the only direction", "")


def features_section(source: Source[RankingRecord]) -> Section | None:
    """Maps of the best models, and the features of all of them; None where nobody asked for them."""
    record, features = source.record, source.record.features
    if features is None:
        return None
    blocks: list[Block] = []
    for place, mapped in enumerate(features.maps, start=1):
        identifier = f"{source.prefix}map-{place}"
        blocks += [
            *_projected(record, mapped.model, mapped.projected, f"{identifier}-projected"),
            *_way_of_itm(record, mapped.model, mapped.itm, f"{identifier}-itm"),
        ]
    blocks += [*_spreads(source, features), *_by_weight(record, features)]
    return Section(name="features", title="Features", part="evidence", blocks=blocks)


def _projected(record: RankingRecord, model: str, projected: ProjectedFeatures, identifier: str) -> list[Block]:
    """Figure 6.3 of the thesis."""
    if not projected.panels:
        return [Paragraph(f"{model}: no maps. {projected.reason}", tone="quiet")]
    panels = [_panel(panel, _shares_of_neighbours(panel)) for panel in projected.panels]
    held_out = projected.num_images - projected.num_fitted
    hollow = f" Hollow: {counted(held_out, 'image')} that nothing was fitted to." if held_out else ""
    caption = (
        f"Features of {model}: as they are, and after NCA and LDA (regularised as in SFDA), which are fitted to "
        f"{counted(projected.num_fitted, 'image')}. "
        f"A dot is an image, its mark the class{_unnamed(projected.classes)}.{hollow} In brackets: mean share of the own class "
        "among the 5 nearest fitted images, in all dimensions, of fitted and of held-out images. A map that parts the classes of "
        "the first and not of the second has learned them by heart. Each panel has principal components of its own: compare "
        f"shapes, not places. {projected.reason or ''}"
    )
    draw = partial(
        layer_pca_figure,
        panels,
        projected.classes,
        record.dataset.class_names,
        hollow=frozenset(projected.held_out),
        of=f"features of {model}",
    )
    return [figure_for_screens(draw, identifier=identifier, caption=caption.strip())]


def _shares_of_neighbours(panel: MappedPanel) -> str:
    known = [_TWO(share) for share in (panel.fitted_share, panel.held_out_share) if share is not None]
    return f"{panel.title} ({', '.join(known)})"


def _way_of_itm(record: RankingRecord, model: str, way: ItmWay, identifier: str) -> list[Block]:
    """Figure 7 of ITM."""
    if not way.panels:
        return [Paragraph(f"{model}: no way of ITM. {way.reason}", tone="quiet")]
    panels = [
        _panel(panel, panel.title if panel.accuracy is None else f"{panel.title} ({_TWO(panel.accuracy)})")
        for panel in way.panels
    ]
    caption = (
        f"What ITM makes of {counted(way.num_images, 'image')} that it did not learn from; features of {model}, "
        f"η = {_TWO(way.eta)}. E: the standardised features, with the accuracy of the nearest mean of a class among the other "
        "images. E⁽ⁿ⁾: what the linear map and the pull of eq. 7 make of them, with the accuracy of ITM's head. Ê: the "
        f"pseudo-centres of their classes, at which E⁽ⁿ⁾ aims. A dot is an image, its mark the class{_unnamed(way.classes)}. "
        "E⁽ⁿ⁾ and Ê share one plane, E has its own."
    )
    draw = partial(layer_pca_figure, panels, way.classes, record.dataset.class_names, of=f"what ITM makes of {model}")
    return [figure_for_screens(draw, identifier=identifier, caption=caption)]


def _panel(panel: MappedPanel, name: str) -> Panel:
    return Panel(name, panel.points, panel.shares or (1.0, 0.0), None if panel.shares else _STRIP)


def _unnamed(classes: Sequence[int]) -> str:
    number = len(set(classes))
    return f", of which {number} are too many to be named" if number > MOST_NAMED_CLASSES else ""


def _spreads(source: Source[RankingRecord], features: FeaturesRecord) -> list[Block]:
    """Figure 6 of ITM."""
    order = _order(source.record)
    rows = sorted(features.spreads, key=lambda row: order[row.model])
    drawing = intervals_figure(
        [
            IntervalRow(row.model, Interval(row.mean, row.mean - row.standard_deviation, row.mean + row.standard_deviation))
            for row in rows
        ],
        x_label="Value of a feature: mean ± standard deviation",
        identifier=f"{source.prefix}spreads",
    )
    caption = (
        "Mean and standard deviation of the features of each model, over all images and features, in the order of the ranking. A "
        "score that looks at raw features sees these differences, which say nothing of the classes."
    )
    digits = NumberFormat.for_column([value for row in rows for value in (row.mean, row.standard_deviation)], digits=3)
    table = table_of(
        rows,
        [
            (Column("Model"), lambda row: words(row.model)),
            (Column("Mean", numeric=True), lambda row: number(row.mean, digits)),
            (Column("Standard deviation", numeric=True), lambda row: number(row.standard_deviation, digits)),
            (Column("Dispersion", numeric=True), lambda row: number(row.dispersion, _THREE)),
        ],
        caption="Size and spread of features",
        file_name="feature-spread",
        notes=[
            "Dispersion: dis of ITM's eq. 12, the mean distance of standardised features to the mean of their class, over √d. "
            "Near 1: the images of a class lie no nearer to one another than those of all."
        ],
    )
    return [Figure([drawing], caption=caption), Folded("Size and spread as a table", [table])]


def _by_weight(record: RankingRecord, features: FeaturesRecord) -> list[Block]:
    """ITM with λ L_pc in its loss, and what becomes of the order."""
    order, truth = _order(record), record.ground_truth
    rows = sorted(features.itm_by_weight, key=lambda row: order[row.model])
    lines: list[list[Cell]] = [[words(row.model), *(number(value, _THREE) for value in row.values)] for row in rows]
    columns = list(zip(*(row.values for row in rows), strict=True))
    lines.append([words("Agreement with λ = 0"), *(number(_agreement(columns[0], values), _TWO) for values in columns)])
    notes = ["λ: weight of ‖E⁽ⁿ⁾ − Ê‖²/(BC) in ITM's eq. 8; the score has λ = 0. Agreement: weighted Kendall of the orders."]
    if truth is not None:
        known = [place for place, row in enumerate(rows) if row.model in truth.values]
        results = [truth.values[rows[place].model] for place in known]
        agreed = [_agreement(results, [values[place] for place in known]) for values in columns]
        lines.append([words(f"Agreement with {truth.column}"), *(number(value, _TWO) for value in agreed)])
    table = Table(
        caption="ITM with several weights λ of the pull to the pseudo-centres",
        columns=[Column("Model"), *(Column(f"λ = {weight:g}", numeric=True) for weight in features.loss_weights)],
        rows=lines,
        file_name="itm-loss-weights",
        notes=notes,
    )
    return [Folded("ITM's loss with a pull to the pseudo-centres", [table])]


def _agreement(one: Sequence[float], other: Sequence[float]) -> float | None:
    """None where one of them ties all models, or there are fewer than two."""
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return weighted_kendall(np.asarray(one), np.asarray(other))


def _order(record: RankingRecord) -> dict[str, int]:
    return {row.model: place for place, row in enumerate(record.primary_ranking.rows)}


_KINDS: dict[str, Callable[[NetworkKind], str]] = {
    "Architecture": lambda row: row.architecture,
    "Pretraining": lambda row: row.pretraining,
}


def kinds_section(source: Source[RankingRecord]) -> Section | None:
    """Figure 1 of ITM: where each score puts networks of a kind; None without two kinds, or where nobody asked."""
    record, features = source.record, source.record.features
    if features is None:
        return None
    blocks: list[Block] = []
    for what, kind_of in _KINDS.items():
        of_model = {row.model: kind_of(row) for row in features.kinds}
        if len(set(of_model.values())) > 1:
            blocks += _by_kind(source, record, what, of_model)
    if not blocks:
        return None
    return Section(name="kinds", title="By kind of network", part="evidence", blocks=blocks)


def _by_kind(source: Source[RankingRecord], record: RankingRecord, what: str, of_model: Mapping[str, str]) -> list[Block]:
    """Mean relative place of the networks of each kind, by every score and by the results of fine-tuning."""
    places = {
        record.title(ranking.score): _relative_places({row.model: -row.rank for row in ranking.rows if row.rank is not None})
        for ranking in sorted(record.rankings, key=lambda ranking: ranking.score != record.primary_score)
    }
    truth = record.ground_truth
    if truth is not None:
        places = {f"{truth.column} (fine-tuned)": _relative_places(truth.values), **places}
    kinds = sorted(set(of_model.values()))
    means: dict[str, list[float | None]] = {}
    for kind in kinds:
        own = [model for model, of_kind in of_model.items() if of_kind == kind]
        means[kind] = [_mean([of_score[model] for model in own if model in of_score]) for of_score in places.values()]
    drawn = list(places)[:_MOST_SERIES]
    figure = figure_for_screens(
        partial(
            dot_rows_figure,
            [DotRow(kind, values[:_MOST_SERIES]) for kind, values in means.items()],
            drawn,
            x_label="Mean relative place (0 = first, 1 = last)",
        ),
        identifier=f"{source.prefix}kinds-{what.lower()}",
        caption=(
            f"{what}: mean relative place of the models of each kind, by {joined(drawn)}. A score is fair to a kind where it "
            "puts it as far to the front as fine-tuning does; without fine-tuned results, scores that differ cannot both be."
        ),
    )
    columns = [Column(what), Column("Models", numeric=True), *(Column(title, numeric=True) for title in places)]
    rows: list[list[Cell]] = [
        [words(kind), whole(sum(own == kind for own in of_model.values())), *(number(value, _TWO) for value in values)]
        for kind, values in means.items()
    ]
    caption = f"Mean relative place by {what.lower()}: 0 = first, 1 = last"
    models = [f"{kind}: {', '.join(model for model, own in of_model.items() if own == kind)}." for kind in kinds]
    table = Table(caption=caption, columns=columns, rows=rows, file_name=f"kinds-{what.lower()}", notes=models)
    return [figure, Folded(f"{what} as a table", [table])]


def _relative_places(values: Mapping[str, float]) -> dict[str, float]:
    """0 for the largest value, 1 for the smallest; equal ones share a place."""
    if len(values) < 2:
        return {}
    ranks = scipy.stats.rankdata([-value for value in values.values()])
    return {model: float(rank - 1) / (len(values) - 1) for model, rank in zip(values, ranks, strict=True)}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
