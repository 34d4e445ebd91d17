"""Look at every image once: prepare, run the backbone, keep the features."""

from __future__ import annotations

import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import timm
import torch

from crossgraft.compute import available_cores, is_out_of_memory, limit_threads, reuse_freed_memory, rounded_size
from crossgraft.errors import DataError, OutOfMemoryError, StorageError, UsageError
from crossgraft.features.passes import BatchLoader, ImageSource, run_pass
from crossgraft.features.store import ROWS_PER_SHARD, FeatureSet, FeatureStore, FloatArray, cache_folder, feature_key
from crossgraft.models import Backbone
from crossgraft.models.device import explain_lost_device, move_to_device
from crossgraft.models.memory_format import channels_last
from crossgraft.models.penultimate import BackboneOutput
from crossgraft.models.taps import state_kept
from crossgraft.paths import is_file
from crossgraft.progress import SILENT_SECONDS, Reporter, TypicalClock
from crossgraft.version import __version__
from crossgraft.words.formatting import rounded_time

_LEAST_SECONDS, _SHARE, _MOST_SECONDS = 0.15, 1 / 25, 1.0
"""Timing goes on within this share of the work that is announced, and takes two tries in any case. The least of it is spent where
it is less than half of the work: of a quarter of a second, nobody needs to know more.

The seconds are those of an idle machine: on a busy one as much is looked at, which takes longer."""
_GROWTH = 4
_FEWEST_TRIES, _MOST_TRIES = 2, 9


class CostEstimate(NamedTuple):
    """Before the start.

    Attributes:
        seconds: For the images that are left.
        num_bytes: On the disk, for all images.
    """

    seconds: float
    num_bytes: int

    def describe(self) -> str:
        """For people.

        >>> CostEstimate(42.3, 12_400_000).describe()
        'about 40 s, 12 MB'
        """
        return f"about {rounded_time(self.seconds)}, {rounded_size(self.num_bytes)}"


def estimate_cost(backbone: Backbone, loader: BatchLoader, *, num_left: int, num_samples: int) -> CostEstimate:
    """Time the preparation and the forward pass of a few images.

    Args:
        backbone: Woken up by one image first, which is not counted.
        loader: Loader of the remaining images.
        num_left: Number of remaining images.
        num_samples: All images, for the size on the disk.
    """
    rows = loader.spans[0][: loader.batch_size]
    with state_kept(backbone.module):
        seconds = seconds_a_row(
            lambda number: backbone(loader.load(rows[:number])).features.cpu(), most=len(rows), num_rows=num_left
        )
    width = backbone.num_features + (backbone.num_source_classes or 0)
    return CostEstimate(seconds * num_left, 4 * num_samples * width)


def seconds_a_row(look: Callable[[int], object], *, most: int, num_rows: int, clock: TypicalClock | None = None) -> float:
    """Seconds on the clock that each row takes: the median of a few tries, on a busy machine all of them longer.

    Rows are cheaper in larger batches, so these grow towards those of the real work for as long as timing stays cheap. The
    first look at a batch of a new size is not counted, because it also makes what is kept for the next one.

    Args:
        look: Does the work for so many rows; what it returns is in main memory, so that an accelerator has come to its end.
        most: Size of the batches of the real work.
        num_rows: Rows that the real work has.
        clock: Clock of this thread; by default a new one.
    """
    now = TypicalClock() if clock is None else clock

    def affordable(seconds_of_all: float) -> float:
        least, most_seconds = now.slowdown * _LEAST_SECONDS, now.slowdown * _MOST_SECONDS
        return min(most_seconds, max(min(least, seconds_of_all / 2), _SHARE * seconds_of_all))

    def timed(size: int) -> float:
        start = now()
        look(size)
        return now() - start

    look(1)
    size, took = 1, min(timed(1), timed(1))  # after one that was interrupted, no larger batch would seem affordable
    spent, a_row_more = took, took
    while size < most:
        larger = min(most, _GROWTH * size)
        if spent + took + a_row_more * (larger - size) > affordable(took / size * num_rows):
            break
        before, took = took, timed(larger)
        a_row_more = max(0.0, took - before) / (larger - size)  # a look has a price of its own, however few the rows
        size, spent = larger, spent + took
    tries = [took] if size == 1 else []
    while len(tries) < _FEWEST_TRIES or (
        len(tries) < _MOST_TRIES and spent + took <= affordable(median(tries) / size * num_rows)
    ):
        took = timed(size)
        spent += took
        tries.append(took)
    return median(tries) / size


LARGEST_BATCH = 64
PIXELS_A_BATCH = 8 * 224 * 224
_NAMED_ROWS = 5
_ATTEMPTS = 3


