"""A folder with one sub-folder per class, perhaps inside folders ``train``, ``val`` and ``test``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from crossgraft.data._groups import PATH_GROUPS, groups_from_paths
from crossgraft.data.class_names import look_alikes, natural_key, whole_letters
from crossgraft.data.decoding import IMAGE_EXTENSIONS
from crossgraft.data.file_counts import OTHER_PART, FileCounts, PassedOver, describe_files
from crossgraft.data.medical.formats import MEDICAL_EXTENSIONS, is_image_file
from crossgraft.data.sources._image_files import rows_of_files
from crossgraft.data.sources._inventory import (
    Inventory,
    counted_beside,
    folder_passed_over,
    is_called_images,
    is_visible,
    take_inventory,
)
from crossgraft.data.sources._source import (
    DataSource,
    SourceRequest,
    SourceRows,
    canonical_split,
    is_split_name,
    refuse_missing_split,
    refuse_options,
)
from crossgraft.data.sources._table import TABLE_EXTENSIONS
from crossgraft.errors import DataError
from crossgraft.words.formatting import counted

NAMES_IN_MESSAGE = 5
NO_LABELS = "Folders were not taken for labels: not all are called like classes of the model, or images lie beside them."


def almost_labels(folders: Sequence[str], request: SourceRequest, *, has_loose: bool) -> list[str]:
    """Why folders are no labels, where some are called, or almost called, like classes."""
    classes = request.known_classes
    alike = {name: pair for name in folders if name not in classes for pair in _alike(name, classes)}
    if not alike and not set(folders) & set(classes):
        return []
    others = [name for name in folders if name not in classes]
    beside = [f"{shown(others)} {'is none' if len(others) == 1 else 'are none'}"] if others else []
    beside += ["there are images beside them"] if has_loose else []
    wanted = [f"rename {name} to {meant}" for name, meant in alike.items()]
    if has_loose or len(alike) < len(others):
        wanted.append("take out what is in no folder of a class")
    return [
        f"Folders are taken for labels only where each of them is a class of the model ({shown(classes)}), and "
        f"{' and '.join(beside)}, so nothing is measured. To measure, {'; '.join(wanted)}."
    ]


def shown(names: Sequence[str]) -> str:
    """The first few in a row."""
    return ", ".join(names[:NAMES_IN_MESSAGE]) + (" …" if len(names) > NAMES_IN_MESSAGE else "")


def _alike(name: str, classes: Sequence[str]) -> list[str]:
    """The class that it differs from by case, white space or the form of its letters."""
    return [meant for alike in look_alikes([*classes, name]) if name in alike.names for meant in alike.names[:1]]


def below_images(folder: Path, *, keep_masks: bool) -> tuple[Path, list[PassedOver]]:
    """Where the folders of classes lie, and what lies beside: ``folder``, or ``images`` in it with masks beside.

    Args:
        folder: Folder that may hold ``images/CLASS`` and ``masks/CLASS``.
        keep_masks: As in ``take_inventory``; if so, nothing is beside.

    Cost: a walk, only where a folder is called ``images`` and another one lies beside it.
    """
    names = [path.name for path in folders_in(folder)]
    called = [name for name in names if is_called_images(name)]
    if keep_masks or len(called) != 1 or len(names) < 2 or not folders_in(folder / called[0]):
        return folder, []
    inventory = take_inventory(folder)
    loose = [path for path in inventory.images if path.parent == folder]
    holding = {path.relative_to(folder).parts[0] for path in inventory.images if path.parent != folder}
    masks = [skipped for skipped in inventory.passed_over if skipped.is_derived and skipped.place != called[0]]
    if holding != set(called) or not masks:
        return folder, []
    beside = [skipped for skipped in inventory.passed_over if skipped.place != called[0]]
    return folder / called[0], [*beside, *counted_beside(loose)]


def find_split_folders(root: Path) -> dict[str, str]:
    """Split name → folder name; empty if the folders are classes.

    ``train`` is a split if it holds folders of its own, and then so is every folder beside it (none of which
    is opened here). Where all folders have names of splits they are splits too, even without ``train``.
    """
    folders = [folder.name for folder in folders_in(root)]
    train = [name for name in folders if canonical_split(name) == "train"]
    all_are_splits = bool(folders) and all(is_split_name(name) for name in folders)
    if not all_are_splits and not (train and folders_in(root / train[0])):
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


def beside_splits(root: Path, split_folders: Mapping[str, str], use_split: str | None) -> list[PassedOver]:
    """Files beside the folders of splits, and in folders there that are no usual split and were not asked for."""
    unused = [name for split, name in split_folders.items() if not is_split_name(split) and split != use_split]
    parts = {name: take_inventory(root / name, keep_masks=True) for name in unused}
    loose = take_inventory(root, keep_masks=True, skip=split_folders.values())
    return [
        *(PassedOver(f"in {name}", OTHER_PART, name, len(part.images)) for name, part in parts.items() if part.images),
        *(skipped._replace(place=name) for name, part in parts.items() for skipped in part.passed_over),
        *counted_beside(loose.images),
        *loose.passed_over,
    ]


def folders_in(folder: Path) -> list[Path]:
    """Visible folders that may hold images of the data, in natural order."""
    visible = [path for path in folder.iterdir() if is_visible(path.name) and path.is_dir()]
    return sorted((path for path in visible if folder_passed_over(path) is None), key=lambda path: natural_key(path.name))


def files_in(folder: Path) -> list[Path]:
    """Visible files, in natural order."""
    visible = [path for path in folder.iterdir() if is_visible(path.name) and path.is_file()]
    return sorted(visible, key=lambda path: natural_key(path.name))


class ImageFile(DataSource):
    """One file, of one image or of several slices; asked only where no labels are needed."""

    name = "image_file"
    description = "an image file"

    def accepts(self, location: str) -> bool:
        """Any existing file with the extension of an image."""
        path = Path(location)
        return path.is_file() and is_image_file(path)

    def open(self, location: str, request: SourceRequest) -> SourceRows:
        """List its slices."""
        path = Path(location)
        return rows_of_files([path], [path.name], request, name=path.stem, labels=None)


ONE_IMAGE = ImageFile()


_LISTED_EXTENSIONS = (*IMAGE_EXTENSIONS, *MEDICAL_EXTENSIONS)
_OF_TABLES = ("label_columns", "label_separator", "uncertain", "none_label", "group_column", "path_column", "image_root")


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
            request, "a folder of images", unused=_OF_TABLES, advice=advice if request.needs_labels else "Give a table instead."
        )
        root = Path(location)
        if not request.needs_labels:
            return _rows_below(root, request)
        base, beside = below_images(root, keep_masks=request.keep_masks)
        split_folders = find_split_folders(base)
        if not split_folders:
            if request.use_split not in (None, "train"):
                refuse_missing_split(request.use_split, [], f"The folder {root}")
            return _rows(root, {None: base}, (), request, beside)
        beside += beside_splits(base, split_folders, request.use_split)
        known = {name: base / folder for name, folder in split_folders.items() if is_split_name(name)}
        if request.use_split is None:
            return _rows(root, known, tuple(known), request, beside)
        refuse_missing_split(request.use_split, list(split_folders), f"The folder {root}")
        return _rows(root, {request.use_split: base / split_folders[request.use_split]}, tuple(known), request, beside)


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


def _rows_below(root: Path, request: SourceRequest) -> SourceRows:
    """Every image below; the folders of the first level are labels if each of them is the name of a known class."""
    base, passed_over = below_images(root, keep_masks=request.keep_masks)
    split_folders = find_split_folders(base)
    if request.use_split is not None:
        refuse_missing_split(request.use_split, list(split_folders), f"The folder {root}")
    parts = [base / name for split, name in split_folders.items() if request.use_split in (None, split)]
    label_of: dict[Path, str] = {}
    for part in parts or [base]:
        folder, masks = below_images(part, keep_masks=request.keep_masks)
        inventory = take_inventory(folder, keep_masks=request.keep_masks)
        passed_over += [*masks, *inventory.passed_over]
        label_of |= {file: file.relative_to(folder).parts[0] for file in inventory.images}
    if parts and request.use_split is not None:
        passed_over += beside_splits(base, split_folders, request.use_split)
    elif parts:
        inventory = take_inventory(base, keep_masks=request.keep_masks, skip=split_folders.values())
        passed_over += inventory.passed_over
        label_of |= {file: file.name for file in inventory.images}
    if not label_of:
        seen = " ".join(describe_files(FileCounts({}, tuple(passed_over))))
        raise DataError(
            f"No images in the folder {root}. Give a folder of images, one image, or a table of paths. {seen}".rstrip()
        )
    files = sorted(label_of, key=lambda path: natural_key(path.as_posix()))
    names = [whole_letters(file.relative_to(root).as_posix()) for file in files]
    labels = [whole_letters(label_of[file]) for file in files]
    known = set(labels) <= set(request.known_classes) and not request.several_labels
    loose = {name for name, path in zip(labels, files, strict=True) if path.name == name}
    folders = [name for name in dict.fromkeys(labels) if name not in loose]
    notices = [] if known or request.several_labels else almost_labels(folders, request, has_loose=bool(loose))
    listed = rows_of_files(
        files,
        names,
        request,
        name=root.resolve().name,
        labels=labels if known else None,
        groups=groups_from_paths(names, request.group_from),
        group_column=PATH_GROUPS,
        notices=notices,
        passed_over=passed_over,
    )
    # Names of folders may be those of patients, and are for the terminal alone.
    return replace(listed, reading=(*listed.reading, NO_LABELS)) if notices else listed


def _files_by_class(
    folder: Path, request: SourceRequest, notices: list[str], problems: list[str]
) -> tuple[dict[str, list[Path]], list[PassedOver]]:
    """Class name → its image files, both in natural order; and all other files."""
    folder, masks = below_images(folder, keep_masks=request.keep_masks)
    inventory = take_inventory(folder, keep_masks=request.keep_masks)
    loose = [path for path in inventory.images if path.parent == folder]
    files: dict[str, list[Path]] = {path.name: [] for path in folders_in(folder)}
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
    _suspect_classes_further_down(folder, files, notices)
    if loose:
        names = ", ".join(path.name for path in loose[:NAMES_IN_MESSAGE])
        verb = "is" if len(loose) == 1 else "are"
        beside = f"Beside the class folders of {folder} there {verb} {counted(len(loose), 'image')}"
        notices.append(f"{beside}, not used: {names}.")
    return files, [*masks, *inventory.passed_over, *counted_beside(loose)]


def _is_no_class(name: str, inventory: Inventory) -> bool:
    """Whether a folder without images holds what nobody takes for a class: runs, thumbnails, masks of all images, archives."""
    inside = [skipped for skipped in inventory.passed_over if skipped.place == name]
    if any(skipped.is_archive for skipped in inside):  # and perhaps their checksums
        return not any(skipped.is_image for skipped in inside)
    return bool(inside) and all(skipped.is_expected or skipped.is_derived for skipped in inside)


def _suspect_classes_further_down(folder: Path, files: Mapping[str, list[Path]], notices: list[str]) -> None:
    """Folders such as ``site A/benign`` would make classes of the sites, without any other sign of it."""
    class_names = list(files)
    parts = [[path.relative_to(folder / name).parts for path in paths] for name, paths in files.items()]
    below = [list(dict.fromkeys(names[0] for names in of_class if len(names) > 1)) for of_class in parts]
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
    for skipped in inventory.passed_over:
        extensions[skipped.kind] += skipped.number
    tables = [path.name for path in files_in(folder) if path.suffix.casefold() in TABLE_EXTENSIONS]
    hint = f" It holds the table {tables[0]}: give that file instead of the folder." if tables else ""
    kinds = ", ".join(f"{count} {kind}" for kind, count in extensions.most_common(3))
    raise DataError(
        f"No images in the folder {folder}: "
        + (f"found only files {kinds}." if kinds else "it is empty.")
        + f" Expected one sub-folder per class with files {', '.join(_LISTED_EXTENSIONS)}.{hint}"
    )
