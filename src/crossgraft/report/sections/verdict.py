"""The verdict: the advice of the record, what it rests on, and the ranking figure."""

from __future__ import annotations

from crossgraft.records import DatasetRecord, RankingRecord
from crossgraft.report.blocks import Figure, Heading, Paragraph, Section
from crossgraft.report.plots import ranking_figure
from crossgraft.report.sections._lookup import joined, score_title
from crossgraft.report.source import Source
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import count, counted, describe_classes

_MOST_CLASSES = 8


def verdict_section(source: Source[RankingRecord]) -> Section:
    """Two sentences, what is known from other targets, and one figure."""
    record = source.record
    return Section(
        name="verdict",
        title="Verdict",
        part="verdict",
        blocks=[
            Paragraph(record.advice, tone="lead"),
            Paragraph(f"Ordered by {score_title(record, record.primary_score)}: {_sentence(record.primary_reason)}"),
            *([Paragraph(record.prior.summary, tone="quiet")] if record.prior else []),
            _figure(source),
        ],
    )


def ranking_heading(source: Source[RankingRecord]) -> Heading:
    """Name of the data, and what was ranked on how much."""
    record = source.record
    candidates = sum(model.role == "candidate" for model in record.models)
    controls = len(record.models) - candidates
    data = describe_data(record.dataset, labels_left_out=len(record.labels_left_out))
    summary = (
        f"{data} · {counted(candidates, 'model')}, {counted(controls, 'control')} · "
        f"{counted(len(record.scores), 'score')}"
    )
    return Heading(title=record.dataset.name, summary=summary, advice=record.advice)


def describe_groups(dataset: DatasetRecord) -> str:
    """Groups of the data in words, or that leakage between patients was not checked."""
    if dataset.group_column is None:
        return "patient leakage not checked (no group column)"
    return f"{counted(dataset.num_groups or 0, 'group')} by {dataset.group_column}"


def describe_data(dataset: DatasetRecord, *, labels_left_out: int = 0) -> str:
    """Images, classes (or labels, and how many were scored) and groups in one line."""
    images = f"{counted(dataset.num_images, 'image')}, {dataset.rows_used}"
    classes = describe_classes(dataset, labels_left_out=labels_left_out)
    if recorded_task(dataset).partitions and len(dataset.class_counts) <= _MOST_CLASSES:
        classes += f" ({' / '.join(map(count, dataset.class_counts))})"
    return f"{images} · {classes} · {describe_groups(dataset)}"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


def _figure(source: Source[RankingRecord]) -> Figure:
    record = source.record
    ranking = record.ranking(record.primary_score)
    candidates = sum(row.role == "candidate" for row in ranking.rows)
    valueless = [row.model for row in ranking.rows if record.cell(row.model, ranking.score).value is None]
    controls = len(ranking.rows) - candidates
    caption = [
        f"{counted(candidates, 'model')} on {counted(record.dataset.num_images, 'image')}.",
        "Each dot is a value, the line through it its 95 % jackknife interval.",
        "Brackets on the right join models that the images cannot tell apart.",
    ]
    if controls:
        caption.append(f"Hollow: {counted(controls, 'control')} with random weights.")
    if ranking.best_shuffled is not None:
        caption.append("A model left of the dashed line is no better than labels shuffled at random.")
    if valueless:
        caption.append(f"Without a value: {joined(valueless)}.")
    identifier = f"{source.prefix}ranking"
    return Figure(
        drawings=[ranking_figure(record, ranking.score, identifier=identifier)],
        narrow=[ranking_figure(record, ranking.score, identifier=f"{identifier}-narrow", narrow=True)],
        caption=" ".join(caption),
    )
