"""The verdict of each kind of page: answer, biggest caveat, next command."""

import pytest

from crossgraft.data.checks.record import FindingRecord
from crossgraft.data.record import SplitRow
from crossgraft.export.record import ExportRecord
from crossgraft.metrics.record import ConfusionRecord, MetricRecord
from crossgraft.metrics.words import NOT_SEEN
from crossgraft.published.record import PublishedRecord
from crossgraft.rank.page import answer_in_words
from crossgraft.rank.published.record import ScenarioRecord
from crossgraft.records.base import CheckRecord
from crossgraft.report.blocks import Folded, Verdict
from crossgraft.report.kinds import KINDS
from crossgraft.report.page import blocks_as_markdown
from crossgraft.report.source import Source
from crossgraft.report.terminal import record_as_text
from crossgraft.select.page import cost_in_words, next_hour_in_words, selection_plan_in_words, separable_in_words
from support.comparison_records import comparison_record, variant
from support.selection_records import candidate, selection_record
from support.tuning_records import metric, prediction_record, tuning_record

TUNED = "crossgraft tune images --model resnet18 --group-column patient --code net.py --out runs/tune-images"
EVIL = "<script>alert(1)</script>"


def verdict_of(record, command_line=None):
    """The verdict and the caveats that are folded below it."""
    (section,) = [
        found
        for builder in KINDS.get(record.kind).builders
        if (found := builder(Source(record, command_line=command_line))) is not None and found.part == "verdict"
    ]
    (verdict,) = [block for block in section.blocks if isinstance(block, Verdict)]
    others = [text for block in section.blocks if isinstance(block, Folded) for each in block.blocks[:1]
              for text in getattr(each, "items", ())]  # fmt: skip
    return verdict, others


def sensitivity(name, right, images, *, low=0.0, high=1.0, what="sensitivity"):
    return MetricRecord(metric=what, title=what, value=right / images, low=low, high=high, num_images=images, class_name=name)


def test_a_selection_says_what_guessing_gives():
    verdict, _ = verdict_of(selection_record())
    assert "; guessing gives 0.50) on " in verdict.answer
    verdict, _ = verdict_of(selection_record(metrics=[metric("balanced_accuracy", 0.52)]))
    assert verdict.caveat.startswith("Guessing gives 0.50, and the interval contains it")


def test_a_selection_says_what_val_does_not_tell_apart_and_what_was_not_trained():
    verdict, others = verdict_of(selection_record())
    said = " ".join([verdict.caveat, *others])
    assert "narrow may be better than wide with a chance of 20\xa0%." in said
    assert "1 model did not fit into the budget and may be better." in said
    record = selection_record()
    words = separable_in_words(record)
    assert words.startswith("Val does not tell wide apart from narrow. Beside the best of those trained, wide is expected")
    assert next_hour_in_words(record) == "Another hour would train deep, in the order of what is known of them elsewhere."


def test_at_the_limit_of_val_a_selection_does_not_contradict_itself():
    rows = [candidate("wide", "selected", 1.0), candidate("narrow", "trained", 1.0, probability_better=0.5)]
    record = selection_record(candidates=rows, ending="limit of val", expected_regret=0.0, next_models=[])
    verdict, others = verdict_of(record)
    assert "is at its limit, where nothing can be better" in verdict.answer
    assert "may be better" not in f"{verdict.caveat} {others}" and separable_in_words(record) is None
    assert next_hour_in_words(record) == "More trainings cannot be better on val."


def test_where_all_are_told_apart_no_other_may_be_better():
    rows = [candidate("wide", "selected", 0.9), candidate("narrow", "trained", 0.5, probability_better=0.01)]
    record = selection_record(candidates=rows, not_separable=[], ending="all trained", expected_regret=0.0)
    verdict, others = verdict_of(record)
    assert "may be better" not in f"{verdict.caveat} {others}"
    assert separable_in_words(record) == "Val tells wide apart from every other model that was trained."
    assert next_hour_in_words(record) is None  # the answer says that all were trained


