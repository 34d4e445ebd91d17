"""Read and named are all visible files: of random trees of folders, and of folders that a table describes."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from crossgraft import check_data
from crossgraft.data import open_dataset
from crossgraft.data.describe import describe_dataset
from crossgraft.data.listing import list_rows
from crossgraft.data.record import DatasetRecord
from crossgraft.data.sources import SourceRequest
from crossgraft.errors import DataError
from crossgraft.progress import Reporter

HIDDEN = ("Thumbs.db", "desktop.ini", "DICOMDIR")


def picture(path, seed=0, size=(8, 6)):
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3)).astype(np.uint8)
    Image.fromarray(samples).save(path)


def mask(path, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = np.random.default_rng(seed).random((6, 8)) > 0.5
    Image.fromarray((255 * flags).astype(np.uint8)).save(path)


def text(path, content="x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def visible_files(root):
    """All files that can be seen; a link to a folder is one, but below the root, where it is followed."""
    number, pending = 0, [root]
    while pending:
        for entry in os.scandir(pending.pop()):
            if entry.name.startswith(".") or entry.name in HIDDEN:
                continue
            if entry.is_dir() and not (entry.is_symlink() and Path(entry.path).parent != root):
                pending.append(entry.path)
            else:
                number += 1
    return number


def counted(root, **request):
    rows = list_rows(root, SourceRequest(**{"use_split": None, **request}), Reporter(quiet=True))[1]
    return rows.files.total


def thing(draw, root, place, number):
    """One more thing in a tree, as people and programs leave them."""
    kind = draw(st.sampled_from(sorted(THINGS)))
    THINGS[kind](root, place, f"{kind}{number}")


def link(root, place, name):
    picture(root.parent / "elsewhere" / "1.png", 1)
    place.mkdir(parents=True, exist_ok=True)
    (place / name).symlink_to(root.parent / "elsewhere", target_is_directory=True)


def run(root, place, name):
    text(place / "runs" / name / "run.json", json.dumps({"crossgraft_version": "0.1.0"}))
    picture(place / "runs" / name / "sheet.png")


THINGS = {
    "picture": lambda root, place, name: picture(place / f"{name}.png", len(name)),
    "mask": lambda root, place, name: (picture(place / f"{name}.png", 3), mask(place / f"{name}_mask.png")),
    "masks": lambda root, place, name: mask(place / "masks" / "0.png"),
    "archive": lambda root, place, name: text(place / "packed" / f"{name}.zip"),
    "checksum": lambda root, place, name: (text(place / "kept" / f"{name}.tar.gz"), text(place / "kept" / "md5.txt")),
    "thumbnails": lambda root, place, name: picture(place / "@eaDir" / name / "SYNO.jpg"),
    "recycled": lambda root, place, name: picture(place / "#recycle" / f"{name}.png"),
    "stray": lambda root, place, name: text(place / f"{name}.txt"),
    "other": lambda root, place, name: text(place / f"{name}.gif"),
    "hidden": lambda root, place, name: (text(place / f".{name}"), text(place / "Thumbs.db")),
    "link": link,
    "run": run,
    "deeper": lambda root, place, name: picture(place / "visit 1" / f"{name}.png", 7),
}
LAYOUTS = {
    "classes": ("benign", "malignant"),
    "parts": ("train/benign", "train/malignant", "test/benign", "test/malignant"),
    "images": ("images/benign", "images/malignant"),
}


@settings(max_examples=20, deadline=None)
@given(data=st.data(), layout=st.sampled_from(sorted(LAYOUTS)))
def test_read_and_named_are_all_files_of_folders(tmp_path_factory, data, layout):
    root = tmp_path_factory.mktemp("tree") / "set"
    for place, folder in enumerate(LAYOUTS[layout]):
        for number in range(3):
            picture(root / folder / f"{number}.png", 10 * place + number)
            if layout == "images":
                mask(root / folder.replace("images", "masks") / f"{number}.png", number)
    in_class = st.sampled_from(LAYOUTS[layout])
    for number in range(data.draw(st.integers(0, 6))):
        thing(data.draw, root, root / data.draw(in_class | st.just("")), number)
    assert counted(root, keep_masks=data.draw(st.booleans()) and layout != "images") == visible_files(root)
    assert counted(root, needs_labels=False) == visible_files(root)
    shutil.rmtree(root)


@settings(max_examples=20, deadline=None)
@given(data=st.data(), layout=st.sampled_from(["loose", "images", "parts"]), kind=st.sampled_from(["csv", "tsv", "jsonl"]))
def test_read_and_named_are_all_files_of_a_folder_with_a_table(tmp_path_factory, data, layout, kind):
    root = tmp_path_factory.mktemp("tree") / "set"
    for part in ("train", "test") if layout == "parts" else ("",):
        rows = []
        for number in range(4):
            name = ("images/" if layout == "images" else "") + f"{number}.png"
            picture(root / part / name, number + 10 * len(part))
            rows.append({"file_name": name, "label": "ab"[number % 2]})
        separator = "\t" if kind == "tsv" else ","
        lines = [separator.join(rows[0]), *(separator.join(row.values()) for row in rows)]
        text(root / part / f"metadata.{kind}", "\n".join(map(json.dumps, rows) if kind == "jsonl" else lines))
        for number in range(data.draw(st.integers(0, 3))):
            name = data.draw(st.sampled_from(sorted({*THINGS} - {"deeper", "link"})))
            THINGS[name](root, root / part, f"{name}{number}")
    assert counted(root) == visible_files(root)
    assert counted(root, needs_labels=False) == visible_files(root)
    if layout != "parts":
        assert counted(root / f"metadata.{kind}") == visible_files(root)
    shutil.rmtree(root)


@pytest.fixture
def folder(tmp_path):
    for place, name in enumerate(("benign", "malignant")):
        for number in range(4):
            picture(tmp_path / "set" / name / f"{number}.png", 10 * place + number, size=(24, 20))
    return tmp_path / "set"


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz", "x.7z", "x.rar"])
def test_a_folder_of_archives_is_no_class_and_is_named(folder, name):
    text(folder / "archives" / name)
    text(folder / "archives" / "md5.txt")
    data = open_dataset(folder)
    assert data.class_names == ("benign", "malignant")
    assert "(an archive, which is not opened)" in data.reading[0]
    findings = {finding.title: finding.text for finding in check_data(folder).record.findings}
    assert "in archives (an archive, which is not opened)" in findings["Files passed over"]


def test_a_folder_of_archives_beside_those_of_parts(folder):
    for part in ("train", "test"):
        shutil.copytree(folder / "benign", folder / part / "benign")
        shutil.copytree(folder / "malignant", folder / part / "malignant")
    for name in ("benign", "malignant"):
        shutil.rmtree(folder / name)
    text(folder / "archives" / "x.zip")
    data = open_dataset(folder)
    assert data.splits is not None and "1 .zip (an archive, which is not opened)" in data.reading[0]


def test_only_archives_are_no_data(tmp_path):
    text(tmp_path / "set" / "a" / "x.zip")
    with pytest.raises(DataError, match=r"No images in the folder .*found only files 1 \.zip"):
        open_dataset(tmp_path / "set")


def test_files_are_counted_by_kind_and_class_in_records(folder):
    Image.new("RGB", (8, 8)).save(folder / "benign" / "x.webp")
    text(folder / "malignant" / "x.gif")
    text(folder / "about.txt")
    record = describe_dataset(open_dataset(folder, class_names=["malignant", "benign"]))
    assert [each.model_dump() for each in record.files] == [
        {"kind": ".png", "class_name": "benign", "files": 4, "read": True, "reason": ""},
        {"kind": ".webp", "class_name": "benign", "files": 1, "read": True, "reason": ""},
        {"kind": ".png", "class_name": "malignant", "files": 4, "read": True, "reason": ""},
        {"kind": ".gif", "class_name": "malignant", "files": 1, "read": False, "reason": "not read"},
        {"kind": ".txt", "class_name": "", "files": 1, "read": False, "reason": "not read"},
    ]
    assert check_data(folder).record.dataset.files == record.files
    assert check_data(open_dataset(folder)).record.dataset.files == record.files
    old = record.model_dump()
    del old["files"]
    assert DatasetRecord.model_validate(old).files == []


def test_classes_in_counts_are_called_as_the_user_says(tmp_path):
    for number in range(8):
        picture(tmp_path / f"{number}.png", number)
    lines = ["path,label", *(f"{number}.png,{number % 2}" for number in range(8))]
    text(tmp_path / "table.csv", "\n".join(lines))
    record = describe_dataset(open_dataset(tmp_path / "table.csv", class_names=["healthy", "ill"]))
    assert {(each.class_name, each.files) for each in record.files} == {("healthy", 4), ("ill", 4)}


def test_folders_that_may_be_patients_are_in_no_record(folder):
    text(folder / "benign" / "x.gif")
    request = SourceRequest(use_split=None, needs_labels=False, known_classes=("cat", "dog"))
    files = list_rows(folder, request, Reporter(quiet=True))[1].files.with_classes(None)
    assert {each.place for each in files.passed_over} == {""} == {name for _, name in files.read}


@pytest.mark.parametrize(("extras", "is_said"), [(("unspecified",), True), (("unassalpha",), False), ((), False)])
def test_channels_that_a_tiff_does_not_name_are_said(tmp_path, extras, is_said):
    tifffile = pytest.importorskip("tifffile")
    for name in "ab":
        for number in range(3):
            pixels = np.random.default_rng(number).integers(0, 256, (6, 8, 3 + len(extras))).astype(np.uint8)
            (tmp_path / name).mkdir(exist_ok=True)
            tifffile.imwrite(tmp_path / name / f"{number}.tif", pixels, photometric="rgb", extrasamples=extras)
    data = open_dataset(tmp_path)
    said = "Channels beyond the colours that the header does not name are not read (6 TIFF files)"
    assert (said in " ".join(data.reading)) == is_said
    assert data.read(0).shape == (6, 8, 3)
