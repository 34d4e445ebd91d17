"""Classes that a backbone was trained on, and others to draw episodes from: the JSON of Meta-Dataset's splits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from crossgraft.data import Dataset
from crossgraft.errors import DataError, UsageError
from crossgraft.fewshot.options import FewshotOptions
from crossgraft.paths import read_whole
from crossgraft.words.formatting import counted, joined

_ENDING = "splits.json"
_KEYS = {"train": "train", "valid": "val", "val": "val", "validation": "val", "test": "test"}
_EXAMPLE = '{"train": ["a", "b"], "valid": ["c"], "test": ["d", "e"]}'


@dataclass(frozen=True)
class ClassSplit:
    """Which classes are of which part.

    Attributes:
        file: Where that stands.
        folder: Folder of the class folders; None where the data are no folder.
        parts: ``train``, ``val`` and ``test``, as far as the file has them → names of classes, of which none is in two.
    """

    file: Path
    folder: Path | None
    parts: Mapping[str, Sequence[str]]

    def names_of(self, part: str) -> Sequence[str]:
        """Names of the classes of one part.

        Raises:
            DataError: There is none.
        """
        names = self.parts.get(part, ())
        if not names:
            raise DataError(
                f"{self.file} names no {part} classes; it has {joined(list(self.parts))}. Name another part: --classes-of."
            )
        return names

    def taken_from(self, dataset: Dataset, part: str, *, with_base: bool) -> Dataset:
        """The images of the classes of a part, and of those of ``train`` where heads learn on them first.

        Raises:
            DataError: A class of the file has no folder, or no image in a table.
        """
        names = [*self.names_of(part), *(self.names_of("train") if with_base else ())]
        for name in (each for each in names if each not in dataset.class_names):
            where = f"no folder in {self.folder}" if self.folder is not None else f"no image in {dataset.name}"
            raise DataError(
                f"The class {name} of {self.file.name} has {where}; there are {joined(list(dataset.class_names))}. "
                "Correct the file, or leave the class out of it."
            )
        chosen = dataset.select_classes([name for name in dataset.class_names if name in {*names}])
        used = f"{counted(len(chosen.class_names), 'class', plural='classes')} by {self.file.name}"
        return replace(chosen, rows_used=used if dataset.splits is None else f"{dataset.rows_used}, {used}")


def class_split_of(data: str | Path | Dataset, options: FewshotOptions) -> ClassSplit | None:
    """What ``--class-split`` names, or the file ``…splits.json`` in the folder of the data; None where there is neither.

    Raises:
        DataError: The file cannot be read, has no such form, a class is in two parts, or there are several files.
        UsageError: Another split was asked for, too.
    """
    folder = Path(data) if isinstance(data, str | Path) and Path(data).is_dir() else None
    given = options.class_split
    if given is None:
        if folder is None:
            return None
        found = sorted(folder.glob(f"*{_ENDING}"))
        if len(found) > 1:
            listed = joined([each.name for each in found])
            raise DataError(f"{folder} holds {listed}, each of which says how classes are divided. Name one: --class-split FILE.")
        if not found:
            _refuse_records(folder)
            return None
        given = found[0]
    if_not_meant = (
        "" if options.class_split is not None else f" If {Path(given).name} is about something else, move it out of {folder}."
    )
    others = [name for name in ("split", "holdout", "folds") if getattr(options, name) is not None]
    if others:
        raise UsageError(
            f"--{others[0]} divides images, and {given} divides classes: episodes have all images of some classes. "
            f"Leave --{others[0]} out.{if_not_meant}"
        )
    try:
        return ClassSplit(Path(given), folder, _read(Path(given)))
    except DataError as error:
        raise DataError(f"{error}{if_not_meant}") from error


def _refuse_records(folder: Path) -> None:
    records = sorted(folder.glob("*.tfrecords"))
    if records:
        raise DataError(
            f"{folder} holds {counted(len(records), 'TFRecord file')} of Meta-Dataset, which are not read. Write the images of "
            f"each class into a folder of its own, with the file …{_ENDING} beside them."
        )


def _read(file: Path) -> dict[str, list[str]]:
    try:
        content = json.loads(read_whole(file).decode("utf-8"))
    except FileNotFoundError:
        raise DataError(f"There is no file of class splits at {file}. Give a JSON file such as {_EXAMPLE}.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{file} is no JSON: {error}. It must say classes by part: {_EXAMPLE}.") from error
    if not isinstance(content, dict):
        raise DataError(f"{file} must say classes by part, such as {_EXAMPLE}, and is a {type(content).__name__}.")
    parts: dict[str, list[str]] = {}
    of_class: dict[str, str] = {}
    for key, names in cast("dict[str, object]", content).items():
        part = _KEYS.get(key.casefold())
        if part is None or not isinstance(names, list) or not all(isinstance(name, str) for name in cast("list[object]", names)):
            raise DataError(
                f"{file}: {key} is no list of class names for train, valid or test. It must say classes by part: {_EXAMPLE}."
            )
        parts[part] = cast("list[str]", names)
        for name in parts[part]:
            if name in of_class:
                raise DataError(
                    f"{file}: the class {name} is in {of_class[name]} and in {key}, so that episodes would have what a "
                    "backbone was trained on. Leave it in one."
                )
            of_class[name] = key
    return parts
