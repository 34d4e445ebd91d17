"""Tables as people write them."""

import errno
import os
import shlex

import numpy as np
import pytest

from crossgraft.data import open_dataset
from crossgraft.errors import DataError


@pytest.fixture
def table(tmp_path, write_image):
    """`table(text, images=6, name="table.csv")`: a table beside images 0.png, 1.png …; returns its path."""

    def make(text, images=6, name="table.csv"):
        for number in range(images):
            write_image(tmp_path / f"{number}.png", seed=number)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return make


def test_files_of_one_name_are_told_by_their_folders_without_a_look_at_all_for_each_row(tmp_path, write_image, monkeypatch):
    from crossgraft.data.sources import _table_files

    names, compared = [f"patient{number}/study1/view.png" for number in range(40)], []
    for name in names:
        (tmp_path / "train" / name).parent.mkdir(parents=True)
        write_image(tmp_path / "train" / name)
    (tmp_path / "t.csv").write_text("path,label\n" + "".join(f"elsewhere/train/{name},{name[7]}\n" for name in names))
    letters = _table_files.whole_letters
    monkeypatch.setattr(_table_files, "whole_letters", lambda text: compared.append(text) or letters(text))
    data = open_dataset(tmp_path / "t.csv", group_column="none")
    assert [data.image_name(row).removeprefix("elsewhere/train/") for row in range(40)] == names
    assert len(compared) < 40 * 40


BASIC = "path,label\n0.png,cat\n1.png,dog\n2.png,cat\n"


def test_paths_and_labels(table, pixels):
    dataset = open_dataset(table(BASIC))
    assert dataset.labels.tolist() == ["cat", "dog", "cat"]
    assert dataset.image_name(1) == "1.png"
    assert dataset.source == "csv_table"
    np.testing.assert_array_equal(dataset.read(1), pixels(1))


@pytest.mark.parametrize(("file_name", "name"), [("Metadata.csv", "skin"), ("lesions.csv", "lesions")])
def test_a_table_is_called_by_its_folder_where_its_own_name_says_nothing(tmp_path, write_image, file_name, name):
    (tmp_path / "skin").mkdir()
    (tmp_path / "skin" / file_name).write_text(BASIC)
    for number in range(3):
        write_image(tmp_path / "skin" / f"{number}.png")
    assert open_dataset(tmp_path / "skin" / file_name).name == name


@pytest.mark.parametrize("name", ["table.csv", "labels.csv"])
def test_a_folder_of_somebody_else_beside_a_table_is_not_asked(table, tmp_path, monkeypatch, name):
    (tmp_path / "private").mkdir()

    def refusing(scan):
        def scan_or_refuse(folder):
            if "private" in str(folder):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
            return scan(folder)

        return scan_or_refuse

    path = table(BASIC, name=name)
    monkeypatch.setattr(os, "scandir", refusing(os.scandir))
    monkeypatch.setattr(os, "listdir", refusing(os.listdir))
    assert open_dataset(path).labels.tolist() == ["cat", "dog", "cat"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("table.tsv", BASIC.replace(",", "\t")),
        ("table.csv", BASIC.replace(",", ";")),
        ("table.CSV", "\ufeff" + BASIC),
        ("table.csv", BASIC.replace("\n", "\r\n") + "\r\n,\r\n"),
        ("table.csv", BASIC.replace("path,label", " Image , Diagnosis ").replace("0.png", '"0.png"')),
    ],
    ids=["tabs", "semicolons", "byte-order mark", "Windows lines and an empty row", "blanks and quotes"],
)
def test_dialects(table, name, text):
    assert open_dataset(table(text, name=name)).labels.tolist() == ["cat", "dog", "cat"]


def test_groups_splits_and_attributes(table):
    text = "file,target,patient_id,split,age,sex\n"
    text += "0.png,1,p1,train,31,f\n1.png,0,p1,Training,,m\n2.png,1,p2,train,54.5,f\n3.png,0,p3,test,x,m\n"
    dataset = open_dataset(table(text))
    assert dataset.labels.tolist() == [1, 0, 1]
    assert dataset.groups.tolist() == ["p1", "p1", "p2"]
    assert dataset.group_column == "patient_id"
    assert set(dataset.splits) == {"train"}
    assert dataset.split_method == "column split of the table"
    np.testing.assert_array_equal(dataset.attributes["age"], [31, np.nan, 54.5])
    assert dataset.attributes["sex"].tolist() == ["f", "m", "f"]
    assert list(dataset.attributes) == ["age", "sex"]


