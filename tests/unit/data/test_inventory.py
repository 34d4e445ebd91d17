"""Every visible file below a folder is an image, or passed over with its reason."""

import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from crossgraft.data import open_dataset
from crossgraft.data.decoding import decode_file
from crossgraft.data.file_counts import NO_FILE, FileCounts, describe_files
from crossgraft.data.sources import _inventory
from crossgraft.data.sources._inventory import take_inventory
from crossgraft.errors import DataError, UnreadableImageError, UsageError


def picture(seed, size=(24, 20)):
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3)).astype(np.uint8)
    return Image.fromarray(pixels)


def save(path, seed=0, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    picture(seed).save(path, **options)


def mask(path, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = np.random.default_rng(seed).random((20, 24)) > 0.6
    Image.fromarray((255 * flags).astype(np.uint8)).save(path)


@pytest.fixture
def folder(tmp_path):
    for place, name in enumerate(("benign", "malignant")):
        for number in range(4):
            save(tmp_path / "set" / name / f"{number}.png", 10 * place + number)
    return tmp_path / "set"


def passed_over(folder, **options):
    return {(each.kind, each.place): each.number for each in take_inventory(folder, **options).passed_over}


NAMES = st.sampled_from(
    ["a.png", "b.JPG", "c.jfif", "d.webp", "e.heic", "f.txt", "g", "1_mask.png", "1.png", "h.gif", "i.tiff.bak", "j.nii"]
)
FOLDERS = st.sampled_from(["benign", "x", "masks", "images", "@eaDir", "#recycle", "__MACOSX", "runs"])


@settings(max_examples=60, deadline=None)
@given(files=st.sets(st.tuples(st.lists(FOLDERS, max_size=3).map(tuple), NAMES), max_size=12))
def test_read_and_passed_over_are_all_files(tmp_path_factory, files):
    root = tmp_path_factory.mktemp("tree")
    for folders, name in files:
        path = root.joinpath(*folders, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    found = take_inventory(root)
    assert len(found.images) + sum(each.number for each in found.passed_over) == len(files)
    assert found.images == sorted(set(found.images), key=found.images.index)


def test_photographs_are_read_by_their_content(tmp_path):
    save(tmp_path / "a.webp", lossless=True)
    save(tmp_path / "b.jfif", format="JPEG")
    assert np.array_equal(decode_file(tmp_path / "a.webp"), np.asarray(picture(0)))
    assert decode_file(tmp_path / "b.jfif").shape == (20, 24, 3)
    picture(0).save(tmp_path / "c.webp", save_all=True, append_images=[picture(1)])
    with pytest.raises(UnreadableImageError, match="2 pages"):
        decode_file(tmp_path / "c.webp")


def test_a_format_without_a_reader_is_counted_by_class_and_the_reader_is_named(folder, monkeypatch):
    monkeypatch.setattr(_inventory, "can_read", lambda extension: extension != ".heic")
    for number in range(3):
        (folder / "malignant" / f"{number}.HEIC").write_bytes(b"\0\0\0\x18ftypheic")
    assert passed_over(folder) == {(".heic", "malignant"): 3}
    data = open_dataset(folder)
    assert data.reading == (
        "11 files: 8 .png are read; passed over: 3 .heic (needs a reader: pip install 'crossgraft[photos]').",
    )


def test_what_programs_leave_is_no_class_and_is_said(folder):
    save(folder / "benign" / "@eaDir" / "0.png" / "SYNOPHOTO_THUMB_M.jpg")
    save(folder / "#recycle" / "old.png")
    save(folder / "__MACOSX" / "benign" / "._0.png")
    run = folder / "runs" / "check-set"
    run.mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({"crossgraft_version": "0.1.0"}))
    save(run / "sheet.png")
    data = open_dataset(folder)
    assert data.class_names == ("benign", "malignant") and len(data) == 8
    assert "2 in folders of runs (a run of crossgraft)" in data.reading[0]
    assert "1 in @eaDir (thumbnails of a NAS)" in data.reading[0] and "1 in #recycle (bin of a NAS)" in data.reading[0]


def test_a_run_that_is_not_ours_is_a_folder_like_others(folder):
    (folder / "other").mkdir()
    (folder / "other" / "run.json").write_text("[1]")
    with pytest.raises(DataError, match="No images in the class folder other"):
        open_dataset(folder)


def test_links_to_folders_further_down_are_named(folder, tmp_path):
    save(tmp_path / "elsewhere" / "9.png", 9)
    (folder / "benign" / "more").symlink_to(tmp_path / "elsewhere")
    assert passed_over(folder) == {("link", "benign"): 1}
    (folder / "third").symlink_to(tmp_path / "elsewhere")  # a class that is a link is followed
    assert len(open_dataset(folder)) == 9


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no such pipes")
def test_what_is_no_file_is_counted_and_nobody_waits_for_it(folder):
    pipe = folder / next(path.parent for path in take_inventory(folder).images) / "pipe.png"
    os.mkfifo(pipe)
    (pipe.parent / "linked.png").symlink_to(pipe)
    (pipe.parent / "circle.png").symlink_to("circle.png")
    inventory = take_inventory(folder)
    names = [path.name for path in inventory.images]
    assert "circle.png" in names and not {"pipe.png", "linked.png"} & set(names)
    assert [found.number for found in inventory.passed_over if found.reason == NO_FILE] == [2]


def test_a_folder_of_images_beside_those_of_splits_is_said(folder):
    for split in ("train", "test"):
        for name in ("benign", "malignant"):
            save(folder / split / name / "7.png", hash(split + name) % 1000)
    said = open_dataset(folder).reading[0]
    assert "4 in benign (a folder beside those of splits; --use-split takes it)" in said and "4 in malignant" in said


def test_loose_images_are_counted(folder):
    save(folder / "stray.png")
    assert "passed over: 1 .png (beside the folders)" in open_dataset(folder).reading[0]


def test_masks_beside_their_images_are_left_out_unless_they_are_kept(folder):
    for number in range(4):
        mask(folder / "benign" / f"{number}_mask.png", number)
        mask(folder / "malignant" / f"{number}-seg_1.png", number)
    data = open_dataset(folder)
    assert len(data) == 8 and "8 .png (derived from an image beside it (--keep-masks takes it for one))" in data.reading[0]
    assert len(open_dataset(folder, keep_masks=True)) == 16


def test_a_folder_of_masks_beside_one_of_images(tmp_path):
    for place, name in enumerate(("a", "b")):
        for number in range(3):
            save(tmp_path / name / "images" / f"{number}.png", 10 * place + number)
            mask(tmp_path / name / "masks" / f"{number}.png", number)
    assert len(open_dataset(tmp_path)) == 6


def test_twins_of_two_grey_values_are_masks_whatever_they_are_called(folder):
    for number in range(4):
        mask(folder / "benign" / f"{number}_outline.png", number)
        save(folder / "malignant" / f"{number}_later.png", 50 + number)  # a second photograph
    assert passed_over(folder) == {(".png", "benign"): 4}


def test_pictures_of_two_grey_values_are_images_where_all_are(tmp_path):
    for name in ("a", "b"):
        for number in range(3):
            mask(tmp_path / name / f"{number}.png", number)
            mask(tmp_path / name / f"{number}_2.png", 10 + number)
    assert len(open_dataset(tmp_path)) == 12


def test_a_class_of_the_same_names_is_no_folder_of_masks(tmp_path):
    for number in range(5):
        save(tmp_path / "lesion" / f"{number}.png", number)
        mask(tmp_path / "blank" / f"{number}.png", number)
    assert len(open_dataset(tmp_path)) == 10


def test_keep_masks_is_refused_where_nothing_is_looked_for(tmp_path):
    np.savez(tmp_path / "d.npz", train_images=np.zeros((4, 9, 9), np.uint8), train_labels=np.array([0, 1, 0, 1]))
    with pytest.raises(UsageError, match="--keep-masks has no meaning here"):
        open_dataset(tmp_path / "d.npz", keep_masks=True)


def test_one_kind_needs_no_sentence():
    assert describe_files(FileCounts({(".png", "a"): 3})) == [] == describe_files(FileCounts())


def test_heic_is_read_where_its_reader_is(tmp_path):
    heif = pytest.importorskip("pillow_heif")
    heif.from_pillow(picture(0)).save(tmp_path / "a.heic", quality=100, chroma=444)
    found = decode_file(tmp_path / "a.heic")
    assert found.shape == (20, 24, 3)
    assert np.abs(found.astype(int) - np.asarray(picture(0))).mean() < 12
