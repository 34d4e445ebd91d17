"""Models of an audit beside the one that relies least: intervals by patient, and an exact test over folds."""

from __future__ import annotations

from crossgraft.audit.page_numbers import metric_cell
from crossgraft.audit.record import AuditDifference, AuditDifferencePoint, AuditMetric, AuditRecord
from crossgraft.audit.words import NUMBERS, least_reliant
from crossgraft.report.blocks import Block, Folded, Items, Paragraph, Section
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, interval, number, words
from crossgraft.words.formatting import counted

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
        rows=[
            [*([words(each.confounder)] if several else []), words(each.model), *_point_row(point)]
            for each, point in rows
        ],
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
        _ends(summed),
        metric_cell(last.ood),
        _ends(last.ood),
        Cell(NUMBERS(last.p_value_holm), (last.p_value_holm, last.p_value)),
    ]


def _point_row(point: AuditDifferencePoint) -> list[Cell]:
    share = Cell(f"{point.share:g}", (point.share,))
    return [share, metric_cell(point.ood), _ends(point.ood), _p(point.p_value), _p(point.p_value_holm)]


def _ends(found: AuditMetric) -> Cell:
    return interval(found.patients_low, found.patients_high, NUMBERS)


def _p(value: float) -> Cell:
    return number(value, NUMBERS)


def _explained(differences: list[AuditDifference], num_folds: int, last: float) -> Paragraph:
    """Columns that the terminal leaves out."""
    said = f"O.o.d. AUC at the share {last:g}; every share is in differences.csv."
    tests = max(
        sum(len(each.points) for each in differences if each.model == model)
        for model in {each.model for each in differences}
    )
    floor = differences[0].points[-1].floor
    if num_folds > 1:
        said += (
            f" p: exact permutation test of {num_folds} folds against {num_folds}, at least {NUMBERS(floor)}. "
            f"Holm: adjusted over the {counted(tests, 'test')} of a model, every share and confounder; at least "
            f"{NUMBERS(min(1.0, tests * floor))}."
        )
    return Paragraph(said, tone="quiet", page_only=True)
