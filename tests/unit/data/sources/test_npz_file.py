"""Arrays as people save them."""

import zipfile

import numpy as np
import pytest

from crossgraft.data import open_dataset
from crossgraft.errors import DataError, UsageError


@pytest.fixture
def save(tmp_path):
    """`save(images=…, labels=…)`: an .npz file."""

    def write(**arrays):
        np.savez_compressed(tmp_path / "data.npz", **arrays)
        return tmp_path / "data.npz"

    return write


def images_of(count, shape=(5, 4), dtype=np.uint8):
    rng = np.random.default_rng(count)
    if np.dtype(dtype).kind == "f":
        return rng.random((count, *shape)).astype(dtype)
    return rng.integers(0, 2 if np.dtype(dtype).kind == "b" else np.iinfo(dtype).max, (count, *shape)).astype(dtype)


@pytest.mark.parametrize("label_shape", [(4,), (4, 1)])
def test_the_keys_of_medmnist(save, label_shape):
    labels = np.array([0, 1, 1, 0], dtype=np.uint8).reshape(label_shape)
    images = images_of(4)
    path = save(train_images=images, train_labels=labels, test_images=images_of(2), test_labels=labels[:2])
    dataset = open_dataset(path)
    assert dataset.labels.tolist() == [0, 1, 1, 0]
    assert (dataset.name, dataset.source, dataset.rows_used) == ("data", "npz_file", "split train")
    assert dataset.split_method == "official split of the file"
    assert dataset.image_name(2) == "train row 2"
    np.testing.assert_array_equal(dataset.read(2)[..., 0], images[2])
    both = open_dataset(path, use_split=None)
    assert both.splits.tolist() == ["train"] * 4 + ["test"] * 2
    assert both.image_name(5) == "test row 1"


def test_plain_keys(save):
    path = save(
        images=images_of(4, (5, 4, 3)),
        labels=np.array([2, 0, 2, 0]),
        classes=np.array(["cat", "dog", "cow"]),
        patients=np.array([7, 7, 8, 9]),
        names=np.array(["w", "x", "y", "z"]),
        masks=images_of(4),
    )
    dataset = open_dataset(path)
    assert dataset.class_names == ("cat", "cow")
    assert dataset.targets.tolist() == [1, 0, 1, 0]
    assert dataset.groups.tolist() == [7, 7, 8, 9]
    assert dataset.group_column == "patients"
    assert {name: values.tolist() for name, values in dataset.attributes.items()} == {"names": ["w", "x", "y", "z"]}


def test_classes_without_images_are_pointed_out(save, reporter):
    open_dataset(save(images=images_of(3), labels=np.array([0, 2, 0]), class_names=np.array(list("abc"))), reporter=reporter)
    assert "No image of the classes b" in reporter.stream.getvalue()


def test_splits_of_plain_keys(save):
    images, splits = images_of(5), np.array(["train", "TEST", "train", "valid", "train"])
    path = save(images=images, labels=np.array(list("abbab")), splits=splits, age=np.arange(5))
    dataset = open_dataset(path)
    assert dataset.labels.tolist() == ["a", "b", "b"]
    assert dataset.attributes["age"].tolist() == [0, 2, 4]
    assert dataset.image_name(1) == "row 2"
    np.testing.assert_array_equal(dataset.read(1)[..., 0], images[2])
    assert open_dataset(path, use_split=None).splits.tolist() == ["train", "test", "train", "val", "train"]


def test_arrays_can_be_named(save):
    path = save(images=images_of(4), dx=np.array([1, 0, 1, 0]), site=np.array([1, 1, 2, 2]), labels=np.arange(4))
    dataset = open_dataset(path, label_column="dx", group_column="site")
    assert dataset.labels.tolist() == [1, 0, 1, 0]
    assert dataset.groups.tolist() == [1, 1, 2, 2]
    split = save(train_images=images_of(4), train_dx=np.array([1, 0, 1, 0]), train_groups=np.arange(4))
    assert open_dataset(split, label_column="dx").group_column == "groups"


