"""The card says what was measured and what was not, and shows every name as text."""

import pytest

from crossgraft.models.classifier import make_classifier
from crossgraft.models.load import load_backbone
from crossgraft.models.spec import ModelSpec
from crossgraft.records.base import CheckRecord
from crossgraft.tune.saving.save_model import describe_saved_model, model_card
from support.tuning_records import EVIL, kept_record, tuning_record


def card(record):
    backbone = load_backbone(ModelSpec("tiny", "test_resnet", weights="random"), image_size=32)
    return model_card(describe_saved_model(record, make_classifier(backbone, 2, seed=0), seed=0))


def test_the_card_has_results_with_intervals_and_what_they_were_measured_on():
    text = card(tuning_record())
    assert "**Research use, not a medical device.**" in text
    assert "| Balanced accuracy | 0.83 | [0.78, 0.88] | test: 156 images, 78 groups |" in text
    assert "| AUC | 0.93 | [0.88, 0.98] | val: 156 images, 78 groups |" in text
    assert "temperature 1.83, fitted on val, 78 images" in text
    assert "malignant: from probability 0.41 on (Youden's J; fitted on val, 78 images)" in text
    assert "- Of the pretrained weights: apache-2.0" in text
    assert "Similarity to the pretrained network: not measured." in text
    assert "- Leakage: No patient is in two parts." in text
    assert "The rows of `val` did pick it" in text
    assert "F1 are of the class malignant." in text


def test_data_that_make_the_numbers_wrong_are_the_first_limit():
    check = CheckRecord(title="Copies", severity="unsound", text="2 pictures are in two splits.")
    limits = card(tuning_record(checks=[check])).partition("## Limits")[2].strip()
    assert limits.startswith("- Unsound data. Copies: 2 pictures are in two splits.")


def test_what_is_missing_is_said():
    record = tuning_record(calibration=None, calibration_reason="there are no val rows", thresholds=[], metrics=[])
    record = record.model_copy(
        update={
            "similarity": {"cka": 0.91234},
            "model": record.model.model_copy(update={"licence": None}),
            "dataset": record.dataset.model_copy(update={"num_groups": None}),
        }
    )
    text = card(record)
    assert "Probabilities are not calibrated (there are no val rows). The decision is the most probable class." in text
    assert "No metric was measured" in text
    assert "| network | CKA |\n|---|---:|\n| Fine-tuned | 0.912 |" in text
    assert "Of the pretrained weights: not stated" in text
    assert "not known whether one patient" in text


def test_weights_that_may_not_be_sold_are_said_to_be():
    record = tuning_record()
    model = record.model.model_copy(update={"licence": "cc-by-nc-4.0"})
    assert "Of the pretrained weights: cc-by-nc-4.0: not for commercial use" in card(record.model_copy(update={"model": model}))


def test_labels_are_decided_one_by_one():
    record = tuning_record(task="multi-label", class_names=("oedema", "effusion"), thresholds=[])
    text = card(record)
    assert "A label is given from probability 0.5 on." in text
    assert "an image may have several labels, or none" in text


def test_names_are_text_and_never_markdown_or_html():
    text = card(tuning_record(class_names=(EVIL, "a|b\n# c")))
    assert "<script>" not in text
    assert "\\<script\\>" in text
    assert "a\\|b \\# c" in text


def test_what_was_kept_stands_beside_what_batch_norm_does_and_in_words():
    text = card(kept_record(mode="frozen", reason="because l2_sp compares features", num_moving=0))
    changed = text.partition("## What fine-tuning changed")[2].partition("## Limits")[0]
    assert "| network | CKA, debiased | CKA, debiased, adapted | CKA | CKA, adapted |" in changed
    assert "| Fine-tuned | 0.450 | 0.710 | 0.500 | 0.750 |" in changed
    assert "| Weights untouched, statistics re-estimated | 0.420 | 1.000 | 0.480 | 1.000 |" in changed
    assert "Adapted: compared with the pretrained weights" in changed
    assert "it is the training of its weights that changed the features" in changed
    assert "- To keep: debiased CKA of 0.8 on val asked for, 0.790 found; terms that keep features × 512" in changed
    assert "- BatchNorm: frozen (because l2\\_sp compares features): 19 layers kept the statistics" in changed
    assert "cka_" not in changed
    assert "- Regulariser: L2-SP" in text
    assert "BatchNorm" not in card(tuning_record())


@pytest.mark.parametrize(("severity", "is_said"), [("passed", True), ("unsound", False)])
def test_rows_of_test_had_no_part_where_no_copy_of_one_is_known(severity, is_said):
    copies = CheckRecord(title="Identical images across splits", severity=severity, text="Copies.")
    assert ("The rows of `test` had no part in training" in card(tuning_record(checks=[copies]))) == is_said
