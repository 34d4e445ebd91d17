"""One split from check to predict: what selects a model never sees the images that test it."""

import json

import numpy as np
import pytest

from crossgraft import check_data, fine_tune, rank_models, split_data
from crossgraft.data import Split, open_dataset
from crossgraft.errors import StorageError
from crossgraft.progress import Reporter
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.rows import open_rows
from support.tiny import make_images

MODELS = ("--models", "zoo.yaml", "--code", "tiny_models.py", "--scores", "logme,knn_probe", "--workers", "1")
TRAINING = ("--model", "tiny_models:tiny", "--code", "tiny_models.py", "--epochs", "1", "--workers", "1", "--device", "cpu")


def report(run):
    return json.loads((run / "report.json").read_text())


def scores(run):
    record = report(run)
    return [(cell["model"], cell["score"], cell["value"], cell["low"], cell["high"]) for cell in record["cells"]]


@pytest.fixture
def images(workspace):
    make_images(workspace / "images", {"benign": 30, "malignant": 30})
    return workspace / "images"


def test_no_test_image_of_tune_is_opened_when_a_model_is_selected(images, workspace, crossgraft):
    """The flow of the README, with poison in every image that selection must not look at."""
    assert crossgraft("check", "images", "--out", "checked", "--json").code == 0
    assert crossgraft("rank", "images", *MODELS, "--out", "ranked", "--json").code == 0
    assert crossgraft("tune", "images", *TRAINING, "--out", "tuned", "--json").code == 0
    before, split = scores(workspace / "ranked"), Split.load(workspace / "tuned" / "split.json")
    assert (len(split.train), len(split.val), len(split.test)) == (38, 10, 12)
    known = {report(workspace / run)["dataset"]["split_fingerprint"] for run in ("checked", "ranked", "tuned")}
    (fingerprint,) = known
    assert split_data(images).record.split_fingerprint == fingerprint

    whole = open_dataset(images)
    for row in (*split.test, *split.val):
        (images / whole.image_name(row)).write_bytes(b"poison")
    for number, asked in enumerate(([], ["--split", "tuned/split.json"], ["--no-images"])):
        assert crossgraft("rank", "images", *MODELS, *asked, "--out", f"again{number}", "--json").code == 0
        assert scores(workspace / f"again{number}") == before
        assert report(workspace / f"again{number}")["dataset"]["split_fingerprint"] == fingerprint
    for row in split.train[:1]:
        (images / whole.image_name(row)).write_bytes(b"poison")
    assert crossgraft("rank", "images", *MODELS, "--out", "other", "--json").code == 3


def test_the_split_that_is_written_is_the_one_that_tune_uses(images, workspace, crossgraft):
    written = crossgraft("split", "images", "--out", "split.json")
    assert written.code == 0
    assert "Split: split.json" in written.out
    assert "  crossgraft rank images --split split.json --models " in written.out
    assert "20% of all rows, drawn by image" in written.out
    assert "20% of all rows outside test, drawn by image" in (workspace / "split.json").read_text()
    split = Split.load(workspace / "split.json")
    tuned = fine_tune("images", model="tiny_models:tiny", allow_code="tiny_models.py", epochs=1, workers=1, store=False)
    assert tuned.record.dataset.split_fingerprint in written.out
    assert crossgraft("split", "images", "--out", "split.json").code == 0  # the same once more
    other = crossgraft("split", "images", "--out", "split.json", "--seed", "3")
    assert other.code == 2
    assert "holds another split" in other.err and "--overwrite" in other.err
    assert crossgraft("split", "images", "--out", "split.json", "--seed", "3", "--overwrite").code == 0
    assert Split.load(workspace / "split.json") != split
    written = crossgraft("split", "images", "--json", "--overwrite")
    assert json.loads(written.out)["kind"] == "data_split"
    assert Split.load(workspace / "split.json") == split


