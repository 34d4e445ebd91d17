"""Answered images: their order, what they are filtered by, and the table of true classes and answers."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from crossgraft import write_report
from crossgraft.errors import DataError
from crossgraft.records.base import ImageAnswer, Thumbnail
from crossgraft.report.explorer import explorer_of
from support.tuning_records import tuning_record

CLASSES = ["cat", "dog"]


def answered(row, target, said, certainty, *, split="test", group=None, image="AA=="):
    answer = ImageAnswer(decision=said, certainty=certainty, is_right=said == target)
    return Thumbnail(row=row, split=split, target=target, png_base64=image, group=group, answers=[answer])


def explored(*thumbnails, counts=((1, 1), (0, 1)), classes=CLASSES):
    return explorer_of(thumbnails, classes, identifier="e", caption="Look.", confusion=(counts, "Cross."))


FOUR = (
    answered(1, "cat", "cat", 0.95),
    answered(2, "cat", "dog", 0.6),
    answered(3, "dog", "dog", 0.55),
    answered(4, "dog", "cat", 0.99, split="val"),
    Thumbnail(class_name="dog", png_base64="BB=="),
)


def test_wrong_answers_come_first_the_surest_of_them_first_and_val_last_and_hidden():
    block = explored(*FOUR, answered(5, "dog", "cat", 0.97))
    assert [(picture.row, picture.is_wrong, picture.is_hidden) for picture in block.pictures] == [
        (5, True, False), (2, True, False), (3, False, False), (1, False, False), (4, True, True),
    ]  # fmt: skip
    assert block.pictures[0].label == "Row 5: cat (0.970), true dog"
    assert [picture.mark for picture in block.pictures] == ["cat", "dog", "", "", "cat"]


def test_facets_divide_and_those_with_one_value_are_not_offered():
    block = explored(*FOUR)
    assert {facet.title: list(facet.values) for _, facet in block.offered} == {
        "Part of the data": ["test", "val"],
        "True class": ["cat", "dog"],
        "Answer": ["cat", "dog"],
        "Right or wrong": ["wrong", "right"],
        "Certainty": ["0.9 and above", "0.5 to 0.7"],
    }
    assert block.chosen == ((0, 0),)
    (second,) = [picture for picture in block.pictures if picture.row == 2]
    assert [facet.values[place] for facet, place in zip(block.facets, second.places, strict=True)] == [
        "test", "cat", "dog", "wrong", "0.5 to 0.7", "",
    ]  # fmt: skip


def test_groups_are_numbers_in_their_order():
    block = explored(*(answered(row, "cat", "cat", 0.9, group=group) for row, group in ((1, 10), (2, 9), (3, 10))))
    assert block.facets[-1].values == ["9", "10"] and not block.facets[-1].is_typed


def test_one_of_many_groups_is_typed():
    many = explored(*(answered(row, "cat", "cat", 0.9, group=row) for row in range(1, 40)))
    assert [facet.title for facet in many.facets if facet.is_typed] == ["Group"]


def test_cells_know_what_they_filter_and_a_filter_counts_anew_only_where_all_images_are_there():
    block = explored(*FOUR)
    assert block.places_of_cell("cat", "dog") == "0 1"
    assert block.is_whole
    assert not explored(*FOUR, counts=((1, 1), (0, 2))).is_whole
    assert block.crossed.rows == [("cat", ""), ("dog", "data:image/png;base64,BB==")]
    assert block.crossed.share(0, 1) == "0.500"


def test_a_class_without_images_has_no_cell_to_click():
    block = explored(*FOUR, classes=["cat", "dog", "owl"], counts=((1, 1, 0), (0, 1, 0), (0, 0, 0)))
    assert block.places_of_cell("owl", "cat") == ""
    assert block.crossed.share(2, 0) == "0.000"


def test_one_class_is_a_table_of_one_cell():
    block = explored(answered(1, "cat", "cat", 1.0), classes=["cat"], counts=((1,),))
    assert block.places_of_cell("cat", "cat") == "0 0" and block.offered == []


def test_two_models_stand_side_by_side():
    said = (("cat", "dog", True, False), ("dog", "dog", False, False), ("cat", "cat", True, True))
    images = [
        Thumbnail(
            row=row, split="test", target="cat", png_base64="AA==",
            answers=[
                ImageAnswer(model="a", decision=one, certainty=0.8, is_right=right),
                ImageAnswer(model="b", decision=two, certainty=0.7, is_right=also),
            ],
        )
        for row, (one, two, right, also) in enumerate(said, start=1)
    ]  # fmt: skip
    block = explorer_of(images, CLASSES, identifier="e", caption="")
    assert list(block.answer_facets) == [2, 3]
    assert [facet.title for facet in block.facets[1:5]] == ["True class", "a", "b", "Right or wrong"]
    assert list(block.facets[4].values) == ["both wrong", "only a right", "both right"]
    (first,) = [picture for picture in block.pictures if picture.row == 1]
    assert first.label == "Row 1: a: cat (0.800); b: dog (0.700), true cat"
    assert [column.title for column in block.table.columns][2:6] == ["a", "Certainty of a", "b", "Certainty of b"]


def jpeg(side):
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (side, side, 3), np.uint8)).save(buffer, format="JPEG")
    return base64.b64encode(buffer.getvalue()).decode()


def bomb():
    """The header says 65 535 pixels a side."""
    data = base64.b64decode(jpeg(8))
    place = data.index(b"\xff\xc0") + 5  # marker, length, precision
    return base64.b64encode(data[:place] + b"\xff\xff\xff\xff" + data[place + 4 :]).decode()


@pytest.mark.parametrize(
    ("content", "why"),
    [(jpeg(97), "97 × 97 pixels"), ("AAAA", "not a JPEG file"), ("?", "damaged"), (bomb(), "damaged .*exceeds limit")],
    ids=["too large", "no jpeg", "no base64", "bomb"],
)
def test_a_jpeg_that_may_not_be_shown_is_refused(content, why, examples, tmp_path):
    run = examples.write_run(tmp_path, tuning_record(), images=[Thumbnail(row=1, jpeg_base64=content)])
    with pytest.raises(DataError, match=rf"image 0.*{why}"):
        write_report(run)


def test_a_jpeg_is_shown_as_one(examples, tmp_path):
    image = jpeg(8)
    one = answered(1, "benign", "benign", 0.9).model_copy(update={"png_base64": "", "jpeg_base64": image})
    page = write_report(examples.write_run(tmp_path, tuning_record(), images=[one])).read_text(encoding="utf-8")
    assert f'src="data:image/jpeg;base64,{image}"' in page
