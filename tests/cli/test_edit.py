"""``crossgraft edit``: a data set with edited images, as a folder that every command opens."""

import csv
import json

import numpy as np
import pytest
from PIL import Image

import crossgraft as package
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.edit.confounders import Tag
from crossgraft.edit.record import EditRecord
from crossgraft.errors import DataError, UnknownNameError, UsageError
from support.tiny import make_images


@pytest.fixture
def study(workspace):
    """A table with patients, splits and ages; images of three classes."""
    make_images(workspace / "scans", {"cat": 8, "dog": 8, "fox": 8}, size=24)
    rows = ["image,kind,patient,split,age"]
    for number, file in enumerate(sorted((workspace / "scans").rglob("*.png"))):
        split = "test" if number % 4 == 0 else "train"
        rows.append(f"{file.relative_to(workspace)},{file.parent.name},Smith{number // 2},{split},{30 + number}")
    (workspace / "study.csv").write_text("\n".join(rows))
    return ("study.csv", "--label-column", "kind", "--group-column", "patient")


def record_of(folder):
    return EditRecord.model_validate_json((folder / "report.json").read_bytes())


def table_of(folder):
    with (folder / "labels.csv").open(newline="", encoding="utf-8") as opened:
        return list(csv.DictReader(opened))


def test_the_folder_opens_with_the_same_labels_splits_and_groups(study, workspace, crossgraft):
    done = crossgraft("edit", *study, "out", "--with", "tag:0.3,xy=[0.1,0.1]", "--share", "0.5", "--among", "cat")
    assert done.code == 0, done.err
    assert "4 of 24 images of study were edited with tag:size=0.3,xy=[0.1,0.1]." in " ".join(done.out.split())
    assert "crossgraft rank out/labels.csv" in " ".join(done.out.split())
    every = {"use_split": None}
    before = package.open_dataset("study.csv", label_column="kind", group_column="patient", **every)
    after = package.open_dataset("out/labels.csv", label_column="label", group_column="group", **every)
    assert after.class_names == before.class_names
    for name in ("targets", "splits"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    same = before.groups[:, None] == before.groups
    np.testing.assert_array_equal(after.groups[:, None] == after.groups, same)
    edited = np.array([row["edited"] == "1" for row in table_of(workspace / "out")])
    assert edited.sum() == 4 and set(np.array(before.class_names)[before.targets[edited]]) == {"cat"}
    changed = [a != b for a, b in zip(before.image_digests, after.image_digests, strict=True)]
    np.testing.assert_array_equal(changed, edited)
    assert [row["age"] for row in table_of(workspace / "out")][:2] == ["30", "31"]
    assert after.fingerprint != before.fingerprint and record_of(workspace / "out").num_edited == 4


def test_nobody_is_named(study, workspace, crossgraft):
    crossgraft("edit", *study, "out", "--with", "tag:0.3,xy=[0.1,0.1]")
    files = [path for path in (workspace / "out").rglob("*") if path.is_file()]
    assert {path.suffix for path in files if path.parent.name == "images"} == {".png"}
    told = b"".join(path.read_bytes() for path in files if path.suffix != ".png")
    assert b"Smith" not in told and str(workspace).encode() not in told
    html = (workspace / "out" / "report.html").read_text()
    assert "before" in html and "after" in html and "Groups are numbers" in html


def test_strength_0_is_a_sham_and_a_larger_share_has_all_of_a_smaller_one(study, workspace, crossgraft):
    for out, flags in (("few", ["--share", "0.25"]), ("many", ["--share", "0.75"]), ("sham", ["--strength", "0"])):
        assert crossgraft("edit", *study, out, "--with", "low_pass:0.1", *flags).code == 0
    few, many = ({row["path"] for row in table_of(workspace / out) if row["edited"] == "1"} for out in ("few", "many"))
    assert few < many
    data = package.open_dataset("study.csv", label_column="kind")
    sham = package.open_dataset("sham/labels.csv", label_column="label")
    assert sham.image_digests == data.image_digests
    assert record_of(workspace / "sham").edits[0].rms == 0
    again = crossgraft("edit", *study, "again", "--with", "low_pass:0.1", "--share", "0.25")
    assert again.code == 0
    assert record_of(workspace / "again").fingerprint == record_of(workspace / "few").fingerprint


def test_edits_follow_one_another_and_classes_merge(study, workspace, crossgraft):
    (workspace / "merge.csv").write_text("class,merged\ncat,animal\ndog,animal\nfox,wild\n")
    done = crossgraft("edit", *study, "out", "--with", "whiten_spectrum", "--with", "low_pass:0.2", "--classes", "merge.csv")
    assert done.code == 0, done.err
    record = record_of(workspace / "out")
    assert [row.edit for row in record.edits] == ["whiten_spectrum", "low_pass:cutoff=0.2"]
    assert [row.leaf for row in record.edits] == [None, "imaging"]
    assert {row.class_name: row.merged for row in record.classes} == {"cat": "animal", "dog": "animal", "fox": "wild"}
    assert {row["label"] for row in table_of(workspace / "out")} == {"animal", "wild"}
    assert package.open_dataset("out/labels.csv", label_column="label", use_split=None).class_counts == (16, 8)


def test_images_of_16_bits_and_floats_keep_every_bit(workspace):
    rng = np.random.default_rng(0)
    for name, images in (
        ("wide", rng.integers(0, 2**16, (6, 20, 24), dtype=np.uint16)),
        ("colour", rng.integers(0, 2**16, (6, 20, 24, 3), dtype=np.uint16)),
        ("floats", rng.random((6, 20, 24, 1)).astype(np.float32)),
    ):
        data = dataset_from_arrays(images, [0, 1] * 3, name=name)
        found = package.edit_data(data, edits=Tag(size=0.4), share=0.5, among="0", out=workspace / name)
        again = package.open_dataset(workspace / name / "labels.csv", label_column="label")
        assert again.image_digests == found.dataset.image_digests != data.image_digests
        assert found.edited.sum() == 2  # halves to the even number: round(1.5) is 2


def test_several_labels_per_image_are_columns(workspace):
    images = np.random.default_rng(0).integers(0, 255, (6, 20, 24), dtype=np.uint8)
    marks = np.array([[1, 0], [1, 1], [0, 1]] * 2)
    data = dataset_from_arrays(images, marks, class_names=["mass", "fluid"], name="several")
    found = package.edit_data(data, edits="tag:0.4", among="mass", out=workspace / "out")
    assert found.edited.tolist() == [True, True, False] * 2
    again = package.open_dataset(workspace / "out" / "labels.csv", label_column=["mass", "fluid"])
    np.testing.assert_array_equal(again.targets, marks)


def test_python_goes_on_with_the_data(workspace):
    found = package.edit_data("images", edits=["low_pass:0.1"], seed=3)
    assert found.out is None and len(found.dataset) == 24 and found.edited.all()
    assert found.to_frame()["edit"].tolist() == ["low_pass:cutoff=0.1"]
    assert package.check_data(found.dataset, holdout=0).record.dataset.fingerprint == found.record.fingerprint


def test_a_stopped_command_is_done_again(study, workspace, crossgraft, monkeypatch):
    from crossgraft.edit import writing

    written = []

    def stop(path, content, **how):
        if len(written) == 3:
            raise KeyboardInterrupt
        written.append(path)
        return original(path, content, **how)

    original = writing.write_atomically
    monkeypatch.setattr(writing, "write_atomically", stop)
    assert crossgraft("edit", *study, "out", "--with", "low_pass:0.1").code == 130
    assert json.loads((workspace / "out" / "run.json").read_text())["state"] != "done"
    monkeypatch.setattr(writing, "write_atomically", original)
    assert crossgraft("edit", *study, "out", "--with", "low_pass:0.1").code == 0
    assert len(list((workspace / "out" / "images").iterdir())) == 24
    with Image.open(workspace / "out" / "images" / "01.png") as first:
        assert first.size == (24, 24)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"edits": "tagg"}, UnknownNameError, "Unknown edit: tagg. Did you mean tag"),
        ({"edits": []}, UsageError, "No edit was named"),
        ({"edits": "low_pass:cutof=3"}, UnknownNameError, "Did you mean cutoff"),
        ({"edits": "tag:size=big"}, UsageError, "size"),
        ({"share": 1.5}, UsageError, "--share must lie in"),
        ({"share": "half"}, UsageError, "share must be a number, not 'half'"),
        ({"strength": -1.0}, UsageError, "--strength must be a number of at least 0"),
        ({"strength": None}, UsageError, "strength needs a value"),
        ({"unit": "Patient"}, UnknownNameError, "Unknown value of unit: Patient"),
        ({"among": ""}, UsageError, "among is empty"),
        ({"classes": "all.csv"}, DataError, "merges all classes into x"),
        ({"among": "bening"}, UnknownNameError, "Did you mean benign"),
        ({"unit": "patient"}, UsageError, "--unit patient draws patients"),
        ({"classes": "nothing.csv"}, DataError, "nothing.csv"),
        ({"classes": "bad.csv"}, DataError, "needs the columns class and merged"),
        ({"classes": "twice.csv"}, DataError, "line 3: the class benign was there before"),
        ({"classes": "half.csv"}, DataError, "1 class has no coarser one: malignant"),
        ({"edits": "tag:0.9"}, DataError, "size"),
    ],
)
def test_bad_input(workspace, options, error, said):
    (workspace / "bad.csv").write_text("a,b\n1,2\n")
    (workspace / "twice.csv").write_text("class,merged\nbenign,x\nbenign,y\n")
    (workspace / "all.csv").write_text("class,merged\nbenign,x\nmalignant,x\n")
    (workspace / "half.csv").write_text("class,merged\nbenign,x\n")
    with pytest.raises(error, match=said):
        package.edit_data("images", **({"edits": "low_pass:0.1"} | options))