def test_a_selection_says_what_it_took_to_measure_its_costs():
    record = selection_record()
    assert "beside it" not in cost_in_words(record) + selection_plan_in_words(record.plan)
    timed = record.model_copy(update={"plan": record.plan.model_copy(update={"timing_seconds": 15.0})})
    assert "Measuring what everything costs took 15 s beside it." in cost_in_words(timed)
    assert "at a time. Measuring this took 15 s beside it." in selection_plan_in_words(timed.plan)


# Of a fine-tuning.


def test_what_guessing_gives_stands_beside_the_value_and_the_next_command_has_the_arguments_of_this_one():
    verdict, others = verdict_of(tuning_record(), TUNED)
    assert "; guessing gives 0.50)" in verdict.answer
    assert (verdict.caveat, others) == (None, [])
    assert verdict.following == "crossgraft predict runs/tune-images NEW_IMAGES --code net.py"
    labels = tuning_record(task="multi-label", class_names=("a", "b", "c", "d"), primary_metric="auc")
    assert "; guessing gives 0.50)" in verdict_of(labels)[0].answer
    four = tuning_record(class_names=("a", "b", "c", "d"))
    assert "; guessing gives 0.25)" in verdict_of(four)[0].answer


def test_places_that_nobody_typed_are_placeholders():
    assert verdict_of(tuning_record())[0].following == "crossgraft predict RUN NEW_IMAGES"
    of_comparison = "crossgraft tune images --model m --compare full,linear --out runs/compare"
    assert verdict_of(tuning_record(), of_comparison)[0].following == "crossgraft predict RUN NEW_IMAGES"


def test_folds_leave_no_model_to_predict_with():
    record = tuning_record(num_folds=3, saved_model=None)
    verdict, _ = verdict_of(record, TUNED + " --folds 3")
    assert verdict.following == "crossgraft tune images --model resnet18 --group-column patient --code net.py"
    assert "one model" in verdict.purpose


def test_too_few_images_to_tell_are_answered_by_folds_unless_the_split_was_given():
    drawn = [SplitRow(name="test", num_images=156, num_groups=9, class_counts=[78, 78], origin="20% of the rows, drawn")]
    rows = [metric("balanced_accuracy", 0.53, half_width=0.1)]
    record = tuning_record(metrics=rows, splits=drawn)
    verdict, _ = verdict_of(record, TUNED)
    assert verdict.caveat.startswith("156 images are too few to tell. Guessing gives 0.50")
    assert verdict.following == ("crossgraft tune images --model resnet18 --group-column patient --code net.py --folds 5")
    given = tuning_record(metrics=rows)
    assert verdict_of(given, TUNED)[0].following.startswith("crossgraft predict")
    bare = [row.model_copy(update={"low": None, "high": None, "no_interval_reason": "one group."}) for row in rows]
    assert "There is no interval (one group)" in verdict_of(tuning_record(metrics=bare))[0].caveat


@pytest.mark.parametrize(
    ("train", "test", "has_folds"), [([30, 8], [9, 2], True), ([30, 2], [9, 2], False), ([30, 8], [9, 0], False)]
)
def test_folds_are_not_proposed_where_a_class_cannot_fill_them(train, test, has_folds):
    splits = [
        SplitRow(name=name, num_images=sum(counts), num_groups=9, class_counts=counts, origin="20% of all rows, drawn")
        for name, counts in (("train", train), ("test", test))
    ]
    rows = [metric("balanced_accuracy", 0.53, half_width=0.1)]
    verdict, others = verdict_of(tuning_record(metrics=rows, splits=splits), TUNED)
    assert ("--folds 5" in verdict.following) == has_folds
    assert any(text.startswith("No test image has the class malignant: how well") for text in others) == (test[1] == 0)


def test_a_class_that_is_missed_is_named_by_counts():
    confusion = ConfusionRecord(class_names=["nevus", "melanoma"], counts=[[60, 4], [18, 2]])
    record = tuning_record(class_names=("nevus", "melanoma"), confusion=confusion)
    assert verdict_of(record)[0].caveat == "It took 18 of 20 images of melanoma for nevus; guessing would miss about 10."
    few = ConfusionRecord(class_names=["nevus", "melanoma"], counts=[[60, 4], [2, 18]])
    assert verdict_of(tuning_record(confusion=few))[0].caveat is None
    none_there = ConfusionRecord(class_names=["nevus", "melanoma"], counts=[[60, 4], [0, 0]])
    assert verdict_of(tuning_record(confusion=none_there))[0].caveat is None


