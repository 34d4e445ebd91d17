"""A data set as a folder: images without loss, and one table with labels, splits, groups and attributes."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tifffile
from PIL import Image

from crossgraft.data import Dataset
from crossgraft.data._groups import group_numbers
from crossgraft.errors import DataError
from crossgraft.storage.atomic import remove_leftovers, write_atomically
from crossgraft.words.visible import csv_text

TABLE = "labels.csv"
FOLDER = "images"
CLASSES = "classes.txt"
"""Names of the classes in their order, one per line."""
_OWN_NAME = re.compile(r"\d+\.(png|tif)")
_OURS = ("path", "label", "split", "group", "edited")
RENAMED = "_original"
"""Ending of a column of the data that is called as one of the table."""


def own_images(folder: Path, num_images: int) -> list[str]:
    """What ``write_images`` writes into ``folder``, and what it wrote there before, as paths relative to it."""
    digits = len(str(num_images))
    names = [f"{row:0{digits}d}{suffix}" for row in range(1, num_images + 1) for suffix in (".png", ".tif")]
    there = (folder / FOLDER).iterdir() if (folder / FOLDER).is_dir() else ()
    names += sorted(file.name for file in there if _OWN_NAME.fullmatch(file.name))
    return [f"{FOLDER}/{name}" for name in dict.fromkeys(names)]


def write_images(dataset: Dataset, folder: Path, *, told: Callable[[], object]) -> list[str]:
    """Write every image, and return their paths relative to ``folder``: PNG for 8 bits, TIFF for what PNG cannot hold.

    Names are numbers: those of the files that images came from may name people.

    Args:
        dataset: Images.
        folder: Where they go, below ``images``.
        told: Called after each image.

    Raises:
        StorageError: Disk full, no permission ….
    """
    digits = len(str(len(dataset)))
    paths: list[str] = []
    remove_leftovers(folder / FOLDER)
    for row in range(len(dataset)):
        pixels = dataset.read(row)
        suffix, content = _encoded(pixels)
        path = f"{FOLDER}/{row + 1:0{digits}d}{suffix}"
        write_atomically(folder / path, content, look=False)
        paths.append(path)
        told()
    _remove_others(folder / FOLDER, {Path(path).name for path in paths})
    return paths


def _remove_others(folder: Path, kept: set[str]) -> None:
    """Images that were written here before, of a data set that is replaced: whoever gets the folder must not get them."""
    for file in folder.iterdir():
        if _OWN_NAME.fullmatch(file.name) and file.name not in kept:
            file.unlink()


def labels_table(dataset: Dataset, paths: list[str], edited: np.ndarray, labels: np.ndarray | None = None) -> str:
    """The table that ``open_dataset`` reads: path, label or one column per label, split, group, attributes, edited.

    Groups are numbers: the table is passed on, and who somebody is stays behind.

    Args:
        dataset: Rows.
        paths: Path of each image, from the folder of the table.
        edited: (n,) whether the image was edited.
        labels: (n,) other labels; None: those of the data.

    Raises:
        DataError: A class of several labels per image is called as a column of the table.
    """
    columns: dict[str, list[object]] = {"path": list(paths)}
    if dataset.task.partitions:
        names = [dataset.class_names[int(target)] for target in dataset.targets] if labels is None else labels.tolist()
        columns["label"] = list(names)
    else:
        if taken := set(_OURS) & set(dataset.class_names):
            raise DataError(
                f"The label {min(taken)} is called as a column of the table that is written. Name the labels otherwise: "
                "--class-names."
            )
        columns |= {name: dataset.targets[:, place].tolist() for place, name in enumerate(dataset.class_names)}
    if dataset.splits is not None:
        columns["split"] = dataset.splits.tolist()
    numbers = group_numbers(dataset.groups)
    if numbers is not None:
        digits = len(str(numbers.max()))  # in the order of the numbers, so that splits are drawn as before
        columns["group"] = [f"g{number:0{digits}d}" for number in numbers.tolist()]
    columns["edited"] = np.asarray(edited, dtype=int).tolist()
    for name, values in dataset.attributes.items():
        others = {*columns, *_OURS, *(each for each in dataset.attributes if each != name)}
        columns[_free(name, others)] = _as_typed(values)
    return csv_text(list(columns), zip(*columns.values(), strict=True))


def _free(name: str, taken: set[str]) -> str:
    """The name of a column, with as many endings as make it different from ours."""
    while name in taken:
        name += RENAMED
    return name


def _as_typed(values: np.ndarray) -> list[object]:
    """Whole numbers without a point, and nothing where a value is missing."""
    if values.dtype.kind != "f":
        return values.tolist()
    return ["" if np.isnan(value) else int(value) if value.is_integer() else value for value in values.tolist()]


def _encoded(pixels: np.ndarray) -> tuple[str, bytes]:
    """Suffix and content of a file that holds these samples."""
    samples = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
    content = io.BytesIO()
    if pixels.dtype == np.uint8:
        Image.fromarray(samples).save(content, format="PNG")
        return ".png", content.getvalue()
    tifffile.imwrite(content, samples, photometric="rgb" if pixels.shape[2] == 3 else "minisblack")
    return ".tif", content.getvalue()


def read_merging(path: Path) -> dict[str, str]:
    """Class → coarser class, of a table with the columns ``class`` and ``merged``.

    Raises:
        DataError: The file is missing, or has no such columns, or names a class twice.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as opened:
            rows = list(csv.DictReader(opened))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"The table {path.name} (--classes) cannot be read: {error}.") from error
    if not rows or not {"class", "merged"} <= set(rows[0]):
        raise DataError(f"The table {path.name} (--classes) needs the columns class and merged, and a row per class.")
    mapping: dict[str, str] = {}
    for number, row in enumerate(rows, start=2):
        if row["class"] in mapping:
            raise DataError(f"{path.name}, line {number}: the class {row['class']} was there before. Give it one row.")
        if not row["merged"]:
            raise DataError(f"{path.name}, line {number}: the class {row['class']} has no coarser one.")
        mapping[row["class"]] = row["merged"]
    return mapping
