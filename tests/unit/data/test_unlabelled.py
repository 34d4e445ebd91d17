"""Images that are opened to be predicted: labels may be missing."""

import numpy as np
import pytest
from PIL import Image

from crossgraft.data import dataset_from_arrays, open_dataset
from crossgraft.data.given_images import images_of_arrays
from crossgraft.errors import DataError, UnreadableImageError, UsageError
from support.unlabelled import open_images


def save(path, level=100, mode="L"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((8, 8), level, dtype=np.uint8)).convert(mode).save(path)


@pytest.fixture
def folder(tmp_path):
    for name in ("benign/2.png", "benign/10.png", "malignant/1.png"):
        save(tmp_path / "data" / name)
    return tmp_path / "data"


def names(images):
    return [images.image_name(index) for index in range(len(images))]


def test_a_plain_folder_and_one_file_need_no_labels(tmp_path):
    save(tmp_path / "plain" / "b.png", 10)
    save(tmp_path / "plain" / "visit 2" / "a.png", 20)
    images = open_images(tmp_path / "plain", known_classes=["benign", "malignant"])
    assert names(images) == ["b.png", "visit 2/a.png"]
    assert images.targets is None
    assert [int(images.read(row)[0, 0, 0]) for row in range(2)] == [10, 20]
    one = open_images(tmp_path / "plain" / "b.png")
    assert (names(one), one.source, len(one)) == (["b.png"], "image_file", 1)
    assert one.fingerprint != images.fingerprint


def test_folders_are_labels_only_if_each_is_a_class(folder):
    labelled = open_images(folder, known_classes=["malignant", "benign", "normal"])
    assert labelled.class_names == ("benign", "malignant")
    assert labelled.targets.tolist() == [0, 0, 1]
    assert names(labelled) == ["benign/2.png", "benign/10.png", "malignant/1.png"]
    assert open_images(folder, known_classes=["malignant", "normal"]).targets is None
    assert open_images(folder, known_classes=["malignant", "benign"], several_labels=True).targets is None
    save(folder / "loose.png")
    assert open_images(folder, known_classes=["malignant", "benign"]).targets is None


def test_folders_of_splits_are_no_classes_and_one_can_be_chosen(folder, tmp_path):
    (tmp_path / "split").mkdir()
    folder.rename(tmp_path / "split" / "train")
    save(tmp_path / "split" / "Test" / "benign" / "9.png")
    both = open_images(tmp_path / "split", known_classes=["malignant", "benign"])
    assert sorted(both.targets.tolist()) == [0, 0, 0, 1]
    test = open_images(tmp_path / "split", known_classes=["malignant", "benign"], use_split="test")
    assert (names(test), test.rows_used) == (["Test/benign/9.png"], "split test")
    with pytest.raises(DataError, match="no rows of the split val"):
        open_images(tmp_path / "split", use_split="val")


def test_a_table_needs_paths_only(folder):
    table = folder / "rows.csv"
    table.write_text("path,age\nbenign/2.png,1\nmalignant/1.png,2\n")
    assert open_images(table).targets is None
    assert names(open_images(table)) == ["benign/2.png", "malignant/1.png"]
    table.write_text("path,label\nbenign/2.png,a\nmalignant/1.png,b\n")
    assert open_images(table).class_names == ("a", "b")
    table.write_text("path,oedema,effusion\nbenign/2.png,1,0\nmalignant/1.png,1,1\n")
    several = open_images(table, known_classes=["effusion", "oedema"], several_labels=True)
    assert several.class_names == ("effusion", "oedema")
    assert several.targets.tolist() == [[0, 1], [1, 1]]


def test_arrays_need_images_only(tmp_path):
    pixels = np.arange(2 * 4 * 4, dtype=np.uint16).reshape(2, 4, 4)
    np.savez(tmp_path / "a.npz", images=pixels)
    images = open_images(tmp_path / "a.npz")
    assert images.targets is None
    assert images.read(1).dtype == np.uint16
    assert (images.read(1)[..., 0] == pixels[1]).all()
    np.savez(tmp_path / "b.npz", images=pixels, labels=np.array([0, 3]))
    assert open_images(tmp_path / "b.npz").class_names == ("0", "3")
    np.savez(tmp_path / "c.npz", train_images=pixels, test_images=pixels[:1])
    assert names(open_images(tmp_path / "c.npz", use_split="test")) == ["test row 0"]


def test_an_unreadable_image_is_named_or_left_out(folder):
    (folder / "benign" / "2.png").write_bytes(b"no picture")
    with pytest.raises(UnreadableImageError, match=r"benign/2\.png"):
        open_images(folder)
    images = open_images(folder, known_classes=["benign", "malignant"], skip_unreadable=True)
    assert images.unreadable == {0: "it is a text file"}
    assert images.readable_rows.tolist() == [1, 2]
    assert names(images) == ["benign/2.png", "benign/10.png", "malignant/1.png"]
    readable = images.readable()
    assert names(readable) == ["benign/10.png", "malignant/1.png"]
    assert readable.skipped_unreadable == ("benign/2.png",)
    assert readable.rows_used == "all rows, 1 unreadable left out"
    assert readable.targets.tolist() == [0, 1]
    assert readable.readable() is readable
    for name in ("benign/10.png", "malignant/1.png"):
        (folder / name).write_bytes(b"no picture")
    with pytest.raises(DataError, match="None of the 3 images"):
        open_images(folder, skip_unreadable=True)


def test_nothing_to_open_and_options_without_meaning_are_refused(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="No images in the folder"):
        open_images(tmp_path / "empty")
    with pytest.raises(UsageError, match="--label-column has no meaning for a folder"):
        open_images(folder, label_column="label")


def test_images_with_labels_are_the_same_data_as_a_data_set(folder):
    dataset = open_dataset(folder)
    images = open_images(folder, known_classes=["benign", "malignant"])
    assert images.fingerprint == dataset.fingerprint
    assert images.targets.tolist() == dataset.targets.tolist()


def test_arrays_are_images_too(folder):
    dataset = open_dataset(folder)
    pixels = [dataset.read(row) for row in range(3)]
    bare = images_of_arrays(pixels)
    assert bare.targets is None
    assert all((bare.read(row) == pixels[row]).all() for row in range(3))
    assert bare.fingerprint != dataset_from_arrays(pixels, [0, 0, 1]).fingerprint
    with pytest.raises(DataError, match="no images"):
        images_of_arrays([])
