"""``metadata.jsonl`` beside images, as ``imagefolder`` of Hugging Face has it, and what else lies in such a folder."""

import json

import numpy as np
import pytest
from PIL import Image

from crossgraft import check_data
from crossgraft.data import open_dataset
from crossgraft.data.describe import describe_dataset
from crossgraft.errors import DataError


def picture(path, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (6, 8, 3)).astype(np.uint8)).save(path)


def text(path, content="x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


@pytest.fixture
def lines(tmp_path):
    """`lines(*rows)`: ``metadata.jsonl`` beside eight images; returns the folder."""

    def make(*rows):
        for number in range(8):
            picture(tmp_path / "set" / f"{number}.png", number)
        text(tmp_path / "set" / "metadata.jsonl", "\n".join(rows) + "\n")
        return tmp_path / "set"

    return make


ROWS = [
    json.dumps({"file_name": f"{number}.png", "label": "ab"[number % 2], "age": number / 2, "box": [number, 1]})
    for number in range(8)
]


@pytest.mark.parametrize("location", [".", "metadata.jsonl"])
def test_lines_of_json_beside_images_are_a_table(lines, location):
    data = open_dataset(lines(*ROWS) / location)
    assert data.class_counts == (4, 4) and data.name == "set"
    assert data.attributes["age"].tolist() == [number / 2 for number in range(8)]
    assert data.attributes["box"][3] == "[3, 1]"


@pytest.mark.parametrize("missing", ["null", '""', '"NA"', "NaN"])
def test_missing_values_in_lines_of_json(lines, missing):
    root = lines('{"file_name": "0.png", "label": ' + missing + "}", *ROWS[1:])
    with pytest.raises(DataError, match=r"The label is missing in line 1 of metadata\.jsonl"):
        open_dataset(root)
    assert len(open_dataset(root, uncertain="leave-out")) == 7


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "Line 3 of metadata.jsonl is no JSON"),
        ("[1]", "Line 3 of metadata.jsonl is no JSON object"),
        ('{"file_name": "2.png", "label": ["a", "b"]}', 'The label in line 3 of metadata.jsonl is \\["a", "b"\\], a list'),
        ('{"file_name": "2.png", "label": "a", "label": "b"}', "Line 3 of metadata.jsonl says label twice"),
    ],
)
def test_damaged_lines_are_named(lines, line, message):
    with pytest.raises(DataError, match=message):
        open_dataset(lines(*ROWS[:2], line, *ROWS[3:]))


def test_lines_without_names(lines):
    with pytest.raises(DataError, match="name no columns"):
        open_dataset(lines("{}", "{}"))


def test_a_table_beside_images_masks_thumbnails_and_runs(lines):
    root = lines(*ROWS)
    picture(root / "masks" / "0.png")
    picture(root / "@eaDir" / "0.png" / "SYNO.jpg")
    check_data(root, out=root / "runs" / "check")
    data = open_dataset(root)
    assert len(data) == 8
    assert "1 .png (without a row in the table)" in data.reading[1] and "8 .png and 1 .jsonl are read" in data.reading[1]


def test_folders_beside_a_table_may_be_patients(lines):
    root = lines(*ROWS)
    text(root / "patient 7" / "letter.txt")
    assert {each.class_name for each in describe_dataset(open_dataset(root)).files} == {"a", "b", ""}


def test_rows_of_other_parts_are_not_counted_and_rows_left_out_are(lines):
    rows = [json.dumps({"file_name": f"{n}.png", "label": "ab"[n % 2] if n else None, "split": ["train", "test"][n > 5]})
            for n in range(8)]  # fmt: skip
    root = lines(*rows)
    picture(root / "more.png", 99)
    data = open_dataset(root, use_split="train", uncertain="leave-out")
    assert data.reading[1] == (
        "8 files: 5 .png and 1 .jsonl are read; passed over: 1 .png (in a row that is left out), 1 .png (without a row in "
        "the table)."
    )
