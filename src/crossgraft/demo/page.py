"""What the toy demo shows around its ranking: the price of a careless split, fine-tuning as a check, the best model tuned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from crossgraft.audit.record import AuditEntry, AuditMetric
from crossgraft.audit.words import NUMBERS, OUTCOMES
from crossgraft.demo.plot_split_comparison import split_figure
from crossgraft.demo.record import (
    AuditedModelRecord,
    BestModelRecord,
    DemoPrediction,
    DemoRecord,
    DemoSelectionRecord,
    FineTunedRow,
    SplitComparison,
)
from crossgraft.demo.story_page import STORY
from crossgraft.metrics.page import metrics_table
from crossgraft.metrics.words import metric_in_words
from crossgraft.rank.page import BELOW_THE_VERDICT, ranking_heading, ranking_verdict_section
from crossgraft.rank.page_scores import dots, intervals_by_model, rankings_section
from crossgraft.rank.ranking import refuse_incomplete
from crossgraft.rank.record import RankingRecord
from crossgraft.report.blocks import Block, Code, Figure, Folded, Gallery, Heading, Items, Paragraph, Section, Verdict
from crossgraft.report.kinds import Kind
from crossgraft.report.plots.scatter import Interval, scatter_figure
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Cell, Column, Table, interval, number, table_of, whole, words
from crossgraft.report.verdict import BEGIN
from crossgraft.select.page import cost_in_words, nothing_known, selected_in_words, val_section
from crossgraft.variants.page import trade_off, variants_table
from crossgraft.variants.words import answer_in_words
from crossgraft.words.formatting import NumberFormat, counted, joined


def audited_section(source: Source[DemoRecord]) -> Section | None:
    """What artefacts do to each way to fine-tune the best-ranked model; None in older records."""
    best = source.record.best_model
    audits = [] if best is None else best.audits
    if not audits:
        return None
    positive = audits[0].audit.positive
    pages = joined([f"{audit.audit_folder}/report.html" for audit in audits])
    blocks: list[Block] = [
        Paragraph(
            "Each model was asked about digits of the unseen writers as they are, and with an artefact: in the "
            f"{positive}s alone (it goes with the class), or in all the others (against it). None has seen the artefact in "
            "training, so what the AUC loses is how far another scanner can mislead the model."
        ),
        _audits_table(audits),
        Paragraph(f"The artefacts in pictures, and more: {pages} in the run directory of this demo.", tone="quiet"),
    ]
    return Section(name="audited", title="Can a scanner mislead it?", part="evidence", blocks=blocks)


def _audits_table(audits: Sequence[AuditedModelRecord]) -> Table:
    return Table(
        caption=f"{audits[0].audit.positive} against the other digits, of the unseen writers",
        columns=[
            Column("Trained"),
            Column("Artefact"),
            Column("Outcome"),
            Column("AUC drop", numeric=True),
            INTERVAL,
            Column("AUC as they are", numeric=True),
            Column("With the class", numeric=True),
            Column("Against it", numeric=True),
        ],
        rows=[_row(audit.variant, entry) for audit in audits for entry in audit.audit.entries],
        file_name="audits",
    )


def _row(variant: str, entry: AuditEntry) -> list[Cell]:
    drop, clean, aligned, against = (
        entry.metric(name) or AuditMetric(name=name, value=None) for name in ("auc_drop", "clean_auc", "aligned_auc", "ood_auc")
    )
    return [
        words(variant),
        words(entry.confounder),
        words(OUTCOMES[entry.outcome], strong=entry.outcome == "relies"),
        number(drop.value, NUMBERS),
        interval(drop.low, drop.high, NUMBERS),
        *(number(metric.value, NUMBERS) for metric in (clean, aligned, against)),
    ]


_ACCURACY = NumberFormat(decimals=3)


def selected_section(source: Source[DemoRecord]) -> Section | None:
    """What was trained for a quarter of the time, what was handed over, and its regret; None in older records."""
    selected = source.record.selected
    if selected is None:
        return None
    within = source.showing(selected.selection)
    blocks: list[Block] = [
        Paragraph(
            "To fine-tune every model tells which is best, and costs most. Here a quarter of that time was given: models are "
            "trained in the order of what is known of them elsewhere, and the best on val is handed over."
        ),
        Paragraph(selected_in_words(selected.selection)),
        Paragraph(cost_in_words(selected.selection)),
        *([] if (caveat := nothing_known(within)) is None else [Paragraph(caveat.text)]),
        Paragraph(_regret(selected)),
        *([] if (val := val_section(within)) is None else val.blocks),
        Paragraph(
            f"Why each of the others was not taken: {selected.select_folder}/report.html in the run directory of this demo.",
            tone="quiet",
        ),
        Paragraph("The same by hand:" if source.out else "The same by hand, typed in the run directory of this demo:"),
        Code(selected.command(source.out or ".")),
    ]
    return Section(name="selected", title="Select within a budget", part="evidence", blocks=blocks)


def _regret(selected: DemoSelectionRecord) -> str:
    """What the check that fine-tuned all models says of the choice."""
    number = counted(len(selected.selection.candidates), "model")
    reached = f"Was it a good choice? In the check above all {number} were fine-tuned: {selected.selection.selected} reached "
    if selected.best == selected.selection.selected:
        return f"{reached}{_ACCURACY(selected.accuracy)} on the unseen writers, the best of all."
    difference = _ACCURACY(selected.best_accuracy - selected.accuracy)
    interval = f"[{_ACCURACY(selected.regret_low)}, {_ACCURACY(selected.regret_high)}]"
    verdict = "they cannot be told apart" if selected.regret_low <= 0 <= selected.regret_high else "the best is better"
    return (
        f"{reached}{_ACCURACY(selected.accuracy)} on the unseen writers, and {selected.best}, the best, "
        f"{_ACCURACY(selected.best_accuracy)}. The regret is {difference}, 95 % interval {interval} over writers: {verdict}."
    )


def of_its_ranking(builder: Callable[[Source[RankingRecord]], Section | None]) -> Callable[[Source[DemoRecord]], Section | None]:
    """Let a section of a ranking read the ranking inside a demo."""
    return lambda source: builder(source.showing(source.record.ranking))


def demo_heading(source: Source[DemoRecord]) -> Heading:
    """The heading of the ranking, marked as a demo."""
    heading = ranking_heading(source.showing(source.record.ranking))
    return replace(heading, title=f"Demo: {heading.title}")


def demo_verdict_section(source: Source[DemoRecord]) -> Section:
    """That of the ranking, with what to type on images of one's own."""
    section = ranking_verdict_section(source.showing(source.record.ranking))
    blocks = [
        replace(block, following=BEGIN.line, purpose=BEGIN.purpose) if isinstance(block, Verdict) else block
        for block in section.blocks
    ]
    return replace(section, blocks=blocks)


