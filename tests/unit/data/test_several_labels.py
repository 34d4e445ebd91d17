"""Several labels an image, from columns, cells and arrays; names of classes and labels from a list or a file."""

import numpy as np
import pytest

from crossgraft.data import dataset_from_arrays, open_dataset
from crossgraft.data.class_names import name_classes, read_class_names
from crossgraft.errors import DataError, UsageError


@pytest.fixture
def table(tmp_path, write_image):
    """`table("path,a,b", "0,1", "1,0")`: a table of as many images; the path is put in front of each row."""

    def write(header, *rows, name="table.csv"):
        for number in range(len(rows)):
            write_image(tmp_path / f"{number}.png", seed=number)
        lines = [header, *(f"{number}.png,{row}" for number, row in enumerate(rows))]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return tmp_path / name

    return write


@pytest.fixture
def arrays(tmp_path):
    """`arrays(labels=…)`: an .npz file with an image for each label."""

    def write(**columns):
        count = len(next(iter(columns.values())))
        np.savez(tmp_path / "data.npz", images=np.arange(count * 16, dtype=np.uint8).reshape(count, 4, 4), **columns)
        return tmp_path / "data.npz"

    return write


def test_several_columns_are_several_labels(table):
    path = table("path,oedema,nodule,age", "1,yes,40", "0,No,50", "1.0,TRUE,60", "false,0.0,70")
    dataset = open_dataset(path, label_column="oedema, nodule")
    assert dataset.task == "multi-label"
    with pytest.warns(DeprecationWarning, match="dataset.task"):
        assert dataset.is_multi_label
    assert dataset.class_names == ("oedema", "nodule")
    assert dataset.targets.tolist() == [[1, 1], [0, 0], [1, 1], [0, 0]]
    assert dataset.targets.dtype == np.int64
    assert list(dataset.attributes) == ["age"]
    assert open_dataset(path, label_column=["nodule", "oedema"]).class_names == ("nodule", "oedema")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("-1", r"The label is -1 \(uncertain\) in line 3 of table.csv \(column b\).*decide for 0 or 1"),
        ("", r"The label is missing in line 3 of table.csv \(column b\).*Fill in 0 or 1"),
        ("nan", "The label is missing in line 3"),
        ("2", r"The label is 2 in line 3 of table.csv \(column b\)"),
        ("maybe", "The label is maybe in line 3"),
    ],
)
def test_cells_that_are_neither_yes_nor_no(table, cell, message):
    with pytest.raises(DataError, match=message):
        open_dataset(table("path,a,b", "0,1", f"1,{cell}", "1,0"), label_column="a,b")


def test_columns_that_can_not_be_label_columns(table):
    path = table("path,a,b", "0,1", "1,0", "0,0")
    with pytest.raises(DataError, match=r"no column aa. Did you mean a"):
        open_dataset(path, label_column="aa,b")
    with pytest.raises(UsageError, match="names a column twice: a, a"):
        open_dataset(path, label_column="a,a")
    with pytest.raises(UsageError, match="Give one of the two"):
        open_dataset(path, label_column="a,b", label_separator="|")


def test_several_labels_in_one_cell(table):
    path = table("path,label", "grade 10|grade 2", "", " grade 2 | x|x", "x")
    dataset = open_dataset(path, label_separator="|")
    assert dataset.class_names == ("grade 2", "grade 10", "x")
    assert dataset.targets.tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 1], [0, 0, 1]]


def test_cells_that_look_as_if_they_held_several_labels_are_pointed_out(table, reporter):
    dataset = open_dataset(table("path,label", "a|b", "b|c", "a", "a"), reporter=reporter)
    assert dataset.class_names == ("a", "a|b", "b|c")
    assert "2 of 4 cells of the column label contain |" in " ".join(reporter.stream.getvalue().split())
    with pytest.raises(DataError, match=r"missing in line 4 of table.csv.*--label-separator '\|'"):
        open_dataset(table("path,label", "a|b", "b|c", "", "a"))


def test_one_odd_name_is_no_list_of_labels(table, reporter):
    open_dataset(table("path,label", "a;b", *["a"] * 5, *["c"] * 5), reporter=reporter)
    assert "separator" not in reporter.stream.getvalue()


def test_an_array_of_several_labels(arrays):
    labels = np.array([[1, 1], [0, 1], [0, 0]])
    assert open_dataset(arrays(labels=labels)).class_names == ("label 0", "label 1")
    named = open_dataset(arrays(labels=labels.astype(np.float32), class_names=np.array(["x", "y"])))
    assert named.class_names == ("x", "y")
    assert named.targets.tolist() == labels.tolist()
    several = open_dataset(arrays(a=labels[:, 0], b=labels[:, 1]), label_column="b,a")
    assert (several.class_names, several.targets.tolist()) == (("b", "a"), labels[:, ::-1].tolist())
    with pytest.raises(DataError, match="2 columns, but its array classes holds 3 names"):
        open_dataset(arrays(labels=labels, classes=np.array(["x", "y", "z"])))


@pytest.mark.parametrize(("value", "message"), [(2, "label is 2"), (-1, "-1 .uncertain."), (np.nan, "label is missing")])
def test_an_array_of_other_values(arrays, value, message):
    with pytest.raises(DataError, match=message + r".*row 1, column 0 \(array labels of data.npz\)"):
        open_dataset(arrays(labels=np.array([[1, 0], [value, 1], [1, 1]])))


def test_one_hot_rows_are_classes(arrays, reporter):
    dataset = open_dataset(arrays(labels=np.eye(2)[[1, 0, 1]], classes=np.array(["x", "y"])), reporter=reporter)
    assert (dataset.class_names, dataset.targets.tolist()) == (("x", "y"), [1, 0, 1])
    assert "exactly one 1 in its 2 columns" in " ".join(reporter.stream.getvalue().split())


