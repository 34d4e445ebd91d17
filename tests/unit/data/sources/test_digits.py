"""The built-in digits and their writers."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from crossgraft.data import open_dataset
from crossgraft.data.sources.digits import WRITER_BOUNDARIES, writer_blocks
from crossgraft.errors import DataError, UsageError


def test_digits_use_the_full_range_of_grey():
    dataset = open_dataset("digits")
    counts = load_digits().images
    assert len(dataset) == 1797
    assert dataset.class_names == tuple("0123456789")
    assert dataset.image_kinds == {"8×8 grey 8-bit": 1797}
    for row in (0, 17, 1796):
        np.testing.assert_allclose(dataset.read(row)[..., 0], counts[row] * 255 / 16, atol=0.5)
    assert max(dataset.read(row).max() for row in range(100)) == 255


def test_every_writer_wrote_every_digit_about_13_times():
    targets = load_digits().target
    blocks = writer_blocks()
    assert len(np.unique(blocks)) == 14
    for writer in np.unique(blocks):
        per_digit = np.bincount(targets[blocks == writer], minlength=10)
        assert per_digit.min() >= 9 and per_digit.max() <= 14


def test_a_new_writer_begins_the_sheet_anew():
    targets = load_digits().target
    for start in WRITER_BOUNDARIES[:-1]:
        assert targets[start : start + 10].tolist() == list(range(10))


def test_groups_are_the_writers():
    dataset = open_dataset("digits", group_column="writer")
    assert dataset.group_column == "writer"
    assert dataset.groups[[0, 129, 130, 1796]].tolist() == ["writer 01", "writer 01", "writer 02", "writer 14"]


def test_digits_have_no_other_columns_and_no_splits():
    with pytest.raises(UsageError, match="only group column is writer"):
        open_dataset("digits", group_column="patient")
    with pytest.raises(UsageError, match="--label-column has no meaning"):
        open_dataset("digits", label_column="x")
    with pytest.raises(DataError, match="no rows of the split test"):
        open_dataset("digits", use_split="test")


def test_a_folder_called_digits_is_opened_as_a_path(make_folder, monkeypatch):
    root = make_folder({"a": 2, "b": 1}, name="digits")
    monkeypatch.chdir(root.parent)
    assert open_dataset("./digits").source == "image_folder"
    assert open_dataset("digits").source == "digits"
