"""Meta-Adapter: a small attention, learned on base classes, that refines class weights by a few images."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from jaxtyping import Bool, Float
from sklearn.exceptions import NotFittedError
from torch import Tensor, nn

from crossgraft.errors import DataError, UsageError
from crossgraft.fewshot.heads._class_weights import ClassWeights, class_weights_of
from crossgraft.fewshot.heads._head import (
    Classes,
    Head,
    Logits,
    Members,
    Prototypes,
    Rows,
    gradients_on,
    refuse_losses,
    unit_rows,
)
from crossgraft.paths import shortened
from crossgraft.tune.sim import RhoSim
from crossgraft.types import Features, Labels
from crossgraft.words.formatting import joined

_SCALE = 100.0
_INITIAL = "initial"
_HELD_OUT = 5
"""Every fifth image of a base class, in a drawn order, chooses the epoch."""


Cache = Float[Tensor, "num_classes shots width"]
Filled = Bool[Tensor, "num_classes shots"]


def _cached(rows: Rows, classes: Classes, num_classes: int) -> tuple[Cache, Filled]:
    """Features by class; where a class has fewer than the others places stay empty."""
    places = _place_within_class(classes)
    cache = rows.new_zeros(num_classes, int(places.max()) + 1, rows.shape[1])
    cache[classes, places] = rows
    filled = torch.zeros(cache.shape[:2], dtype=torch.bool)
    filled[classes, places] = True
    return cache, filled


def _place_within_class(classes: Classes) -> Classes:
    """How many of the same class come before each."""
    order = classes.argsort(stable=True)
    counts = torch.bincount(classes)
    firsts = (counts.cumsum(0) - counts)[classes[order]]
    places = torch.empty_like(classes)
    places[order] = torch.arange(len(classes)) - firsts
    return places


class MetaAdapter(nn.Module):
    """What is learned on base classes: two maps (d, d) of queries and keys, and a gate.

    Names of the parameters are those of the authors' code.
    """

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.q_proj, self.k_proj = _linear(width, width, bias=False), _linear(width, width, bias=False)
        self.alpha_proj = _linear(width, 1)
        for layer in (self.q_proj, self.k_proj, self.alpha_proj):
            nn.init.xavier_uniform_(layer.weight, generator=generator)
        nn.init.ones_(self.alpha_proj.bias)

    def forward(self, weights: Prototypes, cache: Cache, filled: Filled) -> Prototypes:
        """w'_c = u(w_c + g · att), with T = [w_c; cached features] as keys and values.

        Args:
            weights: Class weights of unit length.
            cache: Features of unit length; places that are not filled do not count.
            filled: Places of it that hold a feature.
        """
        tokens = torch.cat([weights[:, None], cache], dim=1)
        counts = torch.cat([filled.new_ones(len(weights), 1), filled], dim=1)
        scores = torch.einsum("cd,ckd->ck", self.q_proj(weights[None])[0], self.k_proj(tokens)) / math.sqrt(weights.shape[1])
        attention = scores.masked_fill(~counts, -math.inf).softmax(dim=1)
        refined = weights + self.alpha_proj(weights).sigmoid() * torch.einsum("ck,ckd->cd", attention, tokens)
        return nn.functional.normalize(refined, dim=1)


@dataclass(eq=False, repr=False)
class MetaAdapterHead(Head):
    """Class weights, refined by the support set through an attention that ``meta_fit`` has learned on other classes.

    Args:
        adapter_weights: What ``meta_fit`` has learned, by name; it is put here by it, so that ``sklearn.clone`` keeps it.
            ``initial``: as drawn, which is no method but a control. None: ``meta_fit`` has to be called before ``fit``.
        class_weights: As of ``TipAdapterHead``, for ``fit``.
        epochs: Passes of ``meta_fit`` over the base images.
        learning_rate: Learning rate of AdamW; falls to 0 along a cosine.
        batch_size: Images of a step.
        shots: Features of each base class that are cached in ``meta_fit``.
        rho_sim_weight: Weight of ρSIM on both maps in ``meta_fit``. Published: 0.005; 0: none.
        seed: Random seed of the first weights and of the order of images.

    Attributes:
        class_weights_: (C, d) refined, of unit length.
        uses_prototypes_: Whether prototypes stood in for class weights.

    Cost: ``fit`` takes 4·C·(K + 1)·d², K the largest number of images of a class; ``meta_fit`` three times that per step.

    Source: Song, Xue, Wang, Sun, Ge, Shan and others, Meta-Adapter: An Online Few-shot Learner for Vision-Language Model,
    NeurIPS 2023. The authors' code chooses the epoch on the evaluation set; here it is chosen on held-out base images.
    With ρSIM: Cai, Zhu, Fu, Miao and Yao, Self Identity Mapping, table 4.
    """

    name: ClassVar[str] = "meta_adapter"
    title: ClassVar[str] = "Meta-Adapter"
    reference: ClassVar[str] = (
        "Song, Xue, Wang, Sun, Ge, Shan and others, Meta-Adapter: An Online Few-shot Learner for Vision-Language Model, "
        "NeurIPS 2023"
    )

    adapter_weights: Any = None
    class_weights: Any = None
    epochs: int = 5
    learning_rate: float = 1e-4
    batch_size: int = 64
    shots: int = 16
    rho_sim_weight: float = 0.0
    seed: int = 0

    @property
    def title_in_full(self) -> str:
        """The published name of these options."""
        return self.title + (" + ρSIM" if self.rho_sim_weight else "")

    def check(self) -> None:
        """Refuse numbers out of their range."""
        self.check_numbers("learning_rate", above=True)
        self.check_numbers("rho_sim_weight")
        self.check_seed()
        self.check_counts("epochs", "batch_size", "shots")
        if min(self.batch_size, self.shots) < 1:
            raise UsageError("batch_size and shots of meta_adapter must be at least 1.")

    def meta_fit(self, X: Features, y: Labels, *, class_weights: ClassWeights = None) -> Self:
        """Learn the attention on base classes; their labels are none of the later tasks.

        Each class keeps its newest ``shots`` features in the cache; every fifth image is held out, and the epoch with the best
        accuracy on those counts.

        Args:
            X: (n, d) features of base images.
            y: (n,) labels; at least 3 images per class.
            class_weights: Vectors of the base classes, as of ``TipAdapterHead``. None: prototypes of the images that are not held
                out.

        Raises:
            DataError: As of ``fit``; or a class has fewer than 3 images.
            DivergedError: The loss is no longer a finite number.
            UsageError: An option is out of its range.
        """
        self.check()
        rows, labels = self._checked(X, y)
        names, numbers = np.unique(labels, return_inverse=True)
        counts = np.bincount(numbers)
        if len(names) < 2 or int(counts.min()) < 3:
            scarce = names[int(counts.argmin())]
            raise DataError(
                f"meta_fit needs at least two base classes with 3 images each; {scarce} has {int(counts.min())} of "
                f"{len(names)} classes."
            )
        with gradients_on():
            base = _BaseTraining(self, torch.from_numpy(rows), torch.from_numpy(numbers))
            self.adapter_weights = base.run(class_weights_of(class_weights, names, base.prototypes))
        return self

    def adapt(self, support: Rows, classes: Classes, num_classes: int) -> None:
        """Refine the class weights by the whole support set."""
        members, given = Members.of(classes, num_classes, support), self.class_weights
        weights = class_weights_of(given, self.classes_, members.means(support))
        cache, filled = _cached(unit_rows(support).rows, classes, num_classes)
        with torch.no_grad():
            refined: Prototypes = self._adapter(support)(weights, cache, filled)
        self.uses_prototypes_ = given is None
        self.class_weights_ = refined.numpy()

    def logits_of(self, query: Rows) -> Logits:
        """100 · cos(q, w'_c)."""
        return _SCALE * unit_rows(query).rows @ torch.from_numpy(self.class_weights_).T

    def _logits(self, query: Features) -> Logits:
        self._refuse_untaught()
        return super()._logits(query)

    def _refuse_untaught(self) -> None:
        if self.adapter_weights is None:
            raise NotFittedError(
                "MetaAdapterHead has learned nothing yet. Call meta_fit(features, labels) on base classes before fit."
            )

    def _adapter(self, like: Rows) -> MetaAdapter:
        self._refuse_untaught()
        adapter = MetaAdapter(like.shape[1], torch.Generator().manual_seed(int(self.seed))).to(like.dtype)
        given = self.adapter_weights
        if isinstance(given, Mapping):
            _load(adapter, {str(name): torch.as_tensor(value).to(like.dtype) for name, value in given.items()}, like.shape[1])
        elif not (isinstance(given, str) and given == _INITIAL):
            raise UsageError(
                f"adapter_weights of meta_adapter must come from meta_fit, or be {_INITIAL}, got {shortened(repr(given))}."
            )
        return adapter


def _load(adapter: MetaAdapter, state: dict[str, Tensor], width: int) -> None:
    """Put in what ``meta_fit`` has learned.

    Raises:
        DataError: Names or shapes are others.
    """
    expected = {name: tuple(value.shape) for name, value in adapter.state_dict().items()}
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    if shapes.keys() != expected.keys() or any(len(shapes[name]) != len(shape) for name, shape in expected.items()):
        there, wanted = (joined([f"{name} {shape}" for name, shape in each.items()]) for each in (shapes, expected))
        raise DataError(f"adapter_weights of meta_adapter are not of meta_fit: they have {there}, and should have {wanted}.")
    if shapes != expected:
        raise DataError(
            f"meta_fit has seen features of width {shapes['q_proj.weight'][1]}, and these have {width}. Use one network for both."
        )
    adapter.load_state_dict(state)


class _BaseTraining:
    """Learning on base classes, image by image: who has been seen moves into the cache."""

    def __init__(self, head: MetaAdapterHead, features: Rows, classes: Classes) -> None:
        self.head, self.rows, self.classes = head, unit_rows(features).rows, classes
        self.generator = torch.Generator().manual_seed(int(head.seed))
        order = torch.randperm(len(classes), generator=self.generator)
        places = _place_within_class(classes[order])
        self.held_out = order[places % _HELD_OUT == _HELD_OUT - 1]
        if len(self.held_out) == 0:  # too few images per class for a fifth
            self.held_out = order[places == places.max()]
        self.trained = order[~torch.isin(order, self.held_out)]
        members = Members.of(classes[self.trained], int(classes.max()) + 1, features)
        self.prototypes = self.weights = members.means(features[self.trained])
        """Without the held-out images, which would recognise themselves in them."""

    def run(self, weights: Prototypes) -> dict[str, np.ndarray]:
        """What is learned from class weights (C, d) of unit length: as after the best epoch."""
        head, self.weights = self.head, weights
        adapter = MetaAdapter(self.rows.shape[1], self.generator).to(self.rows.dtype)
        sim = RhoSim(
            adapter,
            blocks=["q_proj", "k_proj"],
            weight=head.rho_sim_weight,
            layout="nlc",
            seed=int(head.seed),
            example=(self.weights, *self._cache_of(self._first_shots())),
        )
        optimizer = torch.optim.AdamW([*adapter.parameters(), *sim.parameters()], lr=head.learning_rate, eps=1e-4)
        num_steps = head.epochs * math.ceil(len(self.trained) / head.batch_size)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(num_steps, 1))
        best, state = -1.0, copy.deepcopy(adapter.state_dict())
        losses: list[float] = []
        for _ in range(head.epochs):
            for cache, filled, batch in self._batches():
                logits = _SCALE * self.rows[batch] @ adapter(self.weights, cache, filled).T
                loss = nn.functional.cross_entropy(logits, self.classes[batch]) + sim.loss()
                optimizer.zero_grad()
                loss.backward()  # pyright: ignore[reportUnknownMemberType]
                losses.append(loss.item())
                optimizer.step()
                schedule.step()
            refuse_losses(head.name, losses)
            right = self._accuracy(adapter)
            if right > best:
                best, state = right, copy.deepcopy(adapter.state_dict())
        return {name: value.numpy() for name, value in state.items()}

    def _batches(self) -> Iterator[tuple[Cache, Filled, Tensor]]:
        """Batches in a drawn order, each with what was seen before it: the newest features of each class."""
        order = self.trained[torch.randperm(len(self.trained), generator=self.generator)]
        seen = self._first_shots()
        for batch in order.split(self.head.batch_size):
            yield (*self._cache_of(seen), batch)
            seen = torch.cat([seen, batch])

    def _first_shots(self) -> Tensor:
        return self.trained[_place_within_class(self.classes[self.trained]) < self.head.shots]

    def _cache_of(self, seen: Tensor) -> tuple[Cache, Filled]:
        backwards = _place_within_class(self.classes[seen].flip(0)).flip(0)
        newest = seen[backwards < self.head.shots]
        return _cached(self.rows[newest], self.classes[newest], len(self.weights))

    def _accuracy(self, adapter: MetaAdapter) -> float:
        with torch.no_grad():
            refined = adapter(self.weights, *self._cache_of(self._first_shots()))
        winners = (self.rows[self.held_out] @ refined.T).argmax(dim=1)
        return float((winners == self.classes[self.held_out]).double().mean())


def _linear(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    """Without first weights, which the constructor would draw from the global random state."""
    return cast("nn.Linear", nn.utils.skip_init(nn.Linear, inputs, outputs, bias=bias))
