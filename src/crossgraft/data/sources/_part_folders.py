"""Which folders are parts (train, val, test), which are called ``images`` and hold classes, and what lies beside them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from crossgraft.data.class_names import natural_key
from crossgraft.data.file_counts import BESIDE, OTHER_PART, PassedOver
from crossgraft.data.sources._derived_pictures import is_called_images
from crossgraft.data.sources._inventory import counted_by_kind, folder_passed_over, is_visible, take_inventory
from crossgraft.data.sources._split_names import canonical_split, is_split_name
from crossgraft.errors import DataError


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
    found = take_inventory(folder)
    loose = [path for path in found.images if path.parent == folder]
    holding = {path.relative_to(folder).parts[0] for path in found.images if path.parent != folder}
    masks = [each for each in found.passed_over if each.is_derived and each.place != called[0]]
    if holding != set(called) or not masks:
        return folder, []
    beside = [each for each in found.passed_over if each.place != called[0]]
    return folder / called[0], [*beside, *counted_by_kind(loose, BESIDE)]


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
    found = {name: take_inventory(root / name, keep_masks=True) for name in unused}
    loose = take_inventory(root, keep_masks=True, skip=split_folders.values())
    return [
        *(PassedOver(f"in {name}", OTHER_PART, name, len(each.images)) for name, each in found.items() if each.images),
        *(each._replace(place=name) for name, inside in found.items() for each in inside.passed_over),
        *counted_by_kind(loose.images, BESIDE),
        *loose.passed_over,
    ]


def folders_in(folder: Path) -> list[Path]:
    """Visible folders that may hold images of the data, in natural order."""
    visible = [path for path in folder.iterdir() if is_visible(path.name) and path.is_dir()]
    return sorted(
        (path for path in visible if folder_passed_over(path) is None), key=lambda path: natural_key(path.name)
    )


def files_in(folder: Path) -> list[Path]:
    """Visible files, in natural order."""
    visible = [path for path in folder.iterdir() if is_visible(path.name) and path.is_file()]
    return sorted(visible, key=lambda path: natural_key(path.name))
