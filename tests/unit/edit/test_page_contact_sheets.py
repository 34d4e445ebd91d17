"""The page of contact sheets: every edit by its place, as many images as keep it small, and what to type next."""

import base64
import io
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from crossgraft import write_report
from crossgraft.edit import page as contact_sheets
from crossgraft.records.base import Thumbnail
from crossgraft.report.blocks import Folded, Gallery, Paragraph, Subheading, Verdict
from crossgraft.report.kinds import KINDS
from crossgraft.report.source import Source
from crossgraft.report.tables import Table
from crossgraft.report.terminal import record_as_text
from support.contact_sheet_records import sheet_row, sheets_record
from support.hostile import PLANTED, RAW, TAGS

TYPED = "crossgraft list confounders --data breast --label-column kind --out sheets"


def png(shade):
    content = io.BytesIO()
    Image.fromarray(np.full((4, 4), shade, np.uint8)).save(content, format="PNG")
    return base64.b64encode(content.getvalue()).decode()


def thumbnails_of(record, *, left_out=()):
    """A shade of its own for each picture."""
    numbers = [image.number for image in record.images]
    keys = [
        (f"{row.edit}: {what}", number) for row in record.sheets for what in ("without", "with", "change") for number in numbers
    ]
    return tuple(
        Thumbnail(class_name=name, row=number, png_base64=png(shade))
        for shade, (name, number) in enumerate(keys)
        if (name, number) not in left_out
    )


@pytest.fixture
def record(examples):
    return sheets_record(examples.ranking_record().dataset)


def sections_of(record, **how):
    source = Source(record, command_line=TYPED, **({"thumbnails": thumbnails_of(record)} | how))
    found = [section for builder in KINDS.get("contact_sheets").builders if (section := builder(source))]
    return {section.name: section for section in found}


def blocks_of(section, kind):
    return [block for block in section.blocks if isinstance(block, kind)]


def verdict_of(record):
    section = sections_of(record)["verdict"]
    return blocks_of(section, Verdict)[0], [text for each in blocks_of(section, Folded) for text in each.blocks[0].items]


def test_the_answer_and_what_to_type_next(record):
    verdict, others = verdict_of(record)
    assert verdict.answer == "All 2 edits can be put into the 3 images of BreastMNIST that stand on the sheets."
    assert verdict.caveat == "3 images say little about the others. Draw others with --seed." and others == []
    assert verdict.following == "crossgraft edit breast edited --with tag --share 0.5 --label-column kind"


def test_what_is_impossible_or_faint_is_said_with_its_reason_once(record):
    rows = [
        sheet_row(num_images=0, rms=None, share_changed=None, psnr=None, limit=0.0, problems=["Too small."]),
        sheet_row("ruler", num_images=2, problems=["Too small."]),
        sheet_row("gamma", rms=0.1),
    ]
    record = record.model_copy(update={"sheets": rows})
    verdict, others = verdict_of(record)
    assert verdict.answer.startswith("1 of 3 edits can be put into all of the 3 images")
    assert verdict.caveat.startswith("tag and ruler cannot be put into all of these images")
    assert others[0].startswith("At default options gamma changes less than rounding to 8 bits")
    assert "--with ruler" in verdict.following
    (table,) = blocks_of(sections_of(record)["edits"], Table)
    assert [note for note in table.notes if "Too small" in note] == ["tag and ruler: Too small."]
    alone = record.model_copy(update={"sheets": rows[:1]})
    assert verdict_of(alone)[0].caveat.startswith("No edit can be put into all")
    assert "All edits: Too small." in blocks_of(sections_of(alone)["edits"], Table)[0].notes


def test_a_table_per_place_with_the_numbers_of_the_record(record):
    external, imaging = blocks_of(sections_of(record)["edits"], Table)
    assert (external.caption, imaging.caption) == ("Environment › external", "Environment › imaging")
    edit, images, rms, changed, mask, psnr, picture = external.rows[0]
    assert (edit.text, edit.href, rms.text, psnr.text) == ("tag", "#sheet-1", "2.80", "39.2")
    assert (images.values, changed.values, mask.values) == ((3,), (0.0013,), (0.0013,))
    assert (picture.href, picture.values) == ("sheets/tag.png", ("sheets/tag.png",))
    assert imaging.rows[0][4].text == "—" and not external.notes and "audit --attribute" in imaging.notes[-1]


def test_every_sheet_stands_below_its_place(record):
    sections = sections_of(record)
    shades = {each.png_base64: (each.class_name, each.row) for each in thumbnails_of(record)}
    for place, edit in ((1, "tag"), (2, "low_pass")):
        (heading,) = blocks_of(sections[f"place-{place}"], Subheading)
        assert (heading.anchor, heading.href) == (f"sheet-{place}", f"sheets/{edit}.png")
        (gallery,) = blocks_of(sections[f"place-{place}"], Gallery)
        assert list(gallery.images) == ["without", "with", "change"]
        for what, images in gallery.images.items():
            assert [shades[image] for image in images] == [(f"{edit}: {what}", number) for number in (7, 9, 4)]
    first = blocks_of(sections["place-1"], Paragraph)[0].text
    assert first.startswith("From left to right: malignant (image 7), malignant (image 9) and benign (image 4). A title")