def test_a_class_taken_for_another_stands_before_what_nobody_looked_for():
    names = ["AbdomenCT", "ChestCT", "Hand"]
    confusion = ConfusionRecord(class_names=names, counts=[[6, 7, 0], [0, 13, 0], [0, 1, 12]])
    rows = [metric("balanced_accuracy", 0.8), sensitivity("AbdomenCT", 6, 13, low=0.19, high=0.75)]
    not_checked = {"leakage_checked": False, "leakage": "There are no groups."}
    record = tuning_record(class_names=tuple(names), confusion=confusion, metrics=rows, **not_checked)
    verdict, others = verdict_of(record)
    assert verdict.caveat.replace("\N{NO-BREAK SPACE}", " ") == (
        "It took 7 of 13 images of AbdomenCT for ChestCT (sensitivity 0.46, 95 % interval 0.19 to 0.75)."
    )
    assert others[-1] == "There are no groups."
    right = ConfusionRecord(class_names=names, counts=[[12, 1, 0], [0, 13, 0], [0, 1, 12]])
    healthy = tuning_record(class_names=tuple(names), confusion=right, metrics=rows[:1], **not_checked)
    assert verdict_of(healthy)[0].caveat == "There are no groups."


def test_a_label_that_is_given_no_more_often_where_it_belongs_is_named():
    def caveat(right, alarms):
        rows = [
            metric("auc", 0.8),
            sensitivity("oedema", right, 20, low=0.1, high=0.2),
            sensitivity("oedema", 80 - alarms, 80, what="specificity"),
        ]
        record = tuning_record(task="multi-label", class_names=("oedema", "b"), primary_metric="auc", metrics=rows)
        return verdict_of(record)[0].caveat

    assert caveat(2, 8).startswith("It missed 18 of 20 images with oedema (sensitivity 0.10, ")
    assert caveat(2, 8).endswith("; guessing would miss about 18.")
    assert caveat(12, 50).endswith("; guessing would miss about 8.")
    assert "guessing" not in caveat(3, 8)
    assert caveat(12, 8) is None


def test_files_that_could_not_be_read_are_a_harm_where_they_are_many(ranking):
    def caveats(num_unreadable):
        data = ranking.dataset.model_copy(update={"num_skipped_unreadable": num_unreadable, "num_images": 500})
        record = tuning_record(leakage_checked=False, leakage="There are no groups.").model_copy(update={"dataset": data})
        verdict, others = verdict_of(record)
        return [verdict.caveat, *others]

    assert caveats(40) == ["40 of 540 images could not be read and are left out.", "There are no groups."]
    assert caveats(0) == ["There are no groups."]


def test_val_far_above_test_is_said_where_chance_does_not_explain_it():
    def caveat(val, half_width):
        rows = [metric("balanced_accuracy", 0.7, half_width=half_width)]
        rows.append(metric("balanced_accuracy", val, split="val", half_width=half_width))
        return verdict_of(tuning_record(metrics=rows))[0].caveat

    assert caveat(0.95, 0.05).startswith(
        "Balanced accuracy is 0.95 on val and 0.70 on test: 0.25 less (95\N{NO-BREAK SPACE}% interval 0.18 to 0.32)"
    )
    assert caveat(0.76, 0.05) is None  # 0.06 ± 0.07
    assert caveat(0.95, 0.19) is None  # 0.25 ± 0.27, although each interval excludes the other value


def test_a_class_of_few_test_images_is_named_with_what_they_allow():
    rows = [metric("balanced_accuracy", 0.8), sensitivity("malignant", 3, 4, low=0.3, high=0.95)]
    caveat = verdict_of(tuning_record(metrics=rows))[0].caveat
    assert caveat == "Only 4 test images of malignant: its sensitivity may be anything from 0.30 to 0.95."
    enough = [rows[0], sensitivity("malignant", 30, 40, low=0.6, high=0.86)]
    assert verdict_of(tuning_record(metrics=enough))[0].caveat is None


