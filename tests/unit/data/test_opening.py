"""From a location to a data set: the right source, the right rows, and nothing else opened."""

import hashlib
from inspect import signature

import numpy as np
import pytest
from PIL import Image

from crossgraft.data import DATA_OPTIONS, SOURCES, Split, open_dataset
from crossgraft.data.sources import DataSource, SourceRows
from crossgraft.errors import DataError, UnreadableImageError, UsageError
from crossgraft.options._option import options_of
from crossgraft.options.data import DatasetOptions


def summary(dataset):
    """All that a data set says, as plain values."""
    attributes = {name: values.tolist() for name, values in dataset.attributes.items()}
    images = [hashlib.sha256(dataset.read(row)).hexdigest() for row in range(len(dataset))]
    names = [dataset.image_name(row) for row in range(len(dataset))]
    groups = None if dataset.groups is None else dataset.groups.tolist()
    facts = (dataset.class_names, dataset.targets.tolist(), dataset.fingerprint, dataset.image_kinds, dataset.rows_used)
    return facts, attributes, images, names, groups, dataset.split_method, dataset.group_column


def test_every_option_about_data_is_an_argument_with_its_default():
    arguments = signature(open_dataset).parameters
    assert {*arguments} == {*DATA_OPTIONS, *("location", "use_split", "default_split", "val_fraction", "num_threads", "reporter")}
    defaults = {name: arguments[name].default for name in DATA_OPTIONS}
    assert defaults == {name: each.default for name, each in options_of(DatasetOptions).items()} | {"fold": 0}


def test_poisoned_test_folders_change_nothing(make_folder):
    root = make_folder({"train/a": 3, "train/b": 3, "test/a": 2, "test/b": 2})
    before = summary(open_dataset(root, per_class=2))
    (root / "test/a/0.png").write_bytes(b"poison")
    (root / "test/unknown class").mkdir()
    (root / "test/b/0.png").unlink()
    (root / "val").mkdir()
    assert summary(open_dataset(root, per_class=2)) == before


def test_poisoned_test_rows_of_a_table_change_nothing(tmp_path, write_image):
    for number in range(6):
        write_image(tmp_path / f"{number}.png", seed=number)
    lines = ["path,label,split,patient,age"] + [f"{row}.png,{row % 2},train,p{row // 2},{row}" for row in range(4)]
    test_rows = ["4.png,1,test,p9,5", "5.png,0,test,p9,6"]
    poison = ["gone.png,0.7,test,,old", "0.png,,test,p0,", "4.png,nan,Testing,p0,x"]
    (tmp_path / "5.png").write_bytes(b"poison")
    found = []
    for rows in (test_rows, poison):
        (tmp_path / "table.csv").write_text("\n".join([*lines[:3], *rows, *lines[3:]]))
        found.append(summary(open_dataset(tmp_path / "table.csv")))
    assert found[0] == found[1]
    assert found[0][0][1] == [0, 1, 0, 1]


@pytest.mark.parametrize(
    "poison",
    [
        {"test_images": np.array(["not", "images"]), "test_labels": np.array([0.5])},
        {"test_images": np.full((3, 2, 2), np.nan), "test_labels": np.array([{}], dtype=object)},
        {"val_labels": np.zeros((0, 7))},
    ],
)
def test_poisoned_test_arrays_change_nothing(tmp_path, pixels, poison):
    images = np.stack([pixels(seed) for seed in range(6)])
    sound = {"train_images": images, "train_labels": np.array([0, 1, 0, 1, 0, 1]), "test_images": images, "test_labels": images}
    found = []
    for arrays in (sound, sound | poison):
        np.savez(tmp_path / "data.npz", **arrays)
        found.append(summary(open_dataset(tmp_path / "data.npz", limit=4)))
    assert found[0] == found[1]


def test_the_test_rows_of_a_held_out_split_are_never_decoded(make_folder):
    root = make_folder({"a": 10, "b": 10})
    split = open_dataset(root, holdout=0.3, seed=1).split
    names = [f"{label}/{number}.png" for label in "ab" for number in range(10)]
    for row in (*split.test, *split.val):
        (root / names[row]).write_bytes(b"poison")
    dataset = open_dataset(root, holdout=0.3, seed=1)
    assert [dataset.image_name(row) for row in range(len(dataset))] == [names[row] for row in split.train]
    assert (len(split.test), len(split.val), len(dataset)) == (6, 2, 12)


def test_a_saved_split_chooses_the_same_rows(make_folder, tmp_path):
    root = make_folder({"a": 6, "b": 6})
    first = open_dataset(root, folds=3, fold=1)
    assert isinstance(first.split, Split)
    first.split.save(tmp_path / "split.json")
    again = open_dataset(root, split=tmp_path / "split.json")
    assert again.fingerprint == first.fingerprint
    assert again.rows_used == "train rows of the split"
    assert (
        again.split_method
        == first.split_method
        == "fold 2 of 3 is the test, stratified by class; patient leakage not checked (no groups)"
    )
    whole = open_dataset(root)
    assert first.split.apply(whole).fingerprint == first.fingerprint


def test_opening_twice_gives_the_same(make_folder):
    root = make_folder({"a": 5, "b": 5})
    assert summary(open_dataset(root, per_class=3, seed=2)) == summary(open_dataset(root, per_class=3, seed=2))
    assert open_dataset(root, per_class=3, seed=2).fingerprint != open_dataset(root, per_class=3, seed=3).fingerprint