def test_an_image_that_cannot_be_edited_leaves_its_place_free(record):
    missing = {(f"tag: {what}", 9) for what in ("with", "change")}
    sections = sections_of(record, thumbnails=thumbnails_of(record, left_out=missing))
    images = blocks_of(sections["place-1"], Gallery)[0].images
    assert [bool(image) for image in images["with"]] == [True, False, True] and all(images["without"])
    none = record.model_copy(update={"sheets": [sheet_row(num_images=0, rms=None, share_changed=None, psnr=None)]})
    assert list(blocks_of(sections_of(none)["place-1"], Gallery)[0].images) == ["without"]


def test_a_page_of_large_images_shows_fewer_and_every_class(record, monkeypatch):
    column = sum(len(each.png_base64) for each in thumbnails_of(record) if each.row == 7)
    monkeypatch.setattr(contact_sheets, "_MOST_CHARACTERS", int(2.5 * column))
    section = sections_of(record)["place-1"]
    assert [len(images) for images in blocks_of(section, Gallery)[0].images.values()] == [2, 2, 2]
    text = blocks_of(section, Paragraph)[0].text
    assert "malignant (image 7) and benign (image 4). The pictures have all 3" in text
    monkeypatch.setattr(contact_sheets, "_MOST_CHARACTERS", 1)
    assert len(blocks_of(sections_of(record)["place-1"], Gallery)[0].images["with"]) == 1


def test_without_images_there_is_only_the_tree(record):
    sections = sections_of(record, thumbnails=())
    assert [name for name in sections if name.startswith("place")] == []
    edit, *_ = blocks_of(sections["edits"], Table)[0].rows[0]
    assert edit.href is None


def test_a_page_elsewhere_links_to_no_picture(record):
    sections = sections_of(record, is_at_home=False, prefix="run-2-")
    assert [row[-1].href for row in blocks_of(sections["edits"], Table)[0].rows] == [None]
    (heading,) = blocks_of(sections["place-1"], Subheading)
    assert (heading.anchor, heading.href) == ("run-2-sheet-1", None)


def test_the_terminal_has_the_tree_and_the_answer(record):
    text = record_as_text(record, command_line=TYPED)
    assert text.index("Environment › external:") < text.index("Environment › imaging:") < text.index("All 2 edits")
    assert "PNG" not in text and "without" not in text


class Links(HTMLParser):
    """Anchors and targets of a page."""

    def __init__(self, html):
        super().__init__()
        self.ids, self.targets, self.images = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.targets += [found["href"]] if tag == "a" else []
        self.images += [found["alt"]] if tag == "img" else []


def test_the_page_is_escaped_and_its_links_lead_somewhere(record, examples, tmp_path):
    name = f"{TAGS}{PLANTED}"
    rows = [
        sheet_row(f"tag{name}", title=name, options=name, problems=[name], sheet="sheets/0 #.png"),
        sheet_row("a b#1", sheet="sheets/1 #.png"),
    ]
    record = record.model_copy(update={"sheets": rows})
    examples.write_run(tmp_path / "run", record, images=list(thumbnails_of(record)))
    html = write_report(tmp_path / "run").read_text(encoding="utf-8")
    links = Links(html)
    assert RAW.search(html) is None and "<script>alert" not in html
    inside = [target.removeprefix("#") for target in links.targets if target.startswith("#")]
    assert set(inside) <= set(links.ids) and len(set(links.ids)) == len(links.ids)
    assert {target for target in links.targets if target.startswith("sheets")} == {"sheets/0%20%23.png", "sheets/1%20%23.png"}
    assert len(links.images) == 18 and "This page contains images" in html


@pytest.mark.parametrize(
    "sheet", ["javascript:alert(1)", "https://example.org/x.png", "sheets/../x.png", "/x.png", "sheets\\x.png"]
)
def test_a_record_of_others_leads_nowhere_else(record, sheet):
    document = replace_sheet(record, sheet)
    with pytest.raises(ValidationError):
        type(record).model_validate(document)


def replace_sheet(record, sheet):
    document = record.model_dump()
    document["sheets"][0]["sheet"] = sheet
    return document


def test_a_source_can_be_put_side_by_side(record):
    heading = KINDS.get("contact_sheets").heading(replace(Source(record), command_line=TYPED))
    assert heading.title == "Confounders in BreastMNIST" and "Caveat: 3 images say little" in heading.advice


def test_the_sheets_of_the_first_place_are_unfolded(record):
    places = [each for name, each in sections_of(record).items() if name.startswith("place-")]
    assert len(places) > 1 and [each.is_open for each in places] == [True] + [False] * (len(places) - 1)
