"""Where a pass gets its images from: a data set, or one whose images are resized once for all networks of a command."""

from __future__ import annotations

import shutil
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Protocol, runtime_checkable

import numpy as np

from crossgraft.data.resizing import resize_image
from crossgraft.progress import Reporter
from crossgraft.types import Preprocessing

LARGEST_SCRATCH_BYTES = 8 * 2**30
"""Resized images of one command take at most this much of a disk, and half of what is free on it."""


@runtime_checkable
class ImageSource(Protocol):
    """What extraction asks of a data set; ``crossgraft.data.Dataset`` is one."""

    @property
    def fingerprint(self) -> str:
        """Changes with any pixel and with the order."""
        ...

    def __len__(self) -> int: ...

    def read(self, index: int, /) -> np.ndarray:
        """One image (H, W, C)."""
        ...

    def image_name(self, index: int, /) -> str:
        """For messages."""
        ...


class _Place(NamedTuple):
    """Where a resized image lies in the scratch file."""

    start: int
    shape: tuple[int, ...]
    dtype: np.dtype


class ResizedOnce:
    """Images that are decoded and resized once for all networks of a command that take them in the same way.

    A resized image is kept in a scratch file that is read as a memory map, 8 bits as 8 bits, until the block ends. The file has
    no name (on Windows it goes when it is closed), so that a killed process leaves nothing. What does not fit into the bound is
    made again each time; where the disk is full, all images are, which is said once.

    Safe to use from several threads.

    Args:
        images: Where they come from.
        folder: Folder of the scratch file, made where it is missing.
        reporter: Reporter of the warning.
    """

    def __init__(self, images: ImageSource, folder: Path, reporter: Reporter) -> None:
        self.images, self.folder, self.reporter = images, folder, reporter
        self._places: dict[tuple[Preprocessing, int], _Place] = {}
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._map = np.empty(0, dtype=np.uint8)
        self._end, self._room = 0, LARGEST_SCRATCH_BYTES

    def __enter__(self) -> ResizedOnce:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._give_up()

    @property
    def fingerprint(self) -> str:
        """That of the images."""
        return self.images.fingerprint

    def __len__(self) -> int:
        return len(self.images)

    def read(self, index: int, /) -> np.ndarray:
        """One image (H, W, C), as it is."""
        return self.images.read(index)

    def image_name(self, index: int, /) -> str:
        """For messages."""
        return self.images.image_name(index)

    def resized(self, index: int, preprocessing: Preprocessing) -> np.ndarray:
        """What ``resize_image`` makes of one image; kept."""
        key = way_of_resizing(preprocessing), index
        kept = self._kept(key)
        if kept is not None:
            return kept
        image = resize_image(self.images.read(index), preprocessing)
        with self._lock:
            if key not in self._places and image.nbytes <= self._room:
                self._keep(key, image)
        return image

    def _kept(self, key: tuple[Preprocessing, int]) -> np.ndarray | None:
        with self._lock:
            place = self._places.get(key)
            if place is None or self._file is None:
                return None
            if place.start >= len(self._map):  # a map of all that is there by now
                self._map = np.asarray(np.memmap(self._file, np.uint8, "r", shape=(self._end,)))
            kept = self._map
        size = int(np.prod(place.shape)) * place.dtype.itemsize
        return kept[place.start : place.start + size].view(place.dtype).reshape(place.shape)

    def _keep(self, key: tuple[Preprocessing, int], image: np.ndarray) -> None:
        """Append it; written, because a disk that is full would end a process that writes into a map."""
        try:
            if self._file is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._file = tempfile.TemporaryFile(dir=self.folder, buffering=0)  # noqa: SIM115 - open until the block ends
                self._room = min(self._room, shutil.disk_usage(self.folder).free // 2)
            left = memoryview(image.tobytes())
            self._file.seek(self._end)
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self._give_up()
            self.reporter.warn(
                f"Each model resizes the images again, because {self.folder} has no place for them: {error.strerror or error}."
            )
        else:
            self._places[key] = _Place(self._end, image.shape, image.dtype)
            self._end += image.nbytes
            self._room -= image.nbytes

    def _give_up(self) -> None:
        """Give the place back, which features may need, and keep nothing more."""
        self._places.clear()
        self._room = -1
        self._map = np.empty(0, dtype=np.uint8)
        if self._file is not None:
            self._file.close()
            self._file = None


def resized(images: ImageSource, index: int, preprocessing: Preprocessing) -> np.ndarray:
    """What ``resize_image`` makes of one image, kept where the source keeps it."""
    if isinstance(images, ResizedOnce):
        return images.resized(index, preprocessing)
    return resize_image(images.read(index), preprocessing)


def way_of_resizing(preprocessing: Preprocessing) -> Preprocessing:
    """The same for all that resize alike: what is done with numbers afterwards does not count."""
    channels = preprocessing.channels
    crop = preprocessing.crop_fraction if preprocessing.resize_policy == "crop" else 1.0
    return replace(preprocessing, mean=(0.0,) * channels, std=(1.0,) * channels, crop_fraction=crop)
