"""Images that cannot be used: left out alike whatever is wrong with them, each with its own reason."""

import csv

import numpy as np
import pytest
from PIL import Image

from crossgraft import check_data
from crossgraft.data import open_dataset
from crossgraft.data.inspection import inspect_images
from crossgraft.errors import DataError
from support.unlabelled import open_images

BAD = {
    "a/nan.tif": (np.nan, "NaN"),
    "a/above.tif": (1.5, "to 1.5"),
    "b/below.tif": (-0.25, "from -0.25"),
    "b/inf.tif": (np.inf, "infinite"),
}


@pytest.fixture
def floats(tmp_path):
    """Float images of two classes, four of them with values that mean nothing; and a truncated PNG."""
    for i in range(6):
        write(tmp_path / "f" / "ab"[i % 2] / f"{i}.tif", seed=i)
    for name, (value, _) in BAD.items():
        write(tmp_path / "f" / name, seed=9, value=value)
    png = tmp_path / "f" / "a" / "cut.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (32, 32), dtype=np.uint8)).save(png)
    png.write_bytes(png.read_bytes()[:-400])
    return tmp_path / "f"


def write(path, *, seed, value=0.5):
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = np.random.default_rng(seed).random((8, 8), dtype=np.float32)
    samples[0, 0] = value
    Image.fromarray(samples).save(path)


@pytest.mark.parametrize("name", BAD)
def test_values_without_a_meaning_are_an_error_that_names_the_way_out(floats, name):
    for other in {*BAD, "a/cut.png"} - {name}:
        (floats / other).unlink()
    with pytest.raises(DataError, match=rf"The image {name} has .*{BAD[name][1]}.*--skip-unreadable"):
        open_dataset(floats)


@pytest.mark.parametrize("opening", [open_dataset, open_images])
def test_skipping_leaves_out_what_check_calls_unreadable(floats, opening):
    opened = opening(floats, skip_unreadable=True).readable()
    assert len(opened) == 6
    names = {opened.image_name(row) for row in range(6)}
    assert names == {f"{'ab'[i % 2]}/{i}.tif" for i in range(6)}
    found = next(f for f in check_data(floats).record.findings if f.title == "Unreadable images")
    assert found.num_groups == 5


def test_a_class_of_nothing_but_such_images_is_an_error(floats):
    for i in (0, 2, 4):
        (floats / "a" / f"{i}.tif").unlink()
    with pytest.raises(DataError, match=r"No image of the class a can be decoded \(5 unreadable images"):
        open_dataset(floats, skip_unreadable=True)


def test_an_image_without_pixels_is_left_out():
    images = [np.zeros((4, 4, 1), np.uint8), np.zeros((0, 4, 1), np.uint8)]
    assert list(inspect_images(["x", "y"], images.__getitem__, skip_unreadable=True).unreadable) == [1]


def test_every_row_of_the_findings_has_its_own_reason(floats, tmp_path):
    check_data(floats, out=tmp_path / "run", show_names=True)
    with (tmp_path / "run" / "findings.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["title"] == "Unreadable images"]
    reasons = {row["names"]: row["text"] for row in rows}
    assert set(reasons) == {*BAD, "a/cut.png"} and len(set(reasons.values())) == 4
    for name, (_, reason) in {**BAD, "a/cut.png": (0, "truncated")}.items():
        assert reason in reasons[name]
        assert sum(other in reasons[name] for other in ("truncated", "NaN", "to 1.5", "from -0.25")) == 1