def test_the_command_after_a_split_keeps_columns_and_leaves_the_rest_to_the_file(images, workspace, crossgraft):
    rows = [(f"images/benign/{number:02}.png", "rare" if number == 0 else "ab"[number % 2], number) for number in range(20)]
    lines = [f"{path},{label},{lesion}" for path, label, lesion in rows]
    (workspace / "table.csv").write_text("\n".join(["path,diagnosis,lesion", *lines]) + "\n")
    columns = ("--label-column", "diagnosis", "--group-column", "lesion")
    asked = ("split", "table.csv", *columns, "--holdout", "0.3", "--seed", "2", "--out", "my split.json")
    said = crossgraft(*asked).out
    line = next(line.strip() for line in said.splitlines() if line.startswith("  crossgraft rank table.csv"))
    assert "--split 'my split.json'" in line
    assert "--label-column diagnosis" in line
    assert "--group-column lesion" in line
    assert "--seed 2" in line
    assert "--holdout" not in line
    assert "Caveat: No image in val has the class rare." in said
    assert "a class needs three groups (patients) to be in three parts" in " ".join(said.split())
    # Written by a version that said it in other words, it is the same split.
    file = workspace / "my split.json"
    file.write_text(file.read_text().replace("of all rows", "of the training rows"))
    assert crossgraft(*asked).code == 0


def test_patients_whose_ids_differ_by_case_are_told_of_by_every_command(images, workspace, crossgraft):
    lines = [
        f"images/{name}/{row:02}.png,{name},{'pP'[row % 2]}{row // 2}" for name in ("benign", "malignant") for row in range(8)
    ]
    (workspace / "table.csv").write_text("\n".join(["path,label,patient", *lines]) + "\n")
    model = ("--model", "tiny_models:tiny", "--code", "tiny_models.py", "--epochs", "1", "--workers", "1")
    for command in (("split", "table.csv"), ("check", "table.csv"), ("tune", "table.csv", *model, "--out", "run")):
        said = crossgraft(*command)
        assert said.code == 0, said.err
        text = " ".join((said.err + said.out).split())
        assert "8 groups by patient (16 images) have names that differ from that of another only by case" in text
        assert "p1" not in text.replace("--", "")
    page = (workspace / "run" / "report.html").read_text(encoding="utf-8")
    assert "Groups that look alike" in page


def test_the_next_command_holds_the_folders_that_were_typed_and_the_record_none(images, workspace, crossgraft):
    said = crossgraft("check", str(images), "--out", "checked")
    assert "…/" not in said.out
    assert f"crossgraft rank {images}" in " ".join(said.out.split())
    again = crossgraft("check", str(images), "--out", "checked", "--json")
    assert str(images) not in again.out
    for file in ("report.html", "run.json"):
        assert str(images) not in (workspace / "checked" / file).read_text(encoding="utf-8")


def test_a_quick_trial_on_fewer_images_is_tested_on_images_that_test_the_whole(images):
    whole = split_data(images).split
    for limit in (20, 40):
        trial = open_rows(images, TuneOptions(model="", limit=limit), Reporter(quiet=True))
        names = [trial.dataset.image_name(int(row)) for row in trial.parts[0].test]
        every = open_dataset(images)
        assert 0 < len(names) < 12
        assert {*names} < {every.image_name(row) for row in whole.test}
    assert split_data(images, val_fraction=0.4).split.test == whole.test


def test_a_split_of_data_with_parts_of_their_own_can_be_given_to_rank(workspace, crossgraft):
    for part, count in (("train", 20), ("test", 6)):
        make_images(workspace / "official" / part, {"benign": count, "malignant": count})
    assert crossgraft("split", "official", "--out", "split.json").code == 0
    for number, asked in enumerate(([], ["--split", "split.json"])):
        assert crossgraft("rank", "official", *MODELS, *asked, "--out", f"r{number}", "--json").code == 0
    assert scores(workspace / "r0") == scores(workspace / "r1")
    known = {report(workspace / run)["dataset"]["split_fingerprint"] for run in ("r0", "r1")}
    assert known == {split_data("official").record.split_fingerprint}


