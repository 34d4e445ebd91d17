"""What the page of a prediction shows."""

import json

import pytest

from crossgraft import write_report
from crossgraft.metrics.words import NOT_SEEN
from crossgraft.predict.page import (
    NEW,
    SEEN,
    certain_section,
    counts_section,
    measured_section,
    model_section,
    pictures_section,
    prediction_checks_section,
    prediction_heading,
    prediction_verdict_section,
    rows_section,
    worth_in_words,
)
from crossgraft.records.base import ImageAnswer, Thumbnail
from crossgraft.report.blocks import Checks, Facts, Figure, Folded, Gallery
from crossgraft.report.tables import Table
from support.tuning_records import EVIL, prediction_record


def blocks_of(section, kind):
    inner = [part for block in section.blocks for part in (block.blocks if isinstance(block, Folded) else [block])]
    return [block for block in inner if isinstance(block, kind)]


@pytest.fixture
def record():
    return prediction_record()


def test_the_verdict_counts_classes_and_says_what_such_answers_are_worth(record, source_of):
    answer = prediction_verdict_section(source_of(record)).blocks[0].answer
    assert answer.startswith("Balanced accuracy 0.70 (")
    assert answer.endswith("Predicted for 40 images – benign: 20 (50\N{NO-BREAK SPACE}%); malignant: 20 (50\N{NO-BREAK SPACE}%).")
    unknown = prediction_verdict_section(source_of(prediction_record(labelled=False))).blocks[0]
    assert unknown.answer.startswith("When it was fine-tuned: Balanced accuracy 0.83")
    assert "true classes of these images are not known" in unknown.caveat
    nothing = prediction_record(labelled=False, training_metrics=[], num_unreadable=1)
    verdict, others, *_ = prediction_verdict_section(source_of(nothing)).blocks
    assert "1 image could not be read and is left out." in others.blocks[0].items
    assert "was not measured" in verdict.answer
    assert prediction_heading(source_of(record)).title == "Predictions for new images"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.4, 0.8, "40 images are too few to tell. Guessing gives 0.50, and the interval contains it: "),
        (0.2, 0.4, "Guessing gives 0.50, and all of the interval is below it: the model is worse than guessing."),
        (0.6, 0.8, "It took 20 of 20 images of benign for malignant"),
    ],
)
def test_what_guessing_gives_stands_before_a_class_that_is_missed(low, high, said, record, source_of):
    metrics = [row.model_copy(update={"low": low, "high": high}) if row.class_name is None else row for row in record.metrics]
    rows = [row.model_copy(update={"decision": "malignant"}) for row in record.rows]
    verdict = prediction_verdict_section(source_of(record.model_copy(update={"metrics": metrics, "rows": rows}))).blocks[0]
    assert verdict.caveat.startswith(said)


def test_certain_images_are_shown_under_their_rows(record, source_of, examples):
    thumbnails = [
        image.model_copy(update={"class_name": str(row)})
        for row in {*record.most_certain, *record.least_certain}
        for image in examples.thumbnails(["x"])[:1]
    ]
    most, least = blocks_of(certain_section(source_of(record, thumbnails=thumbnails)), Gallery)
    first = record.rows[record.most_certain[0] - 1]
    assert next(iter(most.images)).startswith(f"Row {first.row}: {first.decision} (0.")
    assert len(most.images) == len(least.images) == 8
    tables = blocks_of(certain_section(source_of(record)), Table)
    assert [table.caption for table in tables] == ["Most certain images", "Least certain images"]
    assert certain_section(source_of(record.model_copy(update={"most_certain": []}))) is None


def answered(row, *, split=""):
    right = None if row.target is None else row.decision == row.target
    answer = ImageAnswer(decision=row.decision, certainty=row.certainty, is_right=right)
    return Thumbnail(row=row.row, split=split, target=row.target, png_base64="AA==", answers=[answer])


def test_every_image_is_shown_with_its_answer_and_crossed_with_the_truth_where_that_is_known(record, source_of):
    thumbnails = [answered(row, split=SEEN if row.row <= 4 else NEW) for row in record.rows]
    seen = [row.model_copy(update={"seen": row.row <= 4}) for row in record.rows]
    source = source_of(record.model_copy(update={"rows": seen}), thumbnails=thumbnails)
    (explorer,) = pictures_section(source).blocks
    assert len(explorer.pictures) == 40 and sum(picture.is_hidden for picture in explorer.pictures) == 4
    assert sum(map(sum, explorer.crossed.counts)) == 36 and explorer.is_whole
    assert explorer.first_order == "wrong first"
    assert certain_section(source) is None  # they are among these


