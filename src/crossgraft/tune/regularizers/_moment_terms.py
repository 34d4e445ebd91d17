"""How far mean and covariance of a batch are from those that training started from, up to a rotation and a scale."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from crossgraft.errors import CrossgraftWarning, DataError, DivergedError, StorageError
from crossgraft.features.store import cache_folder
from crossgraft.models.classifier import Classifier
from crossgraft.models.fingerprint import structure_fingerprint, weights_fingerprint
from crossgraft.storage.atomic import atomic_file, remove_leftovers
from crossgraft.tune.protocols import StepContext, TrainingSet
from crossgraft.tune.regularizers._reference import features_of_batches, has_trained_adapters, starting_network, wide


class Moments(NamedTuple):
    """Mean and covariance, divided by n − 1."""

    mean: Float[Tensor, " num_features"]
    covariance: Float[Tensor, "num_features num_features"]


class FactoredMoments(NamedTuple):
    """Those of fewer rows than features: Σ = CᵀC is best never made."""

    mean: Float[Tensor, " num_features"]
    rows: Float[Tensor, "num_rows num_features"]  # C: centred, divided by the root of n − 1

    @property
    def covariance(self) -> Float[Tensor, "num_features num_features"]:
        """Σ."""
        return self.rows.T @ self.rows


def moments_of_all(batches: Iterable[Float[Tensor, "_ num_features"]]) -> Moments:
    """Moments of all rows of all batches, in one pass and float64.

    Rows are shifted by the mean of the first batch, so that a large mean costs no digits. Fewer than two rows in all, or
    none, give nan.

    Cost: d² numbers, and n d² multiplications.
    """
    # Without any batch the width is unknown, and the answer is nan of width 1.
    count, shift, total, scatter = 0, torch.zeros(1), torch.zeros(1), torch.zeros(1, 1)
    for batch in batches:
        # Apple's GPUs know no float64.
        rows = (batch.cpu() if batch.device.type == "mps" else batch).detach().double()
        if count == 0:
            shift = rows.mean(0)
            total, scatter = torch.zeros_like(shift), shift.new_zeros(len(shift), len(shift))
        rows = rows - shift
        count += len(rows)
        total += rows.sum(0)
        scatter += rows.T @ rows
    mean = total / count if count else total
    covariance = (scatter - count * torch.outer(mean, mean)) / (count - 1) if count > 1 else scatter * float("nan")
    return Moments(shift + mean, covariance)


def moments_of_batch(context: StepContext, features: Float[Tensor, "batch num_features"]) -> Moments | FactoredMoments:
    """Moments of the batch of all processes, in the graph, in float32 or float64.

    With fewer images than features the processes exchange the rows (n d numbers), otherwise sums (d² numbers).

    Args:
        context: Context of the step; there are at least two images in all processes together.
        features: One row per image of this process.
    """
    rows = wide(features)
    count = context.num_images_of_all
    if count < features.shape[1]:
        rows = context.of_all_processes(rows)
        mean = rows.mean(0)
        return FactoredMoments(mean, (rows - mean) / math.sqrt(count - 1))
    rows = rows[: context.num_images]
    mean = context.sum_over_processes(rows.sum(0)) / count
    # The scatter does not change with the mean to first order, because centred rows add up to zero.
    centred = rows - mean.detach()
    return Moments(mean, context.sum_over_processes(centred.T @ centred) / (count - 1))


FORMAT_VERSION = 1


def starting_moments(classifier: Classifier, training_set: TrainingSet, *, passes: int | None) -> Moments:
    """Moments of the starting network's features of all training images, in float64.

    Args:
        classifier: The start.
        training_set: Training images.
        passes: None: as evaluation shows them, kept on disk; otherwise so many epochs of them as training shows them.

    Raises:
        DataError: The features are not finite, or there are fewer than two images.
        StorageError: What was computed cannot be kept on disk.
    """

    def compute() -> Moments:
        shown = training_set.plain_batches() if passes is None else training_set.training_batches(passes)
        network = starting_network(classifier)
        return moments_of_all(features_of_batches(network, shown, like=classifier.head.weight))

    moments = kept_or_computed(classifier, training_set.fingerprint if passes is None else None, compute)
    if not all(bool(tensor.isfinite().all()) for tensor in moments):
        raise DataError(
            "repsim needs finite features of at least two training images, but those of the pretrained network are not "
            "finite, or there are fewer images. Look for broken images, or choose another model."
        )
    return moments


def kept_or_computed(classifier: Classifier, data: str | None, compute: Callable[[], Moments]) -> Moments:
    """The moments of the features that ``classifier`` gives the images of fingerprint ``data``.

    Args:
        classifier: Its body gives the features.
        data: Fingerprint of the images, their order and their preparation; None: nothing is kept.
        compute: Called where nothing is kept, or what was kept is damaged.

    Warns:
        CrossgraftWarning: What was computed cannot be kept: disk full, no permission …

    Cost: hashing the weights, about 0.1 s for 40 million, and a file of d² float64 numbers.
    """
    if data is None:
        return compute()
    path = _path(classifier, data)
    kept = _read(path, classifier.num_features)
    if kept is None:
        remove_leftovers(path.parent)
        kept = compute()
        tensors = {name: tensor.cpu().contiguous() for name, tensor in kept._asdict().items()}
        try:
            with atomic_file(path) as file:
                file.write(save(tensors, metadata={"sha256": _checksum(tensors)}))
        except StorageError as error:
            text = f"The moments of the pretrained features are computed again by the next training: {error}"
            warnings.warn(text, CrossgraftWarning, stacklevel=2)
    return kept


def _path(classifier: Classifier, data: str) -> Path:
    facts = (
        *(["adapters on"] if has_trained_adapters(classifier) else []),
        FORMAT_VERSION,
        data,
        weights_fingerprint(classifier.body),
        structure_fingerprint(classifier.body, classifier.recipe.architecture),
    )
    key = hashlib.sha256("\x1f".join(map(str, facts)).encode()).hexdigest()
    return cache_folder().with_name("moments") / f"{key}.safetensors"


def _read(path: Path, num_features: int) -> Moments | None:
    """What is kept; None where that is nothing, damaged, or of another network."""
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            checksum = (file.metadata() or {}).get("sha256")
            tensors = {name: file.get_tensor(name) for name in Moments._fields}
    except (OSError, SafetensorError):
        return None
    shapes = [tuple(tensor.shape) for tensor in tensors.values()]
    is_ours = shapes == [(num_features,), (num_features, num_features)]
    is_ours = is_ours and {tensor.dtype for tensor in tensors.values()} == {torch.float64}
    is_sound = is_ours and checksum == _checksum(tensors) and all(bool(t.isfinite().all()) for t in tensors.values())
    return Moments(**tensors) if is_sound else None


def _checksum(tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in Moments._fields:
        digest.update(f"{tuple(tensors[name].shape)}{tensors[name].dtype}".encode())
        digest.update(tensors[name].numpy().data)
    return digest.hexdigest()


# Of ‖δ‖_F: its largest rotation θ is then by at most 1.06, and Newton–Schulz converges from the second order, whose
# singular values are up to 1 + θ⁴/8. They grow with every squaring, which is why halvings are more than pieces ask for.
_LARGEST_PIECE = 1.5
_MOST_POLISHES = 10

Square = Float[Tensor, "d d"]


class OrthogonalMap(nn.Module):
    """Q, and the skew-symmetric step δ that the optimiser takes from it: Q exp(δ), for δ = 0 between steps.

    The gradient of a loss L along δ at 0 is W = QᵀG − GᵀQ with G = ∂L/∂Q (entries above and below the diagonal count as
    one, as in ``torch.nn.utils.parametrizations.orthogonal``). The optimiser moves ``skew`` as it moves any parameter;
    ``move`` then puts that into Q, exp to second order, and returns ``skew`` to zero. Moments of the optimiser live in the
    same coordinates from step to step. Weight decay has nothing to shrink.

    Cost: two d × d matrices; a ``move`` is four matrix products of size d.

    Reference: Lezcano-Casado, *Trivializations for Gradient-Based Optimization on Manifolds*, NeurIPS 2019 (dynamic
    trivialisations); Newton–Schulz: Higham, *Functions of Matrices*, 2008, equation 8.36.
    """

    value: Square

    def __init__(self, size: int, like: Tensor) -> None:
        super().__init__()
        self.skew = nn.Parameter(torch.zeros(size, size, device=like.device, dtype=like.dtype))
        self.register_buffer("value", torch.eye(size, device=like.device, dtype=like.dtype))

    def move(self) -> None:
        """Q ← Q exp(δ), δ ← 0, without a gradient.

        Raises:
            FloatingPointError: δ is no number, or so long that rounding leaves no orthogonal matrix.
        """
        with torch.no_grad():
            step = _exponential_less_one(self.skew)
            # What rounding made of it that is not skew, the polish takes away.
            self.value.copy_(nearest_orthogonal(torch.addmm(self.value, self.value, step)))
            self.skew.zero_()


def nearest_orthogonal(matrix: Square) -> Square:
    """The orthogonal matrix that is nearest to one which is nearly orthogonal already, by Newton–Schulz iterations.

    The distance from orthogonality is squared by each. Two matrix products for each; one is enough after a small step.

    Raises:
        FloatingPointError: The matrix is too far from an orthogonal one, or not finite.
    """
    rounding, distance = torch.finfo(matrix.dtype).eps, math.inf
    for _ in range(_MOST_POLISHES):
        error = matrix.T @ matrix
        error.diagonal().sub_(1)
        matrix = torch.addmm(matrix, matrix, error, alpha=-0.5)
        distance = float(error.norm())
        if distance * distance <= rounding:
            break
    if not distance < 1:  # nan, too
        raise FloatingPointError("no orthogonal matrix is near")
    return matrix


def _exponential_less_one(step: Square) -> Square:
    """exp(δ) − I to second order for a small δ, else of a part of it, squared as often as it was halved."""
    norm = float(step.norm())
    halvings = max(0, math.ceil(4 / 3 * math.log2(norm / _LARGEST_PIECE))) if norm > 0 and math.isfinite(norm) else 0
    piece = step * 2.0**-halvings if halvings else step
    power = torch.addmm(piece, piece, piece, alpha=0.5)
    for _ in range(halvings):
        power = torch.addmm(power, power, power, beta=2)
    return power


Normalize = Literal["ref", "none"]


class MomentMatching(nn.Module):
    """R = Σ − α² Qᵀ Σ₀ Q and r = μ − α Qᵀ μ₀, and the gradients of ‖R‖² and ‖r‖² for Q in closed form.

    With G = ∂‖R‖²/∂Q = −4 α² Σ₀ Q R and M = α² QᵀΣ₀Q, the gradient along the skew-symmetric step of ``OrthogonalMap`` is
    W = QᵀG − GᵀQ = −4 (M R − (M R)ᵀ) = −4 (M Σ − (M Σ)ᵀ), because M commutes with itself. For the means it is
    −2 (m rᵀ − r mᵀ) with m = α Qᵀμ₀. A term carries it as ⟨δ, W⟩, which is 0 because δ is: no graph is kept over Q.

    Of b < d images Σ = CᵀC has rank b, and all of it follows from C M = C Qᵀ Σ₀ Q without a product of two d × d matrices:
    ‖R‖² = ‖C Cᵀ‖² − 2 ⟨C M, C⟩ + ‖M‖² with ‖M‖ = α² ‖Σ₀‖, and M Σ = (C M)ᵀ C.

    Args:
        size: d.
        like: Device and number type.
        learn_q: Otherwise Q = I.
        learn_alpha: Otherwise α = 1.
        normalize: ``ref`` divides ‖R‖² by ‖Σ₀‖², ‖r‖² by ‖μ₀‖² (where those are not 0).
        mean_weight: 0: there is no term of the means.
    """

    def __init__(
        self, size: int, like: Tensor, *, learn_q: bool, learn_alpha: bool, normalize: Normalize, mean_weight: float
    ) -> None:
        super().__init__()
        self.rotation = OrthogonalMap(size, like) if learn_q else None
        self.alpha = nn.Parameter(torch.ones((), device=like.device, dtype=like.dtype)) if learn_alpha else None
        self.normalize: Normalize = normalize
        self.mean_weight = mean_weight

    def terms(self, ours: Moments | FactoredMoments, start: Moments) -> dict[str, Float[Tensor, ""]]:
        """``covariance``, and ``mean`` where it has a weight; the gradient flows into ``ours``, Q and α."""
        if isinstance(ours, FactoredMoments):
            square, product = self._of_rows(ours.rows, start.covariance)
        else:
            square, product = self._of_matrices(ours.covariance, start.covariance)
        terms = {"covariance": self._term(square, product, -4, start.covariance)}
        if self.mean_weight:
            target = start.mean if self.rotation is None else start.mean @ self.rotation.value
            target = target if self.alpha is None else self.alpha * target
            residual = ours.mean - target
            product = torch.outer(target.detach(), residual.detach())
            terms["mean"] = self.mean_weight * self._term(_inner(residual, residual), product, -2, start.mean)
        return terms

    def _of_matrices(self, ours: Square, start: Square) -> tuple[Float[Tensor, ""], Square | None]:
        """‖R‖², and M Σ where Q is learned."""
        target = start
        if self.rotation is not None:
            target = self.rotation.value.T @ target @ self.rotation.value
        if self.alpha is not None:
            target = self.alpha.square() * target
        residual = ours - target
        product = target.detach() @ ours.detach() if self.rotation is not None else None
        return _inner(residual, residual), product

    def _of_rows(self, rows: Float[Tensor, "b d"], start: Square) -> tuple[Float[Tensor, ""], Square | None]:
        """The same of Σ = CᵀC, for the rows C."""
        scale = 1 if self.alpha is None else self.alpha.square()
        with torch.no_grad():
            turned = rows @ start
            if self.rotation is not None:
                turned = rows @ self.rotation.value.T @ start @ self.rotation.value
        gram = rows @ rows.T
        # ⟨C M, C⟩, whose gradient for C is 2 C M because M is symmetric.
        overlap = 2 * _inner(turned, rows) - _inner(turned, rows.detach())
        square = _inner(gram, gram) - 2 * scale * overlap + scale * scale * _inner(start, start)
        product = None if self.rotation is None else turned.T @ rows.detach()
        if product is not None and self.alpha is not None:
            product = self.alpha.detach().square() * product
        return square, product

    def _term(self, square: Tensor, product: Tensor | None, factor: int, start: Tensor) -> Float[Tensor, ""]:
        """Adds ⟨δ, W⟩ to it, with W = factor · (product − productᵀ), divided where that is asked for."""
        term = square
        if self.rotation is not None and product is not None:
            term = term + factor * _inner(self.rotation.skew, product - product.T)
        if self.normalize == "none":
            return term
        size = _inner(start, start)
        return term / torch.where(size > 0, size, 1)

    def without_images(self, nothing: Float[Tensor, ""]) -> dict[str, Float[Tensor, ""]]:
        """The terms where there are too few images: ``nothing``, with a gradient of 0 for Q and α."""
        nothing = nothing + 0 * sum((parameter.sum() for parameter in self.parameters()), nothing)
        return {"covariance": nothing, "mean": nothing} if self.mean_weight else {"covariance": nothing}

    def move(self, step: int) -> None:
        """Q ← Q exp(δ), after the step of that number.

        Raises:
            DivergedError: δ is so long that no rotation is left.
        """
        if self.rotation is None:
            return
        try:
            self.rotation.move()
        except FloatingPointError as error:
            raise DivergedError(
                f"Training stopped in step {step}: the rotation Q of repsim diverged ({error}). Try a smaller q_learning_rate of "
                "repsim (by default it is --learning-rate), or repsim:learn_q=false. The last checkpoint is still good."
            ) from error

    def learned(self) -> dict[str, Tensor]:
        """Q and α themselves, not copies."""
        state = {} if self.rotation is None else {"q": self.rotation.value}
        return state if self.alpha is None else {**state, "alpha": self.alpha.detach()}


def _inner(first: Tensor, second: Tensor) -> Float[Tensor, ""]:
    """Σ aᵢ bᵢ in one pass over both: passes over d × d numbers cost as much as one of the products."""
    return torch.dot(first.flatten(), second.flatten())
