"""Every visible file below a folder: an image, or passed over with its reason."""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice, permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crossgraft.data._pillow_files import can_read
from crossgraft.data.class_names import natural_key
from crossgraft.data.decoding import IMAGE_EXTENSIONS, decode_file
from crossgraft.data.file_counts import (
    ARCHIVE,
    BESIDE,
    LEFT_BY_PROGRAMS,
    LINK,
    MASK,
    NEEDS_READER,
    NO_FILE,
    NOT_READ,
    RUN,
    PassedOver,
    joined_counts,
)
from crossgraft.data.medical.formats import file_extension, file_stem, is_image_file
from crossgraft.errors import UnreadableImageError
from crossgraft.paths import is_folder

_WORD = r"(?:masks?|seg|segmentations?|segmented|annotations?|ground_?truth|gt|roi|contours?|overlays?)"
_GAP = r"[ _.\-]+"
_SUFFIX = re.compile(rf"{_GAP}{_WORD}(?:[ _.\-]*\d+)?$", re.IGNORECASE)
_PREFIX = re.compile(rf"^{_WORD}{_GAP}(?=.)", re.IGNORECASE)
_FOLDER = re.compile(rf"^{_WORD}$", re.IGNORECASE)
_PERHAPS = re.compile(rf"(?:^|{_GAP}){_WORD}\d*(?:$|{_GAP})", re.IGNORECASE)
_IMAGES = re.compile(r"^(?:images?|imgs?|pictures?|photos?|originals?)$", re.IGNORECASE)
_FEW_FOLDERS = 5
_LOOKED_AT = 5
"""Pictures of one kind that are opened, where the name alone does not say that they are derived."""
_MOST_LOOKED_AT = 50
"""The same where all of them are blank so far."""
_PIXELS_A_SIDE = 128
_NEARLY_EQUAL = 8 / 255

_Pair = tuple[Path, Path]
"""A picture, and the image that it may be derived from."""


class _Picture(NamedTuple):
    """One file: its folders below the root, and its name without extension."""

    path: Path
    folders: tuple[str, ...]
    stem: str


_Named = defaultdict[tuple[tuple[str, ...], str], list[Path]]
"""(folders, name without extension) → files: ``NAME.jpg`` and ``NAME.png`` are two."""


def find_derived(images: Sequence[Path], root: Path) -> set[Path]:
    """Pictures that repeat the name of an image, and are called like masks or hold two grey values where that holds more.

    - ``NAME_mask``, ``NAME-seg``, ``NAME_mask_1``, ``mask_NAME`` beside ``NAME``;
    - all below ``masks/`` where at least half of its names are those of images around it: in ``images/`` or in any folder
      beside, or in the folder that ``masks/`` lies in. A folder of ``root`` may be a class of that name, and so may one whose
      name has other words (``lung_masks``): a few pictures are looked at, unless the folder beside is called ``images`` or
      ``masks/`` repeats the folders of classes;
    - ``NAME_x`` beside ``NAME``, ``NAME`` of another extension, or the same name in one of few folders beside or in the
      folder above (below those of classes), where the pictures of that kind that are looked at hold at most two grey values,
      one of them exactly two, and the images that they belong to hold more.

    Cost: by names alone, but for what is looked at: five pairs of each kind are decoded, 50 where all pictures are blank.
    """
    pictures = [_Picture(path, path.relative_to(root).parts[:-1], file_stem(path.name)) for path in images]
    named = _Named(list)
    for picture in pictures:
        named[picture.folders, picture.stem].append(picture.path)
    derived = {
        picture.path for picture in pictures if any((picture.folders, home) in named for home in _named_after(picture.stem))
    }
    derived |= _in_folders_of_masks(pictures)
    kinds: defaultdict[tuple[str, str], list[_Pair]] = defaultdict(list)
    for kind, pair in (*_of_one_name(named), *_of_longer_name(pictures, named), *_in_other_folders(pictures, named)):
        kinds[kind].append(pair)
    for pairs in kinds.values():
        left = [(file, image) for file, image in pairs if file not in derived and image not in derived]
        if _are_flat(left):
            derived.update(file for file, _ in left)
    return derived


def is_called_images(folder: str) -> bool:
    """Whether a folder is called as one of images is, and hardly a class."""
    return _IMAGES.match(folder) is not None


