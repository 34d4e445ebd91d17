"""The report of a distillation: what the student is worth beside its teachers, and how it learned."""

from __future__ import annotations

from collections.abc import Callable

from crossgraft.distil.record import DistillationRecord, DistilledDomainRecord
from crossgraft.metrics.record import MetricRecord
from crossgraft.metrics.words import looks_in_words, metric_format, metric_name_in_words
from crossgraft.options.models import CodeOptions
from crossgraft.report.blocks import Facts, Figure, Heading, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.plots.intervals import IntervalRow, intervals_figure
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, interval, number, table_of, whole, words
from crossgraft.report.verdict import (
    PREDICT_IMAGES,
    Caveat,
    CaveatOf,
    Following,
    Gravity,
    caveats_of,
    in_one_line,
    provenance_section,
    references_section,
    verdict_section,
)
from crossgraft.tune.plots import LearningCurve, learning_curves_figure
from crossgraft.words.formatting import NumberFormat, counted, joined


def answer_in_words(record: DistillationRecord) -> str:
    """The metric of headlines of student and teachers, by domain."""
    metric = metric_name_in_words(record.domains[0].primary_metric)
    measured = [row for domain in record.domains for row in (domain.student, domain.taught) if row is not None]
    as_text = metric_format(measured)
    values = joined([f"{_beside(domain, as_text)} on {domain.name}" for domain in record.domains])
    teachers = counted(len(record.domains), "network")
    return f"{record.model.name} learned from {teachers}. Its {metric} on held-out images is {values}."


def _beside(domain: DistilledDomainRecord, as_text: NumberFormat) -> str:
    student, teacher = (as_text(None if row is None else row.value) for row in (domain.student, domain.taught))
    return f"{student} (its teacher: {teacher})"


def is_below_teacher(domain: DistilledDomainRecord) -> bool:
    """Whether the teacher lies above the whole interval of the student."""
    own, taught = domain.student, domain.taught
    if own is None or taught is None or own.high is None or taught.value is None:
        return False
    return taught.value > own.high


_NUMBERS = NumberFormat(decimals=3)
_MOST_CURVES = 6
_TERMS = (
    ("cross_entropy", "Cross-entropy of the labels"),
    ("dissimilarity", "1 − CKA to the teacher's features"),
    ("divergence", "Divergence from the teacher's logits"),
)


def distillation_heading(source: Source[DistillationRecord]) -> Heading:
    """The student, its teachers and the steps."""
    record = source.record
    facts = [
        counted(len(record.domains), "domain"),
        counted(record.steps, "step"),
        f"{record.batch_size} images of each domain in a step",
    ]
    return Heading(
        title=f"{record.model.name}, distilled from {counted(len(record.domains), 'network')}",
        summary=" · ".join(facts),
        advice=in_one_line(answer_in_words(record), caveats_of(source, DISTILLATION_CAVEATS)),
    )


def distillation_verdict_section(source: Source[DistillationRecord]) -> Section:
    """What the student is worth on held-out images, beside each teacher."""
    record = source.record
    caveats = caveats_of(source, DISTILLATION_CAVEATS)
    rows = [
        IntervalRow(f"{domain.name}, {network}", Interval.of(metric_of_network), is_overall=network == "student")
        for domain in record.domains
        for network, metric_of_network in (("teacher", domain.taught), ("student", domain.student))
    ]
    metric = metric_name_in_words(record.domains[0].primary_metric)
    figure = intervals_figure(
        rows, x_label=f"{metric[:1].upper()}{metric[1:]} on test", identifier=f"{source.prefix}student-and-teachers"
    )
    caption = "Student (squares) and teachers (dots) on the test images of each domain, with intervals of 95 %."
    return verdict_section(answer_in_words(record), caveats, after_distillation(source), Figure([figure], caption=caption))


def domains_section(source: Source[DistillationRecord]) -> Section:
    """Every domain with its teacher, its images and both results."""
    record = source.record
    metric = metric_name_in_words(record.domains[0].primary_metric)
    table = table_of(
        record.domains,
        [
            (Column("Domain"), lambda row: words(row.name)),
            (Column("Teacher"), lambda row: words(row.teacher)),
            *_measured("teacher", lambda row: row.taught),
            *_measured("student", lambda row: row.student),
            (Column("Training images", numeric=True), lambda row: whole(row.num_train)),
            (Column("Test images", numeric=True), lambda row: whole(row.num_test)),
            (Column("Weight", numeric=True, page_only=True), lambda row: number(row.weight, NumberFormat(decimals=1))),
        ],
        caption=f"Student and teachers: {metric} on test",
        file_name="domains",
        notes=[
            "Training and test images are those of the run of the teacher. Weight is that of what is distilled beside the "
            "cross-entropy of the labels; it falls to 0 over the steps."
        ],
    )
    return Section(name="domains", title="Domains", part="evidence", blocks=[table])


