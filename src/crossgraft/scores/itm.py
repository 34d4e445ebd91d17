"""ITM: how well a small head learns when every batch is moved towards its classes first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float32

from crossgraft import seeding
from crossgraft.errors import UsageError
from crossgraft.scores._gradients import AdamW
from crossgraft.scores._inputs import split_four_to_one, unit_variance
from crossgraft.scores._lda import posterior_of
from crossgraft.scores._moments import BLOCK_ROWS
from crossgraft.scores._score import ScoreValue, ZooOption, score
from crossgraft.scores._statistics import sum_by_class
from crossgraft.types import ClassIndices, Features, Groups, Labels

Centres = Literal["one-hot", "random", "pca", "laplacian"]
Validation = Literal["paper", "loo", "none"]

_LEARNING_RATE = 5e-3
_WEIGHT_DECAY = 0.01
_VALIDATE_EVERY = 100
_SMALLEST_LENGTH = 1e-12
_ETA_RANGE = (0.05, 0.95)


@score(
    title="ITM",
    reference="Generalizable Transferability Estimation of Foundation Vision Models via Implicit Learning (preprint; later "
    "arXiv 2510.23145), eqs. 4–8; what the text leaves open as in the card",
    is_seeded=True,
    invariances=("scale", "shift"),
    cost="500 steps of O(256·d·C), a second or two",
    zoo_option=ZooOption(
        "eta",
        measure=lambda features, labels: itm_dispersion(features, labels),
        choose=lambda dispersions: adaptive_etas(dispersions),
    ),
)
def itm(
    features: Features,
    labels: Labels,
    groups: Groups | None = None,
    *,
    eta: float = 0.5,
    recursions: int = 1,
    centres: Centres = "one-hot",
    standardize: bool = True,
    val: Validation = "paper",
    lambda_pc: float = 0.0,
    iterations: int = 500,
    batch_size: int = 256,
    repeats: int = 1,
    embeddings: bool = False,
    seed: int = 0,
) -> ScoreValue:
    """Best validation accuracy of ψ and h, two linear maps trained through the divide-and-conquer adaptation.

    ψ maps the features of a batch of B images to C numbers each, Z = rows of length 1. With the pseudo-centres Ê of
    their classes, the batch evolves by eq. 7, E⁽ⁿ⁺¹⁾ = (I − K) E⁽ⁿ⁾ + K Ê from E⁽⁰⁾ = Z, with the kernel
    K = (η/B) Z Zᵀ held fixed. The head h, linear too, is trained on E⁽ⁿ⁾ by eq. 8, cross-entropy + λ ‖E⁽ⁿ⁾ − Ê‖²/(BC).

    Args:
        features: (n, d).
        labels: (n,).
        groups: The patient of each image; no patient is on both sides of the split.
        eta: η in (0, 2); ``adaptive_etas`` gives the values of eq. 12 for a zoo.
        recursions: n of eq. 7.
        centres: Pseudo-centres Ê: unit vectors along the axes, random directions, or random points made orthogonal by
            their principal axes or by their graph Laplacian.
        standardize: Give every feature mean 0 and variance 1 first (over all images).
        val: The kernel at validation. ``paper``: as in training, so the own label of an image moves it; ``loo``: its
            diagonal is 0, so only other images' labels do; ``none``: no adaptation.
        lambda_pc: λ.
        iterations: Steps of AdamW; accuracy is taken every 100 and after the last.
        batch_size: B.
        repeats: Splits and starts to average over.
        embeddings: Keep in ``arrays`` what became of the validation images of the first split; else nothing is kept.
        seed: Random seed of split, start, order of the batches and random centres.

    Returns:
        In [0, 1]. ``parts`` hold the last accuracy, the spread over repeats, η, and the dispersion of eq. 12. ``arrays``, where
        they were asked for, of m validation images before the first step of AdamW and at each of v - 1 validations: ``rows``
        (m,), the places of the images; ``steps`` (v,), 0 first; ``embedded`` (v, m, C), E⁽⁰⁾; ``evolved`` (v, m, C), E⁽ⁿ⁾ in
        batches of B with the kernel that ``val`` says; ``centres`` (m, C), Ê of the class of each image; ``accuracy`` (v,), of h.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        UsageError: A setting is out of range.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([10.0 * y, np.linspace(-1, 1, 40)])
        >>> itm(features=X, labels=y)
        1.0
    """
    if not 0 < eta < 2:
        raise UsageError(f"`eta` must lie in (0, 2), where the recursion is stable, got {eta}.")
    if min(recursions, iterations, batch_size, repeats) < 1 or lambda_pc < 0:
        raise UsageError("`recursions`, `iterations`, `batch_size` and `repeats` must be ≥ 1, and `lambda_pc` ≥ 0.")
    points = unit_variance(features) if standardize else features.astype(np.float32)
    settings = _Settings(eta, recursions, val, lambda_pc, iterations, batch_size)
    curves: list[list[float]] = []
    warnings: tuple[str, ...] = ()
    arrays: dict[str, np.ndarray] = {}
    for repeat in range(repeats):
        split_rng, centres_rng, training_rng = (
            seeding.generator(seed, "ITM", repeat, name) for name in ("split", "centres", "training")
        )
        train, test, warnings = split_four_to_one(labels, groups, split_rng)
        of_classes = _pseudo_centres(centres, int(labels.max()) + 1, centres_rng)
        model = _LinearMaps(points.shape[1], of_classes, settings, training_rng)
        wanted = embeddings and repeat == 0
        curve, path = _train(points, labels, train, test, model, training_rng, with_path=wanted)
        curves.append(curve)
        if path:
            arrays = {"rows": test, **path, "centres": of_classes[labels[test]]}
    best = [max(curve) for curve in curves]
    dispersion = _dispersion(points if standardize else unit_variance(features), labels)
    parts = {"last": np.mean([curve[-1] for curve in curves]), "spread": np.std(best), "dispersion": dispersion, "eta": eta}
    return ScoreValue(float(np.mean(best)), parts=parts, warnings=warnings, arrays=arrays)


def itm_dispersion(features: Features, labels: ClassIndices) -> float:
    """The dis of eq. 12: mean over the images of ‖f' − mean of its class‖ / √d, f' the standardised features.

    The division by √d, not in the paper, makes models of different width comparable.

    >>> itm_dispersion(np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 1, 1]))
    0.0
    """
    return _dispersion(unit_variance(features), labels)


def adaptive_etas(dispersions: Sequence[float], *, base: float = 0.5) -> list[float]:
    """η of every model of a zoo, eq. 12: 1 − (1 − η_b) · dis_b / dis, clipped to [0.05, 0.95].

    Args:
        dispersions: ``itm_dispersion`` of every model, also found in ``itm(…).parts["dispersion"]``.
        base: η_b, the η of the model with the median dispersion dis_b.

    Raises:
        UsageError: ``base`` is not in (0, 1).

    >>> adaptive_etas([0.8, 1.0, 1.25])
    [0.375, 0.5, 0.6]
    """
    if not 0 < base < 1:
        raise UsageError(f"`base` must lie in (0, 1), got {base}.")
    reference = float(np.median(dispersions)) if len(dispersions) else 0.0
    low, high = _ETA_RANGE
    ratios = [reference / dispersion if dispersion > 0 else float(reference > 0) / 0.05 for dispersion in dispersions]
    return [min(max(1 - (1 - base) * ratio, low), high) if reference > 0 else base for ratio in ratios]


def _dispersion(points: np.ndarray, labels: ClassIndices) -> float:
    counts = np.bincount(labels)[:, None]
    means = (sum_by_class(points, labels, len(counts)) / counts).astype(points.dtype)
    total = 0.0
    for start in range(0, len(points), BLOCK_ROWS):
        deviations = points[start : start + BLOCK_ROWS] - means[labels[start : start + BLOCK_ROWS]]
        total += float(np.sqrt(np.einsum("ij,ij->i", deviations, deviations)).sum(dtype=np.float64))
    return float(total / len(points) / np.sqrt(points.shape[1]))


class _Settings(NamedTuple):
    """The settings of one training."""

    eta: float
    recursions: int
    val: Validation
    lambda_pc: float
    iterations: int
    batch_size: int


def _pseudo_centres(kind: Centres, num_classes: int, rng: np.random.Generator) -> Float32[np.ndarray, "num_classes num_classes"]:
    """Ê: one point of the unit sphere for each class, one row each."""
    if kind == "one-hot":
        return np.eye(num_classes, dtype=np.float32)
    noise = rng.standard_normal((num_classes, num_classes))
    if kind == "random":
        return (noise / np.linalg.norm(noise, axis=1, keepdims=True)).astype(np.float32)
    if kind == "pca":
        centred = noise - noise.mean(axis=0)
        matrix = centred.T @ centred
    else:
        squared = np.square(noise[:, None] - noise).sum(axis=2)
        affinity = np.exp(-squared / max(float(np.median(squared)), 1e-12))
        matrix = np.diag(affinity.sum(axis=1)) - affinity
    return np.linalg.eigh(matrix)[1].astype(np.float32)


class _Linear(NamedTuple):
    """x ↦ x W + b, updated in place; drawn uniformly in ±1/√fan_in."""

    weight: np.ndarray
    bias: np.ndarray

    @classmethod
    def drawn(cls, fan_in: int, fan_out: int, rng: np.random.Generator) -> _Linear:
        bound = 1 / np.sqrt(fan_in)
        weight = rng.uniform(-bound, bound, (fan_in, fan_out)).astype(np.float32)
        return cls(weight, rng.uniform(-bound, bound, fan_out).astype(np.float32))

    def __call__(self, points: np.ndarray) -> np.ndarray:
        return points @ self.weight + self.bias


class _Validated(NamedTuple):
    """A batch of images that were not learned from."""

    embedded: np.ndarray
    evolved: np.ndarray
    is_hit: np.ndarray


class _LinearMaps:
    """ψ and h, and what becomes of a batch between them."""

    def __init__(self, num_features: int, centres: np.ndarray, settings: _Settings, rng: np.random.Generator) -> None:
        num_classes = len(centres)
        self.psi = _Linear.drawn(num_features, num_classes, rng)
        self.head = _Linear.drawn(num_classes, num_classes, rng)
        self.centres, self.settings = centres, settings

    def embed(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Z, rows of length 1, and the lengths that they had."""
        raw = self.psi(points)
        lengths = np.maximum(np.sqrt(np.einsum("ij,ij->i", raw, raw)), _SMALLEST_LENGTH)[:, None]
        return raw / lengths, lengths

    def evolve(self, embedded: np.ndarray, targets: np.ndarray, *, with_diagonal: bool = True) -> np.ndarray:
        """E⁽ⁿ⁾, eq. 7: E⁽ⁿ⁺¹⁾ = E⁽ⁿ⁾ − K (E⁽ⁿ⁾ − Ê)."""
        evolved = embedded
        for _ in range(self.settings.recursions):
            pull = _kernel_times(embedded, evolved - targets, self.settings.eta, with_diagonal=with_diagonal)
            evolved = evolved - pull
        return evolved

    def gradients(self, points: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
        """Gradients of eq. 8 for one batch: ∂/∂(ψ weight, ψ bias, h weight, h bias); K counts as a constant."""
        embedded, lengths = self.embed(points)
        targets = self.centres[labels]
        evolved = self.evolve(embedded, targets)
        at_logits = posterior_of(self.head(evolved))
        at_logits[np.arange(len(points)), labels] -= 1
        at_logits /= len(points)
        backward = at_logits @ self.head.weight.T
        if self.settings.lambda_pc:
            backward += np.float32(2 * self.settings.lambda_pc / evolved.size) * (evolved - targets)
        for _ in range(self.settings.recursions):  # Kᵀ = K, so the step back is (I − K) as well
            backward -= _kernel_times(embedded, backward, self.settings.eta)
        along = np.einsum("ij,ij->i", embedded, backward)[:, None]
        at_raw = (backward - along * embedded) / lengths
        return [points.T @ at_raw, at_raw.sum(axis=0), evolved.T @ at_logits, at_logits.sum(axis=0)]

    def validated(self, points: np.ndarray, labels: np.ndarray) -> _Validated:
        """One validation batch: E⁽⁰⁾, E⁽ⁿ⁾, and which images h gives their own class."""
        embedded, _ = self.embed(points)
        evolved = embedded
        if self.settings.val != "none":
            evolved = self.evolve(embedded, self.centres[labels], with_diagonal=self.settings.val == "paper")
        return _Validated(embedded, evolved, self.head(evolved).argmax(axis=1) == labels)


def _kernel_times(embedded: np.ndarray, values: np.ndarray, eta: float, *, with_diagonal: bool = True) -> np.ndarray:
    """K times ``values`` with K = (η/B) Z Zᵀ, without forming the B×B matrix; optionally with its diagonal at 0."""
    product = embedded @ (embedded.T @ values)
    if not with_diagonal:
        product -= np.einsum("ij,ij->i", embedded, embedded)[:, None] * values
    product *= embedded.dtype.type(eta / len(embedded))
    return product


def _train(
    points: np.ndarray,
    labels: ClassIndices,
    train: np.ndarray,
    test: np.ndarray,
    model: _LinearMaps,
    rng: np.random.Generator,
    *,
    with_path: bool,
) -> tuple[list[float], dict[str, np.ndarray]]:
    """Validation accuracies of one training; where asked for, what became of the validation images, by name of the array."""
    settings = model.settings
    optimizer = AdamW([*model.psi, *model.head], learning_rate=_LEARNING_RATE, weight_decay=_WEIGHT_DECAY)
    curve: list[float] = []
    path: list[tuple[int, float, np.ndarray, np.ndarray]] = []

    def validate(step: int) -> float:
        if not len(test):
            return 0.0
        chunks = [test[start : start + settings.batch_size] for start in range(0, len(test), settings.batch_size)]
        batches = [model.validated(points[chunk], labels[chunk]) for chunk in chunks]
        accuracy = sum(int(batch.is_hit.sum()) for batch in batches) / len(test)
        if with_path:
            embedded, evolved, _ = (np.concatenate(parts) for parts in zip(*batches, strict=True))
            path.append((step, accuracy, embedded, evolved))
        return accuracy

    if with_path:
        validate(0)
    batches = _batches(train, settings.batch_size, rng)
    for step in range(1, settings.iterations + 1 if len(test) else 1):
        rows = next(batches)
        optimizer.step(model.gradients(points[rows], labels[rows]))
        if step % _VALIDATE_EVERY == 0 or step == settings.iterations:
            curve.append(validate(step))
    if not path:
        return curve or [0.0], {}
    steps, accuracies, embedded, evolved = zip(*path, strict=True)
    arrays = {"embedded": np.stack(embedded), "evolved": np.stack(evolved)}
    return curve, {"steps": np.array(steps), "accuracy": np.array(accuracies), **arrays}


def _batches(rows: np.ndarray, batch_size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Every row once in random order, again and again; the last batch of a round may be smaller."""
    while True:
        order = rng.permutation(rows)
        for start in range(0, len(order), batch_size):
            yield order[start : start + batch_size]