@pytest.mark.parametrize(
    ("shape", "dtype", "kind"),
    [
        ((5, 4), np.uint8, "5×4 grey 8-bit"),
        ((5, 4, 1), np.uint16, "5×4 grey 16-bit"),
        ((5, 4, 3), np.float64, "5×4 RGB float"),
        ((3, 5, 7), np.uint8, "5×7 RGB 8-bit"),
        ((1, 5, 7), np.float16, "5×7 grey float"),
        ((5, 4, 4), np.uint8, "5×4 RGB 8-bit"),
        ((5, 4), bool, "5×4 grey 8-bit"),
    ],
)
def test_layouts_and_types(save, shape, dtype, kind):
    dataset = open_dataset(save(images=images_of(4, shape, dtype), labels=np.array([0, 1, 0, 1])))
    assert dataset.image_kinds == {kind: 4}


def test_channels_first_keep_their_colours(save):
    images = images_of(2, (3, 5, 7))
    labels = np.array([0, 1])
    np.testing.assert_array_equal(open_dataset(save(images=images, labels=labels)).read(1), np.moveaxis(images[1], 0, -1))


def test_bool_is_black_and_white(save):
    images = np.zeros((2, 3, 3), bool)
    images[1] = True
    assert open_dataset(save(images=images, labels=np.array([0, 1]))).read(1).min() == 255


def test_alpha_is_composited_on_black(save):
    images = np.full((2, 3, 3, 4), 200, np.uint8)
    images[1, ..., 3] = 0
    assert open_dataset(save(images=images, labels=np.array([0, 1]))).read(1).max() == 0


LABELS = np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": images_of(4), "y": LABELS}, "neither train_images nor images. Its arrays: x, y"),
        ({"images": images_of(4)}, "no array labels"),
        ({"images": images_of(4), "label": LABELS}, "no array labels. Did you mean label"),
        ({"images": images_of(4), "labels": LABELS[:3]}, r"images and labels .*4 images, but labels has shape \(3,\)"),
        ({"images": images_of(4), "labels": np.array([[0, 1], [2, 1]] * 2)}, r"label is 2 in row 1, column 0 \(array labels"),
        ({"images": images_of(4), "labels": np.array([0.5, 1, 0, 1])}, "not whole numbers: 0.5 in row 0"),
        ({"images": images_of(4), "labels": np.array([0, np.nan, 0, 1])}, "not a number in row 1"),
        ({"images": images_of(4), "labels": np.array(["a", "", "b", "a"])}, "label is missing in row 1"),
        ({"images": images_of(4), "labels": LABELS, "groups": LABELS[:2]}, "images and groups"),
        ({"images": images_of(4), "labels": LABELS + 2, "classes": np.array(["a", "b"])}, "names the classes 0 to 1"),
        ({"images": images_of(4, (5, 4, 2)), "labels": LABELS}, "with 1, 3 or 4 channels"),
        ({"images": images_of(4, ()), "labels": LABELS}, "expected .images, height, width"),
        ({"images": images_of(4).astype(int), "labels": LABELS}, "type int64, whose range is not known"),
        ({"images": np.zeros((0, 4, 4), np.uint8), "labels": LABELS[:0]}, "is empty"),
        ({"images": images_of(4), "labels": LABELS, "splits": np.array(["test"] * 4)}, "no rows of the split train"),
    ],
)
def test_arrays_that_are_no_data_set(save, arrays, message):
    with pytest.raises(DataError, match=message):
        open_dataset(save(**arrays))


def test_nan_pixels_are_named_by_row(save):
    images = images_of(4, dtype=np.float32)
    images[2, 0, 0] = np.nan
    with pytest.raises(DataError, match="image row 2 has 1 of 20 samples that are NaN"):
        open_dataset(save(images=images, labels=LABELS))


@pytest.mark.parametrize("name", ["labels", "images"])
def test_python_objects_are_refused(save, name):
    arrays = {"images": images_of(4), "labels": LABELS} | {name: np.array([{}, 1, 2, 3], dtype=object)}
    with pytest.raises(DataError, match=f"array {name} of data.npz holds Python objects"):
        open_dataset(save(**arrays))


