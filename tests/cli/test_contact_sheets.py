"""``crossgraft list confounders --data``: a contact sheet of every confounder, on images of the user."""

import io
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

import crossgraft as package
from crossgraft.edit import contact_sheets as verb_module
from crossgraft.edit._image_edit import Confounder, Painted
from crossgraft.edit.confounders import CONFOUNDERS
from crossgraft.edit.edits import edits_by_place
from crossgraft.edit.record import ContactSheetsRecord
from crossgraft.errors import DataError, UnreadableImageError, UsageError
from support.tiny import make_images

NAMES = [placed.name for placed in edits_by_place()]


@pytest.fixture
def few(monkeypatch):
    """Four edits of three places, which take less time than all."""
    chosen = [placed for placed in edits_by_place() if placed.name in ("tag", "poisson_image", "jpeg", "whiten_spectrum")]
    monkeypatch.setattr(verb_module, "edits_by_place", lambda: chosen)
    return [placed.name for placed in chosen]


def record_of(folder):
    return ContactSheetsRecord.model_validate_json((folder / "report.json").read_bytes())


def test_every_edit_has_a_sheet_and_all_stand_in_the_report(workspace, crossgraft):
    make_images(workspace / "scans", {"cat": 3, "dog": 2}, size=48)
    done = crossgraft("list", "confounders", "--data", "scans", "--out", "sheets", "--images", "2")
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "All 21 edits can be put into the 2 images of scans" in said
    assert "Report: sheets/report.html Sheets: sheets/sheets" in said and "Drawing contact sheets" in done.err
    assert said.index("Environment › external") < said.index("Environment › imaging") < said.index("Takes cues away")
    files = {file.name: file for file in (workspace / "sheets" / "sheets").iterdir()}
    assert set(files) == {f"{name}.png" for name in NAMES}
    for file in files.values():
        with Image.open(file) as picture:
            assert picture.mode == "RGB" and min(picture.size) > 700 and picture.info == {}
    record = record_of(workspace / "sheets")
    assert [row.edit for row in record.sheets] == NAMES and all(row.num_images == 2 for row in record.sheets)
    assert [row.class_names for row in record.images] == [["cat"], ["dog"]]
    html = (workspace / "sheets" / "report.html").read_text(encoding="utf-8")
    assert html.count("<img ") == 3 * 2 * len(NAMES) and len(html.encode()) < 2_000_000
    for row in record.sheets:
        assert f'href="{row.sheet}"' in html and row.title in html
    assert str(workspace) not in html
    run = json.loads((workspace / "sheets" / "run.json").read_text())
    assert run["command_line"] == "crossgraft list confounders --data scans --images 2 --out sheets"


def test_the_same_command_gives_the_same_files_and_another_seed_others(few, workspace, crossgraft):
    command = ("list", "confounders", "--data", "images", "--quiet")
    for out, more in (("one", ()), ("two", ()), ("three", ("--seed", "1"))):
        assert crossgraft(*command, "--out", out, *more).code == 0
    first, second, third = (
        {file.name: file.read_bytes() for file in (workspace / out / "sheets").iterdir()} for out in ("one", "two", "three")
    )
    assert first == second and all(first[name] != third[name] for name in first)
    assert (workspace / "one" / "report.json").read_bytes() == (workspace / "two" / "report.json").read_bytes()
    again = crossgraft(*command, "--out", "one")
    assert again.code == 0 and {file.name for file in (workspace / "one" / "sheets").iterdir()} == set(first)
    other = crossgraft(*command, "--out", "one", "--seed", "1")
    assert other.code == UsageError.exit_code and "--overwrite" in other.err
    (workspace / "one" / "sheets" / "mine.txt").write_text("mine")
    assert crossgraft(*command, "--out", "one", "--seed", "1", "--overwrite").code == 0
    assert (workspace / "one" / "sheets" / "tag.png").read_bytes() == third["tag.png"]
    assert (workspace / "one" / "sheets" / "mine.txt").read_text() == "mine"


def test_sheets_show_what_edit_writes(few, workspace):
    """The same images, seed and options: the same pixels."""
    data = package.open_dataset("images", use_split=None)
    shown = package.show_confounders(data=data, num_images=3, seed=4)
    rows = [image.number - 1 for image in shown.record.images]
    edited = package.edit_data(data.take(rows), edits="poisson_image", seed=4)
    (facts,) = edited.record.edits
    (row,) = [row for row in shown.record.sheets if row.edit == "poisson_image"]
    assert (row.rms, row.psnr) == pytest.approx((facts.rms, facts.psnr), rel=1e-9)
    closed = package.show_confounders(data="images", num_images=3, seed=4)
    assert closed.pictures == shown.pictures and closed.out is None and list(closed.pictures) == few
    assert closed.record.sheets == shown.record.sheets and closed.to_frame().shape[0] == len(few)
    assert all(row.sheet is None for row in closed.record.sheets)


