"""Facts of files: borders and qualities that are known come back, and what tells the class is found on images held out."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from sklearn.metrics import balanced_accuracy_score
from sklearn.tree import DecisionTreeClassifier

from crossgraft.audit.file_facts import border_share, fact_attributes, how_telling, jpeg_quality
from crossgraft.data import dataset_from_arrays, k_folds, open_dataset
from crossgraft.errors import DataError, UnknownNameError, UsageError

NAMES = ["height", "width", "aspect", "border_share", "jpeg_quality"]


def noise(seed, height=12, width=16, channels=1):
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)


def labelled(labels, *, groups=None, heights=None):
    images = [noise(row, 8 if heights is None else int(heights[row]), 8) for row in range(len(labels))]
    return dataset_from_arrays(images, labels, groups=groups)


# Borders


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 999),
    st.tuples(*[st.integers(0, 5)] * 4),
    st.sampled_from([1, 3]),
    st.sampled_from(["uint8", "uint16", "float32"]),
)
def test_the_border_is_what_was_put_around_the_image(seed, sides, channels, kind):
    top, bottom, left, right = sides
    inside = noise(seed, channels=channels).astype(np.float64)
    inside[[0, -1], :2] = inside[:2, [0, -1]] = [[[0.0]], [[255.0]]]  # lines that show something
    colour = np.random.default_rng(seed).integers(0, 256, channels)
    framed = np.empty((12 + top + bottom, 16 + left + right, channels))
    framed[:] = colour
    framed[top : top + 12, left : left + 16] = inside
    pixels = {"uint8": framed, "uint16": framed * 257, "float32": framed / 255}[kind].astype(kind)
    expected = 1 - 12 * 16 / framed[..., 0].size
    assert border_share(pixels) == pytest.approx(expected)
    assert border_share(pixels[::-1, ::-1]) == pytest.approx(expected)
    assert border_share(pixels.swapaxes(0, 1)) == pytest.approx(expected)


def test_ripples_of_compression_are_part_of_a_border_and_no_more():
    framed = np.zeros((20, 16, 1), np.uint8)
    framed[5:15] = noise(1, 10)
    framed[5:15, [0, -1]] = np.arange(10, dtype=np.uint8)[:, None, None] * 25  # columns that show something
    framed[5, :2] = [[0], [255]]  # the whole range
    rippled = framed.copy()
    rippled[:5:2, ::3] = 4
    assert border_share(framed) == border_share(rippled) == 0.5
    rippled[2, 3] = 6  # rows 0 and 1 stay
    assert border_share(rippled) == pytest.approx(7 / 20)
    dim = (framed / 32).astype(np.uint8)  # ripples are of the range of the image
    assert border_share(dim) == 0.5


def test_images_that_show_nothing_or_no_border():
    assert border_share(np.full((5, 7, 3), 9, np.uint8)) == 1
    assert border_share(np.zeros((1, 1, 1), np.float32)) == 1
    assert border_share(noise(3)) == 0
    slope = np.linspace(0, 1, 200, dtype=np.float32)[:, None, None].repeat(50, axis=1)
    assert border_share(slope) == border_share(slope.swapaxes(0, 1)) == pytest.approx(0.04)  # what differs by 4 / 255
    coloured = np.zeros((10, 10, 3), np.uint8)
    coloured[2:, :, 1] = noise(4, 8, 10)[..., 0]  # one channel is enough
    coloured[2:, 0, 1], coloured[2:, -1, 1] = np.arange(8) * 30, np.arange(8) * 30
    assert border_share(coloured) == pytest.approx(0.2)


# Compression


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_every_quality_comes_back(mode):
    picture = Image.fromarray(noise(0, channels=3)).convert(mode)
    for quality in range(1, 101):
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=quality)
        assert jpeg_quality(np.array(Image.open(file).quantization[0])) == quality


def test_the_tables_of_the_standard():
    """The first row at quality 75 as libjpeg prints it, and the table of the standard itself."""
    file = io.BytesIO()
    Image.fromarray(noise(0)[..., 0]).save(file, "JPEG", quality=75)
    table = np.array(Image.open(file).quantization[0])
    assert table[:8].tolist() == [8, 6, 5, 8, 12, 20, 26, 31] and jpeg_quality(table) == 75
    assert jpeg_quality(table + 1) in range(70, 76)  # of another encoder
    assert jpeg_quality(np.ones(64, np.int64)) == 100 and jpeg_quality(np.full(64, 255)) == 1


def test_facts_of_a_folder(tmp_path):
    for place, (name, quality) in enumerate({"a/1.jpg": 30, "a/2.JPG": 90, "b/3.png": None, "b/4.jpg": None}.items()):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        picture = Image.fromarray(noise(place, 10 + place, 20)[..., 0])
        picture.save(file, "PNG" if quality is None else "JPEG", **({} if quality is None else {"quality": quality}))
    dataset = open_dataset(tmp_path)
    found = fact_attributes(dataset, root=str(tmp_path))
    assert list(found) == NAMES and all(values.shape == (4,) and values.dtype == np.float64 for values in found.values())
    assert found["height"].tolist() == [10, 11, 12, 13] and found["width"].tolist() == [20] * 4
    np.testing.assert_allclose(found["aspect"], 20 / np.arange(10, 14))
    np.testing.assert_array_equal(found["jpeg_quality"], [30, 90, np.nan, np.nan])  # what counts is the content
    np.testing.assert_array_equal(found["border_share"], [border_share(dataset.read(row)) for row in range(4)])
    for elsewhere in (None, tmp_path / "nowhere", Path(tmp_path, "a")):
        assert np.isnan(fact_attributes(dataset, root=elsewhere)["jpeg_quality"]).all()
    turned = fact_attributes(dataset.take([3, 0]), root=tmp_path)
    assert turned["height"].tolist() == [13, 10] and turned["jpeg_quality"][1] == 30


def test_a_table_may_leave_out_extensions(tmp_path):
    (tmp_path / "images").mkdir()
    for row, quality in enumerate((20, 60, 95)):
        Image.fromarray(noise(row)[..., 0]).save(tmp_path / "images" / f"scan.{row}.jpg", quality=quality)
    table = tmp_path / "table.csv"
    table.write_text("path,label\nscan.0,a\nscan.1,b\nscan.2.jpg,a\n")
    dataset = open_dataset(table, image_root=str(tmp_path / "images"))
    assert fact_attributes(dataset, root=tmp_path / "images")["jpeg_quality"].tolist() == [20, 60, 95]


def test_images_without_files_have_no_quality(tmp_path):
    found = fact_attributes(labelled(["a", "b"]), root=tmp_path)
    assert np.isnan(found["jpeg_quality"]).all() and found["height"].tolist() == [8, 8]


# What tells the class


def test_height_tells_the_class_and_noise_does_not():
    rng = np.random.default_rng(0)
    labels = np.repeat(["no", "yes"], 100)
    dataset = labelled(labels, heights=np.where(labels == "yes", 12, 8))
    facts = {"noise": rng.random(200), "height": fact_attributes(dataset)["height"], "same": np.ones(200)}
    found = how_telling(dataset, facts)
    assert [row.fact for row in found] == ["height", "noise"]
    assert found[0].balanced_accuracy.value == found[0].auc.value == 1
    assert found[1].balanced_accuracy.low < 0.5 < found[1].balanced_accuracy.high
    assert [row.fact for row in how_telling(dataset)] == ["height", "aspect"]  # widths and borders are equal


def test_noise_tells_nothing_on_average():
    labels = np.repeat(["no", "yes"], [30, 90])
    dataset = labelled(labels)
    values = [how_telling(dataset, {"noise": np.random.default_rng(seed).random(120)}, seed=seed)[0] for seed in range(20)]
    assert np.mean([row.balanced_accuracy.value for row in values]) == pytest.approx(0.5, abs=0.04)
    assert np.mean([row.auc.value for row in values]) == pytest.approx(0.5, abs=0.05)


def test_a_class_between_two_sizes_is_found():
    values = np.tile(np.arange(12.0), 10)
    dataset = labelled(np.where((values > 3) & (values < 8), "yes", "no"))
    assert how_telling(dataset, {"size": values})[0].auc.value == 1


def test_patients_stay_together():
    """A number of each patient's own tells the class of images whose patients were seen before, and of no others."""
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(12), 10)
    labels = np.where(rng.permutation(np.arange(12) % 2)[patients] == 1, "yes", "no")
    own = rng.permutation(12)[patients].astype(np.float64)
    blocks = {"own": (own // 3) + 0.01 * own}
    alone = how_telling(labelled(labels), blocks)[0]
    apart = [how_telling(labelled(labels, groups=patients), blocks, seed=seed)[0] for seed in range(5)]
    assert alone.auc.value > np.mean([row.auc.value for row in apart])
    assert all(row.auc.high - row.auc.low > alone.auc.high - alone.auc.low for row in apart)


def test_the_number_is_that_of_trees_fitted_by_hand():
    """The same folds; weights that make both classes count the same."""
    rng = np.random.default_rng(1)
    truth = rng.random(80) < 0.4
    values = np.round(rng.normal(size=80) + truth, 2)
    dataset = labelled(np.where(truth, "yes", "no"))
    decided = np.zeros(80, dtype=np.int64)
    for split in k_folds(truth.astype(np.int64), None, num_folds=5, seed=3):
        train, test = split.rows("train"), split.rows("test")
        weights = np.where(truth[train], 1 / truth[train].sum(), 1 / (~truth[train]).sum()) * len(train) / 2
        tree = DecisionTreeClassifier(max_depth=2, min_samples_leaf=5, random_state=0)
        tree.fit(values[train, None], truth[train], sample_weight=weights)
        decided[test] = tree.predict_proba(values[test, None])[:, 1] >= 0.5
    found = how_telling(dataset, {"value": values}, seed=3)[0]
    assert found.balanced_accuracy.value == pytest.approx(balanced_accuracy_score(truth, decided))


def test_missing_values_and_rare_facts_left_out():
    labels = np.repeat(["no", "yes"], 20)
    values = np.arange(40.0)
    values[[0, 1, 39]] = np.nan
    rare = np.full(40, np.nan)
    rare[[0, 1, 2, 3, 20, 21, 22, 23]] = np.arange(8)
    found = how_telling(labelled(labels), {"place": values, "rare": rare})
    assert [(row.fact, row.num_images) for row in found] == [("place", 37)]


def test_one_class_against_the_rest():
    labels = np.repeat(["a", "b", "c"], 20)
    values = np.repeat([0.0, 1.0, 0.0], 20) + np.tile(np.arange(20) / 1000, 3)
    found = {name: how_telling(labelled(labels), {"v": values}, positive=name)[0] for name in ("a", "b", "c")}
    assert found["b"].auc.value == 1 and found["b"].num_images == 60
    last = how_telling(labelled(labels), {"v": values})[0]
    assert last == found["c"] and last.auc.high < 1


@pytest.mark.parametrize(
    ("number", "groups", "facts", "positive", "error", "said"),
    [
        (4, None, {}, None, DataError, "takes 5 images of each side, and one has 4"),
        (12, np.tile(np.arange(4), 6), {}, None, DataError, "takes 5 patients of each side, and one has 4"),
        (6, None, {"v": np.ones(3)}, None, DataError, "The fact v must be 12 numbers"),
        (6, None, {"v": np.array(["x"] * 12)}, None, DataError, "The fact v must be 12 numbers"),
        (6, None, {}, "maybe", UnknownNameError, "maybe"),
    ],
)
def test_bad_input(number, groups, facts, positive, error, said):
    with pytest.raises(error, match=said):
        how_telling(labelled(np.repeat(["no", "yes"], number), groups=groups), facts, positive=positive)


def test_several_labels_are_refused():
    images = [noise(row) for row in range(8)]
    marks = np.tile([[1, 0], [0, 1], [1, 1], [0, 0]], (2, 1))
    with pytest.raises(UsageError, match="one class per image"):
        how_telling(dataset_from_arrays(images, marks), {})