def test_a_share_of_nothing_is_said(workspace, crossgraft):
    done = crossgraft("edit", "images", "out", "--with", "low_pass:0.1", "--share", "0.01")
    assert done.code == 0 and "No image was edited" in done.out
    assert crossgraft("edit", "images", "out2", "--with", "low_pass", "--out", "x").code == 2
    assert crossgraft("edit", "images", "--with", "low_pass").code == 2
    nothing = crossgraft("edit", "images", "out3")
    assert nothing.code == 2 and "No edit was named" in nothing.err
    assert crossgraft("edit", "images", "--with", "low_pass", "--out", "named").code == 0
    line = json.loads((workspace / "named" / "run.json").read_text())["command_line"]
    assert line == "crossgraft edit images --with low_pass --out named"


def test_another_data_set_leaves_no_image_of_the_first(workspace, crossgraft):
    make_images(workspace / "many", {"cat": 30, "dog": 30})
    assert crossgraft("edit", "many", "out", "--with", "low_pass:0.1").code == 0
    (workspace / "out" / "images" / "notes.txt").write_text("mine")
    assert crossgraft("edit", "images", "out", "--with", "low_pass:0.1", "--overwrite").code == 0
    left = {path.name for path in (workspace / "out" / "images").iterdir()}
    assert left == {f"{number + 1:02d}.png" for number in range(24)} | {"notes.txt"}