def split_section(source: Source[DemoRecord]) -> Section:
    """The same probe under a shuffled and a grouped split."""
    comparison = source.record.split_comparison
    gap = comparison.shuffled_accuracy - comparison.grouped_accuracy
    caption = (
        f"Test accuracy of {comparison.probe} with 95 % intervals. Shuffled minus grouped: {_ACCURACY(gap)}; what is "
        "above 0 does not carry over to new groups."
    )
    figure = Figure([split_figure(comparison, identifier=f"{source.prefix}split")], caption=caption)
    return Section(
        name="split",
        title="Why the split matters",
        part="evidence",
        blocks=[Paragraph(comparison.explanation), figure, Folded("As a table", [_split_table(comparison)], page_only=False)],
    )


def _split_table(comparison: SplitComparison) -> Table:
    rows = (
        ("shuffled images", comparison.shuffled_accuracy, comparison.shuffled_low, comparison.shuffled_high),
        ("whole writers", comparison.grouped_accuracy, comparison.grouped_low, comparison.grouped_high),
    )
    columns = [Column("Folds made of"), Column("Accuracy", numeric=True), INTERVAL]
    cells = [[words(name), number(value, _ACCURACY), interval(low, high, _ACCURACY)] for name, value, low, high in rows]
    return Table(caption=f"Test accuracy of {comparison.probe}", columns=columns, rows=cells, file_name="split")