def is_called_masks(folder: str) -> bool:
    """Whether a folder is called as one of masks is."""
    return _FOLDER.match(folder) is not None


def _named_after(stem: str) -> list[str]:
    """Names of the images that a picture says it was derived from."""
    bare = _PREFIX.sub("", stem)
    homes = [_SUFFIX.sub("", stem)] if bare == stem else [bare, f"image_{bare}", f"img_{bare}"]
    return [home for home in homes if home != stem]


def _homes(picture: _Picture) -> list[str]:
    return [picture.stem, *_named_after(picture.stem)]


def _in_folders_of_masks(pictures: Sequence[_Picture]) -> set[Path]:
    inside: defaultdict[tuple[str, ...], list[_Picture]] = defaultdict(list)
    below: defaultdict[tuple[tuple[str, ...], str], list[_Picture]] = defaultdict(list)
    for picture in pictures:
        sure = next((index for index, name in enumerate(picture.folders) if is_called_masks(name)), None)
        depth = next((index for index, name in enumerate(picture.folders) if _PERHAPS.search(name)), None)
        depth = depth if sure is None else sure
        if depth is not None:
            inside[picture.folders[: depth + 1]].append(picture)
        for end in range(len(picture.folders) + 1) if sure is None else ():
            below[picture.folders[:end], picture.stem].append(picture)
    masks_inside = set[Path]()
    for folder, masks in inside.items():
        pairs: list[tuple[_Picture, _Picture]] = []
        for mask in masks:
            images = [
                picture
                for home in _homes(mask)
                for picture in below.get((folder[:-1], home), ())
                if picture.folders[: len(folder)] != folder
            ]
            if images:
                pairs.append((mask, min(images, key=lambda picture: _likelihood(picture, mask.folders[len(folder) :]))))
        if 2 * len(pairs) < len(masks):
            continue
        certain = [pair for pair in pairs if is_called_masks(folder[-1]) and _is_no_class(*pair, depth=len(folder))]
        if 2 * len(certain) >= len(masks) or _look_derived([(mask.path, image.path) for mask, image in pairs]):
            masks_inside.update(mask.path for mask in masks)
    return masks_inside


def _likelihood(image: _Picture, folders: tuple[str, ...]) -> tuple[bool, bool]:
    """How unlikely an image is the one of a mask in ``folders`` below the folder of masks; the least comes first."""
    return any(map(_PERHAPS.search, image.folders)), not _ends_with(image.folders, folders)


def _ends_with(folders: tuple[str, ...], end: tuple[str, ...]) -> bool:
    return bool(end) and folders[-len(end) :] == end


def _is_no_class(mask: _Picture, image: _Picture, *, depth: int) -> bool:
    """Whether the folders say that no class is called ``masks``: it lies in a class, beside ``images``, or repeats classes."""
    top = image.folders[0] if image.folders else ""
    return depth > 1 or not top or is_called_images(top) or _ends_with(image.folders, mask.folders[depth:])


def _of_one_name(named: _Named) -> Iterator[tuple[tuple[str, str], _Pair]]:
    for paths in named.values():
        for derived, image in permutations(paths, 2):
            yield ("extension", f"{file_extension(derived.name)}/{file_extension(image.name)}"), (derived, image)


def _of_longer_name(pictures: Iterable[_Picture], named: _Named) -> Iterator[tuple[tuple[str, str], _Pair]]:
    """The longest other name that a name goes on from, at a character that is no letter and no digit."""
    for picture in pictures:
        ends = [match.start() for match in re.finditer(r"[^A-Za-z0-9]", picture.stem)]
        home = next((picture.stem[:end] for end in reversed(ends) if (picture.folders, picture.stem[:end]) in named), None)
        for image in named[picture.folders, home] if home is not None else ():
            yield ("suffix", re.sub(r"\d+", "#", picture.stem[len(home or "") :])), (picture.path, image)