def test_drawn_splits_stay_the_same(workspace):
    """Groups are numbers that sort as the names do: with more than ten of them, too."""
    images = np.random.default_rng(0).integers(0, 255, (90, 20, 24), dtype=np.uint8)
    groups = [f"p{number // 3:03d}" for number in range(90)]
    data = dataset_from_arrays(images, np.arange(90) // 3 % 2, groups=groups, name="many")
    package.edit_data(data, edits="low_pass:0.1", out=workspace / "out")
    again = package.open_dataset(workspace / "out" / "labels.csv", label_column="label", group_column="group")
    one, other = (package.split_data(each).split for each in (data, again))
    for part in ("train", "val", "test"):
        np.testing.assert_array_equal(one.rows(part), other.rows(part))


def test_grades_keep_their_order_and_columns_their_values(workspace, crossgraft):
    make_images(workspace / "scans", {"none": 6, "mild": 6, "severe": 6})
    rows = ["image,grade,label,group,edited"]
    rows += [
        f"{file.relative_to(workspace)},{file.parent.name},l{number},g{number % 2},yes"
        for number, file in enumerate(sorted((workspace / "scans").rglob("*.png")))
    ]
    (workspace / "grades.csv").write_text("\n".join(rows))
    (workspace / "names.txt").write_text("none\nmild\nsevere\n")
    flags = ("--label-column", "grade", "--class-names", "names.txt", "--ordinal", "--group-column", "none")
    done = crossgraft("edit", "grades.csv", "out", "--with", "low_pass:0.1", *flags)
    assert done.code == 0, done.err
    assert "--class-names out/classes.txt --ordinal" in " ".join(done.out.split())
    again = package.open_dataset("out/labels.csv", label_column="label", class_names="out/classes.txt", ordinal=True)
    assert again.class_names == ("none", "mild", "severe")
    first = table_of(workspace / "out")[0]
    assert (first["edited"], first["edited_original"], first["label_original"]) == ("1", "yes", "l0")
    assert crossgraft("edit", "out/labels.csv", "twice", "--with", "low_pass:0.2", "--label-column", "label").code == 0
    first = table_of(workspace / "twice")[0]
    assert (first["edited"], first["edited_original"], first["edited_original_original"]) == ("1", "yes", "1")


def test_a_label_called_as_a_column_is_refused(workspace):
    images = np.random.default_rng(0).integers(0, 255, (6, 20, 24), dtype=np.uint8)
    data = dataset_from_arrays(images, np.array([[1, 0], [1, 1], [0, 1]] * 2), class_names=["mass", "edited"])
    with pytest.raises(DataError, match="The label edited is called as a column"):
        package.edit_data(data, edits="low_pass:0.1", out=workspace / "out")


def test_an_image_that_cannot_be_edited_is_named(workspace):
    make_images(workspace / "images", {"benign": 1}, size=4)
    with pytest.raises(DataError, match=r"benign/00.png cannot be edited. An image of"):
        package.edit_data("images", edits="low_pass:0.1")


def test_every_edit_is_listed_with_its_units(crossgraft):
    done = crossgraft("list", "confounders")
    assert "environment › external" in done.out and "size=0.0625 (share of the shorter side)" in " ".join(done.out.split())
    listed = json.loads(crossgraft("list", "confounders", "--json").out)["confounders"]
    assert {"tag", "low_pass", "whiten_spectrum"} <= {row["name"] for row in listed}
    leaves = list(dict.fromkeys(row["place"] for row in listed))  # the tree from its root, and what is no part of it
    assert leaves == [
        "patient › demographic",
        "patient › anatomical",
        "environment › external",
        "environment › imaging",
        "takes cues away",
    ]