def test_a_place_that_cannot_hold_a_split_is_named(images, workspace, crossgraft):
    (workspace / "file").write_text("{")
    inside = crossgraft("split", "images", "--out", "file/split.json")
    assert inside.code == StorageError.exit_code
    assert "Cannot make the folder file" in inside.err
    other = crossgraft("split", "images", "--out", "file")
    assert other.code == 2
    assert "is not a split of crossgraft" in other.err
    assert (workspace / "file").read_text() == "{"


def test_holdout_0_ranks_all_images_and_cannot_be_tuned_on(images, workspace, crossgraft):
    assert crossgraft("rank", "images", *MODELS, "--holdout", "0", "--out", "all", "--json").code == 0
    assert report(workspace / "all")["dataset"]["num_images"] == 60
    refused = crossgraft("tune", "images", *TRAINING, "--holdout", "0")
    assert refused.code == 2
    assert "no test images" in refused.err


def test_an_open_data_set_is_divided_in_the_same_way(images):
    dataset = open_dataset(images)
    by_location, by_object = check_data(images), check_data(dataset)
    assert by_location.record.dataset.split_fingerprint == by_object.record.dataset.split_fingerprint
    options = {"models": "zoo.yaml", "allow_code": "tiny_models.py", "scores": "logme", "workers": 1}
    ranked, opened = rank_models(dataset, **options), rank_models(images, **options)
    assert ranked.record.dataset.fingerprint == opened.record.dataset.fingerprint
    np.testing.assert_array_equal([cell.value for cell in ranked.record.cells], [cell.value for cell in opened.record.cells])


def test_a_page_says_how_often_its_test_images_were_looked_at(images, workspace, crossgraft):
    for number in range(3):
        rate = f"1e-{number + 2}"
        assert crossgraft("tune", "images", *TRAINING, "--learning-rate", rate, "--out", f"t{number}").code == 0
    assert report(workspace / "t0")["looks"]["number"] == 1
    assert report(workspace / "t2")["looks"]["number"] == 3
    assert "the 3rd look at these test images (3 × tune)" in (workspace / "t2" / "report.html").read_text()
    assert "look at these test images" not in (workspace / "t0" / "report.html").read_text()
    assert crossgraft("tune", "images", *TRAINING, "--no-ledger", "--learning-rate", "0.1", "--out", "t3").code == 0
    assert report(workspace / "t3")["looks"] is None
    assert crossgraft("tune", "images", *TRAINING, "--learning-rate", "1e-3", "--overwrite", "--out", "t1").code == 0
    assert report(workspace / "t1")["looks"]["number"] == 2  # the same training is the same look
    compared = crossgraft("tune", "images", *TRAINING, "--compare", "full,linear", "--out", "compared", "--json")
    assert json.loads(compared.out)["looks"]["number"] == 4  # full is the training of t1, linear is new
    ends = ("interpolate", "t1", "images", *TRAINING[:4], "--workers", "1", "--device", "cpu")
    assert crossgraft(*ends, "--alphas", "0,1", "--out", "between").code == 0
    between = report(workspace / "between")
    assert between["looks"]["by_command"] == {"tune": 4, "interpolate": 1}
    assert between["images"]["split_fingerprint"] == report(workspace / "t1")["dataset"]["split_fingerprint"]
    assert "the 5th look at these test images" in (workspace / "between" / "report.html").read_text()
    same = crossgraft(*ends, "--alphas", "1,0", "--json")
    assert json.loads(same.out)["looks"]["number"] == 5  # the same networks in another order
    assert json.loads(crossgraft(*ends, "--alphas", "0,0.5,1", "--json").out)["looks"]["number"] == 6
    assert json.loads(crossgraft(*ends, "--alphas", "0,1", "--no-ledger", "--json").out)["looks"] is None