def _in_other_folders(pictures: Sequence[_Picture], named: _Named) -> Iterator[tuple[tuple[str, str], _Pair]]:
    """Pictures whose folders differ in one, or lack one, that is below those of classes and one of few."""
    alike: defaultdict[tuple[tuple[str, ...], int, str], list[_Picture]] = defaultdict(list)
    beside: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for picture in pictures:
        for depth in range(1, len(picture.folders)):
            alike[_without(picture.folders, depth), depth, picture.stem].append(picture)
            beside[picture.folders[:depth]].add(picture.folders[depth])
    for picture in pictures:
        for depth in range(1, len(picture.folders)):
            if len(beside[picture.folders[:depth]]) > _FEW_FOLDERS:
                continue
            name, rest = picture.folders[depth], _without(picture.folders, depth)
            for home in _homes(picture):
                for sibling in alike.get((rest, depth, home), ()):
                    if sibling.folders[depth] != name:
                        yield ("folder", f"{name}/{sibling.folders[depth]}"), (picture.path, sibling.path)
                for image in named.get((rest, home), ()):
                    yield ("folder", name), (picture.path, image)


def _without(folders: tuple[str, ...], depth: int) -> tuple[str, ...]:
    return folders[:depth] + folders[depth + 1 :]


def _are_flat(pairs: Sequence[_Pair]) -> bool:
    """Whether pictures hold at most two colours, one of them exactly two, and the images of the same size more."""
    some = _some(pairs)
    holds_two = False
    for number, pair in enumerate(islice(chain(some, (pair for pair in pairs if pair not in some)), _MOST_LOOKED_AT)):
        if number >= _LOOKED_AT and holds_two:
            break
        decoded = _decoded(pair)
        if decoded is None:
            continue
        derived, image = map(_num_colours, decoded)
        if decoded[0].shape[:2] != decoded[1].shape[:2] or derived > 2 or (derived == 2 and image <= 2):
            return False
        holds_two = holds_two or derived == 2
    return holds_two


def _look_derived(pairs: Sequence[_Pair]) -> bool:
    """Whether pictures have the size of their images, and are plainer or the same with something drawn over it."""
    decoded = [decoded_pair for pair in _some(pairs) if (decoded_pair := _decoded(pair)) is not None]
    return bool(decoded) and all(
        derived.shape[:2] == image.shape[:2] and (_is_plainer(derived, image) or _is_drawn_over(derived, image))
        for derived, image in decoded
    )


def _is_plainer(derived: np.ndarray, image: np.ndarray) -> bool:
    """Whether two colours fill at least half of a picture, and more than they fill of its image."""
    share = _filled_by_two(derived)
    return share >= 0.5 and share > _filled_by_two(image)


def _filled_by_two(pixels: np.ndarray) -> float:
    """Share of a picture that its two most frequent colours fill."""
    some = _thinned(pixels).reshape(-1, pixels.shape[2])
    numbers = np.sort(np.unique(some, axis=0, return_counts=True)[1])
    return float(numbers[-2:].sum() / len(some))


def _is_drawn_over(derived: np.ndarray, image: np.ndarray) -> bool:
    """Whether most pixels are almost those of the image."""
    difference = np.abs(_as_fraction(_thinned(derived)) - _as_fraction(_thinned(image)))
    return float(np.median(difference)) <= _NEARLY_EQUAL


def _as_fraction(pixels: np.ndarray) -> np.ndarray:
    white = 1.0 if pixels.dtype.kind == "f" else float(np.iinfo(pixels.dtype).max)
    return pixels.astype(np.float64) / white


