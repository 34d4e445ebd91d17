"""Tables of public data sets, of spreadsheets and of R: ids, missing values, one-hot columns, places of images."""

import numpy as np
import pytest
from PIL import Image

import crossgraft
from crossgraft.data import open_dataset
from crossgraft.errors import DataError, UsageError


@pytest.fixture
def table(tmp_path, write_image):
    """`table(text, images=8, name="table.csv")`: a table beside images 0.png, 1.png …; returns its path."""

    def make(text, images=8, name="table.csv"):
        for number in range(images):
            write_image(tmp_path / f"{number}.png", seed=number)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return make


def _lines(header, *columns):
    return "\n".join([header, *(",".join(map(str, row)) for row in zip(*columns, strict=True))]) + "\n"


FILES = [f"{number}.png" for number in range(8)]
CLASSES = list("abababab")


def test_one_patient_under_three_spellings_is_one(table):
    spelled = ["3", "3.0", "003", "3", "12", "12.0", "012", "12.00"]
    dataset = open_dataset(table(_lines("path,label,patient", FILES, CLASSES, spelled)))
    assert dataset.groups.tolist() == ["003"] * 4 + ["012"] * 4


@pytest.mark.parametrize("word", ["nan", "NA", "N/A", "-", "unknown", "?", "", "  ", "#N/A"])
def test_a_group_that_is_not_known_is_no_patient(table, word):
    path = table(_lines("path,label,patient", FILES, CLASSES, ["p1", "p2", "p3", *[word] * 5]))
    with pytest.raises(DataError, match=r"The group is missing in line 5 of table\.csv.*5 rows in all"):
        open_dataset(path)


@pytest.mark.parametrize("word", ["NA", "nan", "N/A", "", "#N/A", "null"])
def test_a_label_that_is_not_known_is_no_class(table, word):
    path = table(_lines("path,label", FILES, [word, *CLASSES[1:]]))
    with pytest.raises(DataError, match=r"The label is missing in line 2 of table\.csv.*--uncertain leave-out"):
        open_dataset(path)
    assert len(open_dataset(path, uncertain="leave-out")) == 7


def test_leave_out_leaves_out_what_people_write_as_well(table):
    path = table(_lines("path,label", FILES, ["unknown", "-1", "?", *CLASSES[3:]]))
    assert open_dataset(path, uncertain="leave-out").class_counts == (2, 3)
    with pytest.raises(UsageError, match="--uncertain zeros is for several labels per image"):
        open_dataset(path, uncertain="zeros")


@pytest.mark.parametrize("word", ["unknown", "?", "-", "-1"])
def test_a_class_that_may_mean_not_known_is_asked_about(table, word, capsys):
    from crossgraft.progress import Reporter

    labels = [word, word, *CLASSES[2:]] if word != "-1" else [-1, -1, 0, 1, 0, 1, 0, 1]
    open_dataset(table(_lines("path,label", FILES, labels)), reporter=Reporter())
    assert f"{word} may mean that the label is not known" in " ".join(capsys.readouterr().err.split())


def test_a_split_that_is_not_known(table):
    with pytest.raises(DataError, match="The split is missing in line 2"):
        open_dataset(table(_lines("path,label,split", FILES, CLASSES, ["NA", *["train"] * 7])))


def test_decimal_commas_are_numbers(table):
    header = "path;label;age"
    rows = [header, *(f"{name};0,{number % 4}3;{number},5" for number, name in enumerate(FILES))]
    with pytest.raises(DataError, match=r"not whole numbers: 0\.03"):
        open_dataset(table("\n".join(rows)))
    rows = [header, *(f"{name};{number % 2};{number},5" for number, name in enumerate(FILES))]
    assert open_dataset(table("\n".join(rows))).attributes["age"].tolist() == [number + 0.5 for number in range(8)]


def test_missing_values_of_attributes(table):
    ages, sexes = ["30", "NA", "unknown", "", "41", "?", "50", "-"], ["f", "NA", "unknown", "", "m", "f", "m", "f"]
    attributes = open_dataset(table(_lines("path,label,age,sex", FILES, CLASSES, ages, sexes))).attributes
    assert np.nan_to_num(attributes["age"], nan=-1).tolist() == [30, -1, -1, -1, 41, -1, 50, -1]
    assert attributes["sex"].tolist() == ["f", "", "unknown", "", "m", "f", "m", "f"]