def test_the_most_severe_caveat_stands_first_and_the_others_are_folded():
    unsound = CheckRecord(title="Copies", severity="unsound", text="Two pictures.")
    confusion = ConfusionRecord(class_names=["benign", "malignant"], counts=[[60, 4], [18, 2]])
    rows = [metric("balanced_accuracy", 0.53, half_width=0.1), metric("balanced_accuracy", 0.99, split="val", half_width=0.01)]
    record = tuning_record(
        checks=[unsound], metrics=rows, confusion=confusion, leakage_checked=False, leakage="There are no groups."
    )
    verdict, others = verdict_of(record)
    assert verdict.caveat == "Copies: Two pictures."
    assert [text.split()[0] for text in others] == ["156", "It", "Balanced", "There"]
    assert KINDS.get("tuning").heading(Source(record)).advice.endswith("Caveat: Copies: Two pictures.")


# Of a ranking.

RANKED = "crossgraft rank /data/lesions.csv --models resnet18,vit_tiny --label-column dx --batch-size 8 --seed 3 --out runs/r"


def test_the_best_models_of_a_ranking_are_trained_next(ranking):
    record = ranking.model_copy(update={"advised": ["vit_tiny", "resnet18"], "caution": "A random network does as well."})
    verdict, others = verdict_of(record, RANKED)
    assert (verdict.answer, verdict.caveat) == (answer_in_words(record), "A random network does as well.")
    rest = "--models vit_tiny,resnet18 --budget 100%"
    assert verdict.following == f"crossgraft select /data/lesions.csv {rest} --label-column dx --seed 3"
    assert others[0].startswith("2 of 548 images could not be read")
    assert verdict_of(record)[0].following == f"crossgraft select DATA {rest}"
    in_folds, _ = verdict_of(record, f"{RANKED} --folds 5")
    assert in_folds.following.startswith("crossgraft tune /data/lesions.csv --model vit_tiny")
    alone = record.model_copy(update={"advised": ["vit_tiny"]})
    assert verdict_of(alone)[0].following == "crossgraft tune DATA --model vit_tiny"


def test_of_many_models_as_many_are_trained_next_as_a_budget_allows(ranking):
    advised = [row.model for row in ranking.ranking(ranking.primary_score).rows if row.rank is not None][:6]
    many, _ = verdict_of(ranking.model_copy(update={"advised": advised}), RANKED)
    assert "--budget" not in many.following
    assert "as many of these 6 as a budget allows" in many.answer


def test_where_random_weights_do_as_well_training_is_next_and_where_shuffled_labels_do_the_images(ranking):
    record = ranking.model_copy(update={"advised": []})
    verdict, _ = verdict_of(record, RANKED)
    assert verdict.following.startswith(
        "crossgraft select /data/lesions.csv --models resnet18,vit_tiny --label-column dx --seed 3"
    )
    assert verdict.answer.startswith(record.advice) and "crossgraft select settles it" in verdict.answer
    cells = [cell.model_copy(update={"above_shuffled": False}) for cell in record.cells]
    shuffled, _ = verdict_of(record.model_copy(update={"cells": cells}), RANKED)
    assert shuffled.following == "crossgraft check /data/lesions.csv --label-column dx --seed 3"
    assert shuffled.answer == record.advice
    of_an_earlier_version = ranking.model_copy(update={"advised": None})
    assert verdict_of(of_an_earlier_version, RANKED)[0].following.startswith("crossgraft tune /data/lesions.csv")


def test_a_page_shows_no_more_of_a_path_than_its_command_does(ranking, examples):
    source = Source(ranking.model_copy(update={"advised": ["a"]}), run=examples.run_record())
    section = KINDS.get("ranking").builders[0](source)
    assert section.blocks[0].following == "crossgraft tune '…/breastmnist.npz' --model zoo.yaml:a --seed 7"


# Of a prediction.


