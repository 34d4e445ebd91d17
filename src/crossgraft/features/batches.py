"""Batches of prepared images: the next one is made in the background while the model looks at this one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from torch import Tensor

from crossgraft.compute import is_out_of_memory
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import OutOfMemoryError
from crossgraft.progress import Reporter
from crossgraft.types import Preprocessing

Images = Float[Tensor, "_ channels height width"]


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


@dataclass(eq=False)
class BatchLoader:
    """Iterates over spans of rows; a batch never reaches over the end of a span.

    Args:
        dataset: Where images come from.
        preprocessing: Preprocessing of the backbone.
        spans: Rows to go through, for example one span a shard.
        batch_size: At most; lowered by ``shrink``.
        reporter: Reporter of warnings, used when the batch gets smaller.
    """

    dataset: ImageSource
    preprocessing: Preprocessing
    spans: Sequence[range]
    _: KW_ONLY
    batch_size: int
    reporter: Reporter

    def __iter__(self) -> Iterator[Images]:
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="prepare") as executor:
            pending = self._submit(executor, self._following(None))
            try:
                while pending is not None:
                    rows, future = pending
                    error = future.exception()
                    if error is not None:
                        if not is_out_of_memory(error):
                            raise error
                        self.shrink(error)
                        pending = self._submit(executor, rows[: self.batch_size])
                        continue
                    pending = self._submit(executor, self._following(rows))
                    yield future.result()
            finally:
                executor.shutdown(wait=True, cancel_futures=True)

    def load(self, rows: range) -> Images:
        """Read and prepare the images of ``rows``."""
        return prepare_batch([self.dataset.read(row) for row in rows], self.preprocessing)

    def shrink(self, error: BaseException) -> None:
        """Halve the batch after ``error``, and say so.

        Raises:
            OutOfMemoryError: The batch is one image already.
        """
        if self.batch_size == 1:
            raise OutOfMemoryError(
                "Not enough memory for a single image. Close other programs, choose a smaller model or a smaller "
                "--image-size, or another --device."
            ) from error
        self.batch_size //= 2
        self.reporter.warn(f"Out of memory; going on with batches of {self.batch_size} images.")

    def _submit(self, executor: ThreadPoolExecutor, rows: range | None) -> tuple[range, Future[Tensor]] | None:
        return None if rows is None else (rows, executor.submit(self.load, rows))

    def _following(self, rows: range | None) -> range | None:
        """The batch after ``rows``, or the first one."""
        spans = iter(self.spans)
        if rows is not None:
            span = next(span for span in spans if rows.start in span)
            if rows.stop < span.stop:
                return range(rows.stop, min(rows.stop + self.batch_size, span.stop))
        span = next(spans, None)
        return None if span is None else span[: self.batch_size]
