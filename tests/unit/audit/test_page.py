"""The page of an audit: who relies on what, what limits that, and what to type next."""

import pytest

from crossgraft.audit.letters import TOO_SMALL
from crossgraft.audit.page import audit_heading, audited_data_section, confounders_section, outcomes_section
from crossgraft.audit.page_numbers import differences_section, groups_section, numbers_section
from crossgraft.audit.record import AuditMetric, GateRecord
from crossgraft.records.base import CheckRecord, RunRecord, StageRecord
from crossgraft.report.blocks import Checks, Facts, Figure, Folded, Items, Verdict
from crossgraft.report.kinds import KINDS
from crossgraft.report.source import Source
from support.audit_records import (
    SHARES,
    audit_difference,
    audit_entry,
    audit_record,
    confounder_record,
    metric,
    point,
    trained_entry,
)

TYPED = "crossgraft audit mobilenetv2_100 --data breast --confounder tag --out runs/audit"


BY_VAL = "worst_group_accuracy_by_val"
GAPS = ("true_positive_gap", "false_positive_gap", "positive_gap")


@pytest.fixture
def make(examples):
    ranking = examples.ranking_record()
    grouped = ranking.dataset.model_copy(update={"num_groups": 61, "group_column": "patient", "num_skipped_unreadable": 0})

    def record(**changed):
        return audit_record(changed.pop("dataset", grouped), ranking.models[0], **changed)

    return record


def verdict_of(record, command_line=TYPED):
    section = KINDS.get("audit").builders[0](Source(record, command_line=command_line))
    (verdict,) = [block for block in section.blocks if isinstance(block, Verdict)]
    return verdict, [item for block in section.blocks if isinstance(block, Folded) for item in block.blocks[0].items]


def titles(table):
    return [column.title for column in table.columns]


def texts(row):
    return [cell.text for cell in row]


def test_two_levels_of_an_artefact_are_curves_of_one_drawing(make):
    names = ("poisson_image:num_photons=1e7", "poisson_image:num_photons=1e7 against poisson_image", "tag")
    entries = [audit_entry(confounder=name) for name in names]
    section = KINDS.get("audit").builders[0](Source(make(entries=entries, gates=[]), command_line=TYPED))
    levels, curves = [block for block in section.blocks if isinstance(block, Figure)]
    assert len(levels.drawings) == 1 and len(curves.drawings) == 3
    assert "against images without it 0.38, against poisson_image 0.38" in levels.drawings[0]
    assert "tag" not in levels.drawings[0]
    verdict, _ = verdict_of(make(entries=entries, gates=[], confounders=[confounder_record(names[1], rms=3.0)]))
    assert "--with poisson_image:num_photons=1e7" in verdict.following and "against" not in verdict.following


def test_the_answer_puts_the_worst_news_first(make):
    entries = [audit_entry(outcome="passes", confounder="jpeg"), audit_entry()]
    verdict, _ = verdict_of(make(entries=entries, gates=[]))
    assert verdict.answer.startswith(
        "mobilenetv2_100 relies on tag; mobilenetv2_100 passes with jpeg. The largest SRI is 0.400, of "
    )
    assert verdict.caveat is None
    assert "crossgraft edit breast" in verdict.following and "--with tag" in verdict.following


def test_models_with_the_same_outcome_share_a_sentence(make):
    entries = [audit_entry("resnet18"), audit_entry("resnet50")]
    assert verdict_of(make(entries=entries, gates=[]))[0].answer.startswith(
        "resnet18 and resnet50 rely on tag. The largest SRI is "
    )


def test_what_is_undecided_says_what_would_decide_it(make):
    reason = "About 72 patients of each class are needed; there are 9."
    answer = verdict_of(make(entries=[audit_entry(outcome="undecided", reason=reason)], gates=[]))[0].answer
    assert answer.startswith("Whether mobilenetv2_100 relies on tag is undecided: SRI ") and answer.endswith(reason)