def fine_tuned_section(source: Source[DemoRecord]) -> Section | None:
    """The primary score against accuracy after real fine-tuning."""
    demo = source.record
    if not demo.fine_tuned:
        return None
    blocks: list[Block] = [_figure(source), _table(demo.fine_tuned)]
    return Section(name="fine-tuned", title="Check against real fine-tuning", part="evidence", blocks=blocks)


def best_model_section(source: Source[DemoRecord]) -> Section | None:
    """The best-ranked model after ``crossgraft tune``: metrics, a few predictions, its pages, and how to do it again."""
    best = source.record.best_model
    if best is None:
        return None
    title = source.record.ranking.primary_title
    metrics = metrics_table(best.metrics, caption=f"{best.model} on digits of held-out writers", file_name="best-model")
    pictures = _pictures(best.predictions)
    right = sum(row.target == row.decision for row in best.predictions)
    blocks: list[Block] = [
        Paragraph(_result(best)),
        Paragraph(_how_tuned(best, title)),
        metrics,
        Paragraph(f"What it says about one digit of each unseen writer: {right} of {len(best.predictions)} right."),
        *([Gallery(pictures, noun="digit")] if pictures else []),
        _predictions_table(best.predictions),
        _pages(best, linked=source.is_at_home),
        Paragraph("The same by hand:" if source.out else "The same by hand, typed in the run directory of this demo:"),
        Code("\n".join(best.commands(source.out or "."))),
    ]
    return Section(name="best-model", title="Fine-tune the best-ranked model", part="evidence", blocks=blocks)


def compared_section(source: Source[DemoRecord]) -> Section | None:
    """Three ways to fine-tune the best-ranked model: what each gives, and what it keeps; None in older records."""
    best = source.record.best_model
    if best is None or best.comparison is None:
        return None
    record, other = best.comparison, best.other
    pages = [f"{best.compare_folder}/report.html"]
    blocks: list[Block] = [
        Paragraph(
            "The whole network was trained, the head alone, and the whole network while its features are held near those of the "
            "start (RepSim)."
        ),
        Paragraph(answer_in_words(record)),
        *trade_off(record, prefix=source.prefix),
        variants_table(record),
    ]
    if other is not None:
        pages.append(f"{other.compare_folder}/report.html")
        blocks += [
            Paragraph(f"The same with {other.model}, the best-ranked network of another architecture:"),
            Paragraph(answer_in_words(other.comparison)),
            variants_table(other.comparison),
        ]
    where = f"{joined(pages)} in the run directory of this demo"
    blocks.append(Paragraph(f"{record.interval_words} More, and every number: {where}.", tone="quiet"))
    return Section(name="compared", title="Three ways to fine-tune it", part="evidence", blocks=blocks)


def limits_section(source: Source[DemoRecord]) -> Section:
    """What this demo cannot show."""
    blocks: list[Block] = [Items(source.record.limits)] if source.record.limits else []
    return Section(name="limits", title="What this demo cannot show", part="evidence", blocks=blocks)


def _result(best: BestModelRecord) -> str:
    primary = next((row for row in best.metrics if row.metric == best.primary_metric), None)
    if primary is None:
        return f"{best.model} was fine-tuned on the training writers."
    return f"{best.model}, fine-tuned: {metric_in_words(primary)}. They were looked at once, at the end."


def _how_tuned(best: BestModelRecord, score: str) -> str:
    images = joined([f"{row.num_images} {row.name} ({counted(row.num_groups or 0, 'writer')})" for row in best.splits])
    return (
        f"It is first by {score}, so it went through crossgraft tune as a model of yours would: {best.settings}, "
        f"{counted(best.num_epochs, 'epoch')}. Images: {images}; no writer is in two parts. {best.selection_rule} The check "
        "above used all training images for a fixed number of steps; here some of their writers picked the epoch, so the two "
        "results need not agree."
    )


def _pictures(predictions: Sequence[DemoPrediction]) -> dict[str, list[str]]:
    """Each picture under what was written and what was read."""
    shown: dict[str, list[str]] = {}
    for row in predictions:
        if row.png_base64 is not None:
            read = "right" if row.target == row.decision else f"read as {row.decision}"
            shown.setdefault(f"{row.target}, {read}", []).append(row.png_base64)
    return shown


