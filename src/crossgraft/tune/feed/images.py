"""The images of a training run: resized once, kept in memory where they fit, the same numbers where they do not."""

from __future__ import annotations

import hashlib
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int64, Shaped
from torch import Tensor

from crossgraft.compute import free_device_memory, is_out_of_memory, sent
from crossgraft.data.dataset import Dataset
from crossgraft.data.resizing import resize_images
from crossgraft.data.transforms import normalise_images
from crossgraft.errors import UsageError
from crossgraft.running.unattended import Kept, is_unattended
from crossgraft.tune.image_protocols import UnitImages
from crossgraft.types import Preprocessing

MEMORY_LIMIT_BYTES = 2 << 30
"""Resized images may take this much memory; a larger set is decoded again whenever a row is read."""
DEVICE_SHARE = 0.25
"""Share of the free memory of a GPU, when training begins, that resized images may take there."""

_WHITE_8_BIT = 255


@dataclass
class _Resident:
    """Images on a GPU.

    Attributes:
        device: Name of the GPU.
        images: Place for all of them; None where they do not fit.
        is_there: Whether each image is in its place; on the CPU.
    """

    device: str
    images: Tensor | None
    is_there: Bool[Tensor, " num_samples"]

    @classmethod
    def made(cls, shape: tuple[int, ...], dtype: torch.dtype, device: str) -> _Resident:
        is_there = torch.zeros(shape[0], dtype=torch.bool)
        if math.prod(shape) * dtype.itemsize > DEVICE_SHARE * free_device_memory(device):
            return cls(device, None, is_there)
        try:
            return cls(device, torch.empty(shape, dtype=dtype, device=device), is_there)
        except RuntimeError as error:
            if not is_out_of_memory(error):  # another program may have taken what was free
                raise
            return cls(device, None, is_there)


