"""Blocks of a page as Markdown."""

from crossgraft.records.base import CheckRecord, Reference
from crossgraft.report.blocks import Checks, Code, Facts, Figure, Folded, Gallery, Items, Literature, Paragraph, Section
from crossgraft.report.page import sections_as_markdown
from crossgraft.report.tables import Column, Table, whole, words


def test_every_block_but_a_gallery_is_there():
    table = Table("Models", [Column("Model"), Column("N", numeric=True)], [[words("a|b"), whole(1)]], "m", notes=["A note."])
    blocks = [
        Paragraph("A sentence."),
        Items(["one", "two"]),
        Facts([("Seed", "1")]),
        Checks([CheckRecord(title="Copies", severity="unsound", text="Two.")]),
        Literature([Reference(key="a", text="A paper.")]),
        Code("crossgraft demo"),
        Figure([], "A caption."),
        Gallery({}),
        Folded("More", [table]),
    ]
    assert sections_as_markdown([Section("it", "Title", "evidence", blocks)]).split("\n\n") == [
        "## Title",
        "A sentence.",
        "- one\n- two",
        "- Seed: 1",
        "- unsound: Copies. Two.",
        "- a: A paper.",
        "```\ncrossgraft demo\n```",
        "A caption.",
        "**Models**",
        "| Model | N |\n| --- | ---: |\n| a\\|b | 1 |",
        "A note.",
    ]
