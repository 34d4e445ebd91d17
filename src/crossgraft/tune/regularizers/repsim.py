"""RepSim: hold the covariance of the features near that of the pretrained ones, up to a learned rotation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.conflicts import Situation
from crossgraft.errors import UsageError
from crossgraft.models.classifier import Classifier
from crossgraft.tune.protocols import Regularizer, StepContext, StepUpdate, TrainingSet
from crossgraft.tune.regularizers._batch_cka import FEWEST_DEBIASED, cka_distance
from crossgraft.tune.regularizers._moment_terms import MomentMatching, Moments, Normalize, moments_of_batch, starting_moments
from crossgraft.tune.regularizers._reference import FEWEST_COMPARED, PairedReference, remarks_on_pairs, wide

Features = Float[Tensor, "batch num_features"]

# Of the norm of features: equal rows minus their mean are as large as the rounding of that mean.
_ROUNDING = 10.0


def procrustes_distance(features: Features, reference: Features) -> Float[Tensor, ""]:
    """1 − ‖FᵀF₀‖_* / (‖F‖ ‖F₀‖) of centred features, in [0, 1]; 0 if F is F₀ rotated and scaled.

    It is min over orthogonal Q and α of ‖F/‖F‖ − α F₀ Q‖² up to the square: half of Ding's squared Procrustes distance. The
    gradient goes to ``features`` only. Where singular values are 0, which rotation is best is open and those directions
    pull at nothing; features that do not vary at all give 1 without a gradient, features that are not finite give nan.

    Args:
        features: One row per image, float32 or float64.
        reference: The same images.

    Cost: a singular value decomposition of size min(b, d).

    Reference: Ding, Denain, Steinhardt, *Grounding Representation Similarity with Statistical Testing*, NeurIPS 2021.
    """
    centred, target = centred_features(features), centred_features(reference.detach())
    if not bool(centred.isfinite().all()):
        return features.sum() * float("nan")
    scale = torch.linalg.vector_norm(centred) * torch.linalg.vector_norm(target)
    shared: Tensor = _NuclearNormOfProduct.apply(centred, target)  # pyright: ignore[reportAssignmentType]
    return 1 - shared / scale.clamp_min(torch.finfo(features.dtype).tiny)


def centred_features(features: Features) -> Features:
    """Zeros where all rows are the same: there the mean is rounded, and what it leaves is no variance."""
    centred = features - features.mean(0)
    smallest = _ROUNDING * torch.finfo(features.dtype).eps * torch.linalg.vector_norm(features.detach())
    return torch.where(torch.linalg.vector_norm(centred.detach()) <= smallest, 0, centred)


class _NuclearNormOfProduct(torch.autograd.Function):
    """‖AᵀB‖_* for A, B (b, d); with AᵀB = U S Vᵀ its gradient for A is B V Uᵀ."""

    @staticmethod
    def forward(ctx: Any, first: Features, second: Features) -> Tensor:
        if len(first) >= first.shape[1]:
            left, values, right = torch.linalg.svd(first.T @ second)
            gradient = second @ (_kept(values, first) * right.mT) @ left.mT
        else:
            # AᵀB = Q_a (R_a R_bᵀ) Q_bᵀ: what is decomposed is b × b.
            (base, core), (_, other) = torch.linalg.qr(first.T), torch.linalg.qr(second.T)
            left, values, right = torch.linalg.svd(core @ other.T)
            gradient = other.T @ (_kept(values, first) * right.mT) @ (base @ left).T
        ctx.save_for_backward(gradient)
        return values.sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return gradients[0] * gradient, None


def _kept(values: Float[Tensor, " size"], like: Features) -> Float[Tensor, " size"]:
    """1 for singular values that are not rounding, else 0."""
    return (values > values.max() * max(like.shape) * torch.finfo(like.dtype).eps).to(like.dtype)


_FEWEST_IMAGES_OF_A_REMARK = 64


def remarks_on_covariances(situation: Situation, source: str) -> list[str]:
    """BatchNorm in training mode; and, unless both networks see the same images, small batches and other or changed images.

    Args:
        situation: The training that is planned.
        source: Where the covariance comes from that is compared with: ``batch``, ``dataset`` or ``dataset_aug``.
    """
    remarks: list[str] = []
    if situation.moves_batch_norms:
        modes = "frozen or adapt" if situation.batch_norm == "train" else "frozen"
        remarks.append(
            "RepSim's covariances in training mode are of other features than those of the pretrained and of the finished "
            f"network, whose BatchNorm has kept statistics, so that little is kept. Use --batch-norm {modes}, or "
            "--regularizer repsim without options of covariances."
        )
    if source != "batch" and situation.images_at_once < _FEWEST_IMAGES_OF_A_REMARK:
        remarks.append(
            f"RepSim's covariance comes from {situation.images_at_once} images at a time, which says little about it (and "
            "one image says nothing: its term is 0). Use a larger --batch-size or a smaller --accumulate, or "
            "repsim:reference=batch, which sees the same images in both networks."
        )
    if source == "dataset" and situation.changes_images:
        remarks.append(
            "RepSim compares augmented or mixed images with the training images as they are, so part of its term is what "
            "that does to an image. repsim:reference=dataset_aug looks at them augmented and mixed at the start, too."
        )
    if source == "dataset" and situation.draws_evenly:
        remarks.append(
            "RepSim compares batches in which classes are drawn evenly (--sampler balanced) with all training images as they "
            "are, so that its term also pays for the proportions of the classes. repsim:reference=dataset_aug draws as training "
            "does, and repsim:reference=batch takes the very images of the step."
        )
    return remarks


_PAIRED: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {"cka": cka_distance, "procrustes": procrustes_distance}
"""Modes that compare the features of the same images."""
_FORMS = {"cka": "CKA form", "procrustes": "Procrustes form"}
_WEIGHT_OF_CKA, _WIDTH_OF_IT, _USUAL_WEIGHT = 0.3, 64, "0.3·√(d/64)"
"""In the study of docs/results/repsim.md, for features of width 64: weight 1 kept a ResNet-20 from learning; 0.1 kept less."""
_FEWEST_IMAGES = 2
_ABOUT_COVARIANCES = ("reference", "normalize", "learn_q", "q_learning_rate", "learn_alpha", "mean_weight")


@dataclass
class RepSim(Regularizer):
    """One term, of the features F of a step's images and those F₀ of the network that training starts from.

        cka = weight · (1 − CKA(F₀, F))                         debiased, of the batch of all processes

    This is the constraint of the paper, CKA ≥ ε (equation 9), as a term. The paper relaxes it to covariances Σ and Σ₀ of the
    features, which is ``mode="covariance"``:

        covariance = weight · ‖Σ − Qᵀ Σ₀ Q‖²_F / ‖Σ₀‖²_F        Q orthogonal, learned, the identity at first

    In the paper Σ₀ is that of all training images and there is no divisor (``preset="paper"``). A batch of b images then misses
    its target by (r + 1) / (b − 1) · ‖Σ₀‖² on average, r being the effective rank of Σ₀, which the network can only lower by
    shrinking its features; and where BatchNorm is trained, Σ₀ is of another function than Σ. The same images under both networks
    (``reference="batch"``) have that chance in common.

    **Similarity is not kept by construction** by covariances, whatever the paper says after its equation 9: they do not know
    which image has which features. Features that are dealt to other images leave that term at 0 and share nothing:

    >>> import torch
    >>> from crossgraft.similarity import linear_cka
    >>> before = torch.randn(500, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> after = before.roll(1, dims=0)  # every image gets the features of another one
    >>> float((after.T.cov() - before.T.cov()).square().sum()) < 1e-20
    True
    >>> linear_cka(before.numpy(), after.numpy()) < 0.05
    True

    With Q free to go anywhere the term even fixes no more than the spectrum of Σ: its minimum over Q is Σᵢ (λᵢ(Σ) − λᵢ(Σ₀))².
    ``mode="procrustes"`` is 1 − ‖FᵀF₀‖_* / (‖F‖ ‖F₀‖), with the best rotation and scale in closed form, as equation 10 asks for.

    Attributes:
        weight: Strength ≥ 0; 0 trains exactly as without. None: 0.3 √(d / 64) with ``cka`` and d features, because the pull of
            the labels grows with the norm of the head; else 1, as in the paper.
        mode: ``cka``, ``covariance`` or ``procrustes``; None: ``covariance`` if one of the options that follow is given (but for
            ``preset=auto``), else ``cka``.
        preset: ``paper``: ``reference=dataset`` and ``normalize=none``; ``auto``, the default: of covariances ``batch`` and
            ``ref``. What is given counts.
        reference: Where Σ₀ comes from: ``batch`` (the images of the step, by a frozen copy of the network), ``dataset`` (all
            training images as evaluation shows them) or ``dataset_aug`` (``passes`` epochs of them augmented and mixed as in
            training).
        normalize: ``ref`` divides by ‖Σ₀‖²_F, and the term of the means by ‖μ₀‖²; ``none`` does not.
        learn_q: False keeps Q the identity; by default it is learned.
        q_learning_rate: Rate of Q, above 0; by default the network's. The larger, the more the term fixes only the spectrum.
        learn_alpha: Compare with α² Qᵀ Σ₀ Q for a learned α, 1 at first.
        mean_weight: Strength ≥ 0, 0 by default, of a term ``mean``, ‖μ − α Qᵀ μ₀‖² (times ``weight``), not in the paper.
        passes: Epochs that ``dataset_aug`` looks at.

    Cost: a pass of the frozen copy a step, about a third more time, unless training shows images the same way every time: then
    one pass over the training images before the first step. Three products of b × b × d a step (of b × d × d where a batch has
    more than d images); with ``covariance`` about four of d × d matrices (seven where a batch has more than d images).
    ``dataset`` needs no copy: one pass over the training images, kept on disk for the next run where they are plain.

    Reference: Zu, Xie, Chen, Liang, Ma, Keeping Representation Similarity in Finetuning for Medical Image Analysis (arXiv
    2503.07399), equations 9–14.
    """

    name: ClassVar[str] = "repsim"
    title: ClassVar[str] = "RepSim"
    citation: ClassVar[str] = (
        "Zu, Xie, Chen, Liang, Ma: Keeping Representation Similarity in Finetuning for Medical Image Analysis (arXiv 2503.07399)"
    )
    keeps_reference: ClassVar[bool] = True
    freezes_batch_norm: ClassVar[bool] = True
    definition: ClassVar[int] = 3

    weight: float | None = None
    mode: Literal["cka", "covariance", "procrustes"] | None = None
    preset: Literal["auto", "paper"] | None = None
    reference: Literal["batch", "dataset", "dataset_aug"] | None = None
    normalize: Normalize | None = None
    learn_q: bool | None = None
    q_learning_rate: float | None = None
    learn_alpha: bool | None = None
    mean_weight: float | None = None
    passes: int = 1

    def __post_init__(self) -> None:
        for option in ("weight", "mean_weight"):
            value = getattr(self, option)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise UsageError(f"{option} of repsim must be a number of at least 0, found {value}.")
        rate = self.q_learning_rate
        if rate is not None and not (math.isfinite(rate) and rate > 0):
            raise UsageError(f"q_learning_rate of repsim must be a number above 0, found {rate}. See learn_q=false.")
        if self.passes < 1:
            raise UsageError(f"passes of repsim must be at least 1, found {self.passes}.")
        if self.mode in _PAIRED and (given := self._of_covariances):
            raise UsageError(
                f"repsim:mode={self.mode} compares the images of each step one by one; {', '.join(given)} of repsim "
                f"{'is' if len(given) == 1 else 'are'} about mode=covariance. Leave {'it' if len(given) == 1 else 'them'} out."
            )
        if rate is not None and self.learn_q is False:
            raise UsageError("repsim:learn_q=false never moves Q. Leave out q_learning_rate, or learn_q=false.")
        if self.passes > 1 and self.reference != "dataset_aug":
            raise UsageError(
                f"repsim:passes={self.passes} is of reference=dataset_aug; other references look at each image once. Leave "
                "passes out, or add reference=dataset_aug."
            )
        self._width = _WIDTH_OF_IT
        self._matching: MomentMatching | None = None
        self._start: Moments | PairedReference | None = None  # of mode=covariance
        self._paired: PairedReference | None = None  # of the other modes

    @property
    def _of_covariances(self) -> list[str]:
        """Options that were given and are about covariances; ``preset=auto`` is what is done without any."""
        given = [name for name in _ABOUT_COVARIANCES if getattr(self, name) is not None]
        return ["preset", *given] if self.preset == "paper" else given

    @property
    def _mode(self) -> str:
        """The mode that is meant."""
        return self.mode or ("covariance" if self._of_covariances else "cka")

    @property
    def form(self) -> str:
        """Which form of the loss it is, in print: every table and page takes it from here.

        >>> RepSim().form, RepSim(preset="paper").form, RepSim(preset="paper", learn_q=False).form, RepSim(reference="batch").form
        ('CKA form', 'eq. 13–14', 'eq. 13–14, Q fixed', 'covariance form')
        """
        if self._mode != "covariance":
            return _FORMS[self._mode]
        is_published = self._source == "dataset" and self._divisor == "none"
        changed = {"Q fixed": self.learn_q is False, "α learned": self.learn_alpha, "with means": self.mean_weight}
        named = "eq. 13–14" if is_published else "covariance form"
        return ", ".join([named, *(what for what, is_so in changed.items() if is_so)])

    @property
    def in_full(self) -> str:
        """The options that decide most, with what was left open filled in."""
        is_usual = self.weight is None and self._mode == "cka"
        settings = {"mode": self._mode, "weight": _USUAL_WEIGHT if is_usual else f"{self._strength:g}"}
        settings |= {"reference": self._source, "normalize": self._divisor} if self._mode == "covariance" else {}
        return f"{self.name}:{','.join(f'{name}={value}' for name, value in settings.items())}"

    @property
    def pulls(self) -> bool:
        """Whether the weight leaves anything."""
        return self._strength > 0

    @property
    def _strength(self) -> float:
        usual = _WEIGHT_OF_CKA * math.sqrt(self._width / _WIDTH_OF_IT) if self._mode == "cka" else 1.0
        return usual if self.weight is None else self.weight

    @property
    def _source(self) -> str:
        """Where the features come from that are compared with."""
        return self.reference or ("dataset" if self.preset == "paper" else "batch")

    @property
    def _divisor(self) -> Normalize:
        return self.normalize or ("none" if self.preset == "paper" else "ref")

    def conflicts(self, situation: Situation) -> str | None:
        """A debiased CKA needs more than three images."""
        number = situation.images_at_once
        if self._mode != "cka" or number >= FEWEST_DEBIASED or not self.pulls:
            return None
        other = ", or repsim:mode=procrustes" if number >= FEWEST_COMPARED else ""
        return (
            f"RepSim's debiased CKA needs at least {FEWEST_DEBIASED} images at a time, and there are {number}. Use a larger "
            f"--batch-size or a smaller --accumulate{other}."
        )

    def remarks(self, situation: Situation) -> list[str]:
        """What the pretrained features cost, and what makes a covariance say little."""
        own = remarks_on_covariances(situation, self._source) if self._mode == "covariance" else []
        has_pairs = self._mode in _PAIRED or self._source == "batch"
        fewest = 2 if self._mode == "covariance" else FEWEST_COMPARED
        return [*own, *remarks_on_pairs(self.name, situation, fewest=fewest)] if has_pairs else own

    def attach(self, classifier: Classifier, training_set: TrainingSet | None = None, *, seed: int = 0) -> None:
        """Look at the training images, or copy the network, and start with Q = I.

        Raises:
            DataError: The features are not finite, or there are fewer than two images.
            StorageError: What was computed cannot be kept on disk.
        """
        self.detach()
        self._width = classifier.num_features
        if self._mode in _PAIRED:
            self._paired = PairedReference(classifier, training_set)
            return
        weight = wide(classifier.head.weight)
        self._matching = MomentMatching(
            classifier.num_features,
            weight,
            learn_q=self.learn_q is not False,
            learn_alpha=bool(self.learn_alpha),
            normalize=self._divisor,
            mean_weight=self.mean_weight or 0.0,
        )
        if self._source == "batch":
            self._start = PairedReference(classifier, training_set)
        elif training_set is not None:
            moments = starting_moments(classifier, training_set, passes=None if self._source == "dataset" else self.passes)
            self._start = Moments(*(tensor.to(weight.device, weight.dtype) for tensor in moments))

    def loss(self, context: StepContext) -> dict[str, Tensor]:
        """The term ``cka``, ``covariance`` (and ``mean``) or ``procrustes``; 0 of too few images.

        Raises:
            UsageError: ``attach`` was not called, or ``reference`` needs training images and it was given none.
        """
        with torch.autocast(context.features.device.type, enabled=False):
            if self._paired is not None:
                terms = {self._mode: self._of_pairs(context, self._paired)}
            elif self._matching is not None and self._start is not None:
                terms = self._of_moments(context, self._matching, self._start)
            else:
                raise UsageError(
                    "repsim does not know the features that training starts from. Call attach(classifier, training_set) "
                    "before the first step; reference=batch needs no training set."
                )
        return {name: self._strength * term for name, term in terms.items()}

    def _has_no_term(self, context: StepContext) -> bool:
        """Part of a batch may have no covariance; the terms are 0 then, because processes expect a gradient for everything."""
        return self._strength == 0 or context.num_images_of_all < _FEWEST_IMAGES

    def _of_pairs(self, context: StepContext, start: PairedReference) -> Tensor:
        if self._has_no_term(context):
            return 0 * context.features.sum()
        both = torch.cat([wide(context.features), wide(start.features(context))], dim=1)
        return _PAIRED[self._mode](*context.of_all_processes(both).tensor_split(2, dim=1))

    def _of_moments(self, context: StepContext, matching: MomentMatching, start: Moments | PairedReference) -> dict[str, Tensor]:
        if self._has_no_term(context):
            return matching.without_images(0 * context.features.sum())
        if isinstance(start, PairedReference):
            with torch.no_grad():
                theirs = moments_of_batch(context, start.features(context))
                start = Moments(theirs.mean, theirs.covariance)
        return matching.terms(moments_of_batch(context, context.features), start)

    def after_step(self, update: StepUpdate) -> None:
        """Turn Q by what the optimiser found; a ``DivergedError`` where that was too far."""
        if self._matching is not None:
            self._matching.move(update.step)

    def detach(self) -> None:
        """Forget the starting features and Q; nothing was left on the network."""
        self._matching = self._start = self._paired = None

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Q and α without weight decay, which would mean nothing for Q and shrink α."""
        parameters = [parameter for module in self.modules() for parameter in module.parameters()]
        rate = {} if self.q_learning_rate is None else {"lr": self.q_learning_rate}
        return [{"params": parameters, "weight_decay": 0.0, **rate}] if parameters else []

    def modules(self) -> list[nn.Module]:
        """What holds Q and α; none where nothing of that is learned."""
        return [self._matching] if self._matching is not None and any(True for _ in self._matching.parameters()) else []

    def state_dict(self) -> dict[str, Tensor]:
        """Q and α; the starting features are computed anew from the starting weights."""
        return self._matching.learned() if self._matching is not None else {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore Q and α.

        Raises:
            UsageError: The state is of other options or of another network.
        """
        mine = self.state_dict()
        if {name: tensor.shape for name, tensor in state.items()} != {name: t.shape for name, t in mine.items()}:
            raise UsageError("The checkpoint of repsim is of another network or other options. Start again with --overwrite.")
        for name, tensor in state.items():
            mine[name].copy_(tensor)
