"""``predict`` where true classes are known: a look at test images, counted once for each training."""

import json
import shutil

import pytest

from crossgraft.data import Split, open_dataset
from support.tiny import make_images

TUNE = (
    *("tune", "images", "--model", "tiny_models:tiny", "--code", "tiny_models.py"),
    *("--workers", "1", "--quiet", "--device", "cpu"),
)
ASKED = ("--code", "tiny_models.py", "--workers", "1", "--device", "cpu", "--quiet")


@pytest.fixture
def runs(workspace, crossgraft):
    """Two trainings with one split, in the folders ``first`` and ``second``."""
    for name, asked in (("first", ("--epochs", "1")), ("second", ("--epochs", "2"))):
        done = crossgraft(*TUNE, *asked, "--out", name)
        assert done.code == 0, done.err
    return workspace


@pytest.fixture
def look(crossgraft):
    def predicted(*asked):
        said = crossgraft("predict", *asked, *ASKED, "--json")
        assert said.code == 0, said.err
        return json.loads(said.out)["looks"]

    return predicted


def test_the_model_of_a_run_on_its_own_test_images_is_the_look_of_its_training(runs, look):
    first = look("first", "images", "--use-split", "test")
    assert (first["number"], first["by_command"]) == (1, {"tune": 1})
    second = look("second", "images", "--use-split", "test")
    assert (second["number"], second["by_command"]) == (2, {"tune": 2})
    assert second["optimism"] > 0


def test_neither_a_copy_of_the_images_nor_of_the_model_nor_their_order_is_another_look(runs, look, crossgraft):
    whole, split = open_dataset("images"), Split.load(runs / "first" / "split.json")
    lines = ["path,label"]
    for row in reversed(split.test):
        shutil.copy(runs / "images" / whole.image_name(row), runs / f"copy{row}.png")
        lines.append(f"copy{row}.png,{whole.labels[row]}")
    (runs / "copies.csv").write_text("\n".join(lines) + "\n")
    shutil.copytree(runs / "second" / "model", runs / "passed on")
    assert look("passed on", "copies.csv")["by_command"] == {"tune": 2}
    crossgraft("predict", "passed on", "copies.csv", *ASKED, "--out", "copies")
    page = (runs / "copies" / "report.html").read_text(encoding="utf-8")
    assert "say no more than the report of the fine-tuning" in page
    assert "was not checked. The model also answers" not in page
    patients = [f"{line},{'patient' if number == 0 else number // 2}" for number, line in enumerate(lines)]
    (runs / "grouped.csv").write_text("\n".join(patients) + "\n")
    assert look("first", "grouped.csv", "--group-column", "patient")["by_command"] == {"tune": 1}
    relabelled = [lines[0], lines[1].replace("benign", "m").replace("malignant", "benign").replace(",m", ",malignant")]
    (runs / "relabelled.csv").write_text("\n".join([*relabelled, *lines[2:]]) + "\n")
    assert look("first", "relabelled.csv")["by_command"] == {"predict": 1}


def test_a_choice_by_new_labelled_images_is_said_on_page_and_terminal(runs, look, crossgraft):
    make_images(runs / "elsewhere", {"benign": 9, "malignant": 9}, size=20)
    assert look("first", "elsewhere")["by_command"] == {"predict": 1}
    said = crossgraft("predict", "second", "elsewhere", *ASKED, "--out", "predicted")
    text = "This is the 2nd look at these test images (2 × predict): the best of 2 equally good results is too high"
    assert f"Caveat: {text}" in " ".join(said.out.split())
    assert text in (runs / "predicted" / "report.html").read_text(encoding="utf-8")
    assert look("first", "elsewhere")["number"] == 1  # still the first


def test_images_that_were_seen_do_not_hide_the_look_at_the_others(runs, look):
    assert look("first", "images")["by_command"] == {"tune": 1}  # all but its test images had a part in the training
    make_images(runs / "elsewhere", {"benign": 9, "malignant": 9}, size=20)
    shutil.copytree(runs / "elsewhere", runs / "mixed")
    trained_on = open_dataset("images").image_name(Split.load(runs / "first" / "split.json").train[0])
    shutil.copy(runs / "images" / trained_on, runs / "mixed" / trained_on.split("/")[0] / "known.png")
    alone = look("first", "elsewhere")
    assert look("first", "mixed") == alone  # the same 18 images
    assert look("second", "mixed")["by_command"] == {"predict": 2}


