"""One step: forward, loss and its terms, backward, update; the same numbers whatever the number of parts and processes."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, distributed, nn
from torch.nn.functional import dropout

from crossgraft.compute import sent
from crossgraft.errors import DivergedError, UsageError
from crossgraft.geometry.batch_norm import batch_norms_of
from crossgraft.losses import Loss
from crossgraft.models.classifier import Classifier
from crossgraft.seeding import torch_draws, torch_generator
from crossgraft.tune.engine.contract import StepBatch
from crossgraft.tune.engine.optimizers import NamedOptimizer
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.plugin_outputs import losses_of, scalar_terms
from crossgraft.tune.protocols import (
    FeatureTransform,
    ForwardStart,
    LooksInside,
    Objective,
    ObjectiveContext,
    Regularizer,
    Selection,
    StepContext,
    StepUpdate,
    TransformStart,
    keeps_reference,
    keeps_start,
)

HEAD_ALONE = "the head is trained alone first"


def apply_selection(classifier: nn.Module, selection: Selection) -> None:
    """Let only the trained parameters require a gradient.

    Raises:
        UsageError: The selection does not sort every parameter exactly once, or trains none.
    """
    names = {name for name, _ in classifier.named_parameters()}
    trained, frozen = set(selection.trained), set(selection.frozen)
    astray = sorted((trained & frozen) | (names ^ (trained | frozen)))
    if astray:
        raise UsageError(
            f"The method must name every parameter once, as trained or as frozen; see {', '.join(astray[:5])}"
            f"{' …' if len(astray) > 5 else ''} ({len(astray)} in all)."
        )
    if not trained:
        raise UsageError("The method trains no parameter. Choose another one, for example --method linear.")
    for name, parameter in classifier.named_parameters():
        parameter.requires_grad_(name in trained)


@contextmanager
def selection_applied(classifier: nn.Module, selection: Selection) -> Generator[None]:
    """Inside the block only the trained parameters require a gradient; after it, those that did before.

    Raises:
        UsageError: As ``apply_selection``.
    """
    before = [(parameter, parameter.requires_grad) for parameter in classifier.parameters()]
    try:
        apply_selection(classifier, selection)
        yield
    finally:
        for parameter, required in before:
            parameter.requires_grad_(required)


def apply_modes(classifier: nn.Module, selection: Selection) -> None:
    """Train mode where the selection says so, eval mode everywhere else (frozen BatchNorm, frozen Dropout).

    Inside a named module, a part whose parameters are all frozen (by the network's author) goes back to eval mode, and so
    does what the selection names.
    """
    classifier.eval()
    for name in selection.train_mode:
        classifier.get_submodule(name).train()
    for name in (*_frozen_parts(selection), *selection.eval_mode):
        classifier.get_submodule(name).eval()


def _frozen_parts(selection: Selection) -> set[str]:
    """Names of the modules that hold parameters, and none that is trained."""
    holders = {name[:end] for name in selection.frozen for end in _dots(name)}
    return holders - {name[:end] for name in selection.trained for end in _dots(name)}


def _dots(name: str) -> list[int]:
    return [place for place, letter in enumerate(name) if letter == "."]


def head_alone(selection: Selection) -> Selection:
    """The head of ``selection`` with everything else frozen.

    Raises:
        UsageError: The method trains nothing but the head, or not even the head.
    """
    head = {name: why for name, why in selection.trained.items() if name.startswith("head.")}
    if not head or len(head) == len(selection.trained):
        raise UsageError(
            "--head-first trains the head alone and then everything that the method trains; this method trains "
            f"{'only' if head else 'no'} head. Leave out --head-first, or choose another method."
        )
    others = {name: HEAD_ALONE for name in selection.trained if name not in head}
    return Selection(trained=head, frozen={**selection.frozen, **others}, train_mode=("head",))


def training_batch_norms(classifier: nn.Module, selection: Selection) -> list[str]:
    """Names of the BatchNorm layers whose statistics move under ``selection``; modes are left as they were."""
    prefixes = tuple(f"{name}." if name else "" for name in selection.train_mode)
    in_eval_mode = _frozen_parts(selection).union(selection.eval_mode)
    return [
        name
        for name, module in classifier.named_modules()
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and f"{name}.".startswith(prefixes) and name not in in_eval_mode
    ]


def without_moving_statistics(classifier: nn.Module, selection: Selection) -> Selection:
    """The same parameters are trained, but BatchNorm normalises with the statistics that it has, as in evaluation.

    Layers without kept statistics have no others than those of the batch, and stay as they are.
    """
    kept = set(batch_norms_of(classifier))
    moving = [name for name in training_batch_norms(classifier, selection) if name in kept]
    return replace(selection, eval_mode=(*selection.eval_mode, *moving))


class _SumOverProcesses(torch.autograd.Function):
    """y = Σ_r x_r in every process, so ∂L/∂x_r = Σ_s ∂L_s/∂y: the gradients of all processes add up as well.

    Where every process has the same loss, this is the number of processes times its gradient, and the mean over processes
    that parallel training takes makes that the gradient of one process with the whole batch, however uneven the shares.
    """

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return _summed(tensor)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return _summed(gradients[0])


def sum_over_processes(tensor: Tensor) -> Tensor:
    """Σ over all processes, in the graph; the tensor itself where there is only one process."""
    if not (distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1):
        return tensor
    return _SumOverProcesses.apply(tensor)  # pyright: ignore[reportReturnType]


def _summed(tensor: Tensor) -> Tensor:
    total = tensor.contiguous().clone()
    distributed.all_reduce(total)
    return total


class Network(nn.Module):
    """What is wrapped for several processes: the classifier, and the modules that regularisers bring along.

    ``forward`` gives features and logits at once, because regularisers look at both.
    """

    def __init__(self, classifier: Classifier, regularizers: Sequence[Regularizer], dropout_probability: float = 0.0) -> None:
        super().__init__()
        self.classifier, self.dropout = classifier, dropout_probability
        self.companions = nn.ModuleList(module for each in regularizers for module in each.modules())

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """(b, c, h, w) → features (b, d) and logits (b, C)."""
        features = self.classifier.features(images.to(self.classifier.head.weight.dtype))
        return features, self.classifier.head(dropped(features, self.dropout))


def dropped(features: Tensor, probability: float) -> Tensor:
    """Features (b, d) of a training step as the head sees them: each is 0 with this probability, the others are larger.

    Only steps of training go through it; regularisers and evaluation see whole features.
    """
    return dropout(features, probability) if probability > 0 else features


@dataclass(frozen=True)
class _Part:
    """Images that go through the network together, those of this process, and what they count for."""

    rows: Tensor
    places: Tensor  # of the images in the batch of all processes
    images: Tensor
    targets: Tensor
    num_images: int  # that count; 0 of the one that a process without a share looks at
    first_image: int  # place among the images of this part in all processes
    num_images_of_all: int
    image_weight: float  # of one image's loss in the mean over the whole batch
    term_weight: float  # of a regulariser's term; all parts of all processes together have 1


class StepTerms:
    """Terms of one step by name; whoever asks for ``numbers`` waits for the device, ``look_at`` does for many steps at once.

    Attributes:
        step: Number of the step.
    """

    def __init__(self, step: int, names: Iterable[str], values: Tensor) -> None:
        self.step = step
        self._names, self._values = list(names), values
        self._to_be_finite: dict[str, Tensor] = {}
        self._numbers: dict[str, float] | None = None

    def also_finite(self, name: str, value: Tensor) -> None:
        """Something that is no term, and has to be finite all the same."""
        self._to_be_finite[name] = value

    @property
    def numbers(self) -> dict[str, float]:
        """All terms; a ``DivergedError`` where one is not finite."""
        if self._numbers is None:
            look_at([self])
        assert self._numbers is not None
        return self._numbers


def look_at(steps: Sequence[StepTerms]) -> None:
    """Bring the numbers of ``steps``, which follow each other, from the device; one transfer.

    Raises:
        DivergedError: Something is not finite; the message names the first step in which it was.
    """
    if not steps:
        return
    vectors = [torch.stack([*each._values, *(extra.to(each._values) for extra in each._to_be_finite.values())]) for each in steps]
    numbers = iter(torch.cat(vectors).tolist())
    for each in steps:
        each._numbers = {name: next(numbers) for name in each._names}
        refuse_non_finite(each._numbers, each.step)
        refuse_non_finite({name: next(numbers) for name in each._to_be_finite}, each.step)


@dataclass(eq=False)
class TrainingStep:
    """Makes steps; holds what stays the same from one to the next.

    With the whole batch of b images, task loss ``l_i`` of image i and terms ``t_k`` of the regularisers, a step follows the
    gradient of ``w / b * sum_i l_i + sum_k t_k``, where w is the product of the regularisers' ``task_weight``. A batch is cut
    into parts, and each process has a share of every part. A share of m images counts
    ``w / b * sum_{i in share} l_i + m / b * sum_k t_k``: the sum over all shares is the step's loss exactly for terms that are
    a mean over images, that do not depend on them, or that processes compute together.

    An objective stands in the place of ``1 / b * sum_i l_i``. Every process computes it of all images, as those terms; the
    batch has one part.

    Attributes:
        fabric: Launched; knows device, precision and the other processes.
        network: As ``fabric.setup_module`` gave it.
        optimizer: The same parameters, as ``fabric.setup_optimizers`` gave it.
        named: The optimiser inside, with names.
        classifier: The network without wrapper, for regularisers.
        loss: Task loss of each image.
        regularizers: Attached already.
        settings: Parts, clipping, seed, precision.
        before_update: Called in each step when its gradient is whole, before it is clipped.
        objective: Attached already; None: the mean of the task loss.
        num_domains: Number of domains among the training images.
        feature_transforms: Attached already.
    """

    fabric: Fabric
    network: Any
    optimizer: Any
    named: NamedOptimizer = field(kw_only=True)
    classifier: Classifier = field(kw_only=True)
    loss: Loss = field(kw_only=True)
    regularizers: Sequence[Regularizer] = field(kw_only=True)
    settings: TrainerSettings = field(kw_only=True)
    before_update: Callable[[], object] | None = field(default=None, kw_only=True)
    objective: Objective | None = field(default=None, kw_only=True)
    num_domains: int = field(default=1, kw_only=True)
    feature_transforms: Sequence[FeatureTransform] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if self.objective is not None and self.objective.is_plain_mean:
            self.objective = None
        self.task_weight = math.prod(regularizer.task_weight for regularizer in self.regularizers)
        self.looks_first = self.fabric.device.type == "cpu"

    def run(self, batch: StepBatch, step: int) -> StepTerms:
        """Make step number ``step`` on ``batch``, the batch of all processes together.

        On a CPU what is not finite is found before the update, and the weights stay as they were. Elsewhere nobody waits for the
        device: ``look_at`` finds it afterwards, when the weights may have become nan, and nothing may be kept before that.

        Returns:
            ``loss``, ``task`` and every ``<objective or regulariser>/<term>`` of the whole batch, before the update.

        Raises:
            DivergedError: One of them, or the gradient that is to be clipped, is not finite (on a CPU). Or what a regulariser
                learns left its bounds in the update.
        """
        if self.objective is not None and step == self.objective.restarts_optimizer_at:
            self.named.restart()
        self.optimizer.zero_grad(set_to_none=True)
        sums: dict[str, Tensor] = {}
        parts = self._parts(batch)
        with step_randomness(self.settings.seed, step, self.fabric.global_rank, self.fabric.device):
            for number, part in enumerate(parts):
                is_last = number == len(parts) - 1
                with self.fabric.no_backward_sync(self.network, enabled=not is_last):
                    terms = self._terms(batch, part, step, number)
                    # The mean over the processes that follows is to be a sum.
                    self.fabric.backward(self.fabric.world_size * terms["loss"])
                for name, term in terms.items():
                    sums[name] = sums.get(name, 0) + term.detach()
        found = StepTerms(step, sums, self._over_all_processes(sums))
        if self.looks_first:
            look_at([found])
        if self.before_update is not None:
            self.before_update()
        self._clip(found)
        self.optimizer.step()
        if self.regularizers:
            rates = self.named.learning_rates()
            for regularizer in self.regularizers:
                factor = self.settings.keep_factor if keeps_reference(regularizer) else 1.0
                regularizer.after_step(StepUpdate(self.classifier, rates, factor, step))
        return found

    def _parts(self, batch: StepBatch) -> list[_Part]:
        """The batch cut into parts, and of each this process' share: the same images belong together in any number of them."""
        total, world, rank = len(batch.rows), self.fabric.world_size, self.fabric.global_rank
        dtype = self.classifier.head.weight.dtype

        def part(places: Tensor) -> _Part:
            shares = places.tensor_split(world)
            sizes = [len(share) for share in shares]
            # A process without an image of its own looks at the first one, which then counts nothing.
            chosen = shares[rank] if sizes[rank] else places[:1]
            # They follow each other, so that no device has to be told their numbers.
            here = slice(int(chosen[0]), int(chosen[0]) + len(chosen))
            images, targets = (sent(tensor[here], self.fabric.device) for tensor in (batch.images, batch.targets))
            return _Part(
                batch.rows[here],
                chosen,
                images.to(dtype),
                targets.to(dtype),
                num_images=sizes[rank],
                first_image=sum(sizes[:rank]),
                num_images_of_all=sum(sizes),
                image_weight=1 / total if sizes[rank] else 0.0,
                term_weight=sizes[rank] / total,
            )

        return [part(places) for places in torch.arange(total).tensor_split(min(self.settings.accumulate, total))]

    def _terms(self, batch: StepBatch, part: _Part, step: int, number: int) -> dict[str, Tensor]:
        """What one part adds to the loss and to each term of it."""
        for regularizer in self.regularizers:
            if isinstance(regularizer, LooksInside):
                drawn = torch_generator(self.settings.seed, regularizer.name, "forward", step)
                regularizer.before_forward(ForwardStart(drawn, part.places, len(batch.rows)))
        with self._transforming(part, step, len(batch.rows)):
            features, logits = self.network(part.images)
        task = losses_of(self.loss, logits, part.targets).sum() * part.image_weight
        context = StepContext(
            classifier=self.classifier,
            images=part.images,
            targets=part.targets,
            rows=part.rows,
            features=features,
            logits=logits,
            step=step,
            num_processes=self.fabric.world_size,
            generator=torch_generator(self.settings.seed, "step", step, number),
            num_images=part.num_images,
            num_images_of_all=part.num_images_of_all,
            first_image=part.first_image,
            sum_over_processes=sum_over_processes,
        )
        if self.objective is None:
            total, terms = self.task_weight * task, {"task": task}
        else:
            of_objective = self._objective_terms(self.objective, batch, context)
            terms = {"task": task, **{name: term * part.term_weight for name, term in of_objective.items()}}
            total = self.task_weight * part.term_weight * torch.stack([*of_objective.values()]).sum()
        for regularizer in self.regularizers:
            drawn = torch_generator(self.settings.seed, regularizer.name, step, number)
            context = replace(context, generator=drawn)
            for name, term in scalar_terms(regularizer, regularizer.loss(context)):
                weighted = terms[f"{regularizer.name}/{name}"] = term * part.term_weight
                # What compares with nothing is as strong as it says.
                total = total + (self.settings.keep_factor if keeps_start(regularizer, name) else 1.0) * weighted
        return {"loss": total, **terms}

    @contextmanager
    def _transforming(self, part: _Part, step: int, batch_size: int) -> Generator[None]:
        """Feature transforms are armed inside the block."""
        try:
            for transform in self.feature_transforms:
                drawn = torch_generator(self.settings.seed, "feature transform", transform.name, step)
                transform.before_forward(TransformStart(drawn, part.places, batch_size, part.num_images, sum_over_processes))
            yield
        finally:
            for transform in self.feature_transforms:
                transform.after_forward()

    def _objective_terms(self, objective: Objective, batch: StepBatch, context: StepContext) -> dict[str, Tensor]:
        """Terms of the whole batch, the same in every process."""
        logits = context.of_all_processes(context.logits)
        targets = sent(batch.targets, logits.device).to(context.targets.dtype)
        domains = torch.zeros(len(targets), dtype=torch.int64) if batch.domains is None else batch.domains
        found = objective(
            ObjectiveContext(
                losses=losses_of(self.loss, logits, targets),
                logits=logits,
                targets=targets,
                domains=sent(domains, logits.device),
                num_domains=self.num_domains,
                step=context.step,
                loss=self.loss,
                generator=torch_generator(self.settings.seed, "objective", objective.name, context.step),
            )
        )
        return {f"{objective.name}/{name}": term for name, term in scalar_terms(objective, found)}

    def _over_all_processes(self, sums: Mapping[str, Tensor]) -> Tensor:
        values = torch.stack([value.double() if value.device.type != "mps" else value for value in sums.values()])
        if self.fabric.world_size > 1:
            values = self.fabric.all_reduce(values, reduce_op="sum")
        return values  # pyright: ignore[reportReturnType]

    def _clip(self, found: StepTerms) -> None:
        if self.settings.clip_norm is None:
            return
        norm = self.fabric.clip_gradients(
            self.network, self.optimizer, max_norm=self.settings.clip_norm, error_if_nonfinite=False
        )
        # The scaler of float16 expects infinite gradients now and then, and leaves out such a step.
        if self.settings.precision != "16-mixed" and norm is not None:
            found.also_finite("norm of the gradient", norm)
            if self.looks_first:
                look_at([found])


def refuse_non_finite(values: Mapping[str, float], step: int) -> None:
    """Stop before a number that is none spreads into the weights.

    Raises:
        DivergedError: A value is nan or infinite; the message names it, the step and what to try.
    """
    broken = [name for name, value in values.items() if not math.isfinite(value)]
    if broken:
        # The sum is broken because a term is; the term says more.
        named = [name for name in broken if name != "loss"] or broken
        raise DivergedError(
            f"Training stopped in step {step}: {', '.join(f'{name} is {values[name]}' for name in named)}. Try a smaller "
            "learning rate (--learning-rate), a longer warm-up, --clip-norm 1, or --precision 32; and look for images "
            "without contrast. The last checkpoint is still good."
        )


def step_randomness(seed: int, step: int, rank: int, device: torch.device) -> AbstractContextManager[None]:
    """Dropout and drop path draw from a stream of this step inside the block; the global streams stay untouched.

    Deriving the stream from the step means that a resumed run needs no saved random state.
    """
    return torch_draws(device, seed, "step", step, rank)


def close(batches: Iterator[Any]) -> None:
    """End an iterator that may have a thread behind it."""
    if (end := getattr(batches, "close", None)) is not None:
        end()