def extract_features(
    dataset: ImageSource,
    backbone: Backbone,
    *,
    cache_dir: str | Path | None = None,
    batch_size: int | None = None,
    num_threads: int | None = None,
    reporter: Reporter | None = None,
    title: str | None = None,
    is_announced: bool = False,
) -> FeatureSet:
    """Penultimate features and source logits of every image, from the cache where they are there already.

    The same command again goes on where a killed one stopped and gives the same bytes as an uninterrupted
    one: batches never reach over a shard. Another batch size or another number of threads can change the last
    digits of a float32.

    Args:
        dataset: Images in a fixed order.
        backbone: Backbone that is applied; it also determines the preprocessing.
        cache_dir: Folder of all features; by default ``$CROSSGRAFT_CACHE/features`` or the user's cache
            folder.
        batch_size: Images at once, at most one shard (512); halved when memory runs out. By default what is fastest
            (see ``default_batch_size``).
        num_threads: For the network; one more thread prepares images. By default torch's, but at most the
            cores that this process may use.
        reporter: Reporter of the estimate, the progress and every warning.
        title: Title of the progress line.
        is_announced: Whether somebody has said already how long it will take.

    Raises:
        UsageError: The batch size or the number of threads is below 1.
        DataError: There are no images, or features are NaN or infinite; the message names model and rows.
        StorageError: The disk is full before all features are written; finished shards stay.
        OutOfMemoryError: A single image does not fit into main memory.
        DeviceLostError: The accelerator failed; finished shards stay.

    Warns:
        Where a single image does not fit on an accelerator, the backbone moves to the CPU.
        A folder that cannot be written keeps nothing; the features are then in memory.
    """
    reporter = reporter or Reporter(quiet=True)
    title = title or f"Looking at {len(dataset)} images with {backbone.name}"
    batch_size = batch_size if batch_size is not None else default_batch_size(backbone)
    if batch_size < 1 or (num_threads is not None and num_threads < 1):
        raise UsageError(f"Batch size and threads must be at least 1, found {batch_size} and {num_threads}.")
    if len(dataset) == 0:
        raise DataError(f"{title}: there are no images to look at.")
    store = _store_of(dataset, backbone, cache_dir)
    stored = store.read()
    if stored is not None:
        store.tidy()  # an earlier process may have been killed between its last two steps
        reporter.mention(f"{title}: read from the cache")
        return stored
    threads = num_threads or min(torch.get_num_threads(), available_cores())
    with limit_threads(threads), reuse_freed_memory(), channels_last(backbone):
        extraction = _Extraction(dataset, backbone, store, min(batch_size, ROWS_PER_SHARD), reporter, is_announced)
        try:
            extraction.write_manifest()
        except StorageError as error:
            reporter.warn(f"The features of {backbone.name} are not kept for the next command: {error}")
            with tempfile.TemporaryDirectory(prefix="crossgraft-") as folder:
                extraction.store = store.moved_to(Path(folder))
                return extraction.finished(title).in_memory()
        return extraction.finished(title)


def features_are_kept(dataset: ImageSource, backbone: Backbone, *, cache_dir: str | Path | None = None) -> bool:
    """Whether ``extract_features`` would find them; the file is not read."""
    return is_file(_store_of(dataset, backbone, cache_dir).path)


def foresee_extraction(
    dataset: ImageSource,
    backbone: Backbone,
    *,
    cache_dir: str | Path | None = None,
    batch_size: int | None = None,
    reporter: Reporter,
) -> float:
    """Seconds that ``extract_features`` of the same arguments will take, after a look at a few images; 0 where they are kept."""
    if features_are_kept(dataset, backbone, cache_dir=cache_dir):
        return 0.0
    number = len(dataset)
    at_once = default_batch_size(backbone) if batch_size is None else batch_size
    loader = BatchLoader(
        dataset, backbone.preprocessing, [range(number)], batch_size=at_once, reporter=reporter, device=backbone.device
    )
    return estimate_cost(backbone, loader, num_left=number, num_samples=number).seconds


def _store_of(dataset: ImageSource, backbone: Backbone, cache_dir: str | Path | None) -> FeatureStore:
    key = feature_key(dataset.fingerprint, backbone)
    folder = cache_folder(cache_dir) / key[:2] / key
    return FeatureStore(folder, len(dataset), backbone.num_features, backbone.num_source_classes)