def test_the_page_says_that_images_had_a_part_in_the_fine_tuning():
    seen = f"9 of 40 images had a part in the fine-tuning, so … {NOT_SEEN} (the test rows: --use-split test)."
    record = prediction_record(warnings=["Odd.", seen])
    verdict, _ = verdict_of(record, "crossgraft predict runs/tune images --label-column dx --out runs/p")
    assert verdict.caveat == seen
    assert verdict.following == "crossgraft predict runs/tune images --label-column dx --use-split test"
    narrowed, _ = verdict_of(record, "crossgraft predict runs/tune images --use-split train --out runs/p")
    assert narrowed.following == "crossgraft predict runs/tune images --use-split test"
    tested, _ = verdict_of(record, "crossgraft predict runs/tune images --use-split test --out runs/p")
    assert tested.following == "crossgraft predict runs/tune OTHER_IMAGES"
    without_test = prediction_record(warnings=[f"9 of 40 images … {NOT_SEEN}."])
    asked, _ = verdict_of(without_test, "crossgraft predict runs/tune images --out runs/p")
    assert asked.following == "crossgraft predict runs/tune OTHER_IMAGES"
    odd, others = verdict_of(prediction_record(warnings=["Odd."]))
    assert "Odd." in (odd.caveat, *others)


def test_predictions_that_nobody_measured_are_measured_next():
    typed = "crossgraft predict runs/tune new/ --code net.py --out runs/p"
    verdict, _ = verdict_of(prediction_record(labelled=False), typed)
    assert "was not measured; the result of the fine-tuning carries over only to images of the same kind." in verdict.caveat
    assert verdict.following == "crossgraft predict runs/tune LABELLED_IMAGES --code net.py"
    record = prediction_record()
    missed = record.model_copy(update={"rows": [row.model_copy(update={"decision": "malignant"}) for row in record.rows]})
    assert verdict_of(missed, typed)[0].caveat.startswith("It took 20 of 20 images of benign for malignant")
    right = [row.model_copy(update={"target": row.decision}) for row in record.rows]
    measured, _ = verdict_of(record.model_copy(update={"rows": right}), typed)
    assert "like those of training" in measured.caveat
    assert measured.following == "crossgraft export runs/tune --code net.py"


# Of a comparison.

COMPARED = "crossgraft tune digits --model m --compare hcs:0.6,full,linear --out runs/compare"


def test_the_verdict_of_a_comparison_is_three_lines():
    verdict, others = verdict_of(comparison_record(), COMPARED)
    assert verdict.answer.replace("\N{NO-BREAK SPACE}", " ") == (
        "hcs:0.6 has the best balanced accuracy on test, 0.840 (95 % interval over test images 0.790 to 0.890; guessing gives "
        "0.50); full may be as good."
    )
    assert verdict.caveat.startswith("Not every training ended with a model")
    assert others[0].startswith("There is one training each")
    assert verdict.following == "crossgraft predict RUN/trainings/hcs-0 NEW_IMAGES".replace("RUN", "runs/compare")


def test_one_training_each_asks_for_more_seeds():
    done = [row for row in comparison_record().variants if row.metric.value is not None]
    verdict, _ = verdict_of(comparison_record(variants=done), COMPARED)
    assert verdict.caveat.startswith("There is one training each")
    assert verdict.following == "crossgraft tune digits --model m --compare hcs:0.6,full,linear --seeds 3"
    of_three, _ = verdict_of(comparison_record(variants=done, seeds=[0, 1, 2]), COMPARED)
    assert "best of 4 ways" in of_three.caveat
    alone = comparison_record(variants=[variant("full", 0.52, 0.5, is_full=True)], seeds=[0, 1, 2])
    assert verdict_of(alone)[0].caveat.startswith("Guessing gives 0.50, and the interval contains it")


# Of the others.


