"""Batches for training and for evaluation; the next one is made in a background thread while the network trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor

from crossgraft.errors import UsageError
from crossgraft.seeding import torch_generator
from crossgraft.tune.feed.batch_plan import BatchPlan as BatchPlan
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.protocols.augmentation import Augmentation, UnitImages, is_identity
from crossgraft.tune.protocols.batch_transform import BatchTransform

Targets = Float[Tensor, "num_samples num_classes"]
_Batch = TypeVar("_Batch")
# What is in between stays in the caches; whole batches took twice the time. Another number draws other images.
_IMAGES_AT_ONCE = 16
_PLAIN_BATCH = 64


@dataclass(frozen=True)
class TrainingBatch:
    """What the network sees in one step, of all processes together.

    Attributes:
        rows: Row of the data set of each image (of the first image of a mixed pair).
        images: Augmented, normalised, mixed.
        targets: One row per image, over classes or labels; soft after mixing.
    """

    rows: Int64[Tensor, " batch"]
    images: Float32[Tensor, "batch channels height width"]
    targets: Float[Tensor, "batch num_classes"]


class BatchMaker:
    """Makes the batches of an epoch: read, augment, normalise, then the batch transforms in order.

    The numbers that are drawn for a batch depend on seed, epoch and step only: starting in the middle of an epoch gives
    the batches that going through all of it gives, and every process makes the same batch before it takes its share.

    Args:
        images: Images of the training rows.
        targets: (n, C) one row per image.
        plan: Rows of each batch.
        augmentation: What is done to each image.
        batch_transforms: What is done to each batch, in this order.
        seed: Random seed of the whole run.
        device: Where images are augmented, normalised and mixed; random numbers are drawn on the CPU whatever it is.

    Raises:
        UsageError: Images, targets and plan are not about the same number of rows.
    """

    def __init__(
        self,
        images: TrainingImages,
        targets: Targets,
        plan: BatchPlan,
        *,
        augmentation: Augmentation,
        batch_transforms: Sequence[BatchTransform] = (),
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        if not len(images) == len(targets) == plan.num_samples:
            raise UsageError(
                f"{len(images)} images, {len(targets)} rows of targets and a plan of {plan.num_samples} rows do not "
                "belong together."
            )
        self.images = images
        self.targets = targets
        self.plan = plan
        self.augmentation = augmentation
        self.batch_transforms = tuple(batch_transforms)
        self.seed = seed
        self.device = device

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches an epoch."""
        return self.plan.steps_per_epoch

    @property
    def is_plain(self) -> bool:
        """Whether every epoch shows the same images with the same targets."""
        return is_identity(self.augmentation) and not self.batch_transforms

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the images, their order and their preparation."""
        return self.images.fingerprint

    def plain_batches(self) -> Iterator[Float32[Tensor, "batch channels height width"]]:
        """Every image once, in order, neither augmented nor mixed."""
        return evaluation_batches(self.images, batch_size=_PLAIN_BATCH, device=self.device)

    def training_batches(self, passes: int) -> Iterator[Float32[Tensor, "batch channels height width"]]:
        """Epochs −1, −2 …, which training never shows."""
        for number in range(passes):
            for batch in self.batches(-1 - number):
                yield batch.images

    def batches(self, epoch: int, *, start: int = 0) -> Iterator[TrainingBatch]:
        """The batches of ``epoch`` from step ``start`` on.

        One thread prepares the next batch; it ends with the iterator (``close`` it to stop early). What goes wrong in the
        thread is raised by ``next``.

        Raises:
            UnreadableImageError: An image cannot be decoded (any more).
        """
        plan = self.plan.epoch(epoch)

        def maker(step: int) -> Callable[[], TrainingBatch]:
            return lambda: self.make(epoch, step, plan[step])

        return _prepared_ahead([maker(step) for step in range(start, len(plan))])

    def make(self, epoch: int, step: int, rows: Int64[Tensor, " batch"]) -> TrainingBatch:
        """The batch of ``rows`` at this step."""
        drawn_from = torch_generator(self.seed, "augment", epoch, step)
        images = _prepare(self.images, rows, self.device, lambda part: self.augmentation(part, drawn_from))
        targets = self.targets[rows].to(self.device)
        for place, transform in enumerate(self.batch_transforms):
            drawn_from = torch_generator(self.seed, "batch transform", place, epoch, step)
            images, targets = transform(images, targets, drawn_from)
        return TrainingBatch(rows, images, targets)


def evaluation_batches(
    images: TrainingImages, *, batch_size: int, device: str = "cpu"
) -> Iterator[Float32[Tensor, "batch channels height width"]]:
    """All rows in order, neither augmented nor mixed; the last batch may be smaller.

    Raises:
        UsageError: The batch size is below 1.
        UnreadableImageError: An image cannot be decoded (any more).
    """
    if batch_size < 1:
        raise UsageError(f"{len(images)} images cannot be seen in batches of {batch_size}.")

    def maker(rows: Tensor) -> Callable[[], Tensor]:
        return lambda: _prepare(images, rows, device, lambda part: part)

    return _prepared_ahead([maker(rows) for rows in torch.arange(len(images)).split(batch_size)])


def _prepare(
    images: TrainingImages, rows: Tensor, device: str, augment: Callable[[UnitImages], UnitImages]
) -> Float32[Tensor, "batch channels height width"]:
    """Read, augment and normalise, a few images at a time."""
    shape = (len(rows), images.preprocessing.channels, *images.image_shape[1:])
    prepared = torch.empty(shape, device=device)
    for part, place in zip(rows.split(_IMAGES_AT_ONCE), prepared.split(_IMAGES_AT_ONCE), strict=True):
        place.copy_(images.normalise(augment(images.read(part).to(device))))
    return prepared


def _prepared_ahead(makers: Sequence[Callable[[], _Batch]]) -> Iterator[_Batch]:
    """Call the makers in order, each while the batch before it is in use."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batch") as executor:
        try:
            pending: Future[_Batch] | None = None
            for following in [*makers, None]:
                batch = pending.result() if pending is not None else None
                pending = executor.submit(following) if following is not None else None
                if batch is not None:
                    yield batch
        finally:
            executor.shutdown(wait=True, cancel_futures=True)
