"""One pass of a network over images: the only place where networks are run for what they say, apart from training steps.

Images come from a data set, or are resized once for all networks of a command.

>>> import torch
>>> network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
>>> batches = torch.rand(7, 3, 2, 2).split(4)
>>> collect(run_pass(network, batches)).shape
torch.Size([7, 2])
>>> hidden = Tap("2")
>>> collect(said[hidden] for said in run_pass(network, batches, read=through_taps(network, [hidden]))).shape
torch.Size([7, 5])
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.compute import is_out_of_memory
from crossgraft.data.resizing import resize_image
from crossgraft.data.transforms import prepare_resized
from crossgraft.errors import OutOfMemoryError
from crossgraft.models.backbone import Backbone
from crossgraft.models.taps import Tap as Tap
from crossgraft.models.taps import Taps as Taps
from crossgraft.models.taps import modes_kept
from crossgraft.progress import Reporter
from crossgraft.seeding import torch_draws
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


Images = Float[Tensor, "_ channels height width"]


@dataclass(eq=False)
class BatchLoader:
    """Iterates over spans of rows; a batch never reaches over the end of a span.

    The next batch is made while the one before it is in use. On a GPU it is copied and normalised in a stream of its own.

    Args:
        dataset: Where images come from.
        preprocessing: Preprocessing of the backbone.
        spans: Rows to go through, for example one span a shard.
        batch_size: At most; lowered by ``shrink``.
        reporter: Reporter of warnings, used when the batch gets smaller.
        device: Where batches are normalised, and lie then. Beside a CPU that is busy with the network one thread decodes and
            resizes; beside an accelerator as many as torch has.
    """

    dataset: ImageSource
    preprocessing: Preprocessing
    spans: Sequence[range]
    _: KW_ONLY
    batch_size: int
    reporter: Reporter
    device: str = "cpu"

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
                    images = future.result()
                    if images.is_cuda:  # made in another stream, which may not have its memory back before this one is done
                        images.record_stream(torch.cuda.current_stream(images.device))
                    yield images
            finally:
                executor.shutdown(wait=True, cancel_futures=True)

    def load(self, rows: range) -> Images:
        """Read and prepare the images of ``rows``."""
        images = list(self._map(lambda row: resized(self.dataset, row, self.preprocessing), rows))
        if self._stream is None:
            return prepare_resized(images, self.preprocessing, device=self.device)
        with torch.cuda.stream(self._stream):
            batch = prepare_resized(images, self.preprocessing, device=self.device)
        self._stream.synchronize()  # this thread waits for it, not the network
        return batch

    @cached_property
    def _stream(self) -> torch.cuda.Stream | None:
        return torch.cuda.Stream(torch.device(self.device)) if self.device.startswith("cuda") else None

    @cached_property
    def _map(self) -> Callable[[Callable[[int], np.ndarray], range], Iterable[np.ndarray]]:
        threads = 1 if self.device.startswith("cpu") else torch.get_num_threads()
        return map if threads == 1 else ThreadPoolExecutor(max_workers=threads, thread_name_prefix="resize").map

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


_Said = TypeVar("_Said")


def run_pass(
    network: nn.Module | Backbone,
    batches: Iterable[Images] | BatchLoader,
    *,
    read: Callable[[Images], _Said] | None = None,
    like: Tensor | None = None,
    graph: bool = False,
    eval_mode: bool = True,
    full_precision: bool = False,
    on_images: Callable[[int], object] | None = None,
) -> Generator[_Said]:
    """What the network says about each batch, in order; the next one is asked for when that was used.

    Modes, gradients and autocast are as they were whenever something is yielded. A network that draws in evaluation, as one that
    masks patches does, draws the same for each batch, so that what it says depends on no look before.

    Args:
        network: Any module, wrapped or not, or a backbone.
        batches: Prepared images. Those of a ``BatchLoader`` are cut into smaller ones where memory runs out.
        read: Runs the network on a batch, as ``classifier.features`` or ``through_taps(…)`` do; by default its call.
        like: A weight, to whose device and number type images are brought; None: they stay. A backbone brings them to its
            device itself.
        graph: Keep what a backward pass needs; in inference mode torch keeps nothing without ``gradients_on``.
        eval_mode: Otherwise the network runs in the modes that it has.
        full_precision: Switch off an autocast around the pass.
        on_images: Callback that gets the number of images of each forward pass after it.

    Raises:
        OutOfMemoryError: A single image of a ``BatchLoader`` does not fit.

    Cost: one forward pass per image, and the memory of one batch.
    """
    module = network.module if isinstance(network, Backbone) else network
    run: Callable[[Images], _Said] = network if read is None else read  # type: ignore[assignment]

    def look(images: Images) -> _Said:
        images = images if like is None else images.to(like.device, like.dtype)
        with ExitStack() as around:
            around.enter_context(torch.set_grad_enabled(graph))
            if full_precision:
                around.enter_context(torch.autocast(images.device.type, enabled=False))
            if eval_mode:
                around.enter_context(modes_kept(module))
                module.eval()
                device = next((parameter.device for parameter in module.parameters()), images.device)
                around.enter_context(torch_draws(device, 0, "a look"))  # some draw in evaluation, too
            result = run(images)
        if on_images is not None:
            on_images(len(images))
        return result

    with ExitStack() as ends:
        following = iter(batches)
        if isinstance(following, Generator):  # its thread ends with the pass, even where an error keeps this frame
            ends.enter_context(closing(following))
        for images in following:
            yield from _in_pieces(look, images, batches) if isinstance(batches, BatchLoader) else [look(images)]


@contextmanager
def gradients_on(*, by: Iterable[nn.Parameter] = (), not_by: Iterable[nn.Parameter] = ()) -> Generator[None]:
    """Inside the block torch computes gradients, even if it was in inference mode; afterwards everything is as before.

    Args:
        by: Parameters that ask for a gradient.
        not_by: Parameters that ask for none. All others do as they did.
    """
    wanted = [*((parameter, True) for parameter in by), *((parameter, False) for parameter in not_by)]
    before = [(parameter, parameter.requires_grad) for parameter, _ in wanted]
    try:
        for parameter, asks in wanted:
            parameter.requires_grad_(asks)
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        for parameter, needed in before:
            parameter.requires_grad_(needed)


def through_taps(
    network: nn.Module, taps: Sequence[Tap], *, run: Callable[[Images], object] | None = None
) -> Callable[[Images], dict[Tap, Tensor]]:
    """A ``read`` of ``run_pass``: what the taps take while ``run``, by default a call of the network, looks at a batch.

    Raises and Cost: as ``Taps``; a layer that does not run, or several times, ends the pass with a UsageError.
    """
    tapped = Taps(network, taps)

    def read(images: Images) -> dict[Tap, Tensor]:
        with tapped:
            (run or network)(images)
        return {tap: tapped.pop(tap) for tap in dict.fromkeys(taps)}

    return read


def collect(outputs: Iterable[Float[Tensor, "_ ..."]]) -> Float[Tensor, "num_images ..."]:
    """The rows of all batches, in main memory.

    Cost: twice the memory of the result, for a moment.
    """
    return torch.cat([output.cpu() for output in outputs])


def _in_pieces(look: Callable[[Images], _Said], images: Images, loader: BatchLoader) -> Generator[_Said]:
    """One batch in parts of what is the loader's size by now, which shrinks where memory runs out."""
    done = 0
    while done < len(images):
        part = images[done : done + loader.batch_size]
        try:
            result = look(part)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            error = error.with_traceback(None)  # which would keep the activations alive
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            elif torch.backends.mps.is_available():
                torch.mps.empty_cache()
            loader.shrink(error)
        else:
            done += len(part)
            yield result


def input_gradients(
    network: nn.Module | Backbone, batches: Iterable[Images], objective: Callable[[Images, int], Float[Tensor, ""]]
) -> Generator[Images]:
    """∂(Σ_i ℓ_i) / ∂x of each batch: row i is the gradient of image i, because in eval mode no image depends on another.

    The network runs in eval mode, in full precision, and none of its parameters asks for a gradient; whenever a gradient is
    yielded, all that is as before.

    Args:
        network: Any module, or a backbone.
        batches: Prepared images.
        objective: Function of a batch that takes gradients, and of the number of images before it, to the sum of its losses.

    Cost: one forward and one backward pass per image.
    """
    module = network.module if isinstance(network, Backbone) else network
    before = 0

    def look(images: Images) -> Images:
        nonlocal before
        with gradients_on(not_by=module.parameters()):
            watched = images.detach().clone().requires_grad_(True)
            (gradient,) = torch.autograd.grad(objective(watched, before), watched)
        before += len(images)
        return gradient

    like = next((parameter for parameter in module.parameters() if parameter.is_floating_point()), None)
    return run_pass(module, batches, read=look, like=like, graph=True, full_precision=True)