def test_a_trained_model_is_judged_by_how_far_answers_move_and_that_is_said(make):
    entry = trained_entry()
    metrics = [
        *(each for each in entry.metrics if each.name != "pull"),
        AuditMetric(name="pull", value=-0.5, low=-0.7, high=-0.3),
    ]
    answer = verdict_of(make(mode="trained", entries=[entry.model_copy(update={"metrics": metrics})], gates=[]))[0].answer
    interval = "95\N{NO-BREAK SPACE}% interval −0.700 to −0.300"
    assert f": it moves answers by −0.500 standard deviations ({interval}), AUC drop 0.250 (" in answer


def test_a_condition_that_holds_is_in_the_answer_and_in_the_checks(make):
    verdict, _ = verdict_of(make())
    assert verdict.answer.endswith("The condition shortcut_reliance_index>0.1 of --fail-on holds.")
    passed = [GateRecord(condition=text, state="passed", said="no model.") for text in ("auc_drop>0.9", "clean_auc<0.5")]
    assert verdict_of(make(gates=passed))[0].answer.endswith("2 conditions of --fail-on do not hold.")
    items = [block for block in audited_data_section(Source(make())).blocks if isinstance(block, Items)]
    assert "--fail-on shortcut_reliance_index>0.1: failed. mobilenetv2_100 with tag (0.400)." in items[-1].items


@pytest.mark.parametrize("outcome", ["undetectable", "untrained", "impossible"])
def test_silence_is_no_pass(make, outcome):
    verdict, _ = verdict_of(make(entries=[audit_entry(outcome=outcome)]))
    assert verdict.caveat == "That is no pass: nothing is known about tag."


def test_caveats_come_in_the_order_of_their_weight(make, examples):
    ungrouped = examples.ranking_record().dataset.model_copy(update={"num_skipped_unreadable": 0})
    seen = make(
        dataset=ungrouped,
        mode="trained",
        entries=[trained_entry("undetectable")],
        notes=["Measured on all images: whether the model has learned from some of them is not known here."],
    )
    verdict, others = verdict_of(seen)
    assert verdict.caveat.startswith("The model may have learned from these images.")
    assert [item.split(" ")[0] for item in others] == ["That", "Without"]
    unsound = CheckRecord(title="Identical images", severity="unsound", text="8 are in two parts.")
    assert "8 are in two parts" in verdict_of(make(checks=[unsound]))[0].caveat


@pytest.mark.parametrize("outcome", ["undetectable", "undecided"])
def test_what_frozen_features_cannot_tell_is_trained_next(make, outcome):
    following = verdict_of(make(entries=[audit_entry(outcome=outcome)]))[0].following
    assert following.startswith("crossgraft audit mobilenetv2_100 --data breast") and "--mode full" in following


def test_the_heading_counts_what_was_asked(make):
    heading = audit_heading(Source(make()))
    assert heading.title.startswith("Audit of mobilenetv2_100 on ")
    assert heading.summary == ("1 confounder · malignant against the rest · 80 test images (40 positive) · quick mode · 5 folds")
    two = [audit_entry("resnet18"), audit_entry("resnet50")]
    assert audit_heading(Source(make(entries=two))).title.startswith("Audit of 2 models on ")
    trained = audit_heading(Source(make(mode="trained", entries=[trained_entry()], num_folds=1)))
    assert "fold" not in trained.summary


def test_outcomes_hold_the_numbers_of_the_record(make):
    (table,) = outcomes_section(Source(make())).blocks
    assert "SRI" in titles(table) and "Training" not in titles(table)
    (row,) = [texts(row) for row in table.rows]
    for shown in ("tag", "relies on it", "0.400", "0.875", "0.375", "0.900"):
        assert shown in row
    assert "0.725" in table.notes[0] and "Model" not in titles(table)
    (table,) = outcomes_section(Source(make(entries=[audit_entry("one"), audit_entry("other")]))).blocks
    assert [texts(row)[titles(table).index("Model")] for row in table.rows] == ["one", "other"]