def test_labels_without_images_and_labels_of_every_image_are_kept_with_a_notice(table, reporter):
    dataset = open_dataset(table("path,a,b,c", "0,1,1", "0,1,0", "0,1,1"), label_column="a,b,c", reporter=reporter)
    assert dataset.class_counts == (0, 3, 2)
    said = " ".join(reporter.stream.getvalue().split())
    assert "No image has the label a in the rows used." in said
    assert "Every image has the label b in the rows used." in said


def test_labels_that_are_none(table):
    with pytest.raises(DataError, match=r"None of the 3 images of .* has any label"):
        open_dataset(table("path,a,b", "0,0", "0,0", "0,0"), label_column="a,b")
    with pytest.raises(DataError, match="a label of its own"):
        open_dataset(table("path,label", "x", "y", "z"), label_separator="|")


def test_an_order_has_no_meaning_with_several_labels(table):
    with pytest.raises(UsageError, match="--ordinal is for classes in an order"):
        open_dataset(table("path,a,b", "0,1", "1,0", "1,1"), label_column="a,b", ordinal=True)


def test_a_part_of_a_split_and_a_limit(table):
    path = table("path,a,b", *(f"{i % 2},{int(i % 3 == 0)}" for i in range(24)))
    dataset = open_dataset(path, label_column="a,b", holdout=0.25, limit=12, seed=1)
    assert (len(dataset), dataset.class_counts) == (12, (6, 4))
    assert "stratified by label" in dataset.split_method
    with pytest.raises(UsageError, match="or use --limit"):
        open_dataset(path, label_column="a,b", per_class=2)


def test_an_unreadable_image_takes_the_last_image_with_a_label(table, tmp_path):
    path = table("path,a,b", "1,0", "0,1", "0,1", "0,0")
    (tmp_path / "0.png").write_bytes(b"no image")
    with pytest.raises(DataError, match="No image of the class a can be decoded"):
        open_dataset(path, label_column="a,b", skip_unreadable=True)


def test_arrays_in_memory():
    labels = [[1, 0], [1, 1], [0, 0]]
    dataset = dataset_from_arrays(np.zeros((3, 4, 4), dtype=np.uint8), labels, class_names=["x", "y"])
    assert (dataset.class_names, dataset.targets.tolist()) == (("x", "y"), labels)


def names_of(labels, label_names=None, wanted=None):
    classes = name_classes(np.asarray(labels), label_names, wanted)
    return classes.names, classes.targets.tolist(), classes.notices


def test_numbers_take_the_names_of_the_list():
    assert names_of([2, 0, 2], None, ["none", "mild", "severe"]) == (
        ("none", "severe"),
        [1, 0, 1],
        ("No image of the class mild in the rows used.",),
    )
    assert names_of(["10", "2"], None, list("abcdefghijk"))[0] == ("c", "k")
    with pytest.raises(DataError, match="labels go from 0 to 2, but 2 class names are given"):
        names_of([2, 0], None, ["a", "b"])


def test_words_take_the_order_of_the_list():
    assert names_of(["high", "low"], None, ["low", "high"]) == (("low", "high"), [1, 0], ())
    assert names_of(["2", "1"], None, ["2", "1"])[:2] == (("2", "1"), [0, 1])
    with pytest.raises(DataError, match=r"label higj is not among the 2 class names .*Did you mean high"):
        names_of(["higj", "low"], None, ["low", "high"])


def test_labels_take_the_order_of_the_list():
    labels = [[1, 0], [1, 1], [0, 1]]
    assert names_of(labels, ["a", "b"], ["b", "c", "a"]) == (
        ("b", "c", "a"),
        [[0, 0, 1], [1, 0, 1], [1, 0, 0]],
        ("No image has the label c in the rows used.",),
    )
    assert names_of(labels, None, ["x", "y"])[0] == ("x", "y")
    with pytest.raises(DataError, match="2 columns of labels, but 3 class names"):
        names_of(labels, None, ["x", "y", "z"])
    with pytest.raises(DataError, match=r"The label a is not among the 2 class names .*and 1 more"):
        names_of(labels, ["a", "b"], ["x", "y"])


def test_names_that_differ_by_case_are_pointed_out():
    names, _, notices = names_of(["Benign", "benign", "malignant"])
    assert names == ("Benign", "benign", "malignant")
    assert notices == (
        "The classes Benign and benign differ only by case and are kept apart. If they are one class, correct the labels.",
    )


def test_a_file_of_names(tmp_path, table):
    file = tmp_path / "names.txt"
    file.write_text("\ufeffkein Befund\r\nÖdem\n\n", encoding="utf-8")
    assert read_class_names(file) == ("kein Befund", "Ödem")
    dataset = open_dataset(table("path,label", "1", "0", "1"), class_names=file)
    assert (dataset.class_names, dataset.targets.tolist()) == (("kein Befund", "Ödem"), [1, 0, 1])


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", UsageError, "no name in the class-name file names.txt"),
        (b"a\n\nb\n", DataError, "Line 2 of the class-name file names.txt is empty"),
        (b"a\nb\na\n", DataError, "The name a stands 2 times"),
        (b"a\n\xff\n", DataError, "not UTF-8 text .byte 2."),
        (None, DataError, "Cannot read the class-name file .*No such file"),
    ],
)
def test_files_that_hold_no_names(tmp_path, content, error, message):
    if content is not None:
        (tmp_path / "names.txt").write_bytes(content)
    with pytest.raises(error, match=message):
        read_class_names(tmp_path / "names.txt")
