"""Several data sets as one: classes by name, groups of each set apart, a column that says which set a row is of."""

import io
from dataclasses import replace

import numpy as np
import pytest

from crossgraft import check_data
from crossgraft.data import Split, open_dataset
from crossgraft.data.joining import join_rows
from crossgraft.data.listing import list_rows
from crossgraft.data.sources import SourceRequest, SourceRows
from crossgraft.errors import DataError, UsageError
from crossgraft.progress import Reporter


def rows(name, labels, **others):
    labels = np.asarray(labels)
    names = [f"{number}.png" for number in range(len(labels))]
    pixels = [np.full((2, 2, 1), 10 * len(name) + number, dtype=np.uint8) for number in range(len(labels))]
    return SourceRows(name=name, labels=labels, image_names=names, decode=pixels.__getitem__, **others)


def joined(*sets):
    return join_rows(sets, [f"there/{each.name}" for each in sets])


def words(found):
    return found.labels.tolist() if found.label_names is None else [found.label_names[label] for label in found.labels]


def test_rows_stand_end_to_end_and_are_read_as_before():
    first, second = rows("one", ["a", "b", "a"]), rows("other", ["b", "a"])
    found = joined(first, second)
    assert found.attributes["source"].tolist() == ["one"] * 3 + ["other"] * 2
    assert found.image_names == ["one/0.png", "one/1.png", "one/2.png", "other/0.png", "other/1.png"]
    own = [*map(first.decode, range(3)), *map(second.decode, range(2))]
    assert all(np.array_equal(found.decode(row), pixels) for row, pixels in enumerate(own))
    assert found.name == "one + other"
    assert found.groups is None is found.splits is found.stamps


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (rows("one", [0, 1, 1], label_names=["cat", "dog"]), rows("other", [0, 1], label_names=["dog", "cat"])),
        (rows("one", [0, 1, 1], label_names=["cat", "dog"]), rows("other", ["dog", "cat"])),
        (rows("one", ["cat", "dog", "dog"]), rows("other", [1, 0], label_names=["cat", "dog"])),
    ],
)
def test_a_class_is_one_by_its_name_whatever_its_number(first, second):
    assert words(joined(first, second)) == ["cat", "dog", "dog", "dog", "cat"]


def test_a_set_whose_classes_are_all_its_own_is_refused_by_name():
    with pytest.raises(DataError, match=r"third has no class in common with the others \(c; the others: a and b\)"):
        joined(rows("one", ["a", "b"]), rows("other", ["b", "a"]), rows("third", ["c", "c"]))


def test_numbers_and_the_same_numbers_as_text_are_one():
    assert joined(rows("one", [0, 1]), rows("other", ["1", "0"])).labels.tolist() == ["0", "1", "1", "0"]
    assert joined(rows("one", [0, 1]), rows("other", [1, 0])).labels.tolist() == [0, 1, 1, 0]


def test_columns_of_several_labels_are_matched_by_name():
    first = rows("one", [[1, 0], [0, 1]], label_names=["edema", "nodule"])
    second = rows("other", [[1, 0], [1, 1]], label_names=["nodule", "edema"])
    assert joined(first, second).labels.tolist() == [[1, 0], [0, 1], [0, 1], [1, 1]]
    with pytest.raises(DataError, match="The label edema is one of one alone"):
        joined(first, replace(second, label_names=["nodule", "mass"]))


def test_patients_of_two_sets_are_two_even_under_one_name():
    first = rows("one", ["a", "b"], groups=np.array(["p1", "p1"]), group_column="patient")
    found = joined(first, rows("other", ["a", "b"], groups=np.array(["p1", "p2"]), group_column="lesion"))
    assert found.groups.tolist() == ["one: p1", "one: p1", "other: p1", "other: p2"]
    assert (found.group_column, found.groups_known) == ("patient or lesion", None)
    without = joined(first, rows("other", ["a", "b"]))
    assert len(set(without.groups.tolist())) == 3
    assert without.groups_known.tolist() == [True, True, False, False]
    assert "other: no groups are known" in " ".join(without.notices)


def test_columns_that_one_set_lacks_are_left_out_and_named():
    first = rows("one", ["a", "b"], attributes={"age": np.array(["3", "4"]), "sex": np.array(["f", "m"])})
    found = joined(first, rows("other", ["a", "b"], attributes={"age": np.array([5, 6])}))
    assert found.attributes["age"].tolist() == ["3", "4", "5", "6"]
    assert set(found.attributes) == {"age", "source"}
    assert found.notices == ("Columns that not all joined data sets have are left out: sex.",)


def test_sets_of_one_name_are_told_apart_by_their_folders():
    found = join_rows([rows("scans", ["a", "b"])] * 2, ["/data/berlin/2020/scans", "/data/paris/2020/scans"])
    assert set(found.attributes["source"]) == {"berlin/2020/scans", "paris/2020/scans"}


def test_a_set_without_labels_leaves_none():
    nothing = rows("other", ["", ""], has_labels=False)
    found = joined(rows("one", [0, 1], label_names=["cat", "dog"]), nothing)
    assert not found.has_labels
    assert set(found.labels) == {""}
    assert "other has no labels" in found.notices[0]
    assert joined(nothing, replace(nothing, name="more")).notices == ()


def test_opened_folders_keep_to_one_split_and_one_fingerprint(make_folder, monkeypatch):
    first, second = make_folder({"a": 6, "b": 6}, "one"), make_folder({"c": 4, "a": 6, "b": 6}, "other")
    stream = io.StringIO()
    whole = open_dataset(first, join=[second], use_split=None, default_split=True, reporter=Reporter(stream))
    assert whole.class_names == ("a", "b", "c")
    assert whole.source == "joined"
    assert "one has no c." in stream.getvalue()
    monkeypatch.chdir(first.parent)
    again = open_dataset("one", join="other", use_split=None, default_split=True)
    assert again.fingerprint == whole.fingerprint
    assert again.splits.tolist() == whole.splits.tolist()
    assert isinstance(whole.split, Split)
    whole.split.refuse_other_rows(again)
    assert open_dataset("other", join="one", use_split=None).fingerprint != whole.fingerprint


def test_who_gives_a_list_of_sets_is_told_of_join(make_folder):
    folders = [make_folder({"a": 2, "b": 2}, name) for name in ("one", "other")]
    with pytest.raises(UsageError, match="others as join"):
        list_rows(folders, SourceRequest(), Reporter(quiet=True))


def test_open_data_are_joined_no_more(make_folder):
    opened = open_dataset(make_folder({"a": 2, "b": 2}))
    with pytest.raises(UsageError, match="join belongs to opening the data"):
        check_data(opened, join="other")