def _thinned(pixels: np.ndarray) -> np.ndarray:
    return pixels[:: 1 + pixels.shape[0] // _PIXELS_A_SIDE, :: 1 + pixels.shape[1] // _PIXELS_A_SIDE]


def _some(pairs: Sequence[_Pair]) -> list[_Pair]:
    return list(pairs[:: max(1, len(pairs) // _LOOKED_AT)][:_LOOKED_AT])


def _decoded(pair: _Pair) -> list[np.ndarray] | None:
    """The pixels of both; None where one cannot be read, which says nothing about the others."""
    try:
        return [decode_file(path) for path in pair]
    except UnreadableImageError:
        return None


def _num_colours(pixels: np.ndarray) -> int:
    """How many colours there are, up to three."""
    left, number = pixels.reshape(-1, pixels.shape[2]), 0
    while len(left) and number < 3:
        left, number = left[(left != left[0]).any(axis=1)], number + 1
    return number


_ALSO_LEFT = ("Thumbs.db", "desktop.ini", "DICOMDIR")  # the last is the index of a DICOM medium
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst")


class Inventory(NamedTuple):
    """What lies below a folder.

    Attributes:
        images: Files that are read, in natural order.
        passed_over: All other visible files, the most frequent kind first.
    """

    images: list[Path]
    passed_over: list[PassedOver]


def take_inventory(folder: Path, *, keep_masks: bool = False, skip: Collection[str] = ()) -> Inventory:
    """Walk through a folder once.

    Args:
        folder: Where to start; folders that are linked there are followed, and none further down.
        keep_masks: Whether pictures that were derived from others are images.
        skip: Names of folders there that are no part of the question.

    Cost: a walk; derived pictures are looked for by name, and a few of each kind are opened.
    """
    images: list[Path] = []
    others: list[PassedOver] = []

    def pass_over(path: Path, kind: str, reason: str, number: int = 1) -> None:
        parts = path.relative_to(folder).parts
        others.append(PassedOver(kind, reason, parts[0] if len(parts) > 1 else "", number))

    pending = [folder]
    while pending:
        at = pending.pop()
        with os.scandir(at) as listed:
            entries = list(listed)
        for entry in entries:
            if not is_visible(entry.name) or (at == folder and entry.name in skip):
                continue
            path = Path(entry.path)
            if is_folder(path):  # a circle of links is none
                reason = folder_passed_over(path)
                if reason is None and entry.is_symlink() and at != folder:
                    reason = LINK
                if reason is None:
                    pending.append(path)
                else:
                    pass_over(path, _kind_of_folder(entry.name, reason), reason, _num_files(path, reason))
            elif _is_no_file(entry):
                pass_over(path, kind_of_file(path), NO_FILE)
            elif is_readable(path):
                images.append(path)
            else:
                pass_over(path, kind_of_file(path), _why_not(path))
    derived = set[Path]() if keep_masks else find_derived(images, folder)
    for path in derived:
        pass_over(path, kind_of_file(path), MASK)
    kept = sorted((path for path in images if path not in derived), key=lambda path: natural_key(path.as_posix()))
    return Inventory(kept, list(joined_counts(others)))


def _is_no_file(entry: os.DirEntry[str]) -> bool:
    """Whether it is there and neither file nor folder: a pipe, which would be waited for, a socket or a device."""
    try:
        return not entry.is_file() and Path(entry.path).exists()
    except OSError:  # a circle of links, which is named when it is read
        return False


def counted_beside(files: Iterable[Path]) -> list[PassedOver]:
    """Files that are passed over beside the folders of classes."""
    return [PassedOver(kind, BESIDE, "", number) for kind, number in Counter(map(kind_of_file, files)).items()]


def kind_of_file(path: Path) -> str:
    """Its extension, if that is one: the end of an identifier or of a date says who somebody is, and no kind.

    >>> kind_of_file(Path("a.PNG")), kind_of_file(Path("1.2.840.4711")), kind_of_file(Path("IM0001"))
    ('.png', 'without extension', 'without extension')
    """
    extension = file_extension(path.name)
    return extension if re.fullmatch(r"(\.[a-z][a-z0-9]{0,4}|\.nii\.gz|\.dcm\.gz|\.7z)", extension) else "without extension"


def is_visible(name: str) -> bool:
    """Neither hidden nor one of the single files that operating systems leave in every folder."""
    return not name.startswith(".") and name not in _ALSO_LEFT


def is_readable(path: Path) -> bool:
    """Whether a file is an image whose reader is here."""
    return is_image_file(path) and can_read(file_extension(path.name))


def folder_passed_over(folder: Path) -> str | None:
    """Why nothing in a folder is an image of the data; None: it may hold some."""
    if folder.name in LEFT_BY_PROGRAMS:
        return LEFT_BY_PROGRAMS[folder.name]
    return RUN if _is_run(folder) else None


def _is_run(folder: Path) -> bool:
    """Whether a command of this program wrote it: its record says so."""
    try:
        return "crossgraft_version" in json.loads((folder / "run.json").read_bytes())
    except (OSError, ValueError, TypeError):
        return False


def _kind_of_folder(name: str, reason: str) -> str:
    return {RUN: "in folders of runs", LINK: "link"}.get(reason, f"in {name}")


def _num_files(folder: Path, reason: str) -> int:
    return 1 if reason == LINK else sum(is_visible(name) for _, _, names in os.walk(folder) for name in names)


def _why_not(path: Path) -> str:
    extension = file_extension(path.name)
    if extension in _ARCHIVES:
        return ARCHIVE
    return NEEDS_READER if extension in IMAGE_EXTENSIONS and not can_read(extension) else NOT_READ
