"""Masks and other pictures that were derived from an image and lie beside it: they are no images of the data."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crossgraft.data.decoding import decode_file
from crossgraft.data.medical.formats import file_stem
from crossgraft.errors import UnreadableImageError

_WORD = r"(?:masks?|seg|segmentations?|segmented|annotations?|ground_?truth|gt|roi|contours?|overlays?)"
_SUFFIX = re.compile(rf"[ _.\-]+{_WORD}(?:[ _.\-]*\d+)?$", re.IGNORECASE)
_FOLDER = re.compile(rf"^{_WORD}$", re.IGNORECASE)
_FEW_FOLDERS = 5
_LOOKED_AT = 5
"""Pictures of one kind that are opened, where the name alone does not say that they are derived."""


def find_derived(images: Sequence[Path], root: Path) -> set[Path]:
    """Pictures that repeat the name of an image, and are called like masks or hold two grey values where that holds more.

    - ``NAME_mask``, ``NAME-seg``, ``NAME_mask_1`` beside ``NAME``;
    - all of ``masks/`` beside ``images/``, where at least half of its names are those of images there;
    - ``NAME_x`` beside ``NAME``, or the same name in one of few folders beside (below those of classes), where the pictures
      of that kind that are looked at hold two grey values and the images that they belong to hold more.

    Args:
        images: All image files of the data.
        root: Folder of the data.

    Cost: by names alone, but for the last kind, of which five pairs each are decoded.
    """
    by_folder: defaultdict[Path, dict[str, Path]] = defaultdict(dict)
    for path in images:
        by_folder[path.parent][file_stem(path.name)] = path
    found = set[Path]()
    kinds: defaultdict[tuple[str, str], list[tuple[Path, Path]]] = defaultdict(list)
    siblings: defaultdict[Path, list[Path]] = defaultdict(list)
    for folder in by_folder:
        siblings[folder.parent].append(folder)
    for folder, stems in by_folder.items():
        beside = [other for other in siblings[folder.parent] if other != folder]
        is_called_so = _FOLDER.match(folder.name) is not None
        for stem, path in stems.items():
            named = _SUFFIX.sub("", stem)
            if named != stem and named in stems:
                found.add(path)
            elif home := _longest_start(stem, stems):
                kinds["suffix", re.sub(r"\d+", "#", stem[len(home) :])].append((path, stems[home]))
        may_be_told = len(beside) < _FEW_FOLDERS and folder.parent != root
        for other in beside if is_called_so or may_be_told else ():
            shared = [
                (stems[stem], by_folder[other][home])
                for stem in stems
                for home in (stem, _SUFFIX.sub("", stem))
                if home in by_folder[other]
            ]
            if is_called_so and not _FOLDER.match(other.name) and 2 * len(shared) >= len(stems):
                found.update(stems.values())
            elif shared and may_be_told:
                kinds["folder", folder.name + "/" + other.name].extend(shared)
    for pairs in kinds.values():
        left = [pair for pair in pairs if pair[0] not in found]
        looked = left[:: max(1, len(left) // _LOOKED_AT)][:_LOOKED_AT]
        if looked and all(_is_flat(derived, of=image) for derived, image in looked):
            found.update(derived for derived, _ in left)
    return found


def _longest_start(stem: str, stems: dict[str, Path]) -> str | None:
    """The longest other name that this one goes on from, at a character that is no letter and no digit."""
    ends = [match.start() for match in re.finditer(r"[^A-Za-z0-9]", stem)]
    return next((stem[:end] for end in reversed(ends) if stem[:end] in stems), None)


def _is_flat(derived: Path, *, of: Path) -> bool:
    """Whether a picture holds two grey values, and the image of the same size that it belongs to more."""
    try:
        pictures = [decode_file(path) for path in (derived, of)]
    except UnreadableImageError:
        return False
    if pictures[0].shape[:2] != pictures[1].shape[:2]:
        return False
    num_values = [len(np.unique(picture.reshape(-1, picture.shape[2]), axis=0)) for picture in pictures]
    return num_values[0] == 2 < num_values[1]