KEPT: Kept[tuple[Tensor, Tensor]] = Kept(MEMORY_LIMIT_BYTES // 4)
"""Resized images by the fingerprint of what they were made from, and which of them are there; bytes."""


class TrainingImages:
    """Images of a data set at the size of a network's input.

    An image is decoded and resized when its row is read for the first time. Where the whole set fits below the limit, it
    then stays in memory: as uint8 if all images have 8 bits, otherwise as float32 (half precision would merge levels of
    16 bits); grey sets keep one channel. Otherwise every read decodes again. The numbers are the same either way, and
    ``normalise(read(rows))`` is bit for bit what ``prepare_batch`` makes of these images. (One exception, a rounding of
    1e-7: in a set of mixed depths, ``prepare_batch`` would treat a batch that happens to have only 8 bits as such.)

    Every process of a parallel run holds its own copy. May be read from several threads.

    Args:
        dataset: Where images come from.
        preprocessing: Preprocessing of the network.
        memory_limit_bytes: Keep the resized images if they take at most this much; 0 keeps nothing.
        num_threads: Threads that decode and resize; they do not change a number.

    Raises:
        UsageError: The limit is negative, or there are no threads.
    """

    def __init__(
        self,
        dataset: Dataset,
        preprocessing: Preprocessing,
        *,
        memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
        num_threads: int = 1,
    ) -> None:
        if memory_limit_bytes < 0 or num_threads < 1:
            raise UsageError(
                f"Images need at least one thread and a memory limit of 0 bytes or more, not {num_threads} threads and "
                f"{memory_limit_bytes} bytes."
            )
        self.dataset = dataset
        self.preprocessing = preprocessing
        self.num_threads = num_threads
        kinds = [kind.split() for kind in dataset.image_kinds]
        self._in_8_bits = all(kind[-1] == "8-bit" for kind in kinds)
        self._grey = preprocessing.channels == 1 or all("grey" in kind for kind in kinds)
        self._dtype = torch.uint8 if self._in_8_bits else torch.float32
        self._fingerprint: str | None = None
        self._is_kept = torch.zeros(len(dataset), dtype=torch.bool)
        self._kept: Tensor | None = None
        self._resident: _Resident | None = None
        if self.total_bytes <= memory_limit_bytes:
            shared = KEPT.get(self.fingerprint) if is_unattended() else None
            if shared is None:
                shared = torch.empty((len(dataset), *self.image_shape), dtype=self._dtype), self._is_kept
                if is_unattended():
                    KEPT.keep(self.fingerprint, shared, self.total_bytes)
            self._kept, self._is_kept = shared

    def __len__(self) -> int:
        return len(self._is_kept)

    def __getstate__(self) -> dict[str, object]:
        """For another process: all resized images instead of the data set, whose readers cannot be sent.

        Raises:
            TypeError: The images do not stay in memory.
        """
        if self._kept is None:
            raise TypeError(f"{len(self)} images that are too many to be kept in memory")
        self._levels(torch.arange(len(self)))
        return {**self.__dict__, "dataset": None, "_fingerprint": self.fingerprint, "_resident": None}

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels (1 for sets that are grey), height and width in pixels of what ``read`` gives."""
        return 1 if self._grey else 3, self.preprocessing.height_pixels, self.preprocessing.width_pixels

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the images, their order and their preparation."""
        if self._fingerprint is None:
            facts = f"{self.dataset.fingerprint}\n{self.preprocessing.describe()}"
            self._fingerprint = hashlib.sha256(facts.encode()).hexdigest()
        return self._fingerprint

    @property
    def total_bytes(self) -> int:
        """Size of all resized images."""
        channels, height, width = self.image_shape
        return len(self.dataset) * channels * height * width * self._dtype.itemsize

    def read(self, rows: Int64[Tensor, " batch"], device: str = "cpu") -> UnitImages:
        """(batch, 1 or 3, height, width) float32 in [0, 1], not normalised; a row may be asked for several times.

        Where they fit (``DEVICE_SHARE``) images stay on a GPU once they were there; others go there as 8 bits each time.

        Raises:
            UnreadableImageError: A file is damaged or gone by now; the message names it.
        """
        images = self._levels_on(rows, device).to(torch.float32)
        # A division, not a product with 1/255: only then does normalise find the level of 8 bits again. A GPU makes a product
        # of it where the divisor is a number of the host.
        return images.div_(torch.full((), float(_WHITE_8_BIT), device=images.device)) if self._in_8_bits else images

    def are_all_on(self, device: str) -> bool:
        """Whether all images are on a GPU, so that reading them asks nothing of the host."""
        return self._resident is not None and self._resident.device == device and bool(self._resident.is_there.all())

    def normalise(self, images: UnitImages) -> Float32[Tensor, "batch input_channels height width"]:
        """(x − mean) / std, grey repeated over the channels of the input; on the device of ``images``."""
        if not self._in_8_bits:
            return normalise_images(images, self.preprocessing, full_range=1)
        # Through the levels of 8 bits, because (k / 255) · 255 = k holds in float32 for all of them.
        return normalise_images(images * _WHITE_8_BIT, self.preprocessing, full_range=_WHITE_8_BIT)

    def prepared(
        self, rows: Int64[Tensor, " batch"], device: str = "cpu"
    ) -> Float32[Tensor, "batch input_channels height width"]:
        """Images of ``rows`` as the network takes them."""
        return self.normalise(self.read(rows, device))

    def _levels_on(self, rows: Tensor, device: str) -> Shaped[Tensor, "batch samples height width"]:
        """The same as ``_levels``, on ``device``."""
        if device == "cpu":
            return self._levels(rows)
        if self._resident is None or self._resident.device != device:
            self._resident = _Resident.made((len(self), *self.image_shape), self._dtype, device)
        images, is_there = self._resident.images, self._resident.is_there
        if images is None:
            return sent(self._levels(rows), device)
        missing = rows[~is_there[rows]].unique()
        if len(missing):
            images.index_copy_(0, sent(missing, device), sent(self._levels(missing), device))
            is_there[missing] = True  # last, as below
        return images.index_select(0, sent(rows, device))

    def _levels(self, rows: Tensor) -> Shaped[Tensor, "batch samples height width"]:
        """Resized images as they are kept; a new tensor."""
        if self._kept is None:
            different, places = rows.unique(return_inverse=True)
            return self._decode(different)[places]
        missing = rows[~self._is_kept[rows]].unique()
        if len(missing):
            self._kept[missing] = self._decode(missing)
            self._is_kept[missing] = True  # last, so that another thread never reads what is not there yet
        return self._kept[rows]

    def _decode(self, rows: Tensor) -> Shaped[Tensor, "batch samples height width"]:
        def resized(row: int) -> np.ndarray:
            pixels = self.dataset.read(row)
            return resize_images([pixels], self.preprocessing, grey=self._grey, in_8_bits=self._in_8_bits)[0]

        images = torch.empty((len(rows), *self.image_shape), dtype=self._dtype)
        numbers = [int(row) for row in rows]
        if self.num_threads == 1 or len(numbers) < 2:
            for place, row in enumerate(numbers):
                images[place] = torch.from_numpy(resized(row)).permute(2, 0, 1)
            return images
        with ThreadPoolExecutor(max_workers=self.num_threads, thread_name_prefix="decode") as pool:
            for place, image in enumerate(pool.map(resized, numbers)):
                images[place] = torch.from_numpy(image).permute(2, 0, 1)
        return images