def test_what_cannot_be_put_into_images_stands_there_with_its_reason(few, workspace, crossgraft):
    random = np.random.default_rng(0)
    for name, image in (("a", random.integers(0, 255, (6, 6), np.uint8)), ("b", random.integers(0, 255, (30, 90), np.uint8))):
        (workspace / "odd" / name).mkdir(parents=True)
        Image.fromarray(image).save(workspace / "odd" / name / "0.png")
    done = crossgraft("list", "confounders", "--data", "odd", "--out", "out")
    said = " ".join(done.out.split())
    assert done.code == 0 and "No edit can be put into all of these images" in said
    assert said.count("An image of (6, 6, 1) is too small") == 1
    assert {row.num_images for row in record_of(workspace / "out").sheets} == {1}
    (workspace / "odd" / "b" / "0.png").unlink()
    (workspace / "odd" / "b").rmdir()
    none = crossgraft("list", "confounders", "--data", "odd", "--out", "none")
    assert none.code == 0 and "0 of 4 edits can be put" in none.out
    assert {file.name for file in (workspace / "none" / "sheets").iterdir()} == {f"{name}.png" for name in few}
    html = (workspace / "none" / "report.html").read_text(encoding="utf-8")
    assert html.count("too small to be edited") >= len(few) and "Cannot be put into these images." in html


def test_16_bit_images_and_several_labels(few, workspace):
    random = np.random.default_rng(0)
    images = random.integers(500, 3000, (5, 40, 24), dtype=np.uint16)
    labels = np.array([[1, 1], [1, 0], [0, 1], [1, 1], [0, 0]])
    data = package.data.dataset.dataset_from_arrays(images, labels, class_names=["mass", "cyst"])
    shown = package.show_confounders(data=data, num_images=12)
    assert len(shown.record.images) == 4 and ["mass", "cyst"] in [row.class_names for row in shown.record.images]
    assert "All 4 edits can be put into the 4 images" in shown.summary()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("confounders", "--data", "images"), 2, "Name the folder that contact sheets are written to"),
        (("confounders", "--out", "x"), 2, "Name the images that confounders are shown on"),
        (("confounders", "--seed", "1"), 2, "Name the images that confounders are shown on"),
        (("scores", "--data", "images", "--out", "x"), 2, "--data is for confounders"),
        (("confounders", "--data", "images", "--out", "x", "--images", "99"), 2, "at most 12"),
        (("confounders", "--data", "images", "--out", "x", "--images", "0"), 2, "--images"),
        (("confounders", "--data", "nothing", "--out", "x"), 3, "No such"),
        (("confounders", "--data", "empty", "--out", "x"), 3, "No images"),
        (("confounders", "--data", "broken", "--out", "x"), 3, "Cannot read the image"),
        (("confounders", "--data", "broken", "--out", "x", "--skip-unreadable"), 3, "None of the 2 images"),
        (("confounders", "--data", "images", "--out", "x", "--label-column", "kind"), 2, "label"),
    ],
)
def test_bad_input(workspace, crossgraft, words, code, said):
    (workspace / "empty").mkdir()
    for name in "ab":
        (workspace / "broken" / name).mkdir(parents=True)
        (workspace / "broken" / name / "0.png").write_text("no image")
    done = crossgraft("list", *words)
    assert (done.code, said in " ".join(done.err.split())) == (code, True), done.err
    assert not (workspace / "x" / "report.json").exists()


def test_bad_input_from_python(workspace):
    with pytest.raises(UsageError, match="data"):
        package.show_confounders()
    with pytest.raises(UsageError, match="at least 1"):
        package.show_confounders(data="images", num_images=0)
    opened = package.open_dataset("images")
    with pytest.raises(UsageError, match="label_column belongs to opening"):
        package.show_confounders(data=opened, label_column="kind")
    with pytest.raises(DataError, match="No such"):
        package.show_confounders(data="nothing")
    make_images(workspace / "broken", {"a": 1})
    (workspace / "broken" / "a" / "00.png").write_text("no image")
    with pytest.raises(UnreadableImageError):
        package.show_confounders(data="broken")


@dataclass(frozen=True)
class Cross(Confounder):
    """A cross of another package."""

    name: ClassVar[str] = "cross/1"
    title: ClassVar[str] = "Cross <b>"
    leaf: ClassVar = "anatomical"
    level: ClassVar = "patient"
    scope: ClassVar = "local"
    reference: ClassVar[str] = "none"

    def edit(self, pixels, rng):
        edited, mask = pixels.copy(), np.zeros(pixels.shape[:2], dtype=bool)
        mask[len(mask) // 2] = True
        edited[mask] = 1
        return Painted(edited, mask)


def test_a_confounder_of_another_package_has_its_place(workspace, crossgraft, monkeypatch):
    monkeypatch.setitem(CONFOUNDERS._plugins, Cross.name, Cross)
    chosen = [placed for placed in edits_by_place() if placed.name in ("cross/1", "tag")]
    monkeypatch.setattr(verb_module, "edits_by_place", lambda: chosen)
    assert crossgraft("list", "confounders", "--data", "images", "--out", "out").code == 0
    rows = {row.edit: row for row in record_of(workspace / "out").sheets}
    assert rows["cross/1"].place == "patient › anatomical" and rows["cross/1"].sheet == "sheets/cross-1.png"
    assert (workspace / "out" / "sheets" / "cross-1.png").is_file()
    html = (workspace / "out" / "report.html").read_text(encoding="utf-8")
    assert "Patient › anatomical" in html and "Cross &lt;b&gt;" in html


def test_pictures_in_memory_are_png_files(few, workspace):
    shown = package.show_confounders(data="images", num_images=1)
    for content in shown.pictures.values():
        assert Image.open(io.BytesIO(content)).format == "PNG"


@pytest.mark.slow
def test_the_list_itself_draws_nothing():
    """Neither figures nor the verb are imported for a list."""
    show = (
        "import sys; from crossgraft.cli.main import main; assert main(['list', 'confounders']) == 0;"
        "print(sorted({'matplotlib', 'crossgraft.edit.contact_sheets'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
