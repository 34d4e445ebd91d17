"""What one step takes: some steps are made on a copy of the network, and all but the first are timed; its #FLOPs."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import cycle, islice, pairwise
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from crossgraft.compute import resolve_device
from crossgraft.errors import CrossgraftError, OutOfMemoryError
from crossgraft.features.extract import seconds_a_row
from crossgraft.losses import Loss
from crossgraft.models.classifier import Classifier
from crossgraft.models.multiply_adds import forward_multiply_adds, multiply_adds
from crossgraft.models.taps import modes_kept, state_kept
from crossgraft.progress import TypicalClock
from crossgraft.seeding import torch_generator
from crossgraft.tune.engine.contract import StepReport
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.engine.trainer import train
from crossgraft.tune.feed.batches import BatchMaker, TrainingBatch
from crossgraft.tune.protocols import FeatureTransform, ForwardStart, LooksInside, Objective, Regularizer, Selection, StepContext


def steps_per_epoch(num_train: int, batch_size: int) -> int:
    """Batches of one epoch, as ``BatchPlan`` makes them: a last batch of one image joins the one before.

    >>> [steps_per_epoch(n, 8) for n in (5, 16, 17, 18)]
    [1, 2, 2, 3]
    """
    full, rest = divmod(num_train, batch_size)
    return max(1, full + (rest > 1 or (rest == 1 and full == 0)))


def fewest_in_a_batch(num_train: int, batch_size: int) -> int:
    """Images of the smallest batch of an epoch.

    >>> [fewest_in_a_batch(n, 8) for n in (5, 16, 17, 18)]
    [5, 8, 8, 2]
    """
    rest = num_train % batch_size
    return min(num_train, batch_size) if rest < 2 else rest


class KeptForBackward:
    """Counts what autograd keeps in the first step; weights are not counted, because they are there anyway."""

    def __init__(self, classifier: Classifier) -> None:
        self._classifier = classifier
        self._sizes: dict[int, int] = {}
        self.most, self.is_done = 0, False

    @cached_property
    def _weights(self) -> set[int]:
        """Their places when the first tensor is kept: training has then put them in the order of memory that it wants."""
        return {parameter.data_ptr() for parameter in self._classifier.parameters()}

    def pack(self, tensor: Tensor) -> Tensor:
        """Remember the size of a tensor that is kept."""
        place = tensor.data_ptr()
        if not self.is_done and place not in self._weights:
            self._sizes[place] = max(self._sizes.get(place, 0), tensor.nbytes)
            self.most = max(self.most, sum(self._sizes.values()))
        return tensor.detach()  # an output that is kept by what made it would never go where no backward pass follows

    def unpack(self, tensor: Tensor) -> Tensor:
        """The backward pass has begun, so that the next step starts from nothing."""
        self._sizes.clear()
        return tensor


_BATCHES = 3
_FEWEST_STEPS, _MOST_STEPS = 2, 16
"""Timed after a first one, which warms up and shows what is kept for the backward pass; the median counts."""
_SHARE, _ENOUGH_SECONDS = 1 / 12, 2.0
"""Beyond the fewest, steps are timed for as long as they are a small part of a training and of a person's patience."""


@dataclass(frozen=True)
class StepCost:
    """Seconds and memory of training.

    Attributes:
        seconds_per_image: Duration of a step over its images; with ``features_once``, of computing the features.
        seconds_of_head_step: Duration of a step that only sees features; 0 otherwise.
        features_once: Whether features are computed once and epochs then train the head alone.
        peak_bytes: Largest memory that training needs at once, without the images.
        time_reason: Method of the time measurement, or the reason why there is none.
        memory_reason: Method of the memory estimate, or the reason why there is none.
        added_seconds_per_image: What of that is due to regularisers that learn something of their own; None: there are none,
            or it was not measured.
        added_bytes: What of the memory is due to them.
    """

    seconds_per_image: float | None
    seconds_of_head_step: float = 0.0
    features_once: bool = False
    peak_bytes: int | None = None
    time_reason: str = ""
    memory_reason: str = ""
    added_seconds_per_image: float | None = None
    added_bytes: int | None = None


UNKNOWN_COST = StepCost(seconds_per_image=None, time_reason="not measured", memory_reason="not measured")

NOBODY_WAITS = StepCost(None, time_reason="not measured in a study", memory_reason="not measured in a study")


