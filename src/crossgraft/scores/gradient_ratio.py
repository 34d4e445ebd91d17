"""Gradient ratio: how much more the second convolution of a network wants to change than the first."""

from __future__ import annotations

from typing import Literal

import numpy as np

from crossgraft import seeding
from crossgraft.errors import DataError, NotApplicable, UsageError
from crossgraft.scores._inputs import ReadableRows
from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, Passes
from crossgraft.types import ClassIndices, Labels

_SMALLEST_BATCH = 3
"""A triplet has three images."""


@score(
    title="Gradient ratio",
    reference="Juodelyte, thesis on cross-domain transfer in medical imaging, chapter 6, eqs. 6.3 and 6.4 (S_FU); triplet loss "
    "of Hoffer and Ailon 2015 as in pytorch-metric-learning's TripletMarginLoss",
    is_seeded=True,
    cost="one forward and backward pass of all images",
)
def gradient_ratio(
    model: object,
    images: ReadableRows,
    labels: Labels,
    *,
    first: str | None = None,
    second: str | None = None,
    batches: int = 6,
    batch_size: int | None = None,
    order: Literal["shuffled", "file"] = "shuffled",
    margin: float = 0.05,
    normalize: bool = True,
    seed: int = 0,
    passes: Passes = SHARED,
) -> ScoreValue:
    """Mean over batches of ‖∂L/∂W₂‖, divided by the mean of ‖∂L/∂W₁‖, eq. 6.4, with L the triplet loss of eq. 6.3.

    L = mean of max(‖e_a − e_p‖ − ‖e_a − e_n‖ + α, 0) over all triplets of the batch for which it is above 0; e are the
    penultimate features, scaled to length 1.

    Args:
        model: A ``crossgraft.models.Backbone``, or any module whose *output* is the features (n, d); its weights, mode and
            gradients are as before afterwards. It is run in eval mode.
        images: Prepared images (n, channels, height, width), as an array, a tensor or a sequence.
        labels: (n,).
        first: Name of the layer of W₁, for example ``conv1``. By default the first convolution in the order of definition.
        second: Name of the layer of W₂; by default the second convolution in the order of definition.
        batches: Into how many batches of ⌊n / batches⌋ images the images are cut; what is left over is one more.
        batch_size: Images a batch, in place of ``batches``.
        order: ``shuffled`` by ``seed``, or ``file``: as they are given, like the published code. Images that are sorted
            by class give batches of one class, which have no triplets and are skipped.
        margin: α.
        normalize: Scale the embeddings to length 1, as the published code does; eq. 6.3 does not.
        seed: Random seed of the shuffled order.
        passes: What these images and labels gave before, by the settings above.

    Returns:
        ≥ 0. Changes with the size of the batches and with the choice of layers, so only values of one architecture
        compare. NaN with a warning where no triplet is violated. ``parts`` hold loss and both norms.

    Raises:
        DataError: Malformed labels, fewer than two classes, or gradients that are not finite.
        NotApplicable: The network has no two convolutions, no batch has a triplet, or no gradient reaches the second layer.
        UnknownNameError: No such layer.
        UsageError: A setting is out of range, or the network's output is no (n, d) features.
    """
    from crossgraft.features.passes import gradients_on  # torch, which scores of arrays do without
    from crossgraft.scores import _gradients

    settings = "gradient ratio", first, second, batches, batch_size, order, margin, normalize, seed
    if settings in passes:
        return passes[settings]
    size = _batch_size(len(labels), batches, batch_size, margin)
    network = _gradients.EmbeddingNetwork.of(model)
    layers = _gradients.two_layers(network.module, first, second)
    rows = np.arange(len(labels))
    if order == "shuffled":
        rows = seeding.generator(seed, "gradient ratio").permutation(rows)
    all_batches = [rows[start : start + size] for start in range(0, len(rows), size)]
    used = [batch for batch in all_batches if _has_triplets(labels[batch])]
    loss = _gradients.TripletLoss(margin, normalize)
    with gradients_on(by=[layer.weight for layer in layers]):
        norms = [_gradients.gradient_norms(network, layers, loss, images, batch, labels[batch]) for batch in used]
    if not norms:
        raise NotApplicable(
            "The gradient ratio needs batches with two classes, one of them with two images. "
            "Use larger batches, or order='shuffled' for images that are sorted by class."
        )
    loss_value, at_first, at_second = (float(mean) for mean in np.mean(norms, axis=0))
    if at_first > 0 and at_second == 0:
        raise NotApplicable(
            f"No gradient reaches {layers[1].name}, because what it gives is multiplied by exactly 0, as by the last norm of a "
            "residual block that training begins with. The gradient ratio is not assessable; name another layer as `second`."
        )
    passes[settings] = _value(loss_value, at_first, at_second, len(used), len(all_batches) - len(used))
    return passes[settings]


def _value(loss: float, at_first: float, at_second: float, num_batches: int, num_skipped: int) -> ScoreValue:
    """Eq. 6.4 as a ratio of means."""
    if not np.isfinite([loss, at_first, at_second]).all():
        raise DataError("The gradients of the triplet loss are not finite. Check images and weights for NaN or infinity.")
    warnings: list[str] = []
    if num_skipped:
        warnings.append(f"{num_skipped} of {num_batches + num_skipped} batches have no triplet and were skipped.")
    if at_first == 0:
        warnings.append("The triplet loss asks for no change of the first layer, so the ratio is not defined.")
    parts = {"loss": loss, "first": at_first, "second": at_second, "batches": num_batches}
    return ScoreValue(at_second / at_first if at_first > 0 else float("nan"), parts=parts, warnings=warnings)


def _batch_size(num_samples: int, batches: int, batch_size: int | None, margin: float) -> int:
    if batches < 1 or (batch_size is not None and batch_size < _SMALLEST_BATCH) or margin < 0:
        raise UsageError(f"`batches` must be ≥ 1, `batch_size` ≥ 3 and `margin` ≥ 0, got {batches}, {batch_size} and {margin}.")
    return batch_size or max(num_samples // batches, _SMALLEST_BATCH)


def _has_triplets(labels: ClassIndices) -> bool:
    counts = np.unique(labels, return_counts=True)[1]
    return len(counts) > 1 and int(counts.max()) > 1