ONE_HOT = _lines("image,MEL,NV,BCC", [n.removesuffix(".png") for n in FILES], ["1.0", 0, 0] * 2 + [1, 0],
                 [0, "1.0", 0] * 2 + [0, 1], [0, 0, 1] * 2 + [0, 0])  # fmt: skip


@pytest.mark.parametrize("columns", [None, "MEL,NV,BCC"])
def test_one_hot_columns_are_classes(table, columns):
    dataset = open_dataset(table(ONE_HOT), label_column=columns)
    assert dataset.task == "multi-class" and dataset.class_names == ("BCC", "MEL", "NV")
    assert dataset.labels.tolist() == ["MEL", "NV", "BCC", "MEL", "NV", "BCC", "MEL", "NV"]


@pytest.mark.parametrize(("one", "zero"), [("1.00", "0.00"), ("1,0", "0,0"), ("1e+00", "0e+00"), ("TRUE", "FALSE")])
def test_ones_and_zeros_in_all_formats(table, one, zero):
    rows = [f"{name};{one};{zero}" if number % 2 else f"{name};{zero};{one}" for number, name in enumerate(FILES)]
    assert open_dataset(table("\n".join(["path;a;b", *rows]))).labels.tolist() == list("babababa")


@pytest.mark.parametrize("columns", [None, "MEL,NV,BCC"])
def test_options_for_several_labels_say_that_one_hot_columns_are_labels(table, columns):
    path = table(ONE_HOT)
    assert open_dataset(path, label_column=columns, uncertain="zeros").class_names == ("MEL", "NV", "BCC")
    dataset = open_dataset(path, label_column=columns, none_label="BCC")
    assert (dataset.task, dataset.class_names) == ("multi-label", ("MEL", "NV"))


def test_codes_of_many_digits_stay_apart(table):
    codes = ["999480561000087100", "999480561000087101"]
    assert open_dataset(table(_lines("path,label", FILES, codes * 4))).class_names == tuple(codes)


CHEXPERT = _lines("path,Edema,Mass,No Finding", FILES, [1, 0, -1, "", 1, 0, "-1.0", 0], [1, 1, "", 0, 0, 0, 1, 0],
                  [0, 0, 0, 1, 0, 1, 0, 0])  # fmt: skip
COLUMNS = "Edema,Mass,No Finding"


@pytest.mark.parametrize(
    ("policy", "edema"),
    [("zeros", [1, 0, 0, 0, 1, 0, 0, 0]), ("ones", [1, 0, 1, 0, 1, 0, 1, 0]), ("leave-out", [1, 0, 0, 1, 0, 0])],
)
def test_uncertain_and_blank_labels(table, policy, edema):
    path = table(CHEXPERT)
    with pytest.raises(DataError, match=r"--uncertain zeros, ones or leave-out"):
        open_dataset(path, label_column=COLUMNS)
    dataset = open_dataset(path, label_column=COLUMNS, uncertain=policy, none_label="No Finding")
    assert dataset.class_names == ("Edema", "Mass")
    assert dataset.targets[:, 0].tolist() == edema


def test_a_name_for_none_of_them(table):
    cells = ["No Finding", "Mass|Edema", "Mass", "Edema", "No Finding", "Mass", "Edema", "No Finding"]
    text = _lines("Image Index,Finding Labels,Patient ID", FILES, cells, range(8))
    dataset = open_dataset(table(text), label_separator="|", none_label="No Finding")
    assert dataset.class_names == ("Edema", "Mass") and dataset.targets[0].tolist() == [0, 0]
    with pytest.raises(DataError, match=r"line 3 of table\.csv has the label Mass and another"):
        open_dataset(table(text), label_separator="|", none_label="Mass")
    with pytest.raises(DataError, match="No label is called Nothing"):
        open_dataset(table(text), label_separator="|", none_label="Nothing")


@pytest.mark.parametrize(
    "header", ["image_name,target", "id_code,diagnosis", "Image Index,Finding Labels", "ImageID,dx", "img_path,class"]
)
def test_columns_of_public_data_sets(table, header):
    assert len(open_dataset(table(_lines(header, FILES, CLASSES)))) == 8