def test_a_model_without_its_run_says_that_nobody_knows_what_it_has_seen(runs, crossgraft):
    make_images(runs / "elsewhere", {"benign": 4, "malignant": 4}, size=20)
    shutil.copytree(runs / "second" / "model", runs / "passed on")
    for model, is_said in (("passed on", True), ("second", False)):
        said = crossgraft("predict", model, "elsewhere", *ASKED, "--out", f"of {model}")
        assert ("it was handed over without its run" in " ".join(said.out.split())) is is_said
        page = (runs / f"of {model}" / "report.html").read_text(encoding="utf-8")
        assert ("Images that were trained on" in page) is is_said


def test_what_measures_nothing_new_is_not_counted(runs, look):
    assert look("first", "images", "--use-split", "val") is None
    assert look("first", "images", "--use-split", "test", "--no-ledger") is None
    make_images(runs / "unlabelled", {"": 3}, size=20)
    assert look("first", "unlabelled") is None
    make_images(runs / "strangers", {"cat": 3, "dog": 3}, size=20)
    assert look("first", "strangers") is None


def test_heads_that_are_measured_on_the_same_queries_are_looks_at_them(workspace, crossgraft):
    make_images(workspace / "elsewhere", {"benign": 6, "malignant": 6}, size=20)

    def look(*asked):
        model = ("--model", "zoo.yaml:narrow", "--code", "tiny_models.py", "--workers", "1", "--quiet", "--json")
        said = crossgraft("fewshot", "--support", "images", *asked, *model)
        assert said.code == 0, said.err
        return json.loads(said.out)["looks"]

    assert look("--query", "elsewhere", "--head", "ncc")["by_command"] == {"fewshot": 1}
    assert look("--query", "elsewhere", "--head", "logistic")["by_command"] == {"fewshot": 2}
    assert look("--query", "elsewhere", "--head", "ncc")["number"] == 1
    assert look("--query", "elsewhere", "--head", "ridge", "--no-ledger") is None
    assert look("--query", "images", "--head", "ncc") is None  # they are the support set


def test_a_picture_of_test_that_was_also_trained_on_leaves_the_look_that_of_the_training(runs, look, crossgraft):
    whole, file = open_dataset("images"), runs / "first" / "training_images.json"
    copied = whole.image_digests[Split.load(runs / "first" / "split.json").test[0]].hex()
    file.write_text(json.dumps([*json.loads(file.read_text()), copied]))
    assert look("first", "images", "--use-split", "test")["by_command"] == {"tune": 1}
    said = crossgraft("predict", "first", "images", "--use-split", "test", *ASKED, "--json")
    record = json.loads(said.out)
    assert record["is_of_run"] and record["num_seen"] == 1


def test_a_comparison_of_a_run_on_edited_images_is_the_look_of_its_training(runs, crossgraft):
    done = crossgraft(*TUNE, "--epochs", "1", "--with", "tag:0.4", "--out", "edited")
    assert done.code == 0, done.err
    compared = crossgraft("compare", "edited", "edited", "--data", "images", *ASKED, "--json")
    assert compared.code == 0, compared.err
    assert json.loads(compared.out)["looks"]["by_command"] == {"tune": 3}


def test_an_audit_and_a_comparison_of_trainings_are_no_further_results(runs, crossgraft):
    asked = (*ASKED, "--json")
    audited = crossgraft("audit", "second", "--data", "images", "--confounders", "tag", *asked)
    assert audited.code == 0, audited.err
    assert json.loads(audited.out)["looks"]["by_command"] == {"tune": 2}
    compared = crossgraft("compare", "first", "second", "--data", "images", *asked)
    assert compared.code == 0, compared.err
    assert json.loads(compared.out)["looks"]["by_command"] == {"tune": 2}
