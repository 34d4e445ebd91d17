"""What the page of a fine-tuning shows."""

import pytest

from crossgraft.records.base import CheckRecord
from crossgraft.report.blocks import Checks, Facts, Figure, Folded, Items, Paragraph
from crossgraft.report.tables import Table
from crossgraft.tune.page import (
    classes_section,
    metrics_section,
    subgroups_section,
    tuning_checks_section,
    tuning_data_section,
    tuning_heading,
    tuning_verdict_section,
)
from crossgraft.tune.page_curves import curves_section
from crossgraft.tune.page_training import calibration_section, folds_section, grid_section, plan_section, thresholds_section
from support.tuning_records import metric, roc, tuning_record


def blocks_of(section, kind):
    """Blocks of one kind, those inside folded parts too."""
    inner = [part for block in section.blocks for part in (block.blocks if isinstance(block, Folded) else [block])]
    return [block for block in inner if isinstance(block, kind)]


def texts(table, row):
    return [cell.text for cell in table.rows[row]]


@pytest.fixture
def record():
    return tuning_record()


def test_the_verdict_is_a_metric_with_its_interval_on_unseen_images_and_the_rule(record, source_of):
    section = tuning_verdict_section(source_of(record))
    verdict, rule = section.blocks[:2]
    assert verdict.answer == (
        "Balanced accuracy 0.83 (95\N{NO-BREAK SPACE}% interval 0.78 to 0.88; guessing gives 0.50) on 156 images of 78 groups "
        "that had no part in training or in picking the model."
    )
    assert rule.text.startswith(
        "The epoch with the highest balanced accuracy on val was kept. The weights are in the folder model"
    )
    (figure,) = blocks_of(metrics_section(source_of(record)), Figure)
    assert "Calibration error" not in figure.drawings[0]
    assert "Full fine-tuning and L2-SP" in tuning_heading(source_of(record)).summary


@pytest.mark.parametrize(
    ("severity", "with_folds", "ending"),
    [
        ("unsound", False, "images of 78 groups of test."),
        ("passed", False, "had no part in training or in picking the model."),
        ("warning", True, "images of 78 groups that each fold held out."),
        ("passed", True, "had no part in training or in picking the model."),
    ],
)
def test_test_images_are_not_called_new_where_copies_are_on_both_sides(source_of, severity, with_folds, ending):
    title = "Identical images" if with_folds else "Identical images across splits"
    checks = [CheckRecord(title=title, severity=severity, text="Copies.")]
    record = tuning_record(num_folds=3 if with_folds else 0, checks=checks)
    if with_folds:
        record = record.model_copy(
            update={"metrics": [row.model_copy(update={"split": "out of fold"}) for row in record.metrics]}
        )
    assert tuning_verdict_section(source_of(record)).blocks[0].answer.endswith(ending)


def test_a_headline_that_may_be_guessing_says_so(record, source_of):
    def caveat(low):
        metrics = [row.model_copy(update={"value": 0.55, "low": low, "high": 0.7}) for row in record.metrics]
        return tuning_verdict_section(source_of(record.model_copy(update={"metrics": metrics}))).blocks[0].caveat

    guess = 1 / len(record.dataset.class_names)
    assert caveat(guess).startswith("156 images are too few to tell. Guessing gives 0.50, and the interval contains it")
    assert caveat(guess + 0.01) is None


def test_missing_metrics_of_one_reason_are_one_sentence(record, source_of):
    of_site = [
        metric(name, None, attribute="site", attribute_value="a", reason="A class has no image here.")
        for name in ("balanced_accuracy", "auc")
    ]
    shown = subgroups_section(source_of(record.model_copy(update={"metrics": [*record.metrics, *of_site]})))
    notes = [note for table in blocks_of(shown, Table) for note in table.notes if note.startswith("a, ")]
    assert len(notes) == 1
    assert notes[0] == "a, Balanced accuracy and AUC: A class has no image here."


def test_a_metric_of_rows_that_picked_the_model_says_so(record, source_of):
    on_val = [row for row in record.metrics if row.split == "val"]
    section = tuning_verdict_section(source_of(record.model_copy(update={"metrics": on_val})))
    assert "so the value is too high" in section.blocks[0].caveat
    nothing = tuning_verdict_section(source_of(record.model_copy(update={"metrics": []})))
    assert nothing.blocks[0].answer.startswith("No metric was measured")
    reason = tuning_record(saved_model=None, saved_model_reason="Folds give one model each")
    assert "There is no single model: Folds give one model each." in tuning_verdict_section(source_of(reason)).blocks[1].text


