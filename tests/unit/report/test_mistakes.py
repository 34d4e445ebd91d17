"""What was answered, on the page of a fine-tuning: one block with images, and what is left of it without them."""

from crossgraft import write_report
from crossgraft.records.base import ImageAnswer, Thumbnail
from crossgraft.report.blocks import Gallery
from crossgraft.report.explorer import Explorer
from crossgraft.report.tables import Table
from crossgraft.tune.page import answers_section
from crossgraft.tune.record import MistakeRecord, MistakesRecord
from crossgraft.variants.page import side_by_side_section
from support.comparison_records import comparison_record
from support.tuning_records import EVIL, tuning_record


def record_with(*rows, num_wrong=None, **changes):
    found = [MistakeRecord(row=row, target=EVIL, answer="b", probability=0.987) for row in rows]
    mistakes = MistakesRecord(num_wrong=len(rows) if num_wrong is None else num_wrong, num_images=40, most_certain=found)
    return tuning_record(mistakes=mistakes, **changes)


def answered(row, *, target="benign", said="malignant", certainty=0.9, png, split="test"):
    answer = ImageAnswer(decision=said, certainty=certainty, is_right=said == target)
    return Thumbnail(row=row, split=split, target=target, png_base64=png, answers=[answer])


def test_images_with_answers_replace_the_gallery_of_mistakes(source_of, examples):
    png = examples.thumbnails(["5"])[0].png_base64
    section = answers_section(source_of(record_with(7, num_wrong=1), thumbnails=[answered(7, png=png)]))
    paragraph, explorer = section.blocks
    assert paragraph.text == "1 of 40 images had a wrong answer."
    assert isinstance(explorer, Explorer) and [picture.row for picture in explorer.pictures] == [7]


def test_a_run_of_an_earlier_version_shows_its_mistakes(source_of, examples):
    png = examples.thumbnails(["5"])[0].png_base64
    of_a_class = Thumbnail(class_name="5", png_base64="an example of the class 5")
    thumbnails = [of_a_class, Thumbnail(row=5, png_base64=png), Thumbnail(row=7, png_base64=png)]
    section = answers_section(source_of(record_with(7, 5, num_wrong=9, confusion=None), thumbnails=thumbnails))
    how_many, which, gallery = section.blocks
    assert how_many.text == "9 of 40 images had a wrong answer."
    assert which.text.startswith("The 2 most certain of them")
    assert isinstance(gallery, Gallery)
    assert gallery.images == {f"Row 7: b (0.987), true {EVIL}": [png], f"Row 5: b (0.987), true {EVIL}": [png]}


def test_without_pictures_mistakes_are_a_table(source_of):
    _, crossed, _, table, why = answers_section(source_of(record_with(7))).blocks
    assert isinstance(crossed, Explorer) and not crossed.pictures and crossed.crossed
    assert isinstance(table, Table)
    assert [cell.text for cell in table.rows[0]] == ["7", "b", "0.987", EVIL]
    assert "--no-images" in why.text


def test_no_mistake_is_said(source_of):
    assert answers_section(source_of(record_with(confusion=None))).blocks[0].text == "All 40 images had a right answer."
    assert answers_section(source_of(tuning_record(confusion=None))) is None  # of an earlier version


def test_nothing_of_the_images_is_left_without_them(examples, tmp_path):
    page = write_report(examples.write_run(tmp_path, record_with(7))).read_text(encoding="utf-8")
    body = page.partition("<body>")[2].partition("<script>")[0]
    for trace in ("<img", "data:image", 'class="tiles"', 'class="filter"', "data-set"):
        assert trace not in body


def test_names_of_classes_do_not_get_out_of_the_page(examples, tmp_path):
    png = examples.thumbnails(["x"])[0].png_base64
    record = record_with(3, class_names=("benign", EVIL))
    images = [answered(3, target=EVIL, said="benign", png=png), answered(4, target="benign", said=EVIL, png=png)]
    page = write_report(examples.write_run(tmp_path, record, images=images)).read_text(encoding="utf-8")
    assert EVIL not in page
    assert 'alt="Row 3: benign (0.900), true &lt;script&gt;' in page
    assert 'data-mark="&lt;script&gt;' in page


def test_two_ways_to_fine_tune_stand_side_by_side_on_each_image(source_of, examples):
    png, record = examples.thumbnails(["5"])[0].png_base64, comparison_record()
    answers = [ImageAnswer(model=name, decision="x", certainty=0.9, is_right=False) for name in ("full", "linear")]
    section = side_by_side_section(source_of(record, thumbnails=[Thumbnail(row=1, target="y", png_base64=png, answers=answers)]))
    assert section.is_open and section.blocks[0].pictures[0].label == "Row 1: full: x (0.900); linear: x (0.900), true y"
    assert side_by_side_section(source_of(record)) is None