def test_columns_can_be_named(table):
    text = "where,label,grade,patient,clinic\n0.png,a,1,p,x\n1.png,b,2,q,y\n2.png,c,1,r,z\n"
    dataset = open_dataset(table(text), path_column="where", label_column="grade", group_column="clinic")
    assert dataset.labels.tolist() == [1, 2, 1]
    assert dataset.groups.tolist() == ["x", "y", "z"]
    assert list(dataset.attributes) == ["label", "patient"]


@pytest.mark.parametrize(
    ("header", "options", "message"),
    [
        ("a,label", {}, r"holds the image files \(looked for path, .*Name it with --path-column.*Columns: a, label"),
        ("photo,label", {}, "Name it with --path-column photo, whose cells look like files. Columns: photo, label"),
        ("path,b", {}, r"holds the labels .*--label-column.*Columns: path, b"),
        ("path,image,label", {}, "could hold the image files: path, image. Name it with --path-column"),
        ("path,label,class", {}, "could hold the labels: label, class. .*Columns: path, label, class"),
        ("path,label,patient,lesion_id", {}, "could hold the groups: patient, lesion_id"),
        ("path,label,split,subset", {}, "could hold the splits: split, subset. Rename all but one"),
        ("path,label", {"label_column": "lable"}, "no column lable. Did you mean label"),
        ("path,label", {"group_column": "zzz"}, "no column zzz. Columns: path, label"),
        ("path,label,label", {}, "several columns called label"),
    ],
)
def test_columns_that_can_not_be_found(table, header, options, message):
    width = header.count(",") + 1
    text = header + "\n" + "\n".join(",".join([f"{row}.png"] + ["x"] * (width - 1)) for row in range(2)) + "\n"
    with pytest.raises(DataError, match=message):
        open_dataset(table(text), **options)


def test_whole_numbers_are_classes_however_they_are_written(table):
    dataset = open_dataset(table("path,label\n0.png,2.0\n1.png,10\n2.png,2\n"))
    assert dataset.labels.tolist() == [2, 10, 2]
    assert dataset.class_names == ("2", "10")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["1", "0.37", "1"], "not whole numbers: 0.37 in line 3 of table.csv .*--label-column"),
        (["a", "", "a"], "label is missing in line 3 of table.csv "),
        (["a", "NaN", ""], "missing in line 3 of table.csv and 1 more"),
        (["a", "a", "a"], "All 3 images of .* have the class a"),
        (["a", "b", "c"], "a label of its own"),
    ],
)
def test_labels_that_are_no_classes(table, labels, message):
    text = "path,label\n" + "\n".join(f"{row}.png,{label}" for row, label in enumerate(labels))
    with pytest.raises(DataError, match=message):
        open_dataset(table(text))


def test_missing_files_are_named_with_their_lines(table):
    text = "path,label\n0.png,a\n" + "".join(f"gone{row}.png,b\n" for row in range(7))
    with pytest.raises(DataError) as caught:
        open_dataset(table(text))
    message = str(caught.value)
    assert message.startswith("7 of 8 image files do not exist")
    assert "gone0.png in line 3 of table.csv" in message and "gone4.png in line 7" in message
    assert "gone5" not in message and "and 2 more" in message
    assert "--image-root" in message


def test_a_file_of_the_same_name_in_another_folder_is_no_image_of_the_row(table, tmp_path, write_image):
    for name in ("benign/0.png", "malignant/1.png"):
        (tmp_path / name).parent.mkdir()
        write_image(tmp_path / name)
    mixed = table("path,label\nbenign/0.png,benign\nbenign/1.png,benign\n", images=0)
    said = r"1 of 2 image files do not exist .* benign/1.png in line 3 of table.csv. malignant/1.png has the name of the first"
    with pytest.raises(DataError, match=said):
        open_dataset(mixed)
    renamed = table("path,label\nimages/0.png,benign\nimages/1.png,malignant\n", images=0)  # no row is right about its folder
    assert len(open_dataset(renamed)) == 2
    above = table("path,label\n0.png,benign\nmalignant/1.png,malignant\n", images=0)  # one names no folder
    assert len(open_dataset(above)) == 2


def test_the_folder_of_the_missing_files_is_suggested(table, tmp_path, write_image):
    for name in ("part 1/a.png", "part 2/x.png"):
        write_image(tmp_path / name, seed=len(name))
    path = table("path,label\na.png,a\nx.png,b\n", images=0)
    with pytest.raises(DataError, match=r"x\.png is in part 2: pass --image-root '?.*") as caught:
        open_dataset(path, image_root=tmp_path / "part 1")
    advised = shlex.split(str(caught.value).partition("--image-root ")[2])[0]
    assert len(open_dataset(path, image_root=advised)) == 2


