"""From files to images: what the sources that read files have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from crossgraft.data.decoding import decode_file
from crossgraft.data.sources._source import SourceRequest


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Images in files: one a file, or several where a file holds slices.

    Attributes:
        names: One an image, for messages; no absolute path.
        rows: (num_images,) the file that each image comes from, as a place in the list that was given.
        decode: Pixels of image i; raises UnreadableImageError.
        groups: (num_images,) the patient that each file names in its own header, or None.
        group_column: What the groups are, in words.
        notices: What the user should know, one sentence each.
    """

    names: Sequence[str]
    rows: np.ndarray
    decode: Callable[[int], np.ndarray] = field(repr=False)
    groups: np.ndarray | None = None
    group_column: str | None = None
    notices: tuple[str, ...] = ()


def open_image_files(files: Sequence[Path], names: Sequence[str], request: SourceRequest) -> ImageFiles:
    """List the images of ``files``; reads headers at most.

    Args:
        files: Every one exists.
        names: What to call each file in messages.
        request: Says which slices and which window.
    """
    return ImageFiles(
        names=names,
        rows=np.arange(len(files)),
        decode=lambda image: decode_file(files[image], name=names[image]),
    )
