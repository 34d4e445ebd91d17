"""Sharpness: how far the loss can rise when weights move by a small step (Table 2 of RepSim).

    max over ‖ε‖₂ ≤ ρ of L(θ + ε) − L(θ)

Source: RepSim, section 4.3; the one step is that of Foret et al., *Sharpness-Aware Minimization*, ICLR 2021, eq. 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from crossgraft.errors import UsageError
from crossgraft.features.passes import gradients_on, run_pass
from crossgraft.geometry._inputs import (
    BATCH_SIZE,
    AnyImages,
    ImageTargets,
    Network,
    NetworkImages,
    PerImage,
    finite_loss,
    module_of,
    targets_of,
    usual_loss,
    weight_of,
)
from crossgraft.models import Backbone
from crossgraft.progress import Reporter

RHO = 0.01
"""Radius of the ball around the weights, as in Table 2 of RepSim."""
_STEP = 2.5
"""Steps of K are 2.5 ρ / K long, so that they reach the sphere from anywhere in the ball and go on along it."""

_Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Sharpness:
    """How sharp the loss is around the weights of a network.

    Attributes:
        value: Largest loss that was found in the ball, minus the loss at its centre; never negative.
        loss: Loss at the weights as they are, mean over images.
        gradient_norm: Length of its gradient.
        first_order: ρ times that length: the value of a network whose loss is a plane.
        rho: Radius ρ.
        steps: Steps K of ascent.
        per_batch: Whether the value is the mean of maxima that each batch has for itself.
        num_images: Images that were looked at.
    """

    value: float
    loss: float
    gradient_norm: float
    first_order: float
    rho: float
    steps: int
    per_batch: bool
    num_images: int


def sharpness(
    network: nn.Module,
    images: AnyImages,
    targets: ImageTargets | None = None,
    *,
    rho: float = RHO,
    steps: int = 1,
    per_batch: bool = False,
    loss: PerImage | None = None,
    batch_size: int = BATCH_SIZE,
    reporter: Reporter | None = None,
) -> Sharpness:
    """Climb within ‖ε‖ ≤ ρ around all weights of the network, head and body together, and say how far the loss rose.

    The network runs in eval mode and in full precision, gradients are those of all images (accumulated over batches), and every
    weight counts, trained or not, so that a linear probe can be compared with a full fine-tuning. One step is
    ε = ρ g / ‖g‖. K steps are projected ascents along normalised gradients, of length 2.5 ρ / K, of which the best point counts.
    Weights come back bit for bit, also where an error or an interruption (Ctrl-C) ends the climb.

    Args:
        network: A classifier, or any module that returns logits.
        images: Prepared images, or a data set with its targets.
        targets: (n,) class of each image, or (n, L) of 0 and 1; those of the data set where none are given.
        rho: Radius ρ.
        steps: Steps K.
        per_batch: Climb for each batch on its own and take the mean over images; at least as large as the value of all
            images together if both climbs find their maximum.
        loss: Loss of each image; cross-entropy, with several labels the binary one summed over labels where none is given.
        batch_size: Images at once; with ``per_batch`` another size is another number.
        reporter: Reporter of progress.

    Raises:
        UsageError: ρ, K or the batch size is not positive, targets are missing, or the network is a backbone.
        DataError: Too few images, targets that do not belong to them, or a loss that is not finite.

    Cost: K + 1 forward and K backward passes of all images, a copy of the weights and up to three vectors of their size.
    """
    if isinstance(network, Backbone):
        raise UsageError(f"{network.name} has no logits of these classes. Give a classifier, for example a linear probe.")
    if not (rho > 0 and math.isfinite(rho)) or steps < 1 or batch_size < 1:
        raise UsageError(
            f"Sharpness needs a radius above 0, at least one step and one image at once, not rho={rho:g}, steps={steps} and "
            f"batch_size={batch_size}."
        )
    prepared = NetworkImages(images, network)
    labels = targets_of(images, targets, len(prepared))
    parts = [slice(start, start + batch_size) for start in range(0, len(prepared), batch_size)]
    passes = len(prepared) * (steps + 1)
    with (reporter or Reporter(quiet=True)).stage("Climbing around the weights", total=passes, unit="images") as stage:
        climb = _Climb(network, loss or usual_loss(labels), rho, steps, stage.advance)
        return _measured(climb, prepared, labels, parts, per_batch=per_batch)


def _measured(climb: _Climb, prepared: NetworkImages, labels: Tensor, parts: Sequence[slice], *, per_batch: bool) -> Sharpness:
    """All images together, or each part by itself."""
    rho, steps = climb.rho, climb.steps
    batches = _Batches(prepared, labels, parts)
    if not per_batch:
        top = climb.from_here(batches)
        return Sharpness(top.value, top.loss, top.gradient_norm, rho * top.gradient_norm, rho, steps, False, len(labels))
    tops = [climb.from_here(_Batches(prepared, labels, [part])) for part in parts]
    shares = [len(labels[part]) / len(labels) for part in parts]
    value, level, norm = (
        sum(share * number for share, number in zip(shares, numbers, strict=True))
        for numbers in ([top.value for top in tops], [top.loss for top in tops], [top.gradient_norm for top in tops])
    )
    return Sharpness(value, level, norm, rho * norm, rho, steps, True, len(labels))


class _Batches:
    """Images with their targets, some rows at a time, as often as wanted."""

    def __init__(self, images: NetworkImages, targets: Tensor, parts: Sequence[slice]) -> None:
        self._images, self._targets, self._parts = images, targets, parts
        self.num_images = sum(len(targets[part]) for part in parts)

    def __iter__(self) -> Generator[_Batch]:
        for part in self._parts:
            rows = torch.arange(len(self._targets))[part]
            yield self._images.prepared(rows), self._targets[rows]


@dataclass(frozen=True)
class _Top:
    value: float
    loss: float
    gradient_norm: float


class _Climb:
    """Ascents from the weights of one network."""

    def __init__(self, network: Network, loss: PerImage, rho: float, steps: int, on_images: Callable[[int], object]) -> None:
        self._network, self._loss, self.rho, self.steps = module_of(network), loss, rho, steps
        self._on_images = on_images
        self._weights = [weight for weight in self._network.parameters() if weight.is_floating_point()]
        if not self._weights:
            raise UsageError("The network has no weights that could be moved.")

    def from_here(self, batches: _Batches) -> _Top:
        loss, gradient = self._loss_and_gradient(batches)
        first_norm = norm = _length(gradient)
        best, shift = loss, [torch.zeros_like(tensor) for tensor in gradient]
        with _weights_kept(self._weights) as kept:
            for step in range(self.steps):
                if norm == 0:  # a flat place, where no direction leads up
                    break
                length = _STEP * self.rho / self.steps
                shift = [e + length / norm * g for e, g in zip(shift, gradient, strict=True)]
                too_far = _length(shift) / self.rho
                shift = [e / too_far for e in shift] if too_far > 1 else shift
                with torch.no_grad():
                    for weight, before, e in zip(self._weights, kept, shift, strict=True):
                        weight.copy_(before + e)
                if step + 1 < self.steps:
                    there, gradient = self._loss_and_gradient(batches)
                    norm = _length(gradient)
                else:
                    total = sum(float(loss) for loss in self._losses(batches, graph=False))
                    there = finite_loss(total / batches.num_images)
                best = max(best, there)
        return _Top(best - loss, loss, first_norm)

    def _loss_and_gradient(self, batches: _Batches) -> tuple[float, list[Tensor]]:
        """Mean over images, both."""
        n, total = batches.num_images, 0.0
        sums = [torch.zeros_like(weight) for weight in self._weights]
        with gradients_on(by=self._weights):
            for loss in self._losses(batches, graph=True):
                for already, part in zip(sums, _gradients(loss, self._weights), strict=True):
                    if part is not None:
                        already += part / n
                total += float(loss.detach())
        return finite_loss(total / n), sums

    def _losses(self, batches: _Batches, *, graph: bool) -> Generator[Tensor]:
        """Sum over the images of each batch, in float64."""
        pending: list[Tensor] = []

        def images() -> Generator[Tensor]:
            for some, targets in batches:
                pending.append(targets)
                yield some

        passes = run_pass(
            self._network, images(), like=weight_of(self._network), graph=graph, full_precision=True, on_images=self._on_images
        )
        for logits in passes:
            targets = pending.pop(0).to(logits.device)
            with torch.set_grad_enabled(graph):
                total = self._loss(logits, targets).double().sum()
            yield total


def _gradients(loss: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
    return torch.autograd.grad(loss, list(weights), allow_unused=True)


def _length(vectors: Sequence[Tensor]) -> float:
    return math.sqrt(sum(float(vector.double().square().sum()) for vector in vectors))


@contextmanager
def _weights_kept(weights: Sequence[Tensor]) -> Generator[list[Tensor]]:
    """Copies of ``weights``, which have the same bits again after the block, however it ends."""
    kept = [weight.detach().clone() for weight in weights]

    def put_back() -> None:
        with torch.no_grad():
            for weight, before in zip(weights, kept, strict=True):
                weight.copy_(before)

    try:
        yield kept
    finally:
        try:
            put_back()
        except KeyboardInterrupt:  # pressed again, meanwhile
            put_back()
            raise