class _FewBatches:
    """The first batches of a feed, as one epoch; again from the first until ``is_enough``.

    Args:
        feed: Feed of the training.
        is_enough: Asked before each batch after the first ones.
    """

    def __init__(self, feed: BatchMaker, is_enough: Callable[[], bool]) -> None:
        drawn = list(islice(feed.batches(0), _BATCHES))
        # Rows count the images that plain_batches shows, for a regulariser that looks something up by them.
        numbers = torch.arange(sum(len(batch.rows) for batch in drawn)).split([len(batch.rows) for batch in drawn])
        self.found = [replace(batch, rows=rows) for batch, rows in zip(drawn, numbers, strict=True)]
        self.targets = torch.cat([batch.targets for batch in self.found])
        self.is_plain = feed.is_plain
        self._is_enough = is_enough
        self.fingerprint = None  # of a part of the images, which nothing is to be kept of

    @property
    def steps_per_epoch(self) -> int:
        """At most."""
        return 1 + _MOST_STEPS

    def batches(self, epoch: int, *, start: int = 0) -> Iterator[TrainingBatch]:
        """The same in every epoch."""
        for step, batch in enumerate(islice(cycle(self.found), start, self.steps_per_epoch), start):
            if step > _FEWEST_STEPS and self._is_enough():
                return
            yield batch

    def plain_batches(self) -> Iterator[Tensor]:
        """What a regulariser looks at first: these images only, because only the steps are timed."""
        for batch in self.found:
            yield batch.images

    def training_batches(self, passes: int) -> Iterator[Tensor]:
        """The same."""
        return self.plain_batches()


def measure_step(
    classifier: Classifier,
    feed: BatchMaker,
    selection: Selection,
    *,
    loss: Loss,
    regularizers: Sequence[Regularizer],
    settings: TrainerSettings,
    features_are_fixed: bool,
    objective: Objective | None = None,
    feature_transforms: Sequence[FeatureTransform] = (),
) -> StepCost:
    """Make a few steps on a copy; nothing of the arguments changes.

    Memory is weights, gradients, moments of the optimiser and the kept best weights, plus what the step keeps for its
    backward pass; on a GPU it is what the allocator says.

    Raises:
        OutOfMemoryError: Not even one step fits into memory.
    """
    if features_are_fixed:
        return _measure_features(classifier, feed, settings)
    replaced = {"objective": objective, "feature_transforms": feature_transforms}
    cost, learners = _measure(classifier, feed, selection, loss, regularizers, settings, **replaced)
    if not learners:
        return cost
    gc.collect()  # the allocator of a GPU would count the first copy among what the second needs
    others = [each for each in regularizers if each.name not in learners]
    without, _ = _measure(classifier, feed, selection, loss, others, settings, **replaced)
    return _with_added(cost, without)


def _measure(
    classifier: Classifier,
    feed: BatchMaker,
    selection: Selection,
    loss: Loss,
    regularizers: Sequence[Regularizer],
    settings: TrainerSettings,
    **replaced: Any,
) -> tuple[StepCost, set[str]]:
    """With these regularisers; and the names of those that learn something of their own."""
    twin, regularizers = copy.deepcopy(classifier), copy.deepcopy(list(regularizers))
    on_gpu = settings.device.startswith("cuda")
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(settings.device)
    kept, clock = KeptForBackward(twin), _Clock(torch.device(resolve_device(settings.device)))
    own: dict[str, list[nn.Parameter]] = {}

    def note_time(_report: StepReport) -> None:
        kept.is_done = True
        own.update(_own_parameters(regularizers))
        clock.note()

    most_steps = _SHARE * feed.steps_per_epoch * settings.epochs
    enough_seconds = clock.slowdown * _ENOUGH_SECONDS
    batches = _FewBatches(feed, lambda: len(clock.seconds) >= most_steps or sum(clock.seconds) >= enough_seconds)
    try:
        with torch.autograd.graph.saved_tensors_hooks(kept.pack, kept.unpack):
            train(
                twin,
                batches,
                selection,
                loss=loss,
                regularizers=regularizers,
                evaluate=lambda _: {"loss": 0.0},
                rule=SelectionRule(keep="last"),
                settings=_of_one_epoch(settings),
                num_domains=feed.num_domains,
                **copy.deepcopy(replaced),
                on_step=note_time,
            )
    except OutOfMemoryError:
        raise
    except CrossgraftError as error:  # a step that diverges is told when it is made for real
        return replace(UNKNOWN_COST, time_reason=f"not measured: {error}"), set()
    timed = islice(cycle(batches.found), 1, 1 + len(clock.seconds))
    each = [seconds / len(batch.rows) for seconds, batch in zip(clock.seconds, timed, strict=True)]
    held = kept.most + _held(twin, selection, settings, (p for parameters in own.values() for p in parameters))
    held = torch.cuda.max_memory_allocated(settings.device) if on_gpu else held
    cost = StepCost(
        seconds_per_image=median(each),
        peak_bytes=held,
        time_reason=f"the median of {len(each)} timed steps",
        memory_reason="as the GPU's allocator says" if on_gpu else "weights, optimiser and what one step keeps",
    )
    return cost, set(own)


