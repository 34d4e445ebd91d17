"""Energy: how likely the model finds the images that it finds least likely."""

from __future__ import annotations

from crossgraft.scores._energy import energy_of
from crossgraft.scores._score import ScoreValue, score
from crossgraft.types import Features, SourceLogits


@score(
    title="Energy",
    reference="Gholami, Akbari, Wang, Koohpayegani, Pirsiavash et al., ETran: Energy-Based Transferability Estimation, "
    "ICCV 2023, eqs. 4–6",
    cost="O(n·d), below a second",
)
def energy(features: Features, source_logits: SourceLogits | None = None, *, fraction: float = 0.005) -> ScoreValue:
    """Mean of log Σ_k exp(l_k) over the images where it is lowest.

    Args:
        features: (n, d); looked at where the model has no head.
        source_logits: Logits of the pretrained head (n, Z).
        fraction: Share of the images to average over, in (0, 1]; at least one image.

    Returns:
        Any real number; higher (the images are less foreign to the model) is better. Needs no labels, so it cannot know
        what the task is. Not comparable between logits and features, nor between heads of different size.

    Raises:
        DataError: Malformed arrays or NaN.
        UsageError: ``fraction`` is out of range.

    Example:
        >>> round(energy(features=[[0.0, 0.0], [3.0, 0.0], [9.0, 0.0]], fraction=0.3), 4)
        0.6931
    """
    of_images = energy_of(features if source_logits is None else source_logits, fraction=fraction)
    warnings = (
        ("There is no source head, so this is the energy of the features; do not compare it with that of logits.",)
        if source_logits is None
        else ()
    )
    parts = {"images": of_images.num_lowest, "mean_of_all": of_images.of_all}
    return ScoreValue(of_images.lowest, parts=parts, warnings=warnings)
