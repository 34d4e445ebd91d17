"""A folder with one sub-folder per class, perhaps inside folders ``train``, ``val`` and ``test``."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from crossgraft.data._groups import PATH_GROUPS, groups_from_paths
from crossgraft.data._letters import whole_letters
from crossgraft.data._look_alikes import look_alikes
from crossgraft.data.class_names import natural_key
from crossgraft.data.decoding import IMAGE_EXTENSIONS
from crossgraft.data.medical.formats import MEDICAL_EXTENSIONS, file_extension, is_image_file
from crossgraft.data.sources._image_files import rows_of_files
from crossgraft.data.sources._source import DataSource, SourceRequest, SourceRows, refuse_options
from crossgraft.data.sources._split_names import canonical_split, is_split_name, refuse_missing_split
from crossgraft.errors import DataError
from crossgraft.words.formatting import counted

_IGNORED_FOLDERS = ("__MACOSX",)
_IGNORED_FILES = ("Thumbs.db", "desktop.ini", "DICOMDIR")  # the last is the index of a DICOM medium
_LISTED_EXTENSIONS = (*IMAGE_EXTENSIONS, *MEDICAL_EXTENSIONS)
_TABLE_EXTENSIONS = (".csv", ".tsv")
_OF_TABLES = (
    "label_columns",
    "label_separator",
    "uncertain",
    "none_label",
    "group_column",
    "path_column",
    "image_root",
)
_NAMES_IN_MESSAGE = 5
_NO_LABELS = (
    "Folders were not taken for labels: not all are called like classes of the model, or images lie beside them."
)


class ImageFolder(DataSource):
    """Class names are folder names, in natural order; images may lie in folders further down."""

    name = "image_folder"
    description = (
        "a folder with one sub-folder per class; folders train, val and test are recognised; PNG, JPEG, TIFF, BMP, DICOM "
        "and NIfTI files"
    )

    def accepts(self, location: str) -> bool:
        """Any folder."""
        return Path(location).is_dir()

    def open(self, location: str, request: SourceRequest) -> SourceRows:
        """List the image files of each class; where no labels are needed, those of every folder."""
        advice = "Write a table with the columns path, label and patient, and give that instead."
        refuse_options(
            request,
            "a folder of images",
            unused=_OF_TABLES,
            advice=advice if request.needs_labels else "Give a table instead.",
        )
        root = Path(location)
        if not request.needs_labels:
            return _rows_below(root, request)
        split_folders = _find_split_folders(root)
        if not split_folders:
            if request.use_split not in (None, "train"):
                refuse_missing_split(request.use_split, [], f"The folder {root}")
            return _rows(root, {None: root}, (), request)
        known = {name: root / folder for name, folder in split_folders.items() if is_split_name(name)}
        if request.use_split is None:
            return _rows(root, known, tuple(known), request)
        refuse_missing_split(request.use_split, list(split_folders), f"The folder {root}")
        return _rows(root, {request.use_split: root / split_folders[request.use_split]}, tuple(known), request)


def _rows(
    root: Path,
    parts: Mapping[str, Path] | Mapping[None, Path],
    split_names: tuple[str, ...],
    request: SourceRequest,
) -> SourceRows:
    """The images of ``parts``, which maps split names (or None: no splits) to folders of classes."""
    files: list[Path] = []
    labels: list[str] = []
    splits: list[str] = []
    notices: list[str] = []
    problems: list[str] = []
    for split, folder in parts.items():
        for class_name, paths in _files_by_class(folder, notices, problems).items():
            files += paths
            labels += [whole_letters(class_name)] * len(paths)
            splits += [split or ""] * len(paths)
    has_splits = None not in parts
    names = [whole_letters(path.relative_to(root).as_posix()) for path in files]
    return rows_of_files(
        files,
        names,
        request,
        name=root.resolve().name,
        labels=labels,
        groups=groups_from_paths(names, request.group_from),
        group_column=PATH_GROUPS,
        splits=splits if has_splits else None,
        split_names=split_names,
        split_method="folders of the data" if has_splits else "no split",
        notices=notices,
        problems=tuple(problems),
    )


def _rows_below(root: Path, request: SourceRequest) -> SourceRows:
    """Every image below; the folders of the first level are labels if each of them is the name of a known class."""
    split_of = {name: split for split, name in _find_split_folders(root).items()}
    if request.use_split is not None:
        refuse_missing_split(request.use_split, list(split_of.values()), f"The folder {root}")
    files: list[Path] = []
    names: list[str] = []
    labels: list[str] = []
    for file in _images_below(root):
        parts = file.relative_to(root).parts
        split = split_of.get(parts[0])
        if request.use_split in (None, split):
            files.append(file)
            names.append(whole_letters("/".join(parts)))
            labels.append(whole_letters(parts[0 if split is None else 1]))
    if not files:
        raise DataError(f"No images in the folder {root}. Give a folder of images, one image, or a table of paths.")
    known = set(labels) <= set(request.known_classes) and not request.several_labels
    loose = {name for name, path in zip(labels, files, strict=True) if path.name == name}
    folders = [name for name in dict.fromkeys(labels) if name not in loose]
    notices = [] if known or request.several_labels else _almost_labels(folders, request, has_loose=bool(loose))
    found = rows_of_files(
        files,
        names,
        request,
        name=root.resolve().name,
        labels=labels if known else None,
        groups=groups_from_paths(names, request.group_from),
        group_column=PATH_GROUPS,
        notices=notices,
    )
    # Names of folders may be those of patients, and are for the terminal alone.
    return replace(found, reading=(*found.reading, _NO_LABELS)) if notices else found


def _almost_labels(folders: Sequence[str], request: SourceRequest, *, has_loose: bool) -> list[str]:
    """Why folders are no labels, where some are called, or almost called, like classes."""
    classes = request.known_classes
    alike = {name: pair for name in folders if name not in classes for pair in _alike(name, classes)}
    if not alike and not set(folders) & set(classes):
        return []
    others = [name for name in folders if name not in classes]
    beside = [f"{_shown(others)} {'is none' if len(others) == 1 else 'are none'}"] if others else []
    beside += ["there are images beside them"] if has_loose else []
    wanted = [f"rename {name} to {meant}" for name, meant in alike.items()]
    if has_loose or len(alike) < len(others):
        wanted.append("take out what is in no folder of a class")
    return [
        f"Folders are taken for labels only where each of them is a class of the model ({_shown(classes)}), and "
        f"{' and '.join(beside)}, so nothing is measured. To measure, {'; '.join(wanted)}."
    ]


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMES_IN_MESSAGE]) + (" …" if len(names) > _NAMES_IN_MESSAGE else "")


def _alike(name: str, classes: Sequence[str]) -> list[str]:
    """The class that it differs from by case, white space or the form of its letters."""
    return [meant for each in look_alikes([*classes, name]) if name in each.names for meant in each.names[:1]]


def _find_split_folders(root: Path) -> dict[str, str]:
    """Split name → folder name; empty if the folders are classes.

    ``train`` is a split if it holds folders of its own, and then so is every folder beside it (none of which
    is opened here). Where all folders have names of splits they are splits too, even without ``train``.
    """
    folders = [folder.name for folder in _folders(root)]
    train = [name for name in folders if canonical_split(name) == "train"]
    all_are_splits = bool(folders) and all(is_split_name(name) for name in folders)
    if not all_are_splits and not (train and _folders(root / train[0])):
        return {}
    by_split: dict[str, str] = {}
    for name in folders:
        split = canonical_split(name)
        if split in by_split:
            raise DataError(
                f"The folders {by_split[split]} and {name} of {root} both hold the split {split}. Join or rename them."
            )
        by_split[split] = name
    return by_split


def _files_by_class(folder: Path, notices: list[str], problems: list[str]) -> dict[str, list[Path]]:
    """Class name → its image files, both in natural order."""
    loose = [path for path in _files(folder) if is_image_file(path)]
    files = {
        path.name: _images_below(path) for path in sorted(_folders(folder), key=lambda path: natural_key(path.name))
    }
    if not any(files.values()):
        _raise_without_images(folder, loose)
    empty = [name for name, paths in files.items() if not paths]
    if empty:
        what = "folder" if len(empty) == 1 else "folders"
        # Not the whole path: problems go into the record of a check, which may be passed on.
        problems.append(
            f"No images in the class {what} {', '.join(empty)} of {folder.resolve().name}. Add images "
            f"({', '.join(_LISTED_EXTENSIONS)}) or remove the {what}."
        )
    _suspect_classes_further_down(folder, list(files), notices)
    if loose:
        shown = ", ".join(path.name for path in loose[:_NAMES_IN_MESSAGE])
        verb = "is" if len(loose) == 1 else "are"
        beside = f"Beside the class folders of {folder} there {verb} {counted(len(loose), 'image')}"
        notices.append(f"{beside}, not used: {shown}.")
    return files


def _suspect_classes_further_down(folder: Path, class_names: list[str], notices: list[str]) -> None:
    """Folders such as ``site A/benign`` would make classes of the sites, without any other sign of it."""
    below = [[path.name for path in _folders(folder / name)] for name in class_names]
    if any(names != below[0] for names in below) or len(below[0]) < 2:
        return
    shown = _shown(below[0])
    if len(class_names) == 1:
        raise DataError(
            f"The folder {folder} has only one folder, {class_names[0]}, which holds the folders {shown}. If these are "
            f"the classes, give {folder / class_names[0]}."
        )
    notices.append(
        f"All class folders of {folder} hold the same folders: {shown}. The classes are taken to be "
        f"{_shown(class_names)}. If that is wrong, write a table with the columns path and label."
    )


def _raise_without_images(folder: Path, loose: list[Path]) -> None:
    if loose:
        raise DataError(
            f"The folder {folder} holds {counted(len(loose), 'image')} but no class folders, so the labels are not known. Move "
            "each image into a sub-folder with the name of its class, or write a table with the columns path and label."
        )
    extensions = Counter(file_extension(path.name) for path in _walk(folder))
    tables = [path.name for path in _files(folder) if path.suffix.casefold() in _TABLE_EXTENSIONS]
    hint = f" It holds the table {tables[0]}: give that file instead of the folder." if tables else ""
    found = ", ".join(f"{count} {extension or 'without extension'}" for extension, count in extensions.most_common(3))
    raise DataError(
        f"No images in the folder {folder}: "
        + (f"found only files {found}." if found else "it is empty.")
        + f" Expected one sub-folder per class with files {', '.join(_LISTED_EXTENSIONS)}.{hint}"
    )


def _images_below(folder: Path) -> list[Path]:
    """All image files of ``folder`` and its folders, in natural order."""
    return sorted(
        (path for path in _walk(folder) if is_image_file(path)), key=lambda path: natural_key(path.as_posix())
    )


def _walk(folder: Path) -> list[Path]:
    """All files below, without the droppings of operating systems; linked folders below are not followed."""
    found: list[Path] = []
    for parent, folder_names, file_names in os.walk(folder):
        folder_names[:] = [name for name in folder_names if _is_visible(name) and name not in _IGNORED_FOLDERS]
        found += [Path(parent, name) for name in file_names if _is_visible(name) and name not in _IGNORED_FILES]
    return found


def _folders(folder: Path) -> list[Path]:
    visible = [path for path in folder.iterdir() if _is_visible(path.name) and path.name not in _IGNORED_FOLDERS]
    return sorted((path for path in visible if path.is_dir()), key=lambda path: natural_key(path.name))


def _files(folder: Path) -> list[Path]:
    visible = [path for path in folder.iterdir() if _is_visible(path.name) and path.name not in _IGNORED_FILES]
    return sorted((path for path in visible if path.is_file()), key=lambda path: natural_key(path.name))


def _is_visible(name: str) -> bool:
    return not name.startswith(".")
