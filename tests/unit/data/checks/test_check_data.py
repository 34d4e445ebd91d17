"""Each thing that can be wrong with data is made, and found; what is only unusual does not make data unsound."""

import json
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import crossgraft
from crossgraft import check_data, split_data
from crossgraft.data import open_dataset
from crossgraft.data.checks import check_rows, check_splits
from crossgraft.data.checks.class_counts import looks_ordered
from crossgraft.errors import DataError, UsageError
from crossgraft.progress import Reporter
from crossgraft.words.visible import frame_csv
from support.tiny import make_images

TWO = [0, 1] * 12
SPLITS = ["train"] * 16 + ["test"] * 8


def test_sound_data_pass_every_check(check):
    found = check(list(range(24)), TWO, splits=SPLITS, groups=[row // 2 for row in range(24)])
    assert found.result.is_sound
    assert {finding.severity for finding in found.record.findings} <= {"passed", "notice"}
    assert found.record.verdict == "Nothing unsound was found."
    assert found.record.split_names == ["train", "test"]
    assert found.record.split_counts == [[8, 8], [4, 4]]


def test_a_picture_in_two_splits_is_unsound_and_listed_by_row(check):
    images = [*range(23), 3]
    found = check(images, [*TWO[:23], TWO[3]], splits=SPLITS)
    finding = found["Identical images across splits"]
    assert finding.severity == "unsound"
    assert finding.images == [[4, 24]]
    assert "1 picture is in more than one split, pixel by pixel (1 in train and test)" in finding.text
    assert not found.result.is_sound
    assert found.record.verdict.startswith("Not sound. 1 picture")


def test_copies_inside_one_split_are_a_warning(check):
    found = check([0, 0, 0, *range(3, 23), 22], [0, 0, 0, *TWO[3:23], TWO[22]], splits=SPLITS)
    finding = found["Identical images"]
    assert finding.severity == "warning"
    assert finding.text.startswith("3 images are copies of another of the same split")
    assert "(2 in train, 1 in test)" in finding.text
    assert finding.images == [[1, 2, 3], [23, 24]]
    assert found.result.is_sound


def test_without_a_split_nothing_is_said_about_splits(check):
    found = check(list(range(24)), TWO, holdout=0.0)
    assert found["Identical images across splits"].severity == "not assessed"
    assert found["Patient leakage"].severity == "not assessed"
    assert "Not assessed: patient leakage; identical images across splits." in found.record.verdict


def test_copies_on_both_sides_of_the_split_that_tune_would_draw_are_unsound(check, make_dataset):
    images = [0] * 12 + list(range(12, 24))
    found = check(images, TWO)
    assert found.record.split_names == ["train", "val", "test"]
    assert found["Identical images across splits"].severity == "unsound"
    drawn = split_data(make_dataset(images, TWO))
    assert found.record.dataset.split_fingerprint == drawn.record.split_fingerprint
    assert found.record.split_counts == [[len(drawn.split.rows(part)) // 2] * 2 for part in ("train", "val", "test")]


@pytest.mark.parametrize(
    "twin",
    [
        lambda grey: np.repeat(grey, 3, axis=2),
        lambda grey: grey.astype(np.uint16) * 257,
        lambda grey: np.repeat(grey.astype(np.uint16) * 257, 3, axis=2),
        lambda grey: grey.astype(np.float32) / 255,
        lambda grey: np.repeat((grey * (1 / 255)).astype(np.float32), 3, axis=2),
    ],
    ids=["RGB with equal channels", "16 bits", "both", "floats", "floats with equal channels"],
)
def test_the_same_picture_in_another_form_is_the_same_picture(check, pixels, twin):
    found = check([*range(23), twin(pixels(0, 24, 24))], [*TWO[:23], 0], holdout=0.0)
    assert found["Identical images"].images == [[1, 24]]


@pytest.mark.parametrize(
    "change", [lambda x: x[:, :23], lambda x: x.astype(np.uint16) * 256, lambda x: (x / 256).astype(np.float32), lambda x: x ^ 1]
)
def test_another_size_depth_or_sample_is_another_picture(check, pixels, change):
    found = check([*range(23), change(pixels(0, 24, 24))], [*TWO[:23], 0])
    assert found["Identical images"].severity == "passed"


def test_one_picture_with_two_labels_is_unsound(check):
    found = check([*range(23), 0], [*TWO[:23], 1])
    assert found["Same picture, different labels"].severity == "unsound"
    assert found["Same picture, different labels"].images == [[1, 24]]


@pytest.mark.parametrize(("label_set", "severity"), [([1, 0], "passed"), ([1, 1], "unsound")])
def test_copies_with_several_labels_agree_where_all_labels_do(check, label_set, severity):
    labels = np.stack([TWO[:23], 1 - np.asarray(TWO[:23])], axis=1)
    labels[0] = [1, 0]
    found = check([*range(23), 0], [*labels.tolist(), label_set])
    assert found["Same picture, different labels"].severity == severity


def test_pictures_that_look_alike_are_told_by_split_group_and_label(check, pixels):
    almost = pixels(0, 24, 24).copy()
    almost[0, 0] ^= 1
    images, splits = [*range(23), almost], ["train"] * 16 + ["test"] * 8
    finding = check(images, TWO, splits=splits, groups=range(24))["Near duplicates"]
    assert finding.severity == "warning"
    assert "(1 across splits, 0 within one group (column groups), 1 of two groups, 1 with different labels)" in finding.text
    assert finding.images == [[1, 24]]
    finding = check(images, [*TWO[:23], 0], groups=[*range(23), 0])["Near duplicates"]
    assert finding.severity == "notice"  # a split by group keeps both on one side


def test_one_picture_of_two_patients_is_unsound(check):
    found = check([*range(23), 0], [*TWO[:23], 0], groups=range(24))
    assert found["Same picture, two patients"].severity == "unsound"
    found = check([*range(23), 0], [*TWO[:23], 0], groups=[*range(23), 0])
    assert found["Same picture, two patients"].severity == "passed"


def test_a_patient_in_two_splits_is_unsound_and_never_named(check):
    patients = [f"Jane Doe {row // 3}" for row in range(24)]
    found = check(list(range(24)), TWO, splits=SPLITS, groups=patients)
    finding = found["Patient leakage"]
    assert finding.severity == "unsound"
    assert "1 of 8 groups by groups has images in more than one split (1 in train and test; 3 images)" in finding.text
    assert finding.images == [[16, 17, 18]]
    assert "Jane" not in found.result.to_json()


def test_constant_images_are_a_warning(check):
    flat = [np.full((24, 24, 1), 7, np.uint8), np.full((24, 24, 3), 9, np.uint8)]
    found = check([*range(22), *flat], TWO)
    assert found["Constant images"].severity == "warning"
    assert found["Constant images"].images == [[23], [24]]


def test_empty_slices_of_two_patients_in_two_splits_are_no_copies_of_a_picture(check):
    blank = [np.zeros((24, 24, 1), np.uint8)] * 2
    groups = [*(row // 2 for row in range(22)), 20, 21]
    found = check([blank[0], *range(1, 23), blank[1]], TWO, splits=SPLITS, groups=[22, *groups[1:]])
    for title in ("Identical images across splits", "Same picture, different labels", "Same picture, two patients"):
        assert found[title].severity == "passed"
    assert found["Identical images across splits"].images == []
    assert found["Constant images"].images == [[1], [24]]


def test_small_and_missing_classes(check):
    found = check(list(range(24)), ["a"] * 11 + ["b"] * 8 + ["c"] * 4 + ["d"], splits=["train"] * 19 + ["test"] * 5)
    texts = {finding.severity: finding.text for finding in found.record.findings if finding.title == "Class sizes"}
    assert texts == {"warning": "One image only of the class d.", "notice": "Fewer than 10 images of the class b (8), c (4)."}
    missing = [finding for finding in found.record.findings if finding.title == "Classes missing from a split"]
    assert [(finding.severity, finding.text) for finding in missing] == [
        ("unsound", "No image in train of: c, d."),
        ("warning", "No image in test of: a, b."),
    ]


def test_a_class_that_a_part_of_a_split_lacks_is_said_before_training(make_dataset, reporter):
    """A class without test images is measured by nothing; training goes on, and what would help is said."""
    parts = ["train"] * 14 + ["val"] * 5 + ["test"] * 5
    dataset = make_dataset(list(range(24)), ["a", "b"] * 6 + ["c"] * 2 + ["a", "b", "b", "a", "b"] + ["a", "b"] * 2 + ["a"])
    checks = check_splits(replace(dataset, splits=np.asarray(parts)), strict=True, reporter=reporter)
    said = {check.text: check.severity for check in checks if check.title == "Classes missing from a split"}
    helps = "Draw another split, or collect more: a class needs three images to be in train, val and test."
    assert said == {
        f"No image in val of: c. Nothing is chosen with them in mind. {helps}": "warning",
        f"No image in test of: c. Their sensitivity is unknown. {helps}": "warning",
    }
    assert "Their sensitivity is unknown" in reporter.stream.getvalue()
    by_patient = replace(dataset, splits=np.asarray(parts), groups=np.arange(24), group_column="patient")
    found = [finding for finding in check_data(by_patient).record.findings if finding.title == "Classes missing from a split"]
    assert all("a class needs three groups of patient" in finding.advice for finding in found) and len(found) == 2


def test_classes_that_look_alike_are_a_warning_with_their_counts(check, make_folder):
    found = check(list(range(24)), ["BKL"] * 11 + ["bkl"] * 3 + ["MEL"] * 6 + ["MEL "] * 4)
    warnings = [finding.text for finding in found.record.findings if finding.title == "Class names that look alike"]
    assert warnings == [
        "The classes BKL (11) and bkl (3) differ only by case and are kept apart.",
        "The classes “MEL” (6) and “MEL ” (4) differ only by white space and are kept apart.",
    ]
    assert found["Class names that look alike"].severity == "warning" and found.result.is_sound
    assert "Class names that look alike" not in check(list(range(24)), TWO)
    record = check_data(make_folder({"BKL": 4, "bkl": 4})).record
    assert "BKL (4) and bkl (4) differ only by case" in record.findings[0].text


def test_patients_whose_ids_look_alike_are_counted_and_not_named(check):
    ids = ["P07", "p07", *(f"P{row}" for row in range(10, 30)), "É1", unicodedata.normalize("NFD", "É1")]
    splits = ["train", "test"] * 11 + ["train", "train"]
    found = check(list(range(24)), TWO, splits=splits, groups=ids)
    alike = found["Groups that look alike"]
    assert alike.severity == "warning" and found.result.is_sound
    assert alike.text == (
        "4 groups by groups (4 images) have names that differ from that of another only by case and the Unicode form of their "
        "letters (NFC, NFD), and are kept apart. In more than one split: 1 in train and test."
    )
    assert alike.images == [[1, 2], [23, 24]] and "P07" not in found.record.model_dump_json()
    assert "Groups that look alike" not in check(list(range(24)), TWO, groups=[*ids[1:-1], "x", "y"])


def test_one_class_or_a_class_an_image_is_unsound(check):
    assert check(list(range(24)), [0] * 24)["Class sizes"].severity == "unsound"
    assert "label of its own" in check(list(range(24)), range(24))["Class sizes"].text


def test_a_column_that_is_the_label_is_a_warning_and_a_name_is_not(check):
    columns = {"scanner": np.where(np.asarray(TWO) == 1, "A", "B"), "image_id": [f"i{row}" for row in range(24)]}
    found = check(list(range(24)), TWO, **columns)
    finding = found["Columns that tell the label"]
    assert finding.severity == "warning"
    assert "scanner with 100\xa0% right on held-out images (guessing: 50\xa0%)" in finding.text
    assert "image_id" not in finding.text
    assert [column.column for column in found.record.columns] == ["scanner", "image_id"]


def test_the_size_of_the_images_can_give_the_label_away(check, pixels):
    images = [pixels(row, 24, 24 if row % 2 else 30) for row in range(24)]
    assert "width of the image" in check(images, TWO)["Columns that tell the label"].text


def test_shapes_and_sizes_are_advice_with_numbers(check, pixels):
    found = check([pixels(row, 60, 150) for row in range(24)], TWO)
    finding = found["Images far from square"]
    assert finding.severity == "warning"
    assert "The longer side is 2.50 times the shorter one." in finding.text
    assert "crop cuts off 60\xa0% of the picture" in finding.text
    assert "60 pixels (median)" in found["Small images"].text
    assert found.result.is_sound


def test_mixed_kinds_are_pointed_out(check, pixels):
    found = check([*range(12), *(pixels(row, 24, 24, channels=3) for row in range(12, 24))], TWO)
    assert "24×24 RGB 8-bit (12 images)" in found["Several kinds of images"].text


@pytest.mark.parametrize(
    ("names", "ordered"),
    [
        (["grade 1", "grade 2", "grade 3"], True),
        (["BI-RADS 2", "BI-RADS 3", "BI-RADS 4"], True),
        (["none", "mild_npdr", "severe_npdr"], True),
        (["1", "2", "3"], True),
        (["0", "1", "2", "3", "4", "5", "6", "7"], False),
        (["1", "2", "4"], False),
        (["cat", "dog", "stagecoach"], False),
    ],
)
def test_ordered_classes_are_recognised(names, ordered):
    assert looks_ordered(names) == ordered


def test_ordered_classes_are_a_notice_unless_the_user_said_so(make_dataset):
    dataset = make_dataset(list(range(24)), [0, 1, 2] * 8)
    titles = [finding.title for finding in check_data(dataset).record.findings]
    assert "Ordered classes" in titles
    titles = [finding.title for finding in check_data(replace(dataset, ordinal=True)).record.findings]
    assert "Ordered classes" not in titles


def test_several_labels_an_image(make_dataset):
    targets = np.zeros((24, 3), dtype=np.int64)
    targets[::2, 0] = targets[:9, 1] = 1
    dataset = make_dataset([*range(23), 0], TWO, splits=SPLITS, site=np.where(targets[:, 0], "x", "y"))
    dataset = replace(dataset, targets=targets, labels=targets, class_names=("cyst", "mass", "node"))
    record = check_data(dataset).record
    by_title = {finding.title: finding for finding in reversed(record.findings)}  # the most severe of each title
    assert record.dataset.task == "multi-label"
    assert record.dataset.class_counts == [12, 9, 0]
    assert by_title["Class sizes"].text == "No image of the label node."
    assert by_title["Same picture, different labels"].images == [[1, 24]]
    assert "site (of cyst) with 100\xa0%" in by_title["Columns that tell the label"].text


def test_several_labels_are_in_no_order(tmp_path):
    np.savez(tmp_path / "a.npz", images=np.zeros((4, 8, 8), np.uint8), labels=np.array([[1, 1], [0, 1], [1, 0], [0, 0]]))
    with pytest.raises(UsageError, match="--ordinal is for classes in an order"):
        check_data(tmp_path / "a.npz", ordinal=True)


@pytest.fixture
def damaged(make_folder):
    """Two classes of twelve; one file is torn, one is empty, and one class has none."""
    root = make_folder({"benign": 12, "malignant": 12, "normal": 0})
    (root / "benign" / "3.png").write_bytes((root / "benign" / "3.png").read_bytes()[:40])
    (root / "malignant" / "7.png").write_bytes(b"")
    return root


def test_damaged_files_and_empty_folders_are_collected_not_raised(damaged, reporter):
    with pytest.raises(DataError):
        open_dataset(damaged)
    record = check_data(damaged, reporter=reporter).record
    by_title = {finding.title: finding for finding in record.findings}
    assert "2 images cannot be read" in by_title["Unreadable images"].text
    assert by_title["Unreadable images"].images == [[4], [20]]
    assert "normal" in by_title["Unusable rows"].text
    assert not record.is_sound
    assert record.dataset.num_images == 24
    assert "Unreadable images: benign/3.png; malignant/7.png" in reporter.stream.getvalue()


def test_samples_without_a_meaning_are_collected(tmp_path):
    images = np.random.default_rng(0).random((24, 9, 9)).astype(np.float32)
    images[2, 0, 0], images[5] = np.nan, 3
    np.savez(tmp_path / "a.npz", images=images, labels=TWO)
    finding = next(f for f in check_data(tmp_path / "a.npz").record.findings if f.title == "Unreadable images")
    assert finding.images == [[3], [6]]
    assert "NaN" in finding.text and "0 must be black" in finding.text


def test_a_drawn_split_is_looked_at(make_folder):
    root = make_folder({"benign": 12, "malignant": 12})
    for copy in range(3):
        (root / "benign" / f"copy{copy}.png").write_bytes((root / "benign" / "0.png").read_bytes())
    record = check_data(root, folds=2, seed=1).record
    assert record.split_names == ["train", "test"]
    finding = next(f for f in record.findings if f.title == "Identical images across splits")
    assert finding.severity == "unsound"
    assert record.dataset.split_method.startswith("fold 1 of 2")
    assert check_data(root, folds=2, seed=1).to_json() == check_data(root, folds=2, seed=1).to_json()


def test_the_run_directory_holds_no_names_unless_asked(make_folder, tmp_path):
    root = make_folder({"benign": 12, "malignant": 12})
    (root / "benign" / "Jane Doe.png").write_bytes((root / "benign" / "0.png").read_bytes())
    for show_names in (False, True):
        check = check_data(root, out=tmp_path / f"run-{show_names}", show_names=show_names)
        files = ("report.json", "report.html", "findings.csv", "run.json")
        written = "".join((check.out / name).read_text(encoding="utf-8") for name in files)
        assert ("Jane Doe" in written) == show_names
        assert str(tmp_path) not in written
        assert (check.out / "thumbnails.json").is_file()
    check = check_data(root, out=tmp_path / "private", no_images=True)
    assert not (check.out / "thumbnails.json").exists()
    assert "data:image/png" not in check.report.read_text(encoding="utf-8")


def test_repaired_data_are_checked_again_in_the_same_directory(make_folder, tmp_path):
    root = make_folder({"benign": 12, "malignant": 12})
    (root / "benign" / "copy.png").write_bytes((root / "benign" / "0.png").read_bytes())
    first = check_data(root, out=tmp_path / "run")
    (root / "benign" / "copy.png").unlink()
    second = check_data(root, out=tmp_path / "run")
    assert first.record.dataset.fingerprint != second.record.dataset.fingerprint
    assert json.loads((tmp_path / "run" / "report.json").read_text())["dataset"]["num_images"] == 24


def test_the_frame_has_one_row_a_group_of_images(check):
    frame = check([0, 0, 1, 1, *range(4, 24)], [0, 0, 1, 1, *TWO[4:]], holdout=0.0).result.to_frame()
    copies = frame[frame["check"] == "identical_within"]
    assert copies["images"].tolist() == ["1 2", "3 4"]
    assert frame["severity"].tolist() == sorted(
        frame["severity"], key=["unsound", "warning", "notice", "not assessed", "passed"].index
    )


def test_the_result_reads_well_in_a_notebook(check):
    result = check(list(range(24)), ["<b>", "c"] * 12).result
    assert "<td>passed</td>" in result._repr_html_()
    assert result.verdict in repr(result)
    assert crossgraft.check_data is check_data


def test_options_of_opening_are_refused_for_open_data(make_dataset):
    with pytest.raises(UsageError, match="group_column belongs to opening the data"):
        check_data(make_dataset(list(range(24)), TWO), group_column="patient")
    with pytest.raises(UsageError, match="workers must be at least 1, not 0"):
        check_data(make_dataset(list(range(24)), TWO), workers=0)


def test_the_thumbnails_are_small_and_say_what_they_are(check, make_dataset, tmp_path):
    big = np.asarray(Image.fromarray(np.arange(256, dtype=np.uint8).reshape(16, 16)).resize((300, 200)))
    dataset = make_dataset([big, *range(1, 23), big], [*TWO[:23], 0], splits=SPLITS)
    check_data(dataset, out=tmp_path / "run")
    thumbnails = json.loads((tmp_path / "run" / "thumbnails.json").read_text())
    thumbnails = [each for each in thumbnails if each.get("row") is None]  # the others are strips of classes
    assert [thumbnail["class_name"] for thumbnail in thumbnails] == [
        "Identical images across splits: 1 (train, 0) and 24 (test, 0)"
    ] * 2


def test_checks_of_some_rows_say_in_their_titles_of_which(make_dataset):
    dataset = make_dataset(range(8), [0, 1] * 4)
    whole, part = (
        check_rows(dataset, strict=False, reporter=Reporter(quiet=True), part=part) for part in ("", "training images")
    )
    assert [row.title for row in part] == [f"{row.title} (training images)" for row in whole]
    assert "Identical images (training images)" in [row.title for row in part]


def test_findings_are_written_without_pandas_as_with_it(tmp_path):
    make_images(tmp_path / "images", {"benign": 4, "=malignant": 4})
    (tmp_path / "images" / "benign" / "copy.png").write_bytes(next((tmp_path / "images" / "benign").glob("*.png")).read_bytes())
    found = check_data(tmp_path / "images")
    assert found.csv() == frame_csv(found.to_frame())
    assert "identical" in found.csv()
