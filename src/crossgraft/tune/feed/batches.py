"""Batches for training and for evaluation; the next one is made in a background thread while the network trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor

from crossgraft.compute import sent
from crossgraft.errors import UsageError
from crossgraft.seeding import torch_generator
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.image_protocols import Augmentation, BatchTransform, DrawsApart, is_identity
from crossgraft.tune.plugin_outputs import augmented, transformed

Sampler = Literal["shuffle", "balanced", "domains", "domains_and_classes"]
Rows = Int64[Tensor, " batch"]
Domains = Int64[Tensor, " num_samples"]


def strata_of(sampler: Sampler, targets: Float[Tensor, "num_samples num_classes"], domains: Domains | None) -> list[Rows]:
    """Rows of each stratum that a sampler draws equally often: of each domain, or of each class in each domain.

    Strata come domain by domain, those without a row left out; none for a sampler that knows no domains.

    Raises:
        UsageError: The sampler needs domains, and nobody said which they are.
    """
    if sampler not in ("domains", "domains_and_classes"):
        return []
    if domains is None:
        raise UsageError(f"--sampler {sampler} draws from every domain. Say which column names them: --domains COLUMN.")
    index = domains if sampler == "domains" else targets.shape[1] * domains + targets.argmax(1)
    return [torch.nonzero(index == number).squeeze(1) for number in index.unique()]


def whole_shares(batch_size: int, num_strata: int) -> int:
    """Images of a batch with equally many of each stratum: the largest number of them that is not above ``batch_size``.

    >>> whole_shares(32, 3), whole_shares(32, 0)
    (30, 32)
    """
    return batch_size // num_strata * num_strata if num_strata else batch_size


class BatchPlan:
    """The batches of every epoch.

    ``shuffle`` shows every row once an epoch, in a new order. ``balanced`` draws n rows an epoch with replacement so that
    every class is drawn equally often on average: a row's weight is 1 / (rows of its class). With several labels an
    image, a row's weight is that of its rarest label (the rule of repeat factors: Gupta, Dollár and Girshick, *LVIS*,
    CVPR 2019, §4), and rows without a label count as a class of their own.

    ``domains`` gives every batch equally many rows of each domain, ``domains_and_classes`` of each class in each domain that
    has one: ⌊batch size / strata⌋ of each, stratum by stratum. A stratum is gone through in a new order each epoch, and begins
    anew in another order where it runs out; an epoch has as many batches as ``shuffle`` makes of that size, so that rows of a
    large domain are not all seen in one.

    No sampler makes a batch of one image out of a longer list, because BatchNorm cannot train on it: a last batch
    of one joins the batch before. A batch size above n gives one batch of all rows.

    Args:
        targets: (n, C) one-hot or 0/1.
        batch_size: Images a batch, of all processes together.
        sampler: How rows are drawn.
        seed: Random seed of the whole run.
        drop_last: Leave out a last batch that is not full, unless it is the only one.
        domains: (n,) domain of each row, from 0; None: nobody said.

    Raises:
        UsageError: There is no row, the batch size is below 1, or a batch cannot have equally many different rows of each
            stratum.
    """

    def __init__(
        self,
        targets: Float[Tensor, "num_samples num_classes"],
        *,
        batch_size: int,
        sampler: Sampler = "shuffle",
        seed: int = 0,
        drop_last: bool = False,
        domains: Domains | None = None,
    ) -> None:
        if batch_size < 1:
            raise UsageError(f"A batch has at least one image, not {batch_size}. Change --batch-size.")
        if len(targets) == 0:
            raise UsageError("There is no row to train on.")
        self.num_samples = len(targets)
        self.domains = domains
        self._strata = strata_of(sampler, targets, domains)
        self.batch_size = whole_shares(batch_size, len(self._strata))
        if self._strata and not 1 <= self.batch_size // len(self._strata) <= min(map(len, self._strata)):
            raise UsageError(
                f"--sampler {sampler}: batches of {batch_size} cannot have equally many different images of {len(self._strata)} "
                f"strata, of which the smallest has {min(map(len, self._strata))}. Change --batch-size."
            )
        self.sampler: Sampler = sampler
        self.seed = seed
        self.drop_last = drop_last
        self._weights = _row_weights(targets) if sampler == "balanced" else None

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches an epoch."""
        return len(self._sizes())

    def epoch(self, epoch: int) -> list[Rows]:
        """The rows of each batch, in order; O(n) a call."""
        generator = torch_generator(self.seed, "batches", self.sampler, epoch)
        if self._strata:
            return self._by_stratum(generator)
        if self._weights is None:
            rows = torch.randperm(self.num_samples, generator=generator)
        else:
            rows = torch.multinomial(self._weights, self.num_samples, replacement=True, generator=generator)
        sizes = self._sizes()
        return list(rows[: sum(sizes)].split(sizes))

    def _by_stratum(self, generator: torch.Generator) -> list[Rows]:
        share, steps = self.batch_size // len(self._strata), self.steps_per_epoch
        drawn: list[Tensor] = []
        for rows in self._strata:
            laps = -(-share * steps // len(rows))
            order = torch.cat([torch.randperm(len(rows), generator=generator) for _ in range(laps)])
            drawn.append(rows[order[: share * steps]].view(steps, share))
        return list(torch.cat(drawn, dim=1))

    def _sizes(self) -> list[int]:
        """Images of each batch of ``shuffle``; by stratum there are as many batches, all full."""
        full, rest = divmod(self.num_samples, self.batch_size)
        sizes = [self.batch_size] * full
        if full == 0:
            return [rest]
        if rest == 0 or self.drop_last:
            return sizes
        if rest == 1:
            return [*sizes[:-1], self.batch_size + 1]
        return [*sizes, rest]


def _row_weights(targets: Tensor) -> Tensor:
    """One over the number of rows with the rarest label of each row; all labels alike in float64."""
    labels = targets.to(torch.float64)
    counts = labels.sum(0).clamp(min=1)
    without_label = labels.sum(1) == 0
    weights = (labels / counts).amax(1)
    weights[without_label] = 1 / max(1, int(without_label.sum()))
    return weights


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
        domains: Domain of each image, from 0; None: nobody said.
    """

    rows: Int64[Tensor, " batch"]
    images: Float32[Tensor, "batch channels height width"]
    targets: Float[Tensor, "batch num_classes"]
    domains: Int64[Tensor, " batch"] | None = None


@dataclass(eq=False)
class BatchMaker:
    """Makes the batches of an epoch: read, augment, normalise, then the batch transforms in order.

    The numbers that are drawn for a batch depend on seed, epoch and step only: starting in the middle of an epoch gives
    the batches that going through all of it gives, and every process makes the same batch before it takes its share.

    Where domains are known images are mixed with those of their own domain only: each domain's images go through such a
    transform alone, with numbers of their own.

    Attributes:
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

    images: TrainingImages
    targets: Targets
    plan: BatchPlan
    augmentation: Augmentation = field(kw_only=True)
    batch_transforms: Sequence[BatchTransform] = field(default=(), kw_only=True)
    seed: int = field(default=0, kw_only=True)
    device: str = field(default="cpu", kw_only=True)

    def __post_init__(self) -> None:
        if not len(self.images) == len(self.targets) == self.plan.num_samples:
            raise UsageError(
                f"{len(self.images)} images, {len(self.targets)} rows of targets and a plan of {self.plan.num_samples} rows do "
                "not belong together."
            )

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches an epoch."""
        return self.plan.steps_per_epoch

    @property
    def num_domains(self) -> int:
        """Number of domains of the rows; 1 where nobody said."""
        return 1 if self.plan.domains is None else int(self.plan.domains.max()) + 1

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
        thread is raised by ``next``. Once all images are on a GPU there is nothing to prepare but what the GPU is asked to do.

        Raises:
            UnreadableImageError: An image cannot be decoded (any more).
        """
        plan = self.plan.epoch(epoch)

        def maker(step: int) -> Callable[[], TrainingBatch]:
            return lambda: self.make(epoch, step, plan[step])

        return _made([maker(step) for step in range(start, len(plan))], ahead=not self.images.are_all_on(self.device))

    def make(self, epoch: int, step: int, rows: Int64[Tensor, " batch"]) -> TrainingBatch:
        """The batch of ``rows`` at this step."""
        drawn_from = torch_generator(self.seed, "augment", epoch, step)
        images = _prepare(self.images, rows, self.device, (self.augmentation, drawn_from))
        targets = sent(self.targets[rows], self.device)
        domains = None if self.plan.domains is None else self.plan.domains[rows]
        for place, transform in enumerate(self.batch_transforms):
            stream = ("batch transform", place, epoch, step)
            if domains is None or not getattr(transform, "mixes_images", False):
                images, targets = transformed(transform, images, targets, torch_generator(self.seed, *stream))
            else:
                images, targets = self._mixed_within(domains, transform, images, targets, stream)
        return TrainingBatch(rows, images, targets, domains)

    def _mixed_within(
        self, domains: Tensor, transform: BatchTransform, images: Tensor, targets: Tensor, stream: tuple[object, ...]
    ) -> tuple[Tensor, Tensor]:
        mixed, soft = images.clone(), targets.clone()
        for domain in domains.unique().tolist():
            here = sent(torch.nonzero(domains == domain).squeeze(1), self.device)
            drawn_from = torch_generator(self.seed, *stream, "domain", domain)
            mixed[here], soft[here] = transformed(transform, images[here], targets[here], drawn_from)
        return mixed, soft


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
        return lambda: _prepare(images, rows, device)

    makers = [maker(rows) for rows in torch.arange(len(images)).split(batch_size)]
    return _made(makers, ahead=not images.are_all_on(device))


def _prepare(
    images: TrainingImages, rows: Tensor, device: str, varied_by: tuple[Augmentation, torch.Generator] | None = None
) -> Float32[Tensor, "batch channels height width"]:
    """Read, augment and normalise: a few images at a time on a CPU, all at once elsewhere, with the same numbers drawn."""
    parts = rows.split(_IMAGES_AT_ONCE)
    if device != "cpu" and varied_by is None:
        return images.prepared(rows, device)
    if device != "cpu" and varied_by is not None and isinstance(augmentation := varied_by[0], DrawsApart):
        of_parts = [augmentation.draw(len(part), *images.image_shape[1:], varied_by[1]) for part in parts]
        drawn = {name: torch.cat([of_part[name] for of_part in of_parts]) for name in of_parts[0]}
        return images.normalise(augmentation.apply(images.read(rows, device), drawn))
    shape = (len(rows), images.preprocessing.channels, *images.image_shape[1:])
    prepared = torch.empty(shape, device=device)
    for part, place in zip(parts, prepared.split(_IMAGES_AT_ONCE), strict=True):
        read = images.read(part, device)
        if varied_by is not None:
            augmentation, generator = varied_by
            read = augmented(augmentation, read, generator)
        place.copy_(images.normalise(read))
    return prepared


def _made(makers: Sequence[Callable[[], _Batch]], *, ahead: bool) -> Iterator[_Batch]:
    """Call the makers in order; ``ahead``, each while the batch before it is in use."""
    if not ahead:
        for maker in makers:
            yield maker()
        return
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