@pytest.mark.parametrize(
    "header", ["isic_id,benign_malignant", "image,level", "filepaths,labels", "img_id,diagnostic", "id,category"]
)
def test_rarer_columns_where_no_usual_one_is_there(table, header):
    assert len(open_dataset(table(_lines(header, FILES, CLASSES)))) == 8
    label = header.partition(",")[2]
    text = _lines(f"{label},id,path,label", list("abcdefgh"), ["x"] * 8, FILES, CLASSES)
    assert open_dataset(table(text)).class_counts == (4, 4)


@pytest.mark.parametrize("header", ["path|label|patient", "path;label;age (y,m,d,h)", "path\tlabel;x\ta|b"])
def test_separators(table, header):
    separator = "|" if "|p" in header else "\t" if "\t" in header else ";"
    rows = [separator.join([name, label, "x"]) for name, label in zip(FILES, CLASSES, strict=True)]
    arguments = {"label_column": "label;x"} if separator == "\t" else {}
    assert open_dataset(table("\n".join([header, *rows])), **arguments).class_counts == (4, 4)


def test_rows_of_splits_that_nothing_uses_are_said(table, capsys):
    from crossgraft.progress import Reporter

    splits = ["train", "Train ", "eval", "eval", "Testset", "test", "train", "train"]
    path = table(_lines("path,label,split", FILES, CLASSES, splits))
    open_dataset(path, use_split=None, reporter=Reporter())
    said = " ".join(capsys.readouterr().err.split())
    assert "3 images are in the splits Testset and eval, which are none of train, val and test" in said
    open_dataset(path, use_split="eval", reporter=Reporter())
    assert "none of train" not in capsys.readouterr().err


@pytest.mark.parametrize("first", ["sep=;\n", '"sep=;"\r\n', "SEP=;\n"])
def test_the_first_line_of_excel(table, first):
    path = table(first + "path;label\n" + "".join(f"{name};{label}\n" for name, label in zip(FILES, CLASSES, strict=True)))
    assert len(open_dataset(path)) == 8
    with pytest.raises(DataError, match=r"Line 4 of table\.csv has 1 cells"):
        open_dataset(table(first + "path;label\n0.png;a\n1.png\n"))


def test_images_in_several_folders(table, tmp_path, write_image):
    for number in range(4):
        write_image(tmp_path / f"part_{number % 2}" / f"ISIC_{number}.jpg", seed=number)
    path = table(_lines("image_id,dx", [f"ISIC_{number}" for number in range(4)], "abab"), images=0)
    assert len(open_dataset(path)) == 4
    write_image(tmp_path / "part_0" / "ISIC_1.jpg")
    with pytest.raises(DataError, match=r"could be part_0/ISIC_1\.jpg, part_1/ISIC_1\.jpg. Write the folder"):
        open_dataset(path)
    (tmp_path / "@eaDir").mkdir()
    (tmp_path / "part_0" / "ISIC_1.jpg").rename(tmp_path / "@eaDir" / "ISIC_1.jpg")
    assert len(open_dataset(path)) == 4


@pytest.mark.parametrize("prefix", ["C:\\Users\\x\\set\\", "D:/set/", "set\\", "wrong/"])
def test_paths_of_another_computer_are_found_by_their_ends(table, tmp_path, write_image, prefix):
    for folder in ("left", "right"):
        write_image(tmp_path / "pictures" / folder / "1.png", seed=len(folder))
    separator = "\\" if "\\" in prefix else "/"
    cells = [f"{prefix}{folder}{separator}1.png" for folder in ("left", "right")]
    dataset = open_dataset(table(_lines("path,label", cells, "ab"), images=0))
    assert len(dataset) == 2
    assert "Users" not in dataset.image_name(0)


def test_groups_from_the_path(table, tmp_path, write_image):
    for number in range(6):
        write_image(tmp_path / "set" / "ab"[number % 2] / f"patient{number // 2}_{number}.png", seed=number)
    dataset = open_dataset(tmp_path / "set", group_from=r"patient(\d+)")
    assert sorted(dataset.groups.tolist()) == ["0", "0", "1", "1", "2", "2"]
    with pytest.raises(DataError, match=r"finds no group in 6 of 6 paths, the first is a/patient0_0\.png"):
        open_dataset(tmp_path / "set", group_from=r"case(\d+)")
    with pytest.raises(UsageError, match=r"--group-from \( is no regular expression"):
        open_dataset(tmp_path / "set", group_from="(")
    path = table(_lines("path,label,patient", FILES, CLASSES, range(8)))
    assert open_dataset(path, group_from=r"^([0-3])|^[4-7]").groups.tolist() == list("01234567")
    with pytest.raises(UsageError, match="--group-from and --group-column"):
        open_dataset(path, group_from="x", group_column="patient")