def test_fewer_images(make_folder):
    root = make_folder({"a": 8, "b": 4})
    per_class = open_dataset(root, per_class=2)
    assert per_class.class_counts == (2, 2)
    assert per_class.rows_used == "all rows (no split given), 2 images of each class"
    limited = open_dataset(root, limit=6)
    assert limited.class_counts == (4, 2)
    assert limited.rows_used == "all rows (no split given), 6 of 12 images"
    assert open_dataset(root, limit=99).rows_used == "all rows (no split given)"


def test_images_that_are_not_used_are_not_decoded(make_folder):
    root = make_folder({"a": 4, "b": 4})
    used = open_dataset(root, per_class=1)
    for path in root.rglob("*.png"):
        if path.relative_to(root).as_posix() not in {used.image_name(0), used.image_name(1)}:
            path.write_bytes(b"poison")
    assert open_dataset(root, per_class=1).fingerprint == used.fingerprint


def test_unreadable_images_are_named_or_skipped(make_folder, reporter):
    root = make_folder({"a": 4, "b": 4})
    (root / "b/2.png").write_bytes((root / "b/2.png").read_bytes()[:60])
    with pytest.raises(UnreadableImageError, match=r"b/2\.png.*--skip-unreadable"):
        open_dataset(root)
    dataset = open_dataset(root, skip_unreadable=True, reporter=reporter)
    assert dataset.class_counts == (4, 3)
    assert dataset.skipped_unreadable == ("b/2.png",)
    assert dataset.rows_used == "all rows (no split given), 1 unreadable left out"
    assert "1 of 8 images cannot be read" in reporter.stream.getvalue()
    assert "b/2.png" not in [dataset.image_name(row) for row in range(7)]


def test_a_class_of_unreadable_images_can_not_be_skipped(make_folder):
    root = make_folder({"a": 3, "b": 2})
    for path in (root / "b").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DataError, match=r"No image of the class b can be decoded \(2 unreadable.*b/0\.png"):
        open_dataset(root, skip_unreadable=True)


def test_one_class_is_not_enough(make_folder):
    with pytest.raises(DataError, match="All 3 images of images have the class only"):
        open_dataset(make_folder({"only": 3}))


def test_a_class_with_one_image_can_be_opened(make_folder):
    assert open_dataset(make_folder({"a": 3, "b": 1})).class_counts == (3, 1)


def test_images_of_different_sizes_and_depths_can_be_mixed(make_folder):
    root = make_folder({"a": 2, "b": 1})
    Image.fromarray(np.zeros((30, 20), np.uint16)).save(root / "b" / "wide.png")
    assert open_dataset(root).image_kinds == {"8×6 grey 8-bit": 3, "30×20 grey 16-bit": 1}


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("imges", r"No such folder: imges\. Did you mean images\?"),
        ("data/brest", r"No such folder: data/brest\. Did you mean data/breast\?"),
        ("data/tabel.csv", r"No such file: data/tabel\.csv\. Did you mean data/table\.csv\?"),
        ("digit", r"No such folder: digit\. Did you mean digits\?"),
        ("xyzzy", r"No such folder: xyzzy\.$"),
        ("nowhere/breast", "There is no folder nowhere either"),
        ("data/breast.zip", r"is an archive\. Unpack it"),
        ("data/scan.PNG", "is one image"),
        ("data/model.bin", r"is not a kind of data that can be opened\. Data can be: .*\.csv"),
    ],
)
def test_locations_that_are_no_data(tmp_path, monkeypatch, location, message):
    monkeypatch.chdir(tmp_path)
    for folder in ("images", "data/breast"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("table.csv", "breast.zip", "scan.PNG", "model.bin"):
        (tmp_path / "data" / name).write_bytes(b"\0")
    with pytest.raises(DataError, match=message):
        open_dataset(location)


def test_another_package_can_bring_a_source(pixels, monkeypatch):
    class Constant(DataSource):
        name = "constant"
        description = "constant:N"

        def accepts(self, location):
            return location.startswith("constant:")

        def open(self, location, request):
            return SourceRows(
                name="constant", labels=np.array([0, 1, 0]), image_names=["x", "y", "z"], decode=lambda row: pixels(row)
            )

    monkeypatch.setattr(SOURCES, "_plugins", {**dict(SOURCES), "constant": Constant()})
    dataset = open_dataset("constant:3")
    assert (dataset.source, len(dataset)) == ("constant", 3)


def test_built_in_sources_are_listed():
    assert SOURCES.names()[:5] == ["digits", "csv_table", "npz_file", "hf_dataset", "image_folder"]
    assert SOURCES.group == "crossgraft.data_sources"
    assert all(source.description and source.name == name for name, source in SOURCES)


def test_contradicting_options(make_folder):
    with pytest.raises(UsageError, match="--limit and --per-class"):
        open_dataset(make_folder({"a": 3, "b": 3}), limit=4, per_class=1)


def test_all_rows_of_a_drawn_split_know_their_part(make_folder):
    root = make_folder({"a": 5, "b": 5})
    whole = open_dataset(root, use_split=None, holdout=0.4, seed=1)
    train = open_dataset(root, holdout=0.4, seed=1)
    assert len(whole) == 10
    assert whole.rows_used == "all rows of all splits"
    named = [whole.image_name(row) for row in range(10) if whole.splits[row] == "train"]
    assert named == [train.image_name(row) for row in range(len(train))]
    assert sorted(set(whole.splits)) == ["test", "train", "val"]
