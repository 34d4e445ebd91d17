"""HCS: keep the features of a batch similar, by CKA, to those of the pretrained network."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from crossgraft.conflicts import Situation
from crossgraft.errors import UsageError
from crossgraft.models.classifier import Classifier
from crossgraft.tune.protocols import LOOK_EVERY_STEPS, Regularizer, StepContext, StepUpdate, TrainingSet
from crossgraft.tune.regularizers._batch_cka import FEWEST_DEBIASED, batch_cka
from crossgraft.tune.regularizers._reference import PairedReference, remarks_on_pairs, wide


@dataclass
class HCS(Regularizer):
    """A convex combination of the loss of the task and of what is lost of the similarity to the pretrained features.

        L = λ · L_task + (1 − λ) · (1 − CKA(F₀, F))

    F are the penultimate features of the batch of all processes, F₀ those of the pretrained network for the same augmented
    and mixed images; its weights are copied at ``attach``. CKA is linear, and computed in float32 at least. With
    ``--accumulate`` each part of a batch has a CKA of its own.

    Where all images of a batch have the same features CKA is not defined: the term then takes it as 0, has no gradient,
    and a warning is given once.

    Attributes:
        lam: λ in [0, 1]; 1 trains as if there were no regulariser.
        debiased: Use the unbiased estimate of HSIC. The biased CKA of a batch of b images with d isotropic features is about
            d / (b + d) at least, so that its term has little room at small b; batches of fewer than four images give no term.
        cache: True: the pretrained features of each training image are computed once and looked up by its row. False: a
            frozen copy looks at every batch. None: the first where training shows plain images, neither augmented nor
            mixed, else the second.

    Cost: cached, one forward pass over the training images before the first step, n · d numbers, and two products of a batch
    with itself a step. Otherwise a copy of the network, and a forward pass without gradients a step, about a third more
    time; it computes in full precision whatever ``--precision`` is.

    Reference: Zu, Xie, Chen, Liang and Ma, Keeping Representation Similarity in Finetuning for Medical Image Analysis
    (arXiv 2503.07399), definition 4 (equations 7 and 8).
    """

    name: ClassVar[str] = "hcs"
    title: ClassVar[str] = "HCS"
    citation: ClassVar[str] = (
        "Zu, Xie, Chen, Liang, Ma: Keeping Representation Similarity in Finetuning for Medical Image Analysis (arXiv 2503.07399)"
    )
    keeps_reference: ClassVar[bool] = True
    freezes_batch_norm: ClassVar[bool] = True

    lam: float = 0.8
    debiased: bool = False
    cache: bool | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lam) and 0 <= self.lam <= 1):
            raise UsageError(f"lam of hcs must be between 0 and 1, found {self.lam}.")
        self._pretrained: PairedReference | None = None
        self._undefined: Tensor | None = None
        self._has_warned = False

    @property
    def task_weight(self) -> float:
        """λ."""
        return self.lam

    @property
    def pulls(self) -> bool:
        """Whether there is a term."""
        return self.lam < 1

    def conflicts(self, situation: Situation) -> str | None:
        """Features cannot be looked up where images change, and too few images have no debiased similarity."""
        if self.cache and not situation.shows_plain_images:
            return (
                "--regularizer hcs:cache=true looks up the pretrained features of each image, but augmentation or batch "
                "transforms change the images anew in each epoch. Leave cache out, or give --augmentation none and no "
                "--batch-transform."
            )
        if self.lam == 0:
            return "--regularizer hcs:0 leaves the labels out of the loss, so that no head is trained. Use a λ above 0."
        if self.debiased and self.lam < 1 and situation.images_at_once < FEWEST_DEBIASED:
            return (
                f"--regularizer hcs:debiased=true needs at least {FEWEST_DEBIASED} images at a time, but there are "
                f"{situation.images_at_once}. Use a larger --batch-size, a smaller --accumulate, or leave debiased out."
            )
        return None

    def remarks(self, situation: Situation) -> list[str]:
        """What the pretrained features cost."""
        if self.cache is False:
            return ["hcs: a frozen copy of the pretrained network looks at each batch, about a third more time per step."]
        return remarks_on_pairs(self.name, situation)

    def attach(self, classifier: Classifier, training_set: TrainingSet | None = None, *, seed: int = 0) -> None:
        """Copy the weights, or look at every training image once.

        Raises:
            UsageError: ``cache`` is asked for, but training changes the images anew in each epoch.
        """
        self.detach()
        if self.cache and training_set is not None and not training_set.is_plain:
            raise UsageError(
                "hcs:cache=true looks up the pretrained features of each image, but augmentation or batch transforms change "
                "the images anew in each epoch. Leave cache out, or train with --augmentation none and no --batch-transform."
            )
        if self.lam == 1 or (self.cache and training_set is None):  # nothing to compare, or nothing to look up
            return
        self._pretrained = PairedReference(classifier, None if self.cache is False else training_set)

    def loss(self, context: StepContext) -> dict[str, Tensor]:
        """The term ``cka``: (1 − λ) (1 − CKA).

        Raises:
            UsageError: ``attach`` was not called, or ``cache`` is asked for and it had no training images.
        """
        if self.lam == 1:
            return {"cka": context.logits.new_zeros(())}
        if self._pretrained is None:
            raise UsageError(
                "hcs does not know the pretrained features. Call attach(classifier, training_set) before the first step"
                + ("; cache=True needs the training set." if self.cache else ".")
            )
        reference = self._pretrained.features(context)
        with torch.autocast(context.features.device.type, enabled=False):
            both = torch.cat([wide(context.features), wide(reference)], dim=1)
            ours, theirs = context.of_all_processes(both).tensor_split(2, dim=1)
            cka, is_defined = batch_cka(ours, theirs, debiased=self.debiased)
        self._undefined = ~is_defined if self._undefined is None else self._undefined | ~is_defined
        return {"cka": (1 - self.lam) * (1 - cka)}

    def after_step(self, update: StepUpdate) -> None:
        """Warn, once, where a batch had no similarity."""
        if self._undefined is None or self._undefined.device.type == "cpu" or update.step % LOOK_EVERY_STEPS == 0:
            self._warn_once()

    def _warn_once(self) -> None:
        if self._undefined is None or self._has_warned:
            return
        if bool(self._undefined):
            self._has_warned = True
            warnings.warn(
                "hcs: the images of a batch have the same features, or are too few (two, or four if debiased), so their "
                "CKA was taken as 0. If this happens often, use larger batches or a smaller learning rate.",
                stacklevel=3,
            )
        self._undefined = None

    def detach(self) -> None:
        """Forget the pretrained network; nothing was left on the one that is trained."""
        self._warn_once()
        self._pretrained = self._undefined = None
