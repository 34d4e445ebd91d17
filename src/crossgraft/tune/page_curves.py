"""How loss, metric and features went on from epoch to epoch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from crossgraft.report.blocks import Block, Figure, Folded, Section, figure_for_screens
from crossgraft.report.plots.svg import shortened
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, number, table_of, whole, words
from crossgraft.tune.plots import MOST_NAMED_BLOCKS, BlockCurve, LearningCurve, gradient_norms_figure, learning_curves_figure
from crossgraft.tune.record import EpochRow, GradientNormsRecord, TuningRecord
from crossgraft.tune.words import ADAPTED, CKA
from crossgraft.words.formatting import NumberFormat, counted


def gradients_section(source: Source[TuningRecord]) -> Section | None:
    """One curve per block of the first training that was picked, and numbers of all blocks; None where nothing was logged."""
    records = source.record.gradient_norms
    if not records:
        return None
    first = records[0]
    curves = [BlockCurve(each.block, each.averages) for each in first.blocks]
    draw = partial(gradient_norms_figure, curves, first.steps, y_label="Norm of the gradient (moving average)")
    caption = _caption(first, others=len(records) - 1)
    figure = figure_for_screens(draw, identifier=f"{source.prefix}gradients", caption=caption)
    tables = [_table(each, several=len(records) > 1) for each in records]
    blocks = [figure, Folded("Every block as a table", tables)]
    return Section(name="gradients", title="Gradients by block", part="evidence", blocks=blocks)


def _caption(record: GradientNormsRecord, *, others: int) -> str:
    which = f" Of {counted(others + 1, 'training')} that were picked, this is {record.job}." if others else ""
    unnamed = (
        f" Of {len(record.blocks)} blocks, those at regular distances are named."
        if len(record.blocks) > MOST_NAMED_BLOCKS
        else ""
    )
    return (
        "L2 norm of the gradient of the loss with all its terms for the trained parameters of each building block, before "
        "clipping, from the first block (blue) to the last (red). Each curve is an exponential moving average: a step counts "
        f"{record.smoothing:g} times what the step after it counts. Every step is in gradient_norms.csv.{which}{unnamed}"
    )


def _table(record: GradientNormsRecord, *, several: bool) -> Table:
    norms = NumberFormat.for_column([value for row in record.blocks for value in (row.median, row.largest)], digits=3)
    return table_of(
        record.blocks,
        [
            (Column("Block"), lambda row: words(row.block)),
            (Column("Median norm", numeric=True), lambda row: number(row.median, norms)),
            (Column("Largest norm", numeric=True), lambda row: number(row.largest, norms)),
            (Column("Spikes", numeric=True), lambda row: whole(row.num_spikes)),
        ],
        caption=f"Gradients by block{f', {record.job}' if several else ''}",
        file_name=f"gradients-{record.job}" if several else "gradients",
        notes=[
            f"Over {counted(record.num_steps, 'step')}. A spike is a step with more than twice the moving average of the step "
            "before."
        ],
    )


_MOST_CURVES = 6
_METRIC = NumberFormat(decimals=3)
_SIMILARITY = "Similarity to the pretrained network (CKA)"
_DEBIASED = "Similarity to the pretrained network (debiased CKA)"
_DRIFT = (
    "Linear CKA compares features of the validation images with those of the pretrained network: 1 is the same up to rotation "
    "and scale."
)
_BIASED = " The biased one is above 0 even for unrelated features, the more the fewer images there are."

_KEPT = " The dashed line is the epoch whose weights were kept."


def curves_section(source: Source[TuningRecord]) -> Section | None:
    """Loss and metric by epoch, and the same numbers as a table."""
    history = source.record.history
    if not history:
        return None
    jobs = _jobs(source.record)
    figure = _one_job(source, jobs[0]) if len(jobs) == 1 else _many_jobs(source, jobs)
    blocks: list[Block] = [figure, *_similarity(source, jobs)]
    blocks.append(Folded("Every epoch as a table", [_epochs(history, len(jobs) > 1)]))
    return Section(name="curves", title="Learning curves", part="evidence", blocks=blocks)


_MOST_RUNS, _LONGEST_NAME = 12, 40


def curves_of_several(sources: Mapping[int, Source[TuningRecord]]) -> list[Block]:
    """The selection metric by epoch of several runs in one figure, one for each metric (Figure 2 of ITM)."""
    groups: defaultdict[str, dict[int, Source[TuningRecord]]] = defaultdict(dict)
    for run, source in sources.items():
        if source.record.history:
            groups[selection_title(source.record)][run] = source
    return [_together(title, alike) for title, alike in groups.items() if len(alike) > 1]


def _together(title: str, sources: Mapping[int, Source[TuningRecord]]) -> Figure:
    curves: list[LearningCurve] = []
    for place, (run, source) in enumerate(sources.items()):
        record = source.record
        values = [row.val_metric for row in _rows(record, _jobs(record)[0])]
        curves.append(LearningCurve(f"{run}. {shortened(record.model.name, _LONGEST_NAME)}", values, place >= _MOST_RUNS))
    draw = partial(learning_curves_figure, _with_values(curves), y_label=f"{title} (validation)", best_epoch=None, head_epochs=0)
    several = any(len(_jobs(source.record)) > 1 for source in sources.values())
    data = {source.record.dataset.name for source in sources.values()}
    caption = (
        f"{title} on validation images after each epoch, of {counted(len(sources), 'run')}."
        f"{' Of runs with several trainings, the first that was picked.' if several else ''}"
        f"{'' if len(data) == 1 else ' They are of several data sets, whose values do not compare.'}"
        " A curve that still rises at its end had not converged."
    )
    identifier = f"together-{'-'.join(map(str, sources))}"
    return figure_for_screens(draw, identifier=identifier, caption=caption)


def _jobs(record: TuningRecord) -> list[str]:
    """Jobs with a history, the picked ones first."""
    picked = [point.job for point in record.grid if point.picked]
    with_history = dict.fromkeys(row.job for row in record.history)
    return sorted(with_history, key=lambda job: job not in picked)


def _rows(record: TuningRecord, job: str) -> list[EpochRow]:
    return [row for row in record.history if row.job == job]


def _one_job(source: Source[TuningRecord], job: str) -> Figure:
    rows = _rows(source.record, job)
    best = next((place for place, row in enumerate(rows, start=1) if row.is_best), None)
    head = sum(row.stage == "head" for row in rows)
    loss = [
        LearningCurve("training", [row.train_loss for row in rows]),
        LearningCurve("validation", [row.val_loss for row in rows]),
    ]
    metric = [LearningCurve("validation", [row.val_metric for row in rows])]
    drawings = [
        learning_curves_figure(curves, y_label=label, best_epoch=best, head_epochs=head, identifier=f"{source.prefix}{name}")
        for curves, label, name in (
            (_with_values(loss), "Loss", "loss"),
            (_with_values(metric), f"{selection_title(source.record)} (validation)", "val-metric"),
        )
        if curves
    ]
    kept = _KEPT if best is not None else ""
    shade = " In the shaded epochs only the head was trained." if head else ""
    caption = f"What each epoch gave.{kept}{shade} A validation loss that rises while the training loss falls is over-fitting."
    return Figure(drawings, caption=caption)


def _many_jobs(source: Source[TuningRecord], jobs: Sequence[str]) -> Figure:
    record = source.record
    named = _named(record, jobs)
    quantities: list[tuple[str, str, Callable[[EpochRow], float | None]]] = [
        ("Validation loss", "loss", lambda row: row.val_loss),
        (f"{selection_title(record)} (validation)", "val-metric", lambda row: row.val_metric),
    ]
    drawings = []
    for label, name, value in quantities:
        curves = _with_values([LearningCurve(job, [value(row) for row in _rows(record, job)], job not in named) for job in jobs])
        if curves:
            drawings.append(
                learning_curves_figure(curves, y_label=label, best_epoch=None, head_epochs=0, identifier=f"{source.prefix}{name}")
            )
    others = len(jobs) - len(named)
    faint = f" Thin: {counted(others, 'other run')}." if others else ""
    return Figure(drawings, caption=f"Coloured: the runs that were picked.{faint}")


def _named(record: TuningRecord, jobs: Sequence[str]) -> list[str]:
    """The runs that get a colour and a name."""
    picked = {point.job for point in record.grid if point.picked} or set(jobs)
    return [job for job in jobs if job in picked][:_MOST_CURVES]


def _similarity(source: Source[TuningRecord], jobs: Sequence[str]) -> list[Figure]:
    """How far features moved away from the pretrained ones; nothing where they were not compared."""
    record = source.record
    adapted = any(row.val_cka_debiased_adapted is not None for row in record.history)
    if len(jobs) == 1:
        rows = _rows(record, jobs[0])
        debiased = [row.val_cka_debiased for row in rows]
        if adapted:
            curves = [
                LearningCurve("pretrained", debiased),
                LearningCurve("adapted", [row.val_cka_debiased_adapted for row in rows]),
            ]
        else:
            curves = [LearningCurve("biased", [row.val_cka for row in rows]), LearningCurve("debiased", debiased)]
        best = next((place for place, row in enumerate(rows, start=1) if row.is_best), None)
        head = sum(row.stage == "head" for row in rows)
    else:
        named, best, head = _named(record, jobs), None, 0
        curves = [LearningCurve(job, _to_start(record, job), job not in named) for job in jobs]
    curves = _with_values(curves)
    if not curves:
        return []
    target = None if record.keep is None else record.keep.target
    label = _SIMILARITY if len(jobs) == 1 and not adapted else _DEBIASED
    draw = partial(learning_curves_figure, curves, y_label=label, best_epoch=best, head_epochs=head, target=target)
    asked = "" if target is None else f" The dotted line is what was asked for (--keep {target:g})."
    of_two = "" if len(jobs) > 1 else f" {ADAPTED}" if adapted else _BIASED
    caption = _DRIFT + of_two + (_KEPT if best is not None else "") + asked
    return [figure_for_screens(draw, identifier=f"{source.prefix}similarity", caption=caption)]


def _to_start(record: TuningRecord, job: str) -> list[float | None]:
    """Similarity to the network that training started from, as ``--keep`` sees it."""
    adapts = record.batch_norm is not None and record.batch_norm.mode == "adapt"
    return [row.val_cka_debiased_adapted if adapts else row.val_cka_debiased for row in _rows(record, job)]


def _with_values(curves: Sequence[LearningCurve]) -> list[LearningCurve]:
    return [curve for curve in curves if any(value is not None for value in curve.values)]


def selection_title(record: TuningRecord) -> str:
    """The title of the metric that selection looked at."""
    row_of_metric = next((row for row in record.metrics if row.metric == record.selection_metric), None)
    return row_of_metric.title if row_of_metric is not None else record.selection_metric.replace("_", " ").capitalize()


def _epochs(history: Sequence[EpochRow], several: bool) -> Table:
    terms = list(dict.fromkeys(name for row in history for name in row.terms))
    loss = NumberFormat.for_column([value for row in history for value in (row.train_loss, row.val_loss)], digits=4)
    compared = [name for name in CKA if any(getattr(row, f"val_{name}") is not None for row in history)]
    rates = NumberFormat(decimals=1, scientific=True)
    return table_of(
        history,
        [
            *([(Column("Run"), lambda row: words(row.job))] if several else []),
            (Column("Epoch", numeric=True), lambda row: whole(row.epoch)),
            (Column("Trained"), lambda row: words("head" if row.stage == "head" else "as planned")),
            (Column("Learning rate", numeric=True), lambda row: number(row.learning_rate, rates)),
            (Column("Training loss", numeric=True), lambda row: number(row.train_loss, loss)),
            *((Column(name, numeric=True), partial(_term, name=name)) for name in terms),
            (Column("Validation loss", numeric=True), lambda row: number(row.val_loss, loss)),
            (Column("Validation metric", numeric=True), lambda row: number(row.val_metric, _METRIC)),
            *((Column(CKA[name], numeric=True), partial(_similar, name=name)) for name in compared),
            (Column("Kept"), lambda row: words("kept" if row.is_best else None)),
            (Column("Seconds", numeric=True), lambda row: number(row.seconds, NumberFormat(decimals=1))),
        ],
        caption="Epochs",
        file_name="epochs",
        notes=[ADAPTED] if "cka_adapted" in compared else [],
    )


def _term(row: EpochRow, name: str) -> Cell:
    return number(row.terms.get(name), NumberFormat(decimals=4))


def _similar(row: EpochRow, name: str) -> Cell:
    return number(getattr(row, f"val_{name}"), _METRIC)