@pytest.mark.parametrize(("end", "pattern"), [("", r"patient(\d*)"), ("NA", r"patient(\w+?)_"), ("unknown", r"patient(\w+?)_")])
def test_a_path_that_names_nobody_is_no_patient(tmp_path, write_image, end, pattern):
    for number in range(6):
        who = number if number < 3 else end
        write_image(tmp_path / "set" / "ab"[number % 2] / f"patient{who}_{number}.png", seed=number)
    with pytest.raises(DataError, match="finds no group in 3 of 6 paths"):
        open_dataset(tmp_path / "set", group_from=pattern)


def test_a_table_beside_the_images(tmp_path, write_image):
    folder = tmp_path / "set" / "train"
    for number in range(8):
        write_image(folder / f"{number}.png", seed=number)
    write_image(folder / "more.png")
    (folder / "metadata.csv").write_text(_lines("file_name,label", FILES, CLASSES))
    dataset = open_dataset(folder)
    assert dataset.name == "train" and dataset.class_counts == (4, 4)
    for number in range(8):
        write_image(tmp_path / "set" / "test" / f"{number}.png", seed=100 + number)
    (tmp_path / "set" / "test" / "metadata.csv").write_text(_lines("file_name,label", FILES, CLASSES))
    both = open_dataset(tmp_path / "set", use_split=None)
    assert both.splits.tolist() == ["test"] * 8 + ["train"] * 8
    (tmp_path / "set" / "test" / "metadata.csv").write_text(_lines("file_name,label", FILES, ["", *CLASSES[1:]]))
    with pytest.raises(DataError, match=r"The label is missing in line 2 of metadata\.csv in test"):
        open_dataset(tmp_path / "set", use_split="test")


@pytest.mark.parametrize("folder", ["cat", "images"])
def test_folders_of_classes_stay_folders_of_classes(tmp_path, write_image, folder):
    for number in range(8):
        write_image(tmp_path / "set" / (folder, "dog")[number % 2] / f"{number}.png", seed=number)
    (tmp_path / "set" / "metadata.csv").write_text("file_name,label\n0.png,x\n")
    assert set(open_dataset(tmp_path / "set").class_names) == {"dog", folder}


@pytest.mark.parametrize("columns", [None, "Edema,Mass"])
def test_what_edit_wrote_is_read_back_as_a_folder_and_as_a_table(table, tmp_path, pixels, columns):
    for number in range(8):
        Image.fromarray(pixels(number, height=12, width=10)[..., 0]).save(tmp_path / f"{number}.png")
    if columns is None:
        data = open_dataset(table(_lines("path,label,patient", FILES, CLASSES, range(8)), images=0))
    else:
        text = _lines("path,Edema,Mass", FILES, [1, 0, 1, 0, 1, 0, 1, 0], [1, 1, 0, 0, 1, 1, 0, 0])
        data = open_dataset(table(text, images=0), label_column=columns)
    crossgraft.edit_data(data, edits="tag", share=0.5, out=tmp_path / "out")
    for location in ("out", "out/labels.csv"):
        again = open_dataset(tmp_path / location, use_split=None)
        assert again.class_names == data.class_names and again.name == "out"
        np.testing.assert_array_equal(again.targets, data.targets)


def test_labels_of_which_each_image_has_one_stay_labels_when_edit_wrote_them(table, tmp_path, pixels):
    for number in range(8):
        Image.fromarray(pixels(number, height=12, width=10)[..., 0]).save(tmp_path / f"{number}.png")
    data = open_dataset(table(_lines("path,label", FILES, CLASSES), images=0), label_separator="|")
    crossgraft.edit_data(data, edits="tag", share=0.5, out=tmp_path / "out")
    for location in ("out", "out/labels.csv"):
        assert open_dataset(tmp_path / location, use_split=None).task == "multi-label"