def test_a_trained_model_has_a_drop_and_no_index(make):
    table, reasons = outcomes_section(Source(make(mode="trained", entries=[trained_entry()]))).blocks
    assert reasons.items  # what it was compared with, which no number alone says
    assert "AUC drop" in titles(table) and "SRI" not in titles(table)
    assert "0.250" in texts(table.rows[0]) and table.notes[0].startswith("AUC drop: ")


def test_mitigations_have_a_column_and_no_part_in_the_answer(make):
    better = audit_entry(mitigation="dfr", outcome="passes", index=0.02)
    record = make(entries=[audit_entry(), better], gates=[])
    (table,) = outcomes_section(Source(record)).blocks
    place = titles(table).index("Training")
    assert [texts(row)[place] for row in table.rows] == ["erm", "dfr"]
    assert verdict_of(record)[0].answer.startswith("mobilenetv2_100 relies on tag: SRI ")


def test_what_is_neither_reliance_nor_a_pass_says_why(make):
    refused = audit_entry(mitigation="dfr", outcome="impossible", reason="A cell is empty.", metrics=[], points=[])
    _, reasons = outcomes_section(Source(make(entries=[audit_entry(), refused]))).blocks
    assert reasons.items == ["mobilenetv2_100, tag, dfr: A cell is empty."]


def test_what_was_not_measured_is_an_empty_cell(make):
    blind = audit_entry(outcome="impossible", metrics=[], points=[], detectability=None)
    table, _ = outcomes_section(Source(make(entries=[blind]))).blocks
    assert "not measured" in texts(table.rows[0])
    assert groups_section(Source(make(entries=[blind]))) is None


def test_curves_are_drawn_for_the_first_twelve(make):
    def figures(count):
        entries = [audit_entry(f"net {number}") for number in range(count)]
        section = KINDS.get("audit").builders[0](Source(make(entries=entries)))
        return [block for block in section.blocks if isinstance(block, Figure)]

    (few,) = figures(1)
    assert len(few.drawings) == 1 and "curves.csv" not in few.caption
    (many,) = figures(14)
    assert len(many.drawings) == 12 and many.caption.endswith("2 more are in curves.csv.")
    assert figures(0) == []


def test_groups_are_those_of_the_largest_share_and_few_images_are_marked(make):
    last = point(1.0, 0.9, 0.4)
    small = last.cells[0].model_copy(update={"num_images": 3, "is_small": True, "accuracy": 0.5})
    last = last.model_copy(update={"cells": [small, *last.cells[1:]], "metrics": [metric(BY_VAL, 0.625)]})
    gaps = [metric(name, value) for name, value in zip(GAPS, (0.25, -0.125, 0.0), strict=True)]
    entry = audit_entry(points=[*[point(share, 0.9, 0.9) for share in SHARES[:2]], last], metrics=gaps)
    (table,) = groups_section(Source(make(entries=[entry]))).blocks
    shown = dict(zip(titles(table), table.rows[0], strict=True))
    assert (shown["Positive with"].text, shown["Positive with"].strong) == ("0.500 (of 3)", True)
    assert (shown["Negative without"].text, shown["Negative without"].values) == ("0.750", (0.75, 20))
    assert texts(table.rows[0])[5:] == ["0.625", "0.250", "−0.125", "0.000"]
    assert "3 to 20 images in a group" in table.notes[0] and "Decided at 0.5" in table.notes[0]
    trained = make(mode="trained", entries=[entry.model_copy(update={"mode": "trained"})])
    (of_trained,) = groups_section(Source(trained)).blocks
    assert "the model's own threshold" in of_trained.notes[0]
    assert "Worst, val's threshold" in titles(table) and "Worst, val's threshold" not in titles(of_trained)
    assert texts(of_trained.rows[0])[5:] == ["0.250", "−0.125", "0.000"]