def distillation_curves_section(source: Source[DistillationRecord]) -> Section:
    """The terms of the loss over the steps."""
    record = source.record
    steps = [row.last_step for row in record.history]
    shown = record.domains[:_MOST_CURVES]
    drawings = [
        learning_curves_figure(
            [
                LearningCurve(domain.name, [getattr(row, term)[place] for row in record.history])
                for place, domain in enumerate(shown)
            ],
            y_label=title,
            best_epoch=None,
            head_epochs=0,
            identifier=f"{source.prefix}{term.replace('_', '-')}",
            steps=steps,
        )
        for term, title in _TERMS
    ]
    left_out = (
        f" {counted(len(record.domains) - len(shown), 'further domain')} not drawn." if len(record.domains) > len(shown) else ""
    )
    caption = f"Terms of the loss, not weighted; each point is a mean over steps. history.csv has every step.{left_out}"
    return Section(name="curves", title="Learning curves", part="evidence", blocks=[Figure(drawings, caption=caption)])


def student_section(source: Source[DistillationRecord]) -> Section:
    """The student and the settings."""
    record = source.record
    facts = Facts(
        [
            ("Student", f"{record.model.name} ({record.model.architecture})"),
            ("Features", str(record.model.num_features)),
            ("Preprocessing", record.model.preprocessing.description),
            ("Weights", record.weights_file),
        ]
    )
    settings = Facts([(name.replace("_", " ").capitalize(), f"{value:g}") for name, value in record.settings.items()])
    return Section(name="student", title="Student", part="checks", blocks=[facts, settings])


def _measured(
    network: str, metric_of: Callable[[DistilledDomainRecord], MetricRecord | None]
) -> list[tuple[Column, Callable[[DistilledDomainRecord], Cell]]]:
    """The columns of one network: its value and both ends."""
    ends = Column("95 % interval", numeric=True, csv_titles=(f"{network}_low", f"{network}_high"))
    return [
        (Column(f"Of the {network}", numeric=True), lambda row: number(Interval.of(metric_of(row)).value, _NUMBERS)),
        (ends, lambda row: interval(*Interval.of(metric_of(row))[1:], _NUMBERS)),
    ]


def below_teachers(source: Source[DistillationRecord]) -> Caveat | None:
    """The student knows less than a network that is there already."""
    names = [domain.name for domain in source.record.domains if is_below_teacher(domain)]
    if not names:
        return None
    return Caveat(
        f"On {joined(names)} the teacher lies above the interval of the student: for those images the teacher is the better "
        "network. Whether more steps (--steps) close the gap was not tried.",
        Gravity.HARM,
    )


def left_out(source: Source[DistillationRecord]) -> Caveat | None:
    """The student has seen them as images of another domain."""
    domains = [domain for domain in source.record.domains if domain.num_left_out]
    if not domains:
        return None
    which = joined([f"{counted(domain.num_left_out, 'test image')} of {domain.name}" for domain in domains])
    return Caveat(
        f"{which} are training images of another run, or of a patient there, and were left out. Use the same --split for runs on "
        "the same data.",
        Gravity.HARM,
    )


def looked_at_some_before(source: Source[DistillationRecord]) -> Caveat | None:
    """The same test images were looked at by other commands."""
    looks = [(domain.name, looks_in_words(domain.looks, domain.primary_metric)) for domain in source.record.domains]
    sentences = [f"{name}: {text}" for name, text in looks if text is not None]
    return Caveat(" ".join(sentences), Gravity.FLATTERED) if sentences else None


def only_known_domains(_: Source[DistillationRecord]) -> Caveat:
    """Nothing here is about a new task."""
    return Caveat(
        "These are the images of the teachers. Whether the student helps with another task is measured on that task: compare "
        "it with its teachers there (crossgraft fewshot).",
        Gravity.LIMITED,
    )


DISTILLATION_CAVEATS: tuple[CaveatOf[DistillationRecord], ...] = (
    left_out,
    below_teachers,
    looked_at_some_before,
    only_known_domains,
)
"""The most severe first, in the order of ``report.verdict``."""


def after_distillation(source: Source[DistillationRecord]) -> Following:
    """To learn a new task on the features of the student."""
    flags = [
        ("--support", "LABELLED_IMAGES"),
        ("--query", PREDICT_IMAGES),
        ("--model", f"{source.typed.out}/{source.record.weights_file}"),
    ]
    line = source.typed.then("fewshot", flags=flags, carried=[CodeOptions])
    return Following(line, "to learn new classes from a few labelled images")


REPORT = Kind(
    DistillationRecord,
    distillation_heading,
    (
        distillation_verdict_section,
        domains_section,
        distillation_curves_section,
        student_section,
        provenance_section,
        references_section,
    ),
    terminal=(domains_section, distillation_verdict_section),
)