def test_images_without_true_classes_are_shown_the_least_sure_first(source_of):
    bare = prediction_record(labelled=False)
    (explorer,) = pictures_section(source_of(bare, thumbnails=[answered(row) for row in bare.rows])).blocks
    assert explorer.crossed is None and explorer.first_order == "least sure first"
    sure = [picture.certainties[0] for picture in explorer.pictures]
    assert sure == sorted(sure) and all(picture.mark for picture in explorer.pictures)
    assert "Part" not in [column.title for column in explorer.table.columns]
    assert pictures_section(source_of(bare)) is None


def test_metrics_appear_where_true_classes_are_known(record, source_of):
    here, before = blocks_of(measured_section(source_of(record)), Table)
    assert here.caption == "Metrics on these images"
    assert before.caption == "Metrics of the model on breast"
    bare = prediction_record(labelled=False)
    assert measured_section(source_of(bare)) is None
    assert any(table.file_name == "metrics-before" for table in blocks_of(model_section(source_of(bare)), Table))


def test_rows_hold_names_only_if_the_record_has_them(record, source_of):
    (table,) = blocks_of(rows_section(source_of(record)), Table)
    assert [column.title for column in table.columns] == ["Row", "Decision", "Probability", "True", "benign", "malignant"]
    named = [row.model_copy(update={"name": f"{row.row}.png"}) for row in record.rows]
    (table,) = blocks_of(rows_section(source_of(record.model_copy(update={"rows": named}))), Table)
    assert table.rows[0][1].text == "1.png"
    many = prediction_record(num_images=520)
    section = rows_section(source_of(many))
    assert section.blocks[0].text == "20 more rows are in predictions.csv."
    assert len(blocks_of(section, Table)[0].rows) == 500


def test_unreadable_images_and_warnings_are_checks(record, source_of):
    damaged = record.rows[2].model_copy(update={"decision": "unreadable", "probabilities": [], "reason": "no picture"})
    rows = [*record.rows[:2], damaged, *record.rows[3:]]
    changed = record.model_copy(update={"rows": rows, "num_unreadable": 1, "warnings": ["Odd."]})
    (checks,) = blocks_of(prediction_checks_section(source_of(changed)), Checks)
    assert [check.text for check in checks.checks][:2] == ["Odd.", "1 image cannot be decoded and has no prediction: row 3."]
    (table,) = blocks_of(rows_section(source_of(changed)), Table)
    assert table.rows[2][-1].text == "—"
    assert table.notes == ["Row 3: no picture."]


def test_the_model_section_says_the_rule(record, source_of):
    facts = dict(blocks_of(model_section(source_of(record)), Facts)[0].rows)
    assert facts["Temperature"] == "1.83"
    assert "Decision" not in facts
    plain = prediction_record(thresholds=[], temperature=None)
    facts = dict(blocks_of(model_section(source_of(plain)), Facts)[0].rows)
    assert (facts["Decision"], facts["Temperature"]) == ("the most probable class", "none")


def test_a_page_of_many_labels_is_whole_small_and_escaped(source_of, tmp_path, examples):
    record = prediction_record(num_images=3000, task="multi-label", class_names=(EVIL, "b", "c"))
    (tmp_path / "run.json").write_text(examples.run_record().model_dump_json())
    (tmp_path / "report.json").write_text(record.model_dump_json())
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert EVIL not in page
    assert len(page) < 600_000
    start = page.index('id="record">') + len('id="record">')
    assert "rows" not in json.loads(page[start : page.index("</script>", start)])
    (figure,) = blocks_of(counts_section(source_of(record)), Figure)
    assert "least certain label" in figure.drawings[0]


def test_a_value_is_of_images_that_were_not_seen_only_where_it_was_measured_on_them(record, source_of):
    def told(**changes):
        return worth_in_words(record.model_copy(update={"num_seen": 12, **changes}))

    assert told().startswith("Balanced accuracy 0.70") and told().endswith("on 40 images that it had not seen.")
    assert told(warnings=[f"12 of 17 images had a part … {NOT_SEEN}."]).endswith("on 40 images.")
    assert ".." not in told().replace("…", "")


def test_rows_of_a_part_are_said_to_be_counted_within_it(record, source_of):
    def note(used):
        return rows_section(source_of(record.model_copy(update={"rows_used": used}))).blocks[0].text

    assert note("rows of the split test").startswith("Rows are counted from 1 among the images that were predicted")
    assert note("all rows") == note("") == "Names of files are in predictions.csv."
