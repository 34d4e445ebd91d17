"""What a student is worth beside its teachers, in words."""

from __future__ import annotations

from crossgraft.distil.record import DistillationRecord, DistilledDomainRecord
from crossgraft.metrics.words import metric_format, metric_name_in_words
from crossgraft.words.formatting import NumberFormat, counted, joined


def answer_in_words(record: DistillationRecord) -> str:
    """The metric of headlines of student and teachers, by domain."""
    metric = metric_name_in_words(record.domains[0].primary_metric)
    measured = [row for domain in record.domains for row in (domain.student, domain.taught) if row is not None]
    as_text = metric_format(measured)
    said = joined([f"{_beside(domain, as_text)} on {domain.name}" for domain in record.domains])
    teachers = counted(len(record.domains), "network")
    return f"{record.model.name} learned from {teachers}. Its {metric} on held-out images is {said}."


def _beside(domain: DistilledDomainRecord, as_text: NumberFormat) -> str:
    student, teacher = (as_text(None if row is None else row.value) for row in (domain.student, domain.taught))
    return f"{student} (its teacher: {teacher})"


def is_below_teacher(domain: DistilledDomainRecord) -> bool:
    """Whether the teacher lies above the whole interval of the student."""
    own, taught = domain.student, domain.taught
    if own is None or taught is None or own.high is None or taught.value is None:
        return False
    return taught.value > own.high