def test_what_a_curve_sums_up_to(make):
    found = [metric("ood_drop_area", 0.3), metric("early_gap", 0.1), AuditMetric(name="flip_share", value=None)]
    found += [metric("flip_effect_positives", 1.25), metric("flip_effect_negatives", 2.5)]
    (table,) = numbers_section(Source(make(entries=[audit_entry(metrics=found)]))).blocks
    assert texts(table.rows[0])[1:] == ["0.300", "[0.280, 0.320]", "0.100", "never", "—", "1.25", "2.50"]
    kept = point(1.0, 0.9, 0.4).model_copy(update={"metrics": [metric("best_epoch", 7.5)]})
    (table,) = numbers_section(Source(make(entries=[audit_entry(metrics=found, points=[kept])]))).blocks
    assert titles(table)[-1] == "Epoch kept" and texts(table.rows[0])[-1] == "7.500"
    reverse = trained_entry().model_copy(update={"metrics": [metric("reverse_drop", 0.125)]})
    (table,) = numbers_section(Source(make(mode="trained", entries=[reverse]))).blocks
    assert texts(table.rows[0])[1:3] == ["0.125", "[0.105, 0.145]"]


def test_what_reaches_the_network(make):
    reached = audit_entry(input_rms=0.0625)
    table = confounders_section(Source(make(entries=[reached, audit_entry(mitigation="dfr", input_rms=0.0625)]))).blocks[1]
    assert [texts(row) for row in table.rows] == [["tag", "4.50", "0.062", "0.900", "[0.880, 0.920]"]]


def test_a_cue_of_the_other_class_says_why_it_is_relied_on(make):
    reason = "Positives that carry it are taken for negatives."
    _, reasons = outcomes_section(Source(make(mode="trained", entries=[trained_entry(drop=-0.05, reason=reason)]))).blocks
    assert reasons.items == [f"mobilenetv2_100, tag: {reason}"]


def test_what_is_lost_in_rounding_is_said(make):
    faint = [confounder_record(rms=0.02)]
    assert verdict_of(make(confounders=faint))[0].caveat.startswith("tag changes less than 0.3 grey levels")
    assert verdict_of(make(confounders=faint, strength=0.0))[0].caveat is None


def test_letters_that_cannot_be_seen_are_tried_larger(make):
    spot = [audit_entry(outcome="undetectable", reason=TOO_SMALL.format(high="4.0"))]
    assert verdict_of(make(entries=spot))[0].following.endswith("--confounder tag:size=0.125")
    run = RunRecord.model_construct(stages=[StageRecord(name="auditing", seconds=130.0)], as_typed=TYPED, state="done")
    (shown, *_) = KINDS.get("audit").builders[0](Source(make(entries=spot), run=run)).blocks
    assert isinstance(shown, Verdict) and shown.purpose.endswith("(about 2 min 10 s)")
    hopeless = [audit_entry(outcome="undetectable", reason=TOO_SMALL.format(high="0.1"))]
    assert verdict_of(make(entries=hopeless))[0].following.startswith("crossgraft list confounders --data breast")
    assert "size=" not in verdict_of(make(entries=[audit_entry(outcome="passes", reason="Of 6 pixels.")]))[0].following


def test_an_artefact_that_resizing_takes_away_is_looked_at_in_larger_images(make):
    lost = [audit_entry(outcome="undetectable", larger_image_size=side) for side in (128, None, 64)]
    assert "--image-size 128" in verdict_of(make(entries=lost))[0].following
    assert "--mode full" in verdict_of(make(entries=lost[1:2]))[0].following


def test_mitigations_are_left_out_of_what_full_mode_is_asked(make):
    following = verdict_of(make(entries=[audit_entry(outcome="undecided")]), f"{TYPED} --mitigate dfr")[0].following
    assert "--mode full" in following and "--mitigate" not in following


