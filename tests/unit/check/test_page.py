"""What the page of a check shows."""

import pytest

from crossgraft import write_report
from crossgraft.check.page import (
    alike_section,
    checked_data_section,
    columns_section,
    data_check_heading,
    data_check_verdict_section,
    each_class_section,
    findings_section,
    looked_at_section,
    split_differences_section,
)
from crossgraft.records.base import Thumbnail
from crossgraft.report.blocks import Checks, Figure, Gallery, Strips
from crossgraft.report.tables import Table


def blocks_of(section, kind):
    return [block for block in section.blocks if isinstance(block, kind)]


@pytest.fixture
def record(examples):
    return examples.data_check_record()


def test_the_verdict_comes_first_with_counts_of_each_split(record, source_of):
    section = data_check_verdict_section(source_of(record))
    assert section.blocks[0].answer == f"{record.verdict} Remove them."
    (figure,) = blocks_of(each_class_section(source_of(record)), Figure)
    assert figure.caption.startswith("Images of each class in train, test")
    assert all(number in figure.drawings[0] for number in ("147", "399", "42", "114"))
    assert "patient leakage not assessed" in data_check_heading(source_of(record)).summary


def test_without_splits_the_counts_of_all_rows_are_drawn(record, source_of):
    bare = record.model_copy(update={"split_names": [], "split_counts": []})
    (figure,) = blocks_of(each_class_section(source_of(bare)), Figure)
    assert figure.caption.endswith("there is no split.")


def test_findings_hold_what_needs_attention_and_checks_the_rest(record, source_of):
    section = findings_section(source_of(record))
    (checks,), (table,) = blocks_of(section, Checks), blocks_of(section, Table)
    assert [check.severity for check in checks.checks] == ["unsound", "notice"]
    assert checks.checks[0].text == "2 pictures are in more than one split. Remove them."
    assert table.rows[0][1].text == "4 + 700, 5 + 701"
    (others,) = blocks_of(looked_at_section(source_of(record)), Checks)
    assert [check.severity for check in others.checks] == ["passed"]


def test_names_are_shown_only_if_the_record_has_them(record, source_of):
    named = record.model_copy(update={"image_names": {4: "a/x.png", 700: "b/y.png"}})
    (table,) = blocks_of(findings_section(source_of(named)), Table)
    assert table.rows[0][1].text == "4 (a/x.png) + 700 (b/y.png), 5 + 701"


def test_each_class_has_a_strip_with_its_odd_ones_behind_a_line(record, source_of, examples):
    png = examples.thumbnails(["x"])[0].png_base64
    first, second = record.dataset.class_names
    images = [
        Thumbnail(class_name=first, row=3, png_base64=png),
        Thumbnail(class_name=first, row=9, png_base64=png, distance=71.2, is_far=True),
        Thumbnail(class_name=second, row=5, png_base64=png, distance=12.0),
    ]
    source = source_of(record, thumbnails=images)
    (strips,) = blocks_of(each_class_section(source), Strips)
    usual, odd = strips.strips[first]
    assert (usual.label, usual.mark, usual.is_apart) == (f"Row 3, {first}", "", False)
    assert odd.label == f"Row 9, {first}: 71 grey levels from the mean picture, far from the others"
    assert (odd.mark, odd.is_apart, odd.is_marked, strips.strips[second][0].is_marked) == ("71", True, True, False)
    assert "--no-images" in alike_section(source).blocks[0].text  # a strip is no pair
    (figure,) = blocks_of(checked_data_section(source), Figure)
    assert figure.caption.startswith("Images of each class")


def test_pairs_are_shown_under_their_finding(record, source_of, examples):
    png = examples.thumbnails(["x"])[0].png_base64
    caption = "Identical images across splits: 4 (train) and 700 (test)"
    source = source_of(record, thumbnails=[Thumbnail(class_name=caption, png_base64=png)] * 2)
    section = alike_section(source)
    (gallery,) = blocks_of(section, Gallery)
    assert dict(gallery.images) == {"4 (train) and 700 (test)": [png, png]}
    assert "The first 1 of 2" in section.blocks[0].text
    assert "--no-images" in alike_section(source_of(record)).blocks[0].text
    assert alike_section(source_of(record.model_copy(update={"findings": []}))) is None


def test_columns_are_a_table_or_nothing(record, source_of):
    (table,) = columns_section(source_of(record)).blocks
    assert [cell.text for cell in table.rows[0][1:]] == ["0.910", "0.500"]
    assert columns_section(source_of(record.model_copy(update={"columns": []}))) is None


def test_differences_between_splits_are_a_table_or_nothing(record, source_of):
    (table,) = split_differences_section(source_of(record)).blocks
    assert [cell.text for cell in table.rows[0]] == [
        *("test", "shares of the classes", "0.230", "0.004"),
        *("<b>malignant</b>: 27\xa0% in train, 50\xa0% in test", "yes"),
    ]
    assert split_differences_section(source_of(record.model_copy(update={"split_differences": []}))) is None


def test_the_page_is_written_and_escaped(examples, tmp_path):
    page = write_report(examples.write_run(tmp_path / "run", examples.data_check_record())).read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page and "<b>malignant" not in page and "&lt;b&gt;malignant" in page
    assert "What needs attention" in page
    sound = examples.data_check_record(is_sound=True)
    assert "Nothing unsound" in write_report(examples.write_run(tmp_path / "sound", sound)).read_text(encoding="utf-8")