def default_batch_size(backbone: Backbone) -> int:
    """Images at once: 64 on an accelerator; on a CPU a power of two from 4 to 64 with about 400 000 pixels together.

    A larger batch makes a CPU slower and takes more memory: MobileNetV2 at 224 pixels looked at 43 images a CPU second in batches
    of 8 and at 37 in batches of 64, with freed memory kept (29 and 16 without), on one core.
    """
    if not backbone.device.startswith("cpu"):
        return LARGEST_BATCH
    pixels = backbone.preprocessing.height_pixels * backbone.preprocessing.width_pixels
    fitting = max(1, PIXELS_A_BATCH // pixels)
    return min(LARGEST_BATCH, max(4, 1 << (fitting.bit_length() - 1)))


@dataclass(eq=False)
class _Extraction:
    """One data set, one backbone, one folder, which another may take the place of."""

    dataset: ImageSource
    backbone: Backbone
    store: FeatureStore
    batch_size: int
    reporter: Reporter
    is_announced: bool

    def write_manifest(self) -> None:
        """The first that is written into the folder.

        Raises:
            StorageError: It cannot be written.
        """
        self.store.write_manifest(self._facts())

    def finished(self, title: str) -> FeatureSet:
        """All features.

        Raises:
            StorageError: They cannot be written, or come back damaged.
        """
        for _ in range(_ATTEMPTS):  # a second one only when another process or a fault took shards away
            try:
                self._run(title)
            except OutOfMemoryError:
                if self.backbone.device.startswith("cpu"):
                    raise
                self._go_on_on_the_host()
                self._run(title)
            features = self.store.finish()
            if features is not None:
                return replace(features, from_cache=False)
        raise StorageError(
            f"Features written into {self.store.folder} came back damaged {_ATTEMPTS} times. Check that disk, or set "
            "CROSSGRAFT_CACHE to a folder on another one."
        )

    def _go_on_on_the_host(self) -> None:
        device, self.backbone.device = self.backbone.device, "cpu"
        self.reporter.warn(f"The memory of {device} is full; {self.backbone.name} goes on on the CPU, which takes longer.")
        move_to_device(self.backbone.module, "cpu")
        self.batch_size = default_batch_size(self.backbone)

    def _run(self, title: str) -> None:
        """Compute every missing shard."""
        missing = self.store.missing_shards()
        for name in self.store.damaged:
            self.reporter.warn(f"The stored features {name} of {self.backbone.name} are damaged; computing them again.")
        self.store.damaged.clear()
        if not missing:
            return
        spans = [self.store.rows(shard) for shard in missing]
        num_left = sum(map(len, spans))
        loader = BatchLoader(
            self.dataset,
            self.backbone.preprocessing,
            spans,
            batch_size=self.batch_size,
            reporter=self.reporter,
            device=self.backbone.device,
        )
        if not self.is_announced:
            self._announce(title, loader, num_left)
        with (
            self.reporter.stage(title, total=num_left, unit="images") as stage,
            explain_lost_device(self.backbone.device),
            self.backbone.in_precision(),
            closing(run_pass(self.backbone, loader, on_images=stage.advance)) as outputs,
        ):
            self._compute(missing, outputs)
        self.batch_size = loader.batch_size

    def _announce(self, title: str, loader: BatchLoader, num_left: int) -> None:
        num_samples = len(self.dataset)
        try:
            estimate = estimate_cost(self.backbone, loader, num_left=num_left, num_samples=num_samples)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return  # the real run meets the same limit and deals with it
        done = num_samples - num_left
        resumed = f" (an earlier run left {done} of {num_samples})" if done else ""
        announce = self.reporter.say if estimate.seconds >= SILENT_SECONDS else self.reporter.mention
        announce(f"{title}{resumed}: {estimate.describe()}")

    def _compute(self, missing: list[int], outputs: Iterator[BackboneOutput]) -> None:
        for shard in missing:
            start = time.perf_counter()
            rows = self.store.rows(shard)
            features = np.empty((len(rows), self.backbone.num_features), np.float32)
            num_classes = self.backbone.num_source_classes
            logits = None if num_classes is None else np.empty((len(rows), num_classes), np.float32)
            filled = 0
            while filled < len(rows):
                output = next(outputs)
                end = filled + len(output.features)
                features[filled:end] = output.features.cpu().numpy()
                if logits is not None and output.source_logits is not None:
                    logits[filled:end] = output.source_logits.cpu().numpy()
                filled = end
            self._refuse_not_finite(rows, features, logits)
            self.store.write_shard(shard, features, logits, seconds=time.perf_counter() - start)

    def _refuse_not_finite(self, rows: range, features: FloatArray, logits: FloatArray | None) -> None:
        finite = np.isfinite(features).all(axis=1)
        if logits is not None:
            finite &= np.isfinite(logits).all(axis=1)
        bad = [rows[int(position)] for position in np.flatnonzero(~finite)]
        if bad:
            names = ", ".join(f"row {row} ({self.dataset.image_name(row)})" for row in bad[:_NAMED_ROWS])
            more = f" and {len(bad) - _NAMED_ROWS} more" if len(bad) > _NAMED_ROWS else ""
            raise DataError(
                f"{self.backbone.name} gives NaN or infinite values for {names}{more}. Check these images, the weights "
                "and the preprocessing of the model."
            )

    def _facts(self) -> dict[str, object]:
        return {
            "model": self.backbone.name,
            "architecture": self.backbone.architecture_key,
            "weights_fingerprint": self.backbone.weights_fingerprint,
            "preprocessing": self.backbone.preprocessing.describe(),
            "data_fingerprint": self.dataset.fingerprint,
            "num_samples": len(self.dataset),
            "num_features": self.backbone.num_features,
            "num_source_classes": self.backbone.num_source_classes,
            "batch_size": self.batch_size,
            "threads": torch.get_num_threads(),
            "device": self.backbone.device,
            **({"precision": self.backbone.precision} if self.backbone.precision != "32" else {}),
            "versions": {
                "crossgraft": __version__,
                "torch": torch.__version__,
                "timm": timm.__version__,
                "python": platform.python_version(),
            },
        }