def test_an_artefact_that_does_not_fit_is_not_proposed_again(make):
    outside = [confounder_record(rms=None, share_changed=None, psnr=None)]
    following = verdict_of(make(confounders=outside, entries=[audit_entry(outcome="impossible")]))[0].following
    assert following.startswith("crossgraft list confounders --data breast") and "--with" not in following
    both = [*outside, confounder_record("jpeg:40", scope="global")]
    assert "--with jpeg:40" in verdict_of(make(confounders=both))[0].following


def test_confounders_with_their_units(make):
    rows = [confounder_record(), confounder_record("low_pass:0.9", leaf=None, rms=None, share_changed=None, psnr=None)]
    table = confounders_section(Source(make(confounders=rows))).blocks[0]
    for shown in ("a letter in the corner", "environment › external", "4.50", "35.0"):
        assert shown in texts(table.rows[0])
    assert len(table.rows) == 2


def test_the_data_say_how_carriers_were_drawn(make):
    def facts(record):
        return dict(
            entry for block in audited_data_section(Source(record)).blocks if isinstance(block, Facts) for entry in block.rows
        )

    found = facts(make(negatives=0.25))
    assert (found["Class in question"], found["Shares"]) == ("malignant", "0, 0.5, 1")
    assert found["Test images"] == "mean over all draws" and "25" in found["Negatives that carry it"]
    trained = facts(make(mode="trained", entries=[trained_entry()]))
    assert "Shares" not in trained and trained["Drawn by"] == "image"
    checked = make(checks=[CheckRecord(title="Identical images", severity="passed", text="none")])
    assert any(isinstance(block, Checks) for block in audited_data_section(Source(checked)).blocks)


# models beside each other


def test_models_stand_beside_the_one_that_relies_least(make):
    assert differences_section(Source(make())) is None
    record = make(differences=[audit_difference("resnet18"), audit_difference("resnet50", index=0.01)])
    said, table, columns, folded = differences_section(Source(record)).blocks
    assert said.items == ["mobilenetv2_100 relies least on tag. Not told from it: resnet50."]
    assert "Confounder" not in titles(table)
    assert texts(table.rows[0]) == [
        "resnet18", "0.250", "[0.230, 0.270]", "−0.400", "[−0.420, −0.380]", "0.048"
    ]  # fmt: skip
    assert table.rows[0][0].values == ("resnet18", "mobilenetv2_100") and table.rows[0][-1].values == (0.048, 0.008)
    assert "smallest SRI" in table.notes[0] and "at least 0.008." in columns.text
    assert "the 3 tests of a model" in columns.text and columns.text.endswith("at least 0.024.")
    (by_share,) = folded.blocks
    assert [texts(row)[1] for row in by_share.rows] == ["0", "0.5", "1"] * 2


def test_each_confounder_has_its_own_least_reliant_model(make):
    found = [
        audit_difference(),
        audit_difference(confounder="jpeg", reference="resnet50", index=0.0),
        audit_difference("vit", confounder="jpeg", reference="resnet50", index=0.01),
    ]
    said, table, *_ = differences_section(Source(make(differences=found))).blocks
    assert said.items == [
        "mobilenetv2_100 relies on tag less than the other model.",
        "resnet50 has the smallest SRI with jpeg, but no interval tells another model from it.",
    ]
    assert titles(table)[0] == "Confounder" and table.row_heading == 1
    one_fold = differences_section(Source(make(differences=found, num_folds=1))).blocks[2]
    assert "permutation" not in one_fold.text
    many = [audit_difference(f"network{number}") for number in range(201)]
    assert len(differences_section(Source(make(differences=many))).blocks) == 3


def test_a_number_without_an_interval_says_why_once(make):
    record = make()
    entry = record.entries[0]
    bare = [each.model_copy(update={"low": None, "high": None, "no_interval_reason": "one group"}) for each in entry.metrics]
    changed = record.model_copy(update={"entries": [entry.model_copy(update={"metrics": bare})]})
    items = [item for block in audited_data_section(Source(changed)).blocks if isinstance(block, Items) for item in block.items]
    assert len(bare) > 1 and items.count("No interval: one group.") == 1
