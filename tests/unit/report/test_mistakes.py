"""The gallery of mistakes on the page of a fine-tuning."""

from crossgraft import write_report
from crossgraft.data.page import data_gallery
from crossgraft.records.base import Thumbnail
from crossgraft.report.blocks import Gallery
from crossgraft.report.tables import Table
from crossgraft.tune.page import mistakes_section
from crossgraft.tune.record import MistakeRecord, MistakesRecord
from support.tuning_records import EVIL, tuning_record


def record_with(*rows, num_wrong=None):
    found = [MistakeRecord(row=row, target=EVIL, answer="b", probability=0.987) for row in rows]
    return tuning_record(
        mistakes=MistakesRecord(num_wrong=len(rows) if num_wrong is None else num_wrong, num_images=40, most_certain=found)
    )


def test_mistakes_are_pictures_under_row_answer_probability_and_truth(source_of, examples):
    png = examples.thumbnails(["5"])[0].png_base64
    of_a_class = Thumbnail(class_name="5", png_base64="an example of the class 5")
    thumbnails = [of_a_class, Thumbnail(row=5, png_base64=png), Thumbnail(row=7, png_base64=png)]
    section = mistakes_section(source_of(record_with(7, 5, num_wrong=9), thumbnails=thumbnails))
    paragraph, gallery = section.blocks
    assert paragraph.text.startswith("9 of 40 images had a wrong answer. The 2 most certain of them are shown")
    assert gallery.images == {f"Row 7: b (0.987), true {EVIL}": [png], f"Row 5: b (0.987), true {EVIL}": [png]}
    assert data_gallery(thumbnails) == [Gallery({"5": ["an example of the class 5"]})]


def test_without_pictures_mistakes_are_a_table(source_of):
    _, table, why = mistakes_section(source_of(record_with(7))).blocks
    assert isinstance(table, Table)
    assert [cell.text for cell in table.rows[0]] == ["7", "b", "0.987", EVIL]
    assert "--no-images" in why.text


def test_no_mistake_is_no_section(source_of):
    assert mistakes_section(source_of(record_with())) is None
    assert mistakes_section(source_of(tuning_record())) is None  # of an earlier version


def test_names_of_classes_do_not_get_out_of_the_gallery(examples, tmp_path):
    png = examples.thumbnails(["x"])[0].png_base64
    run = examples.write_run(tmp_path, record_with(3), images=[Thumbnail(row=3, png_base64=png)])
    page = write_report(run).read_text(encoding="utf-8")
    assert EVIL not in page
    assert "Row 3: b (0.987), true &lt;script&gt;" in page
