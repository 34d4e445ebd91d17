"""Tip-Adapter: the support set as a cache of keys, beside a classifier that is there already."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from jaxtyping import Float
from sklearn.utils.validation import check_array
from torch import Tensor

from crossgraft.errors import DataError, DivergedError, UsageError
from crossgraft.fewshot.heads._class_weights import ClassWeights, class_weights_of
from crossgraft.fewshot.heads._head import Classes, Head, Logits, Members, Rows, refuse_values, unit_rows
from crossgraft.tune.sim import RhoSim
from crossgraft.types import Features, Labels

_SCALE = 100.0
"""What cosines to class weights are multiplied by: CLIP's."""
_NUM_SHARPNESSES, _NUM_MIXINGS = 200, 20
_LEAST = 0.1


@dataclass(eq=False, repr=False)
class TipAdapterHead(Head):
    """100 · u(x)·W + α · exp(−β (1 − u(x)·F)) V: F the support set, V its labels, W a vector per class.

    Each key has one vote, so that classes with more images in the support set are predicted more often; published episodes have
    as many images of each class.

    Args:
        class_weights: Features of the class names, or rows of another head: (C, d) in the order of the sorted labels; label →
            (d,); or an npz or safetensors file with an array for each label. None: the prototypes take their place.
        alpha: How much the cache counts.
        beta: Sharpness: how near a key must be to count.
        fine_tune: Train the keys (Tip-Adapter-F).
        epochs: Passes over the support set, for ``fine_tune``.
        learning_rate: Learning rate of AdamW, for ``fine_tune``; falls to 0 along a cosine.
        batch_size: Images of a step.
        rho_sim_weight: Weight of ρSIM on the trained keys: images are predicted from their similarities to the keys. Published:
            0.005; 0: none.
        largest_alpha: End of the search for α on validation images; it begins at 0.1.
        largest_beta: The same for β.
        seed: Random seed of the order of images in ``fine_tune``.

    Attributes:
        keys_: (n, d) F, of unit length unless they were trained.
        class_weights_: (C, d) W, of unit length.
        uses_prototypes_: Whether prototypes stand in for class weights.
        alpha_, beta_: As given, or as found on validation images.
        loss_curve_: Loss before each step of ``fine_tune``.
        best_epoch_: From 1, where keys were trained; chosen on validation images, else the last one.

    Cost: a prediction takes m·n·(d + C); ``fine_tune`` three times that per epoch with m = n; the search 4000 looks at the
    validation images.

    Source: Zhang, Zhang, Fang, Gao, Li, Dai, Qiao and Li, Tip-Adapter: Training-free Adaption of CLIP for Few-shot
    Classification, ECCV 2022. The authors' code chooses the epoch on the test set; here that is done on validation images or
    not at all. With ρSIM: Cai, Zhu, Fu, Miao and Yao, Self Identity Mapping, table 4.
    """

    name: ClassVar[str] = "tip_adapter"
    title: ClassVar[str] = "Tip-Adapter"
    reference: ClassVar[str] = (
        "Zhang, Zhang, Fang, Gao, Li, Dai, Qiao and Li, Tip-Adapter: Training-free Adaption of CLIP for Few-shot Classification, "
        "ECCV 2022"
    )

    class_weights: Any = None
    alpha: float = 1.17
    beta: float = 1.0
    fine_tune: bool = False
    epochs: int = 20
    learning_rate: float = 1e-3
    batch_size: int = 256
    rho_sim_weight: float = 0.0
    largest_alpha: float = 3.0
    largest_beta: float = 7.0
    seed: int = 0

    @property
    def title_in_full(self) -> str:
        """The published name of these options."""
        if not self.fine_tune:
            return self.title
        return f"{self.title}-F" + (" + ρSIM" if self.rho_sim_weight else "")

    def check(self) -> None:
        """Refuse numbers out of their range."""
        self.check_numbers("alpha", "beta", "rho_sim_weight")
        self.check_numbers("learning_rate", above=True)
        self.check_numbers("largest_alpha", "largest_beta", least=_LEAST)
        self.check_counts("epochs", "batch_size")
        self.check_seed()
        if self.batch_size == 0:
            raise UsageError("batch_size of tip_adapter must be at least 1.")

    def fit(self, X: Features, y: Labels, X_val: Features | None = None, y_val: Labels | None = None) -> Self:
        """As of every head; with validation images α, β and the epoch are chosen on them.

        Args:
            X: (n, d) features of the support set.
            y: (n,) labels.
            X_val: (v, d) features of validation images.
            y_val: (v,) their labels, all of them among ``y``.

        Raises:
            DataError: As of every head; or the validation images do not fit to the support set.
            DivergedError: ``fine_tune`` did not converge.
            UsageError: An option is out of its range, or one of the last two arguments is missing.
        """
        if (X_val is None) != (y_val is None):
            raise UsageError("Give both X_val and y_val, or none of them.")
        self._val = None if X_val is None or y_val is None else (X_val, y_val)
        try:
            return super().fit(X, y)
        finally:
            del self._val

    def adapt(self, support: Rows, classes: Classes, num_classes: int) -> None:
        """Take the keys; train them and look for α and β where that is asked for."""
        members = Members.of(classes, num_classes, support)
        given: ClassWeights = self.class_weights
        self._weights = class_weights_of(given, self.classes_, members.means(support))
        self._keys, self._classes = unit_rows(support).rows.clone(), classes
        self.uses_prototypes_ = given is None
        self.alpha_, self.beta_ = float(self.alpha), float(self.beta)
        self.loss_curve_: list[float] = []
        val = None if self._val is None else self._checked_val(*self._val)
        if self.fine_tune:
            self._train(val)
        if val is not None:
            self.alpha_, self.beta_ = self._search(*val)
        self.keys_, self.class_weights_ = self._keys.numpy(), self._weights.numpy()

    def logits_of(self, query: Rows) -> Logits:
        """Class weights and cache together."""
        images = unit_rows(query).rows
        return _SCALE * images @ self._weights.T + self.alpha_ * self._cache(images, self._keys, self.beta_)

    def _cache(self, images: Rows, keys: Rows, beta: float) -> Logits:
        """exp(−β (1 − x Fᵀ)) V."""
        return self._voted(images @ keys.T, beta)

    def _voted(self, cosines: Float[Tensor, "rows keys"], beta: float) -> Logits:
        near = torch.exp(-beta * (1 - cosines))
        return near.new_zeros(len(near), len(self._weights)).index_add(1, self._classes, near)

    def _train(self, val: tuple[Rows, Classes] | None) -> None:
        """Tip-Adapter-F: AdamW on the keys, which are not brought to unit length again."""
        images, classes = unit_rows(self._keys).rows, self._classes
        fixed = _SCALE * images @ self._weights.T
        adapter = KeyAdapter(self._keys)
        keys = adapter.keys.weight
        sim = RhoSim(adapter, blocks=["keys"], weight=self.rho_sim_weight, layout="nlc", seed=int(self.seed), example=images[:2])
        optimizer = torch.optim.AdamW([keys, *sim.parameters()], lr=self.learning_rate, eps=1e-4)
        num_steps = self.epochs * math.ceil(len(images) / self.batch_size)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(num_steps, 1))
        generator = torch.Generator().manual_seed(int(self.seed))
        best, self.best_epoch_ = -1.0, self.epochs
        for epoch in range(1, self.epochs + 1):
            for rows in torch.randperm(len(images), generator=generator).split(self.batch_size):
                with torch.enable_grad():
                    logits = fixed[rows] + self.alpha * self._voted(adapter(images[rows]), self.beta)
                    loss = torch.nn.functional.cross_entropy(logits, classes[rows]) + sim.loss()
                    loss.backward()  # pyright: ignore[reportUnknownMemberType]
                self._refuse_divergence(loss)
                self.loss_curve_.append(loss.item())
                optimizer.step()
                optimizer.zero_grad()
                schedule.step()
            if val is not None:
                right = self._accuracy(val, keys.detach())
                if right > best:
                    best, self.best_epoch_, self._keys = right, epoch, keys.detach().clone()
        self._refuse_divergence(keys)
        if val is None:
            self._keys = keys.detach()

    def _refuse_divergence(self, values: Tensor) -> None:
        if not bool(values.isfinite().all()):
            raise DivergedError(
                f"The loss or the keys of tip_adapter are no longer finite after {len(self.loss_curve_)} steps. Lower "
                f"learning_rate (now {self.learning_rate:g}) or beta (now {self.beta:g})."
            )

    def _accuracy(self, val: tuple[Rows, Classes], keys: Rows) -> float:
        images, classes = val
        logits = _SCALE * images @ self._weights.T + self.alpha * self._cache(images, keys, self.beta)
        return float((logits.argmax(dim=1) == classes).double().mean())

    def _search(self, images: Rows, classes: Classes) -> tuple[float, float]:
        """The first best pair: β outside, α inside, as the authors' code looks at them."""
        fixed = _SCALE * images @ self._weights.T
        mixings = _grid(self.largest_alpha, _NUM_MIXINGS)
        best, picked = -1, (self.alpha_, self.beta_)
        for beta in _grid(self.largest_beta, _NUM_SHARPNESSES):
            cache = self._cache(images, self._keys, beta)
            for alpha in mixings:
                right = int(((fixed + alpha * cache).argmax(dim=1) == classes).sum())
                if right > best:
                    best, picked = right, (alpha, beta)
        return picked

    def _checked_val(self, rows: Any, labels: Any) -> tuple[Rows, Classes]:
        """Unit length, and classes by number."""
        number_type: Any = self._keys.numpy().dtype
        try:
            rows = check_array(rows, dtype=number_type, ensure_all_finite=False)
            labels = np.asarray(labels)
        except (TypeError, ValueError) as error:
            raise DataError(f"Validation images: {error}") from error
        refuse_values(torch.from_numpy(rows), name="Validation image")
        if rows.shape[1] != self._keys.shape[1] or labels.shape != (len(rows),):
            raise DataError(
                f"Validation images have features of shape {rows.shape} and labels of shape {labels.shape}; the support set has "
                f"features of width {self._keys.shape[1]}."
            )
        numbers = {label: number for number, label in enumerate(self.classes_.tolist())}  # 0 and 0.0 are one label
        numbers_of_labels = [numbers.get(label, -1) for label in labels.tolist()]
        if -1 in numbers_of_labels:
            unknown = sorted({str(label) for label, number in zip(labels, numbers_of_labels, strict=True) if number < 0})
            raise DataError(
                f"Validation images have labels that the support set lacks: {', '.join(unknown[:5])}. Labels must be of the same "
                f"type, too: there they are {self.classes_.dtype}, here {labels.dtype}."
            )
        classes: Float[Tensor, " v"] = torch.tensor(numbers_of_labels)
        return unit_rows(torch.from_numpy(rows)).rows, classes


class KeyAdapter(torch.nn.Module):
    """Similarities of images to the keys: the trained part of Tip-Adapter-F, as a network that ρSIM can watch."""

    keys: torch.nn.Linear

    def __init__(self, keys: Rows) -> None:
        super().__init__()
        # filled below: the constructor would draw from the global random state
        made = torch.nn.utils.skip_init(torch.nn.Linear, keys.shape[1], len(keys), bias=False, dtype=keys.dtype)
        self.keys = cast("torch.nn.Linear", made)
        with torch.no_grad():
            self.keys.weight.copy_(keys)

    def forward(self, images: Rows) -> Float[Tensor, "rows keys"]:
        """Cosines x Fᵀ; images stand beside each other as positions, from which ρSIM draws."""
        return self.keys(images[None])[0]


def _grid(largest: float, count: int) -> list[float]:
    """0.1 + i (largest − 0.1) / count."""
    return [_LEAST + number * (largest - _LEAST) / count for number in range(count)]