def test_an_empty_path(table):
    with pytest.raises(DataError, match=r"do not exist .*\(empty\) in line 2"):
        open_dataset(table("path,label\n,a\n1.png,b\n2.png,a\n"))


def test_image_root(table, tmp_path, write_image):
    for name in ("x.png", "deep/y.png"):
        write_image(tmp_path / "elsewhere" / name)
    path = table("path,label\nx.png,a\ndeep/y.png,b\n", images=0)
    assert len(open_dataset(path, image_root=tmp_path / "elsewhere")) == 2
    with pytest.raises(DataError, match=r"No such folder: .*nowhere \(--image-root\)"):
        open_dataset(path, image_root=tmp_path / "nowhere")


def test_backslashes_and_absolute_paths(table, tmp_path, write_image):
    write_image(tmp_path / "deep" / "x.png")
    dataset = open_dataset(table(f"path,label\ndeep\\x.png,a\n{tmp_path}/0.png,b\n"))
    assert dataset.image_name(1) == "0.png"  # no absolute path in a report


def test_names_without_an_extension(table, tmp_path, write_image):
    write_image(tmp_path / "ISIC_1.jpg")
    write_image(tmp_path / "ISIC_2.png")
    (tmp_path / "ISIC_1.txt").write_text("not an image")
    assert len(open_dataset(table("image_id,dx\nISIC_1,nv\nISIC_2,mel\n", images=0))) == 2
    write_image(tmp_path / "ISIC_2.jpg")
    with pytest.raises(DataError, match=r"line 3 of table\.csv names ISIC_2, which could be ISIC_2\.jpg, ISIC_2\.png"):
        open_dataset(tmp_path / "table.csv")


def test_an_image_named_by_two_rows(table):
    with pytest.raises(DataError, match=r"line 4 of table\.csv names the image 0\.png again, which line 2"):
        open_dataset(table("path,label\n0.png,a\n1.png,b\n0.png,b\n"))


def test_a_group_must_be_known_for_every_row(table):
    with pytest.raises(DataError, match=r"group is missing in line 3 .*\(column patient\), and in 1 row"):
        open_dataset(table("path,label,patient\n0.png,a,p\n1.png,b,\n2.png,a,q\n"))


def test_a_split_must_be_known_for_every_row(table):
    with pytest.raises(DataError, match="split is missing in line 2"):
        open_dataset(table("path,label,split\n0.png,a,\n1.png,b,train\n"))


def test_a_table_without_train_rows(table):
    with pytest.raises(DataError, match=r"no rows of the split train\. Its splits: A, B\. Rename the one to use to train"):
        open_dataset(table("path,label,split\n0.png,a,A\n1.png,b,B\n"))


def test_test_rows_of_a_table_without_splits(table):
    with pytest.raises(DataError, match="Its splits: none"):
        open_dataset(table(BASIC), use_split="test")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "table.csv is empty"),
        (b" \n\n", "table.csv is empty"),
        (b"path,label\n", "a header but no rows"),
        (b"path,label\n0.png,a,b\n", "Line 2 of table.csv has 3 cells where the header has 2"),
        (b'path,label\n"0.png,a\n', "damaged near line 2"),
        ("path,label\n0.png,a\n".encode("utf-16-le"), "is UTF-16. Save it in UTF-8"),
        (b"path,label\n0.png,caf\xe9\n", r"not UTF-8 text \(byte 20\)"),
    ],
)
def test_damaged_tables(tmp_path, content, message):
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        open_dataset(tmp_path / "table.csv")


def test_an_unreadable_image_is_named_as_in_the_table(table, tmp_path):
    path = table(BASIC)
    (tmp_path / "1.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"image 1\.png: the file is empty"):
        open_dataset(path)


def test_a_column_that_is_called_like_a_group_can_be_told_to_be_none(table):
    rows = table("path,label,patient,lesion_id\n0.png,a,p,x\n1.png,b,p,y\n2.png,a,q,z\n")
    dataset = open_dataset(rows, group_column="none")
    assert dataset.groups is None and dataset.group_column is None
    assert set(dataset.attributes) == {"patient", "lesion_id"}
    assert open_dataset(rows, group_column="patient").groups is not None


def test_where_patients_are_known_otherwise_they_are_forgotten_as_well():
    assert open_dataset("digits", group_column="none").groups is None
    assert open_dataset("digits").groups is not None
