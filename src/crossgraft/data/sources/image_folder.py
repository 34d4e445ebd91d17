"""A folder with one sub-folder per class, perhaps inside folders ``train``, ``val`` and ``test``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from crossgraft.data._groups import PATH_GROUPS, groups_from_paths
from crossgraft.data._letters import whole_letters
from crossgraft.data.class_names import natural_key
from crossgraft.data.decoding import IMAGE_EXTENSIONS
from crossgraft.data.medical.formats import MEDICAL_EXTENSIONS
from crossgraft.data.sources._folders_as_labels import NAMES_IN_MESSAGE, NO_LABELS, almost_labels, shown
from crossgraft.data.sources._image_files import rows_of_files
from crossgraft.data.sources._inventory import (
    FileCounts,
    Inventory,
    PassedOver,
    describe_files,
    folder_passed_over,
    is_visible,
    kind_of_file,
    take_inventory,
)
from crossgraft.data.sources._source import DataSource, SourceRequest, SourceRows, refuse_options
from crossgraft.data.sources._split_names import canonical_split, is_split_name, refuse_missing_split
from crossgraft.errors import DataError
from crossgraft.words.formatting import counted

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
_BESIDE = "beside the folders"
_NO_SPLIT = "a folder beside those of splits; --use-split takes it"


class ImageFolder(DataSource):
    """Class names are folder names, in natural order; images may lie in folders further down."""

    name = "image_folder"
    description = (
        "a folder with one sub-folder per class; folders train, val and test are recognised; PNG, JPEG, TIFF, BMP, WebP, DICOM "
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
        beside = _beside_splits(root, split_folders, request)
        known = {name: root / folder for name, folder in split_folders.items() if is_split_name(name)}
        if request.use_split is None:
            return _rows(root, known, tuple(known), request, beside)
        refuse_missing_split(request.use_split, list(split_folders), f"The folder {root}")
        return _rows(root, {request.use_split: root / split_folders[request.use_split]}, tuple(known), request, beside)


def _rows(
    root: Path,
    parts: Mapping[str, Path] | Mapping[None, Path],
    split_names: tuple[str, ...],
    request: SourceRequest,
    beside: Sequence[PassedOver] = (),
) -> SourceRows:
    """The images of ``parts``, which maps split names (or None: no splits) to folders of classes."""
    files: list[Path] = []
    labels: list[str] = []
    splits: list[str] = []
    notices: list[str] = []
    problems: list[str] = []
    passed_over = list(beside)
    for split, folder in parts.items():
        by_class, others = _files_by_class(folder, request, notices, problems)
        passed_over += others
        for class_name, paths in by_class.items():
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
        passed_over=passed_over,
        problems=tuple(problems),
    )


def _beside_splits(root: Path, split_folders: Mapping[str, str], request: SourceRequest) -> list[PassedOver]:
    """Files beside the folders of splits, and in folders there that are no usual split and were not asked for."""
    unused = [name for split, name in split_folders.items() if not is_split_name(split) and split != request.use_split]
    found = [
        PassedOver(f"in {name}", _NO_SPLIT, name, len(take_inventory(root / name, keep_masks=True).images))
        for name in unused
    ]
    loose = Counter(map(kind_of_file, _files(root)))
    return [*(each for each in found if each.number), *(PassedOver(kind, _BESIDE, "", n) for kind, n in loose.items())]


def _rows_below(root: Path, request: SourceRequest) -> SourceRows:
    """Every image below; the folders of the first level are labels if each of them is the name of a known class."""
    split_of = {name: split for split, name in _find_split_folders(root).items()}
    if request.use_split is not None:
        refuse_missing_split(request.use_split, list(split_of.values()), f"The folder {root}")
    files: list[Path] = []
    names: list[str] = []
    labels: list[str] = []
    inventory = take_inventory(root, keep_masks=request.keep_masks)
    for file in inventory.images:
        parts = file.relative_to(root).parts
        split = split_of.get(parts[0])
        if request.use_split in (None, split):
            files.append(file)
            names.append(whole_letters("/".join(parts)))
            labels.append(whole_letters(parts[0 if split is None else 1]))
    if not files:
        said = " ".join(describe_files(FileCounts({}, tuple(inventory.passed_over))))
        raise DataError(
            f"No images in the folder {root}. Give a folder of images, one image, or a table of paths. {said}".rstrip()
        )
    known = set(labels) <= set(request.known_classes) and not request.several_labels
    loose = {name for name, path in zip(labels, files, strict=True) if path.name == name}
    folders = [name for name in dict.fromkeys(labels) if name not in loose]
    notices = [] if known or request.several_labels else almost_labels(folders, request, has_loose=bool(loose))
    found = rows_of_files(
        files,
        names,
        request,
        name=root.resolve().name,
        labels=labels if known else None,
        groups=groups_from_paths(names, request.group_from),
        group_column=PATH_GROUPS,
        notices=notices,
        passed_over=inventory.passed_over,
    )
    # Names of folders may be those of patients, and are for the terminal alone.
    return replace(found, reading=(*found.reading, NO_LABELS)) if notices else found


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


def _files_by_class(
    folder: Path, request: SourceRequest, notices: list[str], problems: list[str]
) -> tuple[dict[str, list[Path]], list[PassedOver]]:
    """Class name → its image files, both in natural order; and all other files."""
    inventory = take_inventory(folder, keep_masks=request.keep_masks)
    loose = [path for path in inventory.images if path.parent == folder]
    files: dict[str, list[Path]] = {path.name: [] for path in _folders(folder)}
    for path in inventory.images:
        if path.parent != folder:
            files[path.relative_to(folder).parts[0]].append(path)
    for name in [name for name, paths in files.items() if not paths and _is_no_class(name, inventory)]:
        del files[name]
    if not any(files.values()):
        _raise_without_images(folder, loose, inventory)
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
        names = ", ".join(path.name for path in loose[:NAMES_IN_MESSAGE])
        verb = "is" if len(loose) == 1 else "are"
        beside = f"Beside the class folders of {folder} there {verb} {counted(len(loose), 'image')}"
        notices.append(f"{beside}, not used: {names}.")
    kinds = Counter(map(kind_of_file, loose))
    return files, [*inventory.passed_over, *(PassedOver(kind, _BESIDE, "", number) for kind, number in kinds.items())]


def _is_no_class(name: str, inventory: Inventory) -> bool:
    """Whether a folder without images holds only what nobody takes for data: runs, thumbnails, masks of all images."""
    inside = [each for each in inventory.passed_over if each.place == name]
    return bool(inside) and all(each.is_expected or each.is_derived for each in inside)


def _suspect_classes_further_down(folder: Path, class_names: list[str], notices: list[str]) -> None:
    """Folders such as ``site A/benign`` would make classes of the sites, without any other sign of it."""
    below = [[path.name for path in _folders(folder / name)] for name in class_names]
    if any(names != below[0] for names in below) or len(below[0]) < 2:
        return
    inside = shown(below[0])
    if len(class_names) == 1:
        raise DataError(
            f"The folder {folder} has only one folder, {class_names[0]}, which holds the folders {inside}. If these are "
            f"the classes, give {folder / class_names[0]}."
        )
    notices.append(
        f"All class folders of {folder} hold the same folders: {inside}. The classes are taken to be "
        f"{shown(class_names)}. If that is wrong, write a table with the columns path and label."
    )


def _raise_without_images(folder: Path, loose: list[Path], inventory: Inventory) -> None:
    if loose:
        raise DataError(
            f"The folder {folder} holds {counted(len(loose), 'image')} but no class folders, so the labels are not known. Move "
            "each image into a sub-folder with the name of its class, or write a table with the columns path and label."
        )
    extensions = Counter[str]()
    for each in inventory.passed_over:
        extensions[each.kind] += each.number
    tables = [path.name for path in _files(folder) if path.suffix.casefold() in _TABLE_EXTENSIONS]
    hint = f" It holds the table {tables[0]}: give that file instead of the folder." if tables else ""
    found = ", ".join(f"{count} {kind}" for kind, count in extensions.most_common(3))
    raise DataError(
        f"No images in the folder {folder}: "
        + (f"found only files {found}." if found else "it is empty.")
        + f" Expected one sub-folder per class with files {', '.join(_LISTED_EXTENSIONS)}.{hint}"
    )


def _folders(folder: Path) -> list[Path]:
    visible = [path for path in folder.iterdir() if is_visible(path.name) and path.is_dir()]
    return sorted(
        (path for path in visible if folder_passed_over(path) is None), key=lambda path: natural_key(path.name)
    )


def _files(folder: Path) -> list[Path]:
    visible = [path for path in folder.iterdir() if is_visible(path.name) and path.is_file()]
    return sorted(visible, key=lambda path: natural_key(path.name))
