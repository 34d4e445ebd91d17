"""Check that an exported file gives the same outputs as the classifier, before the file gets its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor, nn

from crossgraft.data.transforms import normalise_images
from crossgraft.errors import ExportError
from crossgraft.export.record import OutputAgreementRecord
from crossgraft.export.source_model import SourceModel
from crossgraft.features.passes import collect
from crossgraft.seeding import torch_generator
from crossgraft.tune.logits import logits_of_batches
from crossgraft.types import Preprocessing

BATCH_SIZES = (1, 2, 5)
"""One image alone, the size that graphs are traced with, and another one."""
TOLERANCE = 1e-5
_COARSE = 4  # pixels: smooth patches, which networks tell apart better than noise


class Outputs(NamedTuple):
    """What a file that was loaded again says about a batch.

    Attributes:
        logits: (batch, C).
        probabilities: (batch, C), or None where the file gives logits only.
    """

    logits: Float32[np.ndarray, "batch num_outputs"]
    probabilities: Float32[np.ndarray, "batch num_outputs"] | None


Answer = Callable[[Float32[Tensor, "batch channels height width"]], Outputs]
"""From images in [0, 1], resized but not normalised, to outputs."""


def example_images(preprocessing: Preprocessing, number: int) -> Float32[Tensor, "batch channels height width"]:
    """Generated images in [0, 1] of the size of the input: smooth patches under noise, always the same."""
    shape = (number, preprocessing.channels, preprocessing.height_pixels, preprocessing.width_pixels)
    generator = torch_generator(0, "example images")
    patches = torch.rand((*shape[:2], _COARSE, _COARSE), generator=generator)
    smooth = nn.functional.interpolate(patches, size=shape[2:], mode="bilinear", align_corners=False)
    return 0.7 * smooth + 0.3 * torch.rand(shape, generator=generator)


def logits_of_network(network: nn.Module, preprocessing: Preprocessing) -> Answer:
    """How a bare network answers: its images are normalised outside."""

    def answer(images: Tensor) -> Outputs:
        with torch.no_grad():
            return Outputs(network(normalise_images(images, preprocessing, full_range=1)).numpy(), None)

    return answer


def check_agreement(source: SourceModel, answer: Answer, *, checked_with: str) -> OutputAgreementRecord:
    """Compare on generated images, in batches of 1, 2 and 5.

    The largest logit differences may be 1e-5 times the largest logit (at least 1e-5), those of probabilities 1e-5 times the
    largest logit after the temperature: no change of a softmax or sigmoid is larger than that of its logits.
    ``answer`` is the output of the exported model, written and loaded again.

    Raises:
        ExportError: A difference is larger, or an output is NaN; the message says by how much.

    Cost: two forward passes of eight images.
    """
    images = example_images(source.reference.preprocessing, sum(BATCH_SIZES))
    batches = images.split(BATCH_SIZES)
    prepared = (normalise_images(batch, source.reference.preprocessing, full_range=1) for batch in batches)
    logits = collect(logits_of_batches(source.reference, prepared)).numpy()
    found = [answer(batch) for batch in batches]
    allowed = _allowed(logits)
    difference = _largest(logits, np.concatenate([outputs.logits for outputs in found]))
    _refuse(difference, allowed, "logits", source, checked_with)
    probabilities = [outputs.probabilities for outputs in found if outputs.probabilities is not None]
    probability_difference, allowed_probability = None, None
    if probabilities:
        calibrated = source.task.probabilities(logits, source.facts.temperature)
        allowed_probability = _allowed(logits / source.temperature)
        probability_difference = _largest(calibrated, np.concatenate(probabilities))
        _refuse(probability_difference, allowed_probability, "probabilities", source, checked_with)
    return OutputAgreementRecord(
        checked_with=checked_with,
        num_images=len(images),
        batch_sizes=list(BATCH_SIZES),
        largest_logit_difference=difference,
        allowed_logit_difference=allowed,
        largest_probability_difference=probability_difference,
        allowed_probability_difference=allowed_probability,
    )


def _allowed(logits: Float[np.ndarray, "num_images num_outputs"]) -> float:
    return TOLERANCE * max(1.0, float(np.abs(logits).max()))


def _largest(expected: np.ndarray, found: np.ndarray) -> float:
    if expected.shape != found.shape:
        return float("nan")
    return float(np.abs(expected.astype(np.float64) - found).max())


def _refuse(difference: float, allowed: float, what: str, source: SourceModel, checked_with: str) -> None:
    if not difference <= allowed:  # NaN is no agreement
        raise ExportError(
            f"The exported {source.facts.model.name}, loaded again by {checked_with}, gives other {what} than the model of the "
            f"run: they differ by {difference:.2g}, where {allowed:.2g} is allowed. Nothing was kept. Try another --format, or "
            "other versions of the packages."
        )
