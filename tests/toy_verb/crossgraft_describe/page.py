"""What a person sees."""

from crossgraft.report.blocks import Heading, Paragraph, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.tables import Column, Table, whole, words
from crossgraft.report.verdict import provenance_section
from crossgraft.words.formatting import counted
from crossgraft_describe.record import DescriptionRecord


def heading(source):
    """The data, and how many classes there are."""
    record = source.record
    return Heading(record.data_name, counted(len(record.classes), "class", "classes"), record.answer)


def counts_section(source):
    """One row per class."""
    rows = [[words(row.name), whole(row.num_images)] for row in source.record.classes]
    table = Table("Images of each class", [Column("Class"), Column("Images", numeric=True)], rows, "classes")
    return Section("counts", "Classes", "evidence", [table])


def answer_section(source):
    """The answer."""
    return Section("verdict", "Answer", "verdict", [Paragraph(source.record.answer, tone="lead")])


REPORT = Kind(DescriptionRecord, heading, (answer_section, counts_section, provenance_section), (counts_section, answer_section))
