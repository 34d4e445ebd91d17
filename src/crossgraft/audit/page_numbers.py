"""The numbers behind the outcomes of an audit: what a curve sums up to, the four groups, and what reaches the network."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.audit.record import (
    AuditCell,
    AuditDifference,
    AuditDifferencePoint,
    AuditEntry,
    AuditMetric,
    AuditPoint,
    AuditRecord,
)
from crossgraft.audit.result import NUMBERS, least_reliant
from crossgraft.report.blocks import Block, Folded, Items, Paragraph, Section
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Cell, Column, Table, interval, number, words
from crossgraft.words.formatting import NumberFormat, counted

_SWEPT = {
    "ood_drop_area": "O.o.d. drop area",
    "early_gap": "Early gap",
    "flip_share": "Crosses chance at",
    "iid_auc": "I.i.d. AUC",
    "flip_effect_positives": "Logit, positives",
    "flip_effect_negatives": "Logit, negatives",
}
_TRAINED = {
    "reverse_drop": "Reverse drop",
    "aligned_auc": "Aligned AUC",
    "both_auc": "AUC, all carry it",
    "pull": "Pull",
    "pull_over_start": "Beyond the start",
    "pull_over_shams": "Beyond shams",
    "flip_effect_positives": "Logit, positives",
    "flip_effect_negatives": "Logit, negatives",
}
_GAPS = {"true_positive_gap": "True positives", "false_positive_gap": "False positives", "positive_gap": "Called positive"}
_CELLS = ((False, False), (False, True), (True, False), (True, True))
"""(positive, artefact), in the order of the columns."""
_LOGITS = NumberFormat(decimals=2)


def named_entry(entry: AuditEntry) -> str:
    """Model, confounder and mitigation in a line."""
    return f"{entry.model}, {with_mitigation(entry)}"


def with_mitigation(entry: AuditEntry) -> str:
    """Confounder, and the mitigation where there is one."""
    return entry.confounder if entry.mitigation == "erm" else f"{entry.confounder}, {entry.mitigation}"


def has_several_models(record: AuditRecord) -> bool:
    """Whether tables need a column of models; of one the title tells."""
    return len({entry.model for entry in record.entries}) > 1


def metric_cell(metric: AuditMetric | None) -> Cell:
    """The value alone."""
    return number(None if metric is None else metric.value, NUMBERS)


def numbers_section(source: Source[AuditRecord]) -> Section | None:
    """What the curves of a sweep sum up to, or what a trained model does with the artefact; None where nothing was measured."""
    entries = [entry for entry in source.record.entries if entry.metrics]
    if not entries:
        return None
    is_trained = source.record.mode == "trained"
    titles = _TRAINED if is_trained else _SWEPT
    has_epochs = any(_last(entry, "best_epoch") is not None for entry in entries)
    first, several = next(iter(titles)), has_several_models(source.record)
    table = Table(
        caption="Behind the outcomes",
        columns=[
            *([Column("Model")] if several else []),
            Column("Confounder"),
            *(
                column
                for name, title in titles.items()
                for column in (Column(title, numeric=True), *([INTERVAL] if name == first else []))
            ),
            *([Column("Epoch kept", numeric=True)] if has_epochs else []),
        ],
        rows=[
            [*([words(entry.model)] if several else []), *_numbers_row(entry, list(titles), has_epochs=has_epochs)]
            for entry in entries
        ],
        file_name="behind_the_outcomes",
        notes=[_of_trained() if is_trained else _of_sweeps(has_epochs)],
        page_only=True,
    )
    return Section(name="numbers", title="Numbers", part="evidence", blocks=[table])


def groups_section(source: Source[AuditRecord]) -> Section | None:
    """Accuracy of the four groups and gaps between images with the artefact and without; None where nothing was measured."""
    rows = [(entry, entry.points[-1]) for entry in source.record.entries if entry.points and entry.points[-1].cells]
    if not rows:
        return None
    several = has_several_models(source.record)
    is_swept = source.record.mode != "trained"  # a trained model picks nothing by val
    table = Table(
        caption="Accuracy by class and artefact",
        columns=[
            *([Column("Model")] if several else []),
            Column("Confounder"),
            *(
                Column(
                    f"{'Positive' if positive else 'Negative'} {'with' if artefact else 'without'}",
                    numeric=True,
                    csv_titles=_fields(positive, artefact),
                )
                for positive, artefact in _CELLS
            ),
            *([Column("Worst, val's threshold", numeric=True)] if is_swept else []),
            *(Column(title, numeric=True) for title in _GAPS.values()),
        ],
        rows=[
            [
                *([words(entry.model)] if several else []),
                words(with_mitigation(entry)),
                *_cells(point.cells),
                *([metric_cell(point.metric("worst_group_accuracy_by_val"))] if is_swept else []),
                *(metric_cell(entry.metric(name)) for name in _GAPS),
            ]
            for entry, point in rows
        ],
        file_name="groups",
        notes=[_groups_explained(source.record, [point for _, point in rows])],
    )
    return Section(name="groups", title="Groups", part="evidence", blocks=[table])


def reach_blocks(record: AuditRecord) -> list[Block]:
    """How much of each artefact is left at the input of each network, and whether its features show it."""
    native = {row.confounder: row.rms for row in record.confounders}
    seen = [entry for entry in record.entries if entry.mitigation == "erm" and entry.input_rms is not None]
    if not seen:
        return []
    several = has_several_models(record)
    table = Table(
        caption="What of it reaches the network",
        columns=[
            *([Column("Model")] if several else []),
            Column("Confounder"),
            Column("rms, grey levels", numeric=True),
            Column("rms at the input", numeric=True),
            Column("Detectability", numeric=True),
            INTERVAL,
        ],
        rows=[
            [
                *([words(entry.model)] if several else []),
                words(entry.confounder),
                number(native.get(entry.confounder), _LOGITS),
                number(entry.input_rms, NUMBERS),
                metric_cell(entry.detectability),
                _ends(entry.detectability),
            ]
            for entry in seen
        ],
        file_name="reach",
        notes=[
            "At the input: after resizing and normalisation, in standard deviations of the input. Detectability below 0.6 is not "
            "assessable, and no pass."
        ],
    )
    return [table]


def _numbers_row(entry: AuditEntry, names: Sequence[str], *, has_epochs: bool) -> list[Cell]:
    cells = [words(with_mitigation(entry))]
    for place, name in enumerate(names):
        found = entry.metric(name)
        cells.append(_shown(name, found))
        if place == 0:
            cells.append(_ends(found))
    return [*cells, metric_cell(_last(entry, "best_epoch"))] if has_epochs else cells


def _shown(name: str, found: AuditMetric | None) -> Cell:
    value = None if found is None else found.value
    if name == "flip_share" and found is not None and value is None:
        return Cell("never", (None,))
    return number(value, _LOGITS if name.startswith("flip") else NUMBERS)


def _ends(found: AuditMetric | None) -> Cell:
    return interval(None if found is None else found.low, None if found is None else found.high, NUMBERS)


def _last(entry: AuditEntry, name: str) -> AuditMetric | None:
    """A metric at the largest share."""
    return entry.points[-1].metric(name) if entry.points else None


def _cells(cells: Sequence[AuditCell]) -> list[Cell]:
    """One per group, the worst one strong; those that a model was not asked about stay empty."""
    found = {(cell.positive, cell.artefact): cell for cell in cells}
    worst = min(cell.accuracy for cell in cells)
    shown: list[Cell] = []
    for place in _CELLS:
        cell = found.get(place)
        if cell is None:
            shown.append(Cell("", (None, 0)))
            continue
        text = NUMBERS(cell.accuracy) + (f" (of {cell.num_images})" if cell.is_small else "")
        shown.append(Cell(text, (cell.accuracy, cell.num_images), strong=cell.accuracy == worst))
    return shown


def _fields(positive: bool, artefact: bool) -> tuple[str, str]:
    name = f"{'positive' if positive else 'negative'}_{'with' if artefact else 'without'}"
    return name, f"{name}_images"


def _groups_explained(record: AuditRecord, points: Sequence[AuditPoint]) -> str:
    sizes = sorted({cell.num_images for point in points for cell in point.cells})
    size = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    few = " Fewer than ten images say little: their number stands beside the accuracy." if sizes[0] < 10 else ""
    how = (
        "Decided at the model's own threshold, or at 0.5 where it has none."
        if record.mode == "trained"
        else "Decided at 0.5, at the largest share, mean over folds; the worst group also at the threshold that val picks."
    )
    return (
        f"{how} {size} images in a group; the worst one is bold.{few} The last three columns are gaps, with the artefact minus "
        "without: rates of true and of false positives (equalised odds), and share called positive (demographic parity)."
    )


def _of_sweeps(has_epochs: bool) -> str:
    epoch = " Epoch kept: the one that val picks, mean over folds at the largest share." if has_epochs else ""
    return (
        "O.o.d. drop area: area that the o.o.d. AUC loses over the shares, with its interval over folds. Early gap: gap at the "
        "smallest share above 0, less that at 0. Crosses chance at: share from which on the artefact speaks louder than the "
        f"class. The others at the largest share. Logit: its mean change when an image gets the artefact, by class.{epoch}"
    )


def _of_trained() -> str:
    return (
        "Reverse drop: clean AUC minus aligned AUC (positives carry the artefact, negatives do not), with its interval; above 0 "
        "the artefact speaks for the negative class. Pull: mean change of the logit towards the class in question, in standard "
        "deviations within a class; beyond that of heads on the network that the model started from; and beyond that of shams. "
        "Empty: it was not needed for the verdict, or there is none. Logit: its mean change when an image gets the artefact, by "
        "class."
    )


_OVER_PATIENTS = Column("95 % interval", numeric=True, csv_titles=("patients_low", "patients_high"))
_MOST_ROWS = 600


def differences_section(source: Source[AuditRecord]) -> Section | None:
    """Every model beside the one that relies least; None where there is nothing to compare."""
    record = source.record
    if not record.differences:
        return None
    last = record.differences[0].points[-1].share
    several = len({each.confounder for each in record.differences}) > 1
    table = Table(
        caption="Differences to the model that relies least",
        columns=[
            *([Column("Confounder")] if several else []),
            Column("Model", csv_titles=("model", "compared_with")),
            Column("SRI difference", numeric=True),
            _OVER_PATIENTS,
            Column("O.o.d. AUC difference", numeric=True, page_only=True),
            Column("Its interval", numeric=True, csv_titles=("ood_low", "ood_high"), page_only=True),
            Column("p, Holm", numeric=True, page_only=True, csv_titles=("p_holm", "p_over_folds")),
        ],
        rows=[[*([words(each.confounder)] if several else []), *_difference_row(each)] for each in record.differences],
        file_name="differences",
        row_heading=1 if several else 0,
        notes=[
            "Model minus the one with the smallest SRI of all that can be assessed. Since the numbers chose it, differences to "
            "it are a little too large; other pairs are not shown.",
            "Intervals are over the patients of the test part, or its images, and know that both models got the same ones: go by "
            "them.",
        ],
    )
    blocks: list[Block] = [
        Items(least_reliant(record)),
        table,
        _explained(record.differences, record.num_folds, last),
        *_by_share(record.differences, several=several),
    ]
    return Section(name="differences", title="Models beside each other", part="evidence", blocks=blocks)


def _by_share(differences: list[AuditDifference], *, several: bool) -> list[Block]:
    """The o.o.d. AUC share by share, folded away; very long tables are in differences.csv alone."""
    rows = [(each, point) for each in differences for point in each.points]
    if len(rows) > _MOST_ROWS:
        return []
    table = Table(
        caption="Differences share by share",
        columns=[
            *([Column("Confounder")] if several else []),
            Column("Model"),
            Column("Share", numeric=True),
            Column("O.o.d. AUC difference", numeric=True),
            _OVER_PATIENTS,
            Column("p over folds", numeric=True),
            Column("p, Holm", numeric=True),
        ],
        rows=[[*([words(each.confounder)] if several else []), words(each.model), *_point_row(point)] for each, point in rows],
        file_name="differences_by_share",
        row_heading=1 if several else 0,
        page_only=True,
    )
    return [Folded("Share by share", [table])]


def _difference_row(difference: AuditDifference) -> list[Cell]:
    last, summed = difference.points[-1], difference.reliance
    return [
        Cell(difference.model, (difference.model, difference.reference)),
        metric_cell(summed),
        _differences_ends(summed),
        metric_cell(last.ood),
        _differences_ends(last.ood),
        Cell(NUMBERS(last.p_value_holm), (last.p_value_holm, last.p_value)),
    ]


def _point_row(point: AuditDifferencePoint) -> list[Cell]:
    share = Cell(f"{point.share:g}", (point.share,))
    return [share, metric_cell(point.ood), _differences_ends(point.ood), _p(point.p_value), _p(point.p_value_holm)]


def _differences_ends(found: AuditMetric) -> Cell:
    return interval(found.patients_low, found.patients_high, NUMBERS)


def _p(value: float) -> Cell:
    return number(value, NUMBERS)


def _explained(differences: list[AuditDifference], num_folds: int, last: float) -> Paragraph:
    """Columns that the terminal leaves out."""
    said = f"O.o.d. AUC at the share {last:g}; every share is in differences.csv."
    tests = max(
        sum(len(each.points) for each in differences if each.model == model) for model in {each.model for each in differences}
    )
    floor = differences[0].points[-1].floor
    if num_folds > 1:
        said += (
            f" p: exact permutation test of {num_folds} folds against {num_folds}, at least {NUMBERS(floor)}. "
            f"Holm: adjusted over the {counted(tests, 'test')} of a model, every share and confounder; at least "
            f"{NUMBERS(min(1.0, tests * floor))}."
        )
    return Paragraph(said, tone="quiet", page_only=True)
