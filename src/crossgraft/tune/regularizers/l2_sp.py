"""L2-SP: hold the weights near those that training started from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from crossgraft.errors import UsageError
from crossgraft.models.classifier import Classifier
from crossgraft.tune.protocols import Regularizer, StepContext, StepUpdate, TrainingSet


@dataclass
class L2SP(Regularizer):
    """Two terms, over the parameters that are trained at that step.

        body = α/2 · Σ_body ‖w − w⁰‖²        head = β/2 · Σ_head ‖w‖²

    w⁰ are clones of the weights at ``attach``. Use it with a weight decay of 0, which would pull the body to zero at the
    same time.

    With ``decoupled`` the pull is no part of the gradient, so that AdamW does not rescale it: after the optimiser's step of
    learning rate η, w ← w − η α (w − w⁰) in the body and w ← w − η β w in the head. Both terms are still logged.

    Attributes:
        alpha: Strength α ≥ 0 of the pull to the starting point.
        beta: Strength β ≥ 0 of the pull of the new head to zero.
        decoupled: Move the weights after the step, as decoupled weight decay does, in place of adding to the gradient.

    Cost: a copy of the body in memory (and in checkpoints), and a few operations for each weight and step; fewer where
    ``decoupled``, which builds no graph.

    Reference: Li, Grandvalet, Davoine: Explicit Inductive Bias for Transfer Learning with Convolutional Networks, ICML
    2018 (arXiv 1802.01483), equation 3; the defaults are those of the Transfer-Learning-Library.
    """

    name: ClassVar[str] = "l2_sp"
    title: ClassVar[str] = "L2-SP"
    citation: ClassVar[str] = (
        "Li, Grandvalet, Davoine: Explicit Inductive Bias for Transfer Learning with Convolutional Networks, ICML 2018 "
        "(arXiv 1802.01483)"
    )
    keeps_reference: ClassVar[bool] = True
    kept_terms: ClassVar[tuple[str, ...]] = ("body",)
    decays_weights: ClassVar[bool] = True

    alpha: float = 0.01
    beta: float = 0.01
    decoupled: bool = False

    def __post_init__(self) -> None:
        for option in ("alpha", "beta"):
            value = getattr(self, option)
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(f"{option} of l2_sp must be a number of at least 0, found {value}.")
        self._start: dict[str, Tensor] = {}

    @property
    def pulls(self) -> bool:
        """Whether anything holds the pretrained weights."""
        return self.alpha > 0

    def attach(self, classifier: Classifier, training_set: TrainingSet | None = None, *, seed: int = 0) -> None:
        """Clone the weights of the body: what shares memory with them would follow them, and the term stay 0."""
        self._start = {name: parameter.detach().clone() for name, parameter in _body(classifier)}

    def loss(self, context: StepContext) -> dict[str, Tensor]:
        """The terms ``body`` and ``head``.

        Raises:
            UsageError: ``attach`` was not called.
        """
        if not self._start:
            raise UsageError("l2_sp does not know where training started. Call attach(classifier) before the first step.")
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.decoupled):
            body = self._trained_body(context.classifier)
            head = [weight.square().sum() for weight in context.classifier.head.parameters() if weight.requires_grad]
            nothing = context.logits.new_zeros(())
            return {
                "body": self.alpha * (_half_squared_distance(*zip(*body, strict=True)) if body else nothing),
                "head": 0.5 * self.beta * (torch.stack(head).sum() if head else nothing),
            }

    @torch.no_grad()
    def after_step(self, update: StepUpdate) -> None:
        """Pull the weights where ``decoupled``, each by the share that its learning rate says."""
        if not self.decoupled:
            return
        shares: dict[float, list[tuple[Tensor, Tensor]]] = {}
        for name, weight in update.classifier.named_parameters():
            if name in update.learning_rates and weight.requires_grad:
                is_kept = name in self._start  # what --keep strengthens: the head has no start to be kept
                strength = self.alpha * update.factor if is_kept else self.beta
                pull_to = self._start[name] if is_kept else torch.zeros_like(weight)
                shares.setdefault(update.learning_rates[name] * strength, []).append((weight, pull_to))
        for rate, pairs in shares.items():
            weights, starts = zip(*pairs, strict=True)
            torch._foreach_lerp_(list(weights), list(starts), min(rate, 1.0))  # pyright: ignore[reportPrivateImportUsage]

    def _trained_body(self, classifier: Classifier) -> list[tuple[Tensor, Tensor]]:
        """Each trained weight of the body and where it started."""
        return [(weight, self._start[name]) for name, weight in _body(classifier) if weight.requires_grad]

    def detach(self) -> None:
        """Forget the starting point; nothing was left on the network."""
        self._start = {}

    def state_dict(self) -> dict[str, Tensor]:
        """The starting point: a resumed run may attach to weights that have moved already."""
        return dict(self._start)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore the starting point, on the device and in the type that ``attach`` found.

        Raises:
            UsageError: The state is of another network.
        """
        if state.keys() != self._start.keys():
            raise UsageError("The checkpoint of l2_sp is of another network. Start again with --overwrite.")
        self._start = {name: tensor.to(self._start[name], copy=True) for name, tensor in state.items()}


def _body(classifier: Classifier) -> list[tuple[str, nn.Parameter]]:
    untrainable = classifier.untrainable
    return [(name, p) for name, p in classifier.named_parameters() if name.startswith("body.") and name not in untrainable]


class _HalfSquaredDistance(torch.autograd.Function):
    """½ Σ ‖w − w⁰‖² of many tensors at once, whose gradient w − w⁰ is known: half the time of the formula's graph."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Tensor) -> Tensor:
        differences = torch._foreach_sub(tensors[:count], tensors[count:])  # pyright: ignore[reportPrivateImportUsage]
        ctx.save_for_backward(*differences)
        norms = torch._foreach_norm(differences)  # pyright: ignore[reportPrivateImportUsage]
        return 0.5 * torch.stack(norms).square().sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        pulls = torch._foreach_mul(ctx.saved_tensors, gradients[0])  # pyright: ignore[reportPrivateImportUsage]
        return None, *pulls, *[None] * len(pulls)


def _half_squared_distance(weights: Sequence[Tensor], starts: Sequence[Tensor]) -> Tensor:
    return _HalfSquaredDistance.apply(len(weights), *weights, *starts)  # pyright: ignore[reportReturnType]
