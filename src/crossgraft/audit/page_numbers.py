"""The numbers behind the outcomes of an audit: what a curve sums up to, the four groups, and what reaches the network."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crossgraft.audit.record import AuditDifference, AuditEntry, AuditMetric, AuditPoint, AuditRecord
from crossgraft.audit.words import NUMBERS, least_reliant
from crossgraft.report.blocks import Block, Folded, Items, Paragraph, Section
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Cell, Column, interval, number, table_of, words
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
_LOGITS = NumberFormat(decimals=2)
EntryColumn = tuple[Column, Callable[[AuditEntry], Cell]]


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


def ends_cell(metric: AuditMetric | None) -> Cell:
    """Both ends over folds; of a trained model over patients."""
    return interval(None if metric is None else metric.low, None if metric is None else metric.high, NUMBERS)


def patients_cell(metric: AuditMetric | None) -> Cell:
    """Both ends over patients."""
    low, high = (None, None) if metric is None else (metric.patients_low, metric.patients_high)
    return interval(low, high, NUMBERS)


def model_column(record: AuditRecord) -> list[EntryColumn]:
    """The model of each entry, where there are several."""
    return [(Column("Model"), lambda entry: words(entry.model))] if has_several_models(record) else []


def metric_column(title: str, name: str) -> EntryColumn:
    """A metric of each entry, without its interval."""
    return Column(title, numeric=True), lambda entry: metric_cell(entry.metric(name))


def numbers_section(source: Source[AuditRecord]) -> Section | None:
    """What the curves of a sweep sum up to, or what a trained model does with the artefact; None where nothing was measured."""
    entries = [entry for entry in source.record.entries if entry.metrics]
    if not entries:
        return None
    is_trained = source.record.mode == "trained"
    titles = _TRAINED if is_trained else _SWEPT
    has_epochs = any(_epoch_kept(entry) is not None for entry in entries)
    (first, title), *others = titles.items()
    table = table_of(
        entries,
        [
            *model_column(source.record),
            (Column("Confounder"), lambda entry: words(with_mitigation(entry))),
            metric_column(title, first),
            (INTERVAL, lambda entry: ends_cell(entry.metric(first))),
            *(_behind_the_outcome(title, name) for name, title in others),
            *([(Column("Epoch kept", numeric=True), lambda entry: metric_cell(_epoch_kept(entry)))] if has_epochs else []),
        ],
        caption="Behind the outcomes",
        file_name="behind_the_outcomes",
        notes=[_of_trained() if is_trained else _of_sweeps(has_epochs)],
        page_only=True,
    )
    return Section(name="numbers", title="Numbers", part="evidence", blocks=[table])


def _behind_the_outcome(title: str, name: str) -> EntryColumn:
    """Changes of logits have fewer decimals, and a curve that never crosses chance has no share where it does."""

    def cell(entry: AuditEntry) -> Cell:
        metric = entry.metric(name)
        if name == "flip_share" and metric is not None and metric.value is None:
            return Cell("never", (None,))
        return number(None if metric is None else metric.value, _LOGITS if name.startswith("flip") else NUMBERS)

    return Column(title, numeric=True), cell


def groups_section(source: Source[AuditRecord]) -> Section | None:
    """Accuracy of the four groups and gaps between images with the artefact and without; None where nothing was measured."""
    entries = [entry for entry in source.record.entries if entry.points and entry.points[-1].cells]
    if not entries:
        return None
    is_swept = source.record.mode != "trained"  # a trained model picks nothing by val
    by_val = (
        Column("Worst, val's threshold", numeric=True),
        lambda entry: metric_cell(_last(entry, "worst_group_accuracy_by_val")),
    )
    table = table_of(
        entries,
        [
            *model_column(source.record),
            (Column("Confounder"), lambda entry: words(with_mitigation(entry))),
            *(_group_column(positive, artefact) for positive in (False, True) for artefact in (False, True)),
            *([by_val] if is_swept else []),
            *(metric_column(title, name) for name, title in _GAPS.items()),
        ],
        caption="Accuracy by class and artefact",
        file_name="groups",
        notes=[_groups_explained(source.record, [entry.points[-1] for entry in entries])],
    )
    return Section(name="groups", title="Groups", part="evidence", blocks=[table])


def reach_blocks(record: AuditRecord) -> list[Block]:
    """How much of each artefact is left at the input of each network, and whether its features show it."""
    native = {row.confounder: row.rms for row in record.confounders}
    seen = [entry for entry in record.entries if entry.mitigation == "erm" and entry.input_rms is not None]
    if not seen:
        return []
    table = table_of(
        seen,
        [
            *model_column(record),
            (Column("Confounder"), lambda entry: words(entry.confounder)),
            (Column("rms, grey levels", numeric=True), lambda entry: number(native.get(entry.confounder), _LOGITS)),
            (Column("rms at the input", numeric=True), lambda entry: number(entry.input_rms, NUMBERS)),
            (Column("Detectability", numeric=True), lambda entry: metric_cell(entry.detectability)),
            (INTERVAL, lambda entry: ends_cell(entry.detectability)),
        ],
        caption="What of it reaches the network",
        file_name="reach",
        notes=[
            "At the input: after resizing and normalisation, in standard deviations of the input. Detectability below 0.6 is not "
            "assessable, and no pass."
        ],
    )
    return [table]


def _epoch_kept(entry: AuditEntry) -> AuditMetric | None:
    return _last(entry, "best_epoch")


def _last(entry: AuditEntry, name: str) -> AuditMetric | None:
    """A metric at the largest share."""
    return entry.points[-1].metric(name) if entry.points else None


def _group_column(positive: bool, artefact: bool) -> EntryColumn:
    """Accuracy of one group, strong where it is the worst; one that a model was not asked about stays empty."""
    title = f"{'Positive' if positive else 'Negative'} {'with' if artefact else 'without'}"
    field = title.lower().replace(" ", "_")

    def cell(entry: AuditEntry) -> Cell:
        groups = entry.points[-1].cells
        group = next((each for each in groups if (each.positive, each.artefact) == (positive, artefact)), None)
        if group is None:
            return Cell("", (None, 0))
        text = NUMBERS(group.accuracy) + (f" (of {group.num_images})" if group.is_small else "")
        is_worst = group.accuracy == min(each.accuracy for each in groups)
        return Cell(text, (group.accuracy, group.num_images), strong=is_worst)

    return Column(title, numeric=True, csv_titles=(field, f"{field}_images")), cell


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
    table = table_of(
        record.differences,
        [
            *([(Column("Confounder"), lambda row: words(row.confounder))] if several else []),
            (Column("Model", csv_titles=("model", "compared_with")), lambda row: Cell(row.model, (row.model, row.reference))),
            (Column("SRI difference", numeric=True), lambda row: metric_cell(row.reliance)),
            (_OVER_PATIENTS, lambda row: patients_cell(row.reliance)),
            (Column("O.o.d. AUC difference", numeric=True, page_only=True), lambda row: metric_cell(row.points[-1].ood)),
            (
                Column("Its interval", numeric=True, csv_titles=("ood_low", "ood_high"), page_only=True),
                lambda row: patients_cell(row.points[-1].ood),
            ),
            (Column("p, Holm", numeric=True, page_only=True, csv_titles=("p_holm", "p_over_folds")), _p_of_last),
        ],
        caption="Differences to the model that relies least",
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


def _p_of_last(row: AuditDifference) -> Cell:
    last = row.points[-1]
    return Cell(NUMBERS(last.p_value_holm), (last.p_value_holm, last.p_value))


def _by_share(differences: list[AuditDifference], *, several: bool) -> list[Block]:
    """The o.o.d. AUC share by share, folded away; very long tables are in differences.csv alone."""
    rows = [(each, point) for each in differences for point in each.points]
    if len(rows) > _MOST_ROWS:
        return []
    table = table_of(
        rows,
        [
            *([(Column("Confounder"), lambda row: words(row[0].confounder))] if several else []),
            (Column("Model"), lambda row: words(row[0].model)),
            (Column("Share", numeric=True), lambda row: Cell(f"{row[1].share:g}", (row[1].share,))),
            (Column("O.o.d. AUC difference", numeric=True), lambda row: metric_cell(row[1].ood)),
            (_OVER_PATIENTS, lambda row: patients_cell(row[1].ood)),
            (Column("p over folds", numeric=True), lambda row: number(row[1].p_value, NUMBERS)),
            (Column("p, Holm", numeric=True), lambda row: number(row[1].p_value_holm, NUMBERS)),
        ],
        caption="Differences share by share",
        file_name="differences_by_share",
        row_heading=1 if several else 0,
        page_only=True,
    )
    return [Folded("Share by share", [table])]


def _explained(differences: list[AuditDifference], num_folds: int, last: float) -> Paragraph:
    """Columns that the terminal leaves out."""
    text = f"O.o.d. AUC at the share {last:g}; every share is in differences.csv."
    tests = max(
        sum(len(each.points) for each in differences if each.model == model) for model in {each.model for each in differences}
    )
    floor = differences[0].points[-1].floor
    if num_folds > 1:
        text += (
            f" p: exact permutation test of {num_folds} folds against {num_folds}, at least {NUMBERS(floor)}. "
            f"Holm: adjusted over the {counted(tests, 'test')} of a model, every share and confounder; at least "
            f"{NUMBERS(min(1.0, tests * floor))}."
        )
    return Paragraph(text, tone="quiet", page_only=True)