def test_what_makes_the_number_wrong_stands_beside_it(source_of):
    checks = [
        CheckRecord(title="Copies", severity="unsound", text="Two pictures."),
        CheckRecord(title="Constant", severity="passed", text="None."),
    ]
    record = tuning_record(checks=checks, leakage_checked=False, leakage="There is no group column.")
    verdict, others = tuning_verdict_section(source_of(record)).blocks[:2]
    assert verdict.caveat == "Copies: Two pictures."
    assert others.blocks == [Items(["There is no group column."])]
    (all_of_them,) = blocks_of(tuning_checks_section(source_of(record)), Checks)
    assert [check.title for check in all_of_them.checks] == ["Copies", "Patient leakage", "Constant"]
    assert tuning_verdict_section(source_of(tuning_record())).blocks[0].caveat is None
    assert blocks_of(tuning_checks_section(source_of(tuning_record())), Items)[0].items == tuning_record().warnings


def test_metrics_of_the_unseen_rows_come_first_and_the_others_are_folded(record, source_of):
    section = metrics_section(source_of(record))
    test, val = blocks_of(section, Table)
    assert texts(test, 1) == ["Balanced accuracy", "0.83", "[0.78, 0.88]", "156", "78"]
    assert (test.caption, val.caption) == ("Metrics on the rows of test", "Metrics on the rows of val")
    assert val not in section.blocks
    assert "Smaller is better for Calibration error" in test.notes[0]
    missing = metric("auc", None, reason="only one class")
    lone = metrics_section(source_of(record.model_copy(update={"metrics": [missing]})))
    assert "AUC: only one class" in blocks_of(lone, Table)[0].notes


def test_classes_have_metrics_and_a_curve_each(record, source_of):
    section = classes_section(source_of(record))
    (by_class,), (curves,) = blocks_of(section, Table), blocks_of(section, Figure)
    assert texts(by_class, 1) == ["malignant", "—", "0.890", "[0.840, 0.940]", "0.80", "[0.75, 0.85]"]
    assert len(curves.drawings) == 1
    many = tuning_record(class_names=tuple(f"class {k}" for k in range(24)), roc=[roc(f"c{k}", 0.4) for k in range(9)])
    (curves,) = blocks_of(classes_section(source_of(many)), Figure)
    assert [[f"c{k}<" in drawing for k in range(9)] for drawing in curves.drawings] == [
        [True] * 6 + [False] * 3,
        [False] * 6 + [True] * 3,
    ]
    labels = tuning_record(task="multi-label", class_names=("oedema", "effusion"))
    assert classes_section(source_of(labels)).title == "Labels"


def test_a_table_of_classes_has_the_number_of_images_of_each(record, source_of):
    of_class = [
        metric("sensitivity", value, num_images=images, class_name=name)
        for name, value, images in (("benign", 0.9, 94), ("malignant", None, 156))
    ]
    section = classes_section(source_of(record.model_copy(update={"metrics": [*record.metrics, *of_class]})))
    by_class = blocks_of(section, Table)[0]
    assert [column.title for column in by_class.columns][:2] == ["Class", "Support"]
    assert [row[1].text for row in by_class.rows] == ["94", "0"]  # without images there is no sensitivity
    assert by_class.notes[0].startswith("Support: images of the class")


def test_subgroups_show_what_has_no_value_and_keep_gaps_apart(record, source_of):
    gap = metric("balanced_accuracy", 0.1, attribute="scanner", attribute_value="A − B")
    gap = gap.model_copy(update={"metric": "balanced_accuracy_gap", "title": "Balanced accuracy, largest gap"})
    section = subgroups_section(source_of(record.model_copy(update={"metrics": [*record.metrics, gap]})))
    by_value, gaps = blocks_of(section, Table)
    assert [row[0].text for row in by_value.rows] == ["scanner A", "scanner B", "scanner C"]
    assert by_value.notes == ["scanner C, Balanced accuracy: one class has no image here."]
    assert texts(gaps, 0)[:3] == ["Balanced accuracy, largest gap", "A − B", "0.10"]
    (figure,) = blocks_of(section, Figure)
    assert "no value" in figure.drawings[0]
    bare = record.model_copy(update={"metrics": [row for row in record.metrics if row.attribute is None]})
    assert subgroups_section(source_of(bare)) is None