def test_a_check_says_what_to_repair_or_ranks_next(examples):
    typed = "crossgraft check images --group-column patient --holdout 0.2 --out runs/check"
    unsound, _ = verdict_of(examples.data_check_record(), typed)
    assert unsound.answer == "Not sound. 2 pictures are in more than one split. Remove them."
    assert unsound.caveat is None
    assert unsound.following == "crossgraft check images --group-column patient --holdout 0.2 --show-names --verbose"
    of_no_image = examples.data_check_record().model_copy(
        update={"findings": [FindingRecord(check="groups", title="Patients", severity="unsound", text="One in two splits.")]}
    )
    assert verdict_of(of_no_image, typed)[0].following == "crossgraft check images --group-column patient --holdout 0.2 --verbose"
    sound, _ = verdict_of(examples.data_check_record(is_sound=True), typed)
    assert sound.caveat is None
    assert sound.following.startswith("crossgraft rank images --group-column patient --holdout 0.2 --models ")
    leak = FindingRecord(check="groups", title="Patient leakage", severity="not assessed", text="No groups.")
    record = examples.data_check_record(is_sound=True)
    record = record.model_copy(update={"findings": [*record.findings, leak]})
    assert verdict_of(record)[0].caveat == "Patient leakage: No groups."


def test_published_results_and_the_demo_end_with_images_of_ones_own(examples):
    scenario = ScenarioRecord(
        name="s", title="S", result="AUC", models=[], targets=[], target_groups=[], methods=[], conclusion="Nothing."
    )
    record = PublishedRecord(name="p", title="P", source="here", scenarios=[scenario, scenario])
    verdict, _ = verdict_of(record)
    assert (verdict.answer, verdict.following) == ("S: Nothing.", "crossgraft check DATA")
    demo, _ = verdict_of(examples.demo_record(), "crossgraft demo --out demo")
    assert demo.following == "crossgraft check DATA"


@pytest.mark.parametrize("gives_probabilities", [True, False])
def test_an_export_ends_with_the_line_that_loads_it(gives_probabilities):
    record = ExportRecord.model_construct(
        kind="export", notes=[], files=[], how_to_load="timm.create_model(…)",
        agreement=_agreement(1e-7 if gives_probabilities else None),
    )  # fmt: skip
    section = KINDS.get("export").builders[0](Source(record))
    assert section.blocks[0].following == "timm.create_model(…)"
    assert (section.blocks[0].caveat is None) == gives_probabilities


def _agreement(probability):
    from crossgraft.export.record import OutputAgreementRecord

    return OutputAgreementRecord(
        checked_with="timm", num_images=8, batch_sizes=[1, 2], largest_logit_difference=1e-7, allowed_logit_difference=1e-5,
        largest_probability_difference=probability, allowed_probability_difference=probability,
    )  # fmt: skip


# How it is shown.


def test_page_markdown_and_terminal_show_the_same_three_things():
    record = tuning_record(leakage_checked=False, leakage="There are no groups.")
    verdict, _ = verdict_of(record, TUNED)
    lines = record_as_text(record, command_line=TUNED).splitlines()
    assert lines[-3:] == ["Caveat: There are no groups.", "Next, to use it:", f"  {verdict.following}"]
    assert lines[-4].endswith("picking the model.")
    text = blocks_as_markdown([verdict])
    assert text.split("\n\n")[1:] == ["Caveat: There are no groups.", "Next, to use it:", f"```\n{verdict.following}\n```"]


def test_a_verdict_steers_neither_page_nor_terminal(examples, tmp_path):
    from crossgraft import write_report

    names = [f"{EVIL}\x1b[31m", "malignant"]
    confusion = ConfusionRecord(class_names=names, counts=[[2, 18], [4, 60]])
    record = tuning_record(class_names=names, confusion=confusion)
    line = f"crossgraft tune '{EVIL}\x1b[31m' --model '{EVIL}' --out '{EVIL}'"
    run = examples.run_record(command="tune").model_copy(update={"command_line": line})
    page = write_report(examples.write_run(tmp_path, record, run=run)).read_text(encoding="utf-8")
    assert EVIL not in page
    assert "\x1b" not in page
    assert "\x1b" not in record_as_text(record, command_line=line)


@pytest.mark.parametrize("line", ["", "crossgraft", "crossgraft tune 'open", "rm -rf /", "crossgraft tune --x --y z w"])
def test_a_damaged_command_line_leaves_placeholders(line):
    following = verdict_of(tuning_record(), line)[0].following
    assert following == "crossgraft predict RUN NEW_IMAGES"
