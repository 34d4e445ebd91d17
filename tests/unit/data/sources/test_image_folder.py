"""Folders as people keep them."""

import sys

import pytest

from crossgraft.data import open_dataset
from crossgraft.errors import DataError, MissingExtraError, UsageError


def test_folders_are_classes_in_natural_order(make_folder):
    dataset = open_dataset(make_folder({"grade 10": 2, "grade 2": 3, "Grade 1": 1}))
    assert dataset.class_names == ("Grade 1", "grade 2", "grade 10")
    assert dataset.class_counts == (1, 3, 2)
    assert dataset.image_name(0) == "Grade 1/0.png"
    assert (dataset.name, dataset.source) == ("images", "image_folder")
    assert (dataset.rows_used, dataset.split_method) == ("all rows (no split given)", "no split")
    assert dataset.groups is None and dataset.splits is None


def test_numeric_class_names_are_in_numeric_order(make_folder):
    assert open_dataset(make_folder({"10": 1, "9": 1, "0": 2})).class_names == ("0", "9", "10")


def test_files_are_in_natural_order(make_folder):
    dataset = open_dataset(make_folder({"a": 12, "b": 1}))
    assert [dataset.image_name(row) for row in (1, 2, 10)] == ["a/1.png", "a/2.png", "a/10.png"]


def test_the_name_comes_from_the_folder_itself(make_folder, monkeypatch):
    monkeypatch.chdir(make_folder({"a": 2, "b": 1}))
    assert open_dataset(".").name == "images"


@pytest.mark.parametrize("extension", ["PNG", "Jpg", "jpeg", "TIF", "tiff", "bmp"])
def test_extensions_in_any_case(tmp_path, write_image, extension):
    for name in ("a/1", "a/2", "b/1"):
        write_image(tmp_path / "images" / f"{name}.{extension}")
    assert len(open_dataset(tmp_path / "images")) == 3


def test_droppings_of_operating_systems_are_ignored(make_folder, write_image):
    root = make_folder({"a": 2, "b": 2})
    for name in (".DS_Store", "Thumbs.db", "notes.txt", "a/.DS_Store", "a/Thumbs.db", "a/notes.txt"):
        (root / name).write_bytes(b"\0")
    for name in ("__MACOSX/a/._0.png", ".cache/0.png", "a/._0.png", "a/.hidden/0.png", "a/__MACOSX/0.png"):
        write_image(root / name)
    dataset = open_dataset(root)
    assert dataset.class_names == ("a", "b")
    assert dataset.class_counts == (2, 2)


def test_images_may_lie_deeper(make_folder):
    dataset = open_dataset(make_folder({"a/patient 1": 2, "a/patient 2": 1, "b": 1}))
    assert dataset.class_counts == (3, 1)
    assert dataset.image_name(2) == "a/patient 2/0.png"


@pytest.mark.parametrize("names", [("train", "val", "test"), ("Training", "VALID", "testing"), ("train", "validation", "extra")])
def test_split_folders_are_recognised(make_folder, names):
    root = make_folder({f"{name}/{label}": 2 + place for place, name in enumerate(names) for label in ("a", "b")})
    dataset = open_dataset(root)
    assert dataset.class_counts == (2, 2)
    assert (dataset.rows_used, dataset.split_method) == ("split train", "folders of the data")
    assert set(dataset.splits) == {"train"}
    assert len(open_dataset(root, use_split="val")) == 6


def test_all_splits_on_request(make_folder):
    root = make_folder({"train/a": 2, "train/b": 2, "test/a": 1, "test/b": 1})
    dataset = open_dataset(root, use_split=None)
    assert dataset.splits.tolist() == ["train"] * 4 + ["test"] * 2 or sorted(dataset.splits) == ["test"] * 2 + ["train"] * 4
    assert dataset.rows_used == "all rows of all splits"


def test_a_class_may_be_called_train(make_folder):
    dataset = open_dataset(make_folder({"train": 2, "plane": 2, "car": 1}))
    assert dataset.class_names == ("car", "plane", "train")


def test_a_split_that_is_not_there(make_folder):
    root = make_folder({"train/a": 2, "train/b": 2, "test/a": 1})
    with pytest.raises(DataError, match=r"no rows of the split val. Its splits: test, train"):
        open_dataset(root, use_split="val")