def test_an_attribute_of_objects_is_left_alone(save):
    path = save(images=images_of(4), labels=LABELS, notes=np.array([{}, 1, 2, 3], dtype=object))
    assert open_dataset(path).attributes == {}


def test_a_missing_split(save):
    with pytest.raises(DataError, match=r"no rows of the split train. Its splits: test"):
        open_dataset(save(test_images=images_of(4), test_labels=LABELS))
    with pytest.raises(DataError, match=r"no rows of the split test. Its splits: none"):
        open_dataset(save(images=images_of(4), labels=LABELS), use_split="test")


@pytest.mark.parametrize("option", ["path_column", "image_root"])
def test_options_for_files_have_no_meaning(save, tmp_path, option):
    with pytest.raises(UsageError, match=r"no meaning for an .npz file"):
        open_dataset(save(images=images_of(4), labels=LABELS), **{option: str(tmp_path)})


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 cut off"])
def test_files_that_are_no_archive(tmp_path, content):
    (tmp_path / "data.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"data\.npz is not an \.npz file, or it is damaged"):
        open_dataset(tmp_path / "data.npz")


def corrupt(path, member):
    """Overwrite the middle of one array inside the archive."""
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(f"{member}.npy")
    content = bytearray(path.read_bytes())
    middle = info.header_offset + 60 + info.compress_size // 2
    content[middle : middle + 8] = b"\xff" * 8
    path.write_bytes(content)


def test_a_damaged_array_is_named(save):
    path = save(images=images_of(50, (9, 9)), labels=np.arange(50) % 2)
    corrupt(path, "images")
    with pytest.raises(DataError, match=r"array images of data\.npz is damaged"):
        open_dataset(path)


def test_a_damaged_test_array_has_no_effect(save):
    path = save(train_images=images_of(4), train_labels=LABELS, test_images=images_of(50, (9, 9)), test_labels=np.arange(50) % 2)
    before = open_dataset(path).fingerprint
    corrupt(path, "test_images")
    assert open_dataset(path).fingerprint == before
    with pytest.raises(DataError, match="test_images"):
        open_dataset(path, use_split=None)


def test_uncertain_labels_and_a_name_for_none_of_them(tmp_path):
    labels = np.asarray([[1, 0, 0], [-1, 1, 0], [np.nan, 1, 0], [0, 0, 1]])
    names = np.asarray(["edema", "mass", "none of them"])
    np.savez(tmp_path / "x.npz", images=np.zeros((4, 8, 8), np.uint8), labels=labels, classes=names)
    with pytest.raises(DataError, match=r"-1 \(uncertain\).*--uncertain zeros, ones or leave-out"):
        open_dataset(tmp_path / "x.npz")
    found = open_dataset(tmp_path / "x.npz", uncertain="ones", none_label="none of them")
    assert found.targets.tolist() == [[1, 0], [1, 1], [0, 1], [0, 0]]


def test_rows_without_a_label_are_left_out_where_it_is_asked_for(tmp_path):
    labels = np.asarray([0.0, 1.0, np.nan, -1.0, 0.0, 1.0])
    np.savez(tmp_path / "x.npz", images=np.zeros((6, 8, 8), np.uint8), labels=labels, patient=np.arange(6))
    dataset = open_dataset(tmp_path / "x.npz", uncertain="leave-out")
    assert dataset.labels.tolist() == [0, 1, 0, 1] and dataset.groups.tolist() == [0, 1, 4, 5]


@pytest.mark.parametrize(("channels", "is_said"), [(1, False), (3, False), (4, True)])
def test_a_fourth_channel_is_said_to_be_taken_for_transparency(tmp_path, channels, is_said):
    images = np.full((4, 8, 9, channels), 200, np.uint8)
    np.savez(tmp_path / "d.npz", images=images, labels=np.array([0, 1, 0, 1]))
    assert any("the fourth is taken for transparency" in text for text in open_dataset(tmp_path / "d.npz").reading) == is_said