def test_calibration_says_what_the_temperature_did(record, source_of):
    section = calibration_section(source_of(record))
    assert "temperature 1.83, fitted on val, 78 images" in section.blocks[0].text
    assert "less sure" in section.blocks[0].text
    assert "0.110 before and 0.040 after" in section.blocks[0].text
    sharper = record.calibration.model_copy(update={"temperature": 0.5, "temperatures": [0.4, 0.6]})
    text = calibration_section(source_of(tuning_record(calibration=sharper))).blocks[0].text
    assert "makes the model surer" in text
    assert "from 0.4 to 0.6" in text
    none = tuning_record(calibration=None, calibration_reason="there are no validation rows.")
    assert calibration_section(source_of(none)).blocks == [
        Paragraph("Probabilities were not calibrated: there are no validation rows.")
    ]
    (table,) = blocks_of(thresholds_section(source_of(record)), Table)
    assert texts(table, 0) == ["malignant", "0.410", "Youden's J", "val, 78 images", "21", "0.90", "0.83"]
    assert thresholds_section(source_of(tuning_record(thresholds=[]))) is None


def test_learning_curves_of_one_run_show_the_kept_epoch_and_of_many_the_picked_runs(record, source_of):
    section = curves_section(source_of(record))
    figure, similarity = blocks_of(section, Figure)
    assert "Loss by epoch: training, validation." in figure.drawings[0]
    assert "epoch whose weights were kept" in figure.caption
    assert "only the head was trained" in figure.caption
    for (drawing,) in (similarity.drawings, similarity.narrow):
        assert "Similarity to the pretrained network (CKA) by epoch: biased, debiased." in drawing
    assert "CKA compares features" in similarity.caption
    (table,) = blocks_of(section, Table)
    assert [row[-2].text for row in table.rows].index("kept") == 8
    assert [column.title for column in table.columns][-4:-2] == ["CKA", "CKA, debiased"]
    assert [cell.text for cell in table.rows[2]][-4:-2] == ["1.000", "1.000"]
    grid = curves_section(source_of(tuning_record(grid=True)))
    assert "Thin: 1 other run." in blocks_of(grid, Figure)[0].caption
    assert "(debiased CKA) by epoch: lr 0.0001." in blocks_of(grid, Figure)[1].drawings[0]
    gone = {"val_loss": None, "val_metric": None, "val_cka": None, "val_cka_debiased": None}
    no_val = [row.model_copy(update=gone) for row in record.history]
    without = curves_section(source_of(record.model_copy(update={"history": no_val})))
    (alone,) = blocks_of(without, Figure)
    assert len(alone.drawings) == 1
    assert "CKA" not in [column.title for column in blocks_of(without, Table)[0].columns]
    assert curves_section(source_of(tuning_record(history=[]))) is None


def test_folds_and_grid_appear_where_there_are_some(record, source_of):
    assert folds_section(source_of(record)) is None
    assert grid_section(source_of(record)) is None
    (folds,) = blocks_of(folds_section(source_of(tuning_record(num_folds=3))), Table)
    assert texts(folds, 1)[0] == "fold 1"
    assert texts(folds, 1)[-2:] == ["0.820", "[0.740, 0.890]"]
    (grid,) = blocks_of(grid_section(source_of(tuning_record(grid=True))), Table)
    assert [row[-2].text for row in grid.rows] == ["picked", "—"]
    assert grid.rows[0][2].strong


def test_the_plan_says_what_was_trained_and_why_and_notes_come_once(record, source_of):
    plan = record.plan.model_copy(update={"notes": ["one", record.leakage]})
    section = plan_section(source_of(record.model_copy(update={"plan": plan, "notes": ["one", "two"]})))
    facts = dict(blocks_of(section, Facts)[0].rows)
    assert facts["Regulariser"] == "L2-SP (l2_sp:alpha=0.1); Li 2018"
    assert facts["Licence of its weights"] == "apache-2.0"
    (table,) = blocks_of(section, Table)
    assert texts(table, 1)[:2] == ["the new head", "trained"]
    assert blocks_of(section, Items)[0].items == ["one", "two"]


def test_the_data_say_the_split_and_the_leakage(record, source_of):
    section = tuning_data_section(source_of(record))
    assert section.blocks[0] == Paragraph("No patient is in two parts.")
    (table,) = blocks_of(section, Table)
    assert texts(table, 2) == ["test", "156", "78", "given with the data"]
