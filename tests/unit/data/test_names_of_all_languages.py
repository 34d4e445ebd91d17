"""Umlauts in one character or two, other scripts, emoji, blanks: in folders, class names and tables."""

import numpy as np
import pytest

from crossgraft.data import open_dataset
from crossgraft.data.sources import _table_files
from crossgraft.errors import DataError

WHOLE, IN_PARTS = "M\u00fcller", "Mu\u0308ller"  # both look the same: the second is what macOS often stores
NAMES = [(WHOLE, WHOLE), (WHOLE, IN_PARTS), (IN_PARTS, WHOLE), (IN_PARTS, IN_PARTS)]


@pytest.mark.parametrize(("in_table", "on_disk"), NAMES)
@pytest.mark.parametrize("extension", [".png", ""])
def test_a_table_finds_files_however_the_letters_are_stored(tmp_path, write_image, in_table, on_disk, extension):
    rows = ["path,label,patient"]
    for number in range(6):
        write_image(tmp_path / f"Klinik {on_disk}" / f"{on_disk} {number}.png", seed=number)
        rows.append(f"Klinik {in_table}/{in_table} {number}{extension},{'ab'[number % 2]},{(in_table, WHOLE)[number % 2]}")
    (tmp_path / "table.csv").write_text("\n".join(rows), encoding="utf-8")
    opened = open_dataset(tmp_path / "table.csv")
    assert len(opened) == 6
    assert set(opened.groups) == {WHOLE}, "one patient, written in two ways"
    np.testing.assert_array_equal(opened.read(0).shape, (8, 6, 1))


def test_the_exact_name_wins_where_both_exist(tmp_path, write_image):
    first = write_image(tmp_path / f"{WHOLE}.png", seed=1)
    write_image(tmp_path / f"{IN_PARTS}.png", seed=2)
    write_image(tmp_path / "b.png", seed=3)
    write_image(tmp_path / "c.png", seed=4)
    rows = [f"{WHOLE}.png,x", "b.png,y", "c.png,x"]
    (tmp_path / "table.csv").write_text("\n".join(["path,label", *rows]), encoding="utf-8")
    np.testing.assert_array_equal(open_dataset(tmp_path / "table.csv").read(0), first)


def test_two_rows_that_mean_one_file_are_still_found(tmp_path, write_image):
    write_image(tmp_path / f"{IN_PARTS}.png")
    (tmp_path / "table.csv").write_text(f"path,label\n{WHOLE}.png,x\n{IN_PARTS}.png,y\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"again, which line 2 of table\.csv already has"):
        open_dataset(tmp_path / "table.csv")


def test_where_the_system_ignores_case_so_does_the_table(tmp_path, write_image, monkeypatch):
    class Path(type(tmp_path)):
        def is_file(self):  # as Windows and macOS answer
            return self.name.casefold() in {entry.name.casefold() for entry in self.parent.iterdir()}

    write_image(tmp_path / "Scan1.PNG")
    listing = _table_files._FolderListing()
    assert [path.name for path in listing.matches(Path(tmp_path / "scan1.png"))] == ["Scan1.PNG"]
    assert listing.matches(tmp_path / "scan1.png") == [], "a system that tells case apart is believed"


@pytest.mark.parametrize("names", [("良性", "悪性"), ("🙂 ok", "🙁 bad"), ("gutartig ä", "bösartig ö"), ("a b", "c  d")])
def test_class_folders_in_any_script(make_folder, names):
    opened = open_dataset(make_folder(dict.fromkeys(names, 2), name="Übersicht 概要 🫁"))
    assert set(opened.class_names) == set(names)
    assert opened.name == "Übersicht 概要 🫁"


def test_class_folders_and_file_names_are_the_same_on_every_system(make_folder):
    here = open_dataset(make_folder({WHOLE: 2, "x": 2}, name="from linux"))
    there = open_dataset(make_folder({IN_PARTS: 2, "x": 2}, name="from a mac"))
    assert here.class_names == there.class_names
    assert here.image_name(0) == there.image_name(0)