def _with_added(cost: StepCost, without: StepCost) -> StepCost:
    """What is more than without the regularisers; no less than nothing, because times scatter."""
    if cost.seconds_per_image is None or without.seconds_per_image is None:
        return cost
    seconds = max(cost.seconds_per_image - without.seconds_per_image, 0.0)
    return replace(cost, added_seconds_per_image=seconds, added_bytes=(cost.peak_bytes or 0) - (without.peak_bytes or 0))


def _own_parameters(regularizers: Sequence[Regularizer]) -> dict[str, list[nn.Parameter]]:
    """Parameters that attached regularisers learn, by the regulariser's name; without those that learn nothing."""
    by_name = {each.name: [p for module in each.modules() for p in module.parameters()] for each in regularizers}
    return {name: parameters for name, parameters in by_name.items() if parameters}


def _measure_features(classifier: Classifier, feed: BatchMaker, settings: TrainerSettings) -> StepCost:
    batch = next(feed.batches(0))
    weight = classifier.head.weight
    images = batch.images.to(weight.device, weight.dtype)
    with torch.no_grad(), state_kept(classifier):
        seconds = seconds_a_row(
            lambda number: classifier.features(images[:number]).cpu(), most=len(images), num_rows=len(feed.images)
        )
    size = len(feed.images) * classifier.num_features * weight.element_size()
    return StepCost(
        seconds_per_image=seconds,
        seconds_of_head_step=TypicalClock().slowdown * _HEAD_STEP_SECONDS,
        features_once=True,
        peak_bytes=_bytes_of(classifier.parameters()) + size + 3 * images.nbytes,
        time_reason="from timing the features of one batch, which are computed once",
        memory_reason="weights, features, and about three times one batch",
    )


_HEAD_STEP_SECONDS = 2e-3
"""Duration of one step of a linear layer on features in memory, on an idle machine; nearly all of it is overhead."""


class _Clock:
    """Seconds on the clock between notes: on a machine that works for others, too, training takes longer."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._notes: list[float] = []
        self._now = TypicalClock()
        self.slowdown = self._now.slowdown

    def note(self) -> None:
        """A piece of work begins, ends, or both."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self._notes.append(self._now())

    @property
    def seconds(self) -> list[float]:
        """Duration of each piece, in order."""
        return [after - before for before, after in pairwise(self._notes)]


def _held(classifier: Classifier, selection: Selection, settings: TrainerSettings, own: Iterable[nn.Parameter]) -> int:
    """Weights, and for trained ones gradient, moments of the optimiser, and the kept best state; what regularisers learn."""
    trained = _bytes_of(p for name, p in classifier.named_parameters() if name in selection.trained)
    moments = 1 if settings.optimizer == "sgd" else 2
    of_network = _bytes_of(classifier.parameters()) + trained * (1 + moments + 1)
    return of_network + _bytes_of(own) * (1 + 1 + moments)


def _bytes_of(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


def _of_one_epoch(settings: TrainerSettings) -> TrainerSettings:
    return replace(
        settings,
        epochs=1,
        warmup_epochs=0.0,
        patience=None,
        min_epochs=1,
        head_first=False,
        checkpoint_every_steps=None,
        look_every_steps=1,
        num_processes=1,
    )


_IMAGES = 2
"""A placebo predicts one image from another."""


def network_multiply_adds(classifier: Classifier) -> int:
    """Multiply–adds of a forward pass of one image, head and adapters among it. Modes and random numbers stay as they are."""
    images = _black_images(classifier, 1)
    return forward_multiply_adds(classifier, lambda: classifier(images))


def training_multiply_adds(classifier: Classifier, regularizer: Regularizer) -> int | None:
    """Multiply–adds of one image in training: forward pass and terms of an attached regulariser; None: it does not look inside.

    The backward pass, which takes about twice as much, is not counted: tables of papers do not either.
    """
    if not isinstance(regularizer, LooksInside):
        return None
    images, begin = _black_images(classifier, _IMAGES), regularizer.before_forward

    def step() -> None:
        generator, places = torch_generator(0, "multiply-adds"), torch.arange(_IMAGES)
        begin(ForwardStart(generator, places, _IMAGES))
        output = classifier.features_and_logits(images)
        regularizer.loss(
            StepContext(
                classifier=classifier,
                images=images,
                targets=torch.zeros_like(output.logits),
                rows=places,
                features=output.features,
                logits=output.logits,
                step=0,
                num_processes=1,
                generator=generator,
                num_images=_IMAGES,
                num_images_of_all=_IMAGES,
            )
        )

    with modes_kept(classifier), torch.enable_grad():
        classifier.eval()
        return multiply_adds(step) // _IMAGES


def _black_images(classifier: Classifier, number: int) -> torch.Tensor:
    taken = classifier.preprocessing
    return classifier.head.weight.new_zeros(number, taken.channels, taken.height_pixels, taken.width_pixels)