def _predictions_table(predictions: Sequence[DemoPrediction]) -> Table:
    return table_of(
        predictions,
        [
            (Column("Written"), lambda row: words(row.target)),
            (Column("Read by the model"), lambda row: words(row.decision, strong=row.decision != row.target)),
            (Column("Probability", numeric=True), lambda row: number(row.probability, _ACCURACY)),
        ],
        caption="One digit of each unseen writer",
        file_name="unseen-digits",
        notes=["The probability is that of the decision, after the temperature that was fitted on validation images."],
    )


def _pages(best: BestModelRecord, *, linked: bool) -> Table:
    """Links hold in the run directory only; on a page elsewhere only the places are named."""
    paths = [
        (f"{best.tune_folder}/report.html", "learning curves, confusion, calibration, how it was made"),
        (f"{best.predict_folder}/report.html", "the most and the least certain of the unseen digits"),
        (f"{best.tune_folder}/model/MODEL_CARD.md", "what the saved model is, and what it is not for"),
    ]
    return Table(
        caption="Pages of their own, in the run directory of this demo",
        columns=[Column("Page"), Column("What it shows")],
        rows=[[words(path, href=path if linked else None), words(what)] for path, what in paths],
        file_name="pages",
    )


def _figure(source: Source[DemoRecord]) -> Figure:
    record, rows = source.record.ranking, source.record.fine_tuned
    title, primary = record.primary_title, intervals_by_model(record, record.primary_score)
    drawings = [
        scatter_figure(
            [*dots(record, primary, {row.model: accuracy(row) for row in rows}, last_rank=len(rows)).values()],
            x_label=f"{title} (score)",
            y_label=f"{what} (fraction)",
            identifier=f"{source.prefix}fine-tuned-{index}",
            width=400,
            height=300,
        )
        for index, (what, accuracy) in enumerate(
            [("Accuracy, whole network tuned", _full), ("Accuracy, linear layer only", _linear)]
        )
    ]
    images = counted(max(row.num_test_images for row in rows), "test image")
    caption = (
        f"Test accuracy of {counted(len(rows), 'model')} on {images} against {title}, with 95 % intervals; colours as "
        "in the ranking, controls hollow, their intervals cut off at the frame. In the first drawing the whole network was "
        f"tuned, in the second only a linear layer. Numbers are ranks by {title}."
    )
    return Figure(drawings, caption=caption)


def _full(row: FineTunedRow) -> Interval:
    return Interval(row.full_accuracy, row.full_low, row.full_high)


def _linear(row: FineTunedRow) -> Interval:
    return Interval(row.linear_accuracy, row.linear_low, row.linear_high)


def _table(rows: Sequence[FineTunedRow]) -> Table:
    full, linear = (Column("95 % interval", True, (f"{what} low", f"{what} high")) for what in ("full", "linear"))
    return table_of(
        rows,
        [
            (Column("Model"), lambda row: words(row.model)),
            (Column("Whole network", True, ("full accuracy",)), lambda row: number(row.full_accuracy, _ACCURACY)),
            (full, lambda row: interval(row.full_low, row.full_high, _ACCURACY)),
            (Column("Linear layer", True, ("linear accuracy",)), lambda row: number(row.linear_accuracy, _ACCURACY)),
            (linear, lambda row: interval(row.linear_low, row.linear_high, _ACCURACY)),
            (Column("Test images", numeric=True), lambda row: whole(row.num_test_images)),
            (Column("Seeds", numeric=True), lambda row: whole(row.seeds)),
        ],
        caption="Test accuracy after fine-tuning (fraction of test images)",
        file_name="fine-tuned",
    )


TOY = Kind(
    DemoRecord,
    demo_heading,
    (
        demo_verdict_section,
        split_section,
        fine_tuned_section,
        selected_section,
        best_model_section,
        compared_section,
        audited_section,
        limits_section,
        *(of_its_ranking(builder) for builder in BELOW_THE_VERDICT),
    ),
    tables_answer=True,
    terminal=(
        split_section,
        of_its_ranking(rankings_section),
        fine_tuned_section,
        selected_section,
        best_model_section,
        compared_section,
        audited_section,
        limits_section,
        demo_verdict_section,
    ),
    refuse=lambda record, path: refuse_incomplete(record.ranking, path),
)
REPORT = (STORY, TOY)