def test_test_rows_of_a_folder_without_splits(make_folder):
    with pytest.raises(DataError, match=r"no rows of the split test. Its splits: none"):
        open_dataset(make_folder({"a": 2, "b": 2}), use_split="test")


def test_two_folders_for_one_split(make_folder):
    root = make_folder({"train/a": 2, "train/b": 2, "val/a": 1, "valid/a": 1})
    with pytest.raises(DataError, match=r"val and valid .* both hold the split val"):
        open_dataset(root)


def test_an_empty_class_folder_is_named(make_folder):
    root = make_folder({"a": 2, "cyst": 0, "b": 1})
    with pytest.raises(DataError, match=f"No images in the class folder cyst of {root.name}\\.") as caught:
        open_dataset(root)
    assert str(root.parent) not in str(caught.value)  # a check writes this sentence into its report


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "it is empty"),
        (["a/readme.txt", "b/notes.txt"], "only files 2 .txt"),
        (["labels.csv"], "It holds the table labels.csv: give that file"),
    ],
)
def test_a_folder_without_images(tmp_path, files, message):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text")
    with pytest.raises(DataError, match=message):
        open_dataset(tmp_path)


def test_images_without_class_folders(tmp_path, write_image):
    write_image(tmp_path / "1.png")
    with pytest.raises(DataError, match=r"holds 1 image but no class folders.*sub-folder with the name of its class"):
        open_dataset(tmp_path)


def test_class_folders_one_level_further_down_are_named(make_folder):
    with pytest.raises(DataError, match=r"only one folder, data, .*holds the folders no, yes.*give .*images.data\b"):
        open_dataset(make_folder({"data/no": 2, "data/yes": 2}))


def test_the_same_folders_in_every_class_folder_are_pointed_out(make_folder, reporter):
    dataset = open_dataset(make_folder({"site A/no": 2, "site A/yes": 2, "site B/no": 2, "site B/yes": 1}), reporter=reporter)
    assert dataset.class_names == ("site A", "site B")
    assert "hold the same folders: no, yes" in reporter.stream.getvalue()


@pytest.mark.parametrize(
    "classes", [{"a/patient 1": 2, "b/patient 2": 2}, {"a/left": 2, "b/left": 2}, {"a": 2, "b/left": 2, "b/right": 2}]
)
def test_other_folders_in_class_folders_need_no_word(make_folder, reporter, classes):
    open_dataset(make_folder(classes), reporter=reporter)
    assert "same folders" not in reporter.stream.getvalue()


def test_images_beside_class_folders_are_pointed_out(make_folder, write_image, reporter):
    root = make_folder({"a": 2, "b": 2})
    write_image(root / "preview.png")
    assert len(open_dataset(root, reporter=reporter)) == 4
    assert "there is 1 image, not used" in reporter.stream.getvalue()
    assert "preview.png" in reporter.stream.getvalue()


@pytest.mark.parametrize(("name", "format_name"), [("a/1.dcm", "DICOM"), ("1.nii.gz", "NIfTI"), ("x/2.NII", "NIfTI")])
def test_medical_formats_name_the_extra(tmp_path, monkeypatch, name, format_name):
    for class_name in ("benign", "malignant"):
        (tmp_path / class_name / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / class_name / name).write_bytes(b"\0")
    monkeypatch.setitem(sys.modules, {"DICOM": "pydicom", "NIfTI": "nibabel"}[format_name], None)
    with pytest.raises(MissingExtraError, match=rf"Reading {format_name} files needs .*crossgraft\[medical\]"):
        open_dataset(tmp_path)


@pytest.mark.parametrize("option", ["label_column", "group_column", "path_column"])
def test_a_folder_has_no_columns(make_folder, option):
    with pytest.raises(UsageError, match=f"--{option.replace('_', '-')} has no meaning for a folder"):
        open_dataset(make_folder({"a": 2, "b": 2}), **{option: "x"})


def test_a_folder_that_may_not_be_listed(make_folder, monkeypatch):
    from pathlib import Path

    def refuse(self):
        raise PermissionError(13, "Permission denied", "images")

    root = make_folder({"a": 1, "b": 2})
    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(DataError, match=r"Permission denied: images\. Give this user access to it, or choose another path\."):
        open_dataset(root)
