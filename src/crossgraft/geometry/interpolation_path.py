"""Loss and similarity along the straight line between two networks (Proposition 8 of RepSim)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float32, Float64
from torch import Tensor, nn

from crossgraft.data import Dataset
from crossgraft.errors import NotApplicable, UsageError
from crossgraft.features.passes import run_pass
from crossgraft.geometry._inputs import (
    BATCH_SIZE,
    AnyImages,
    ImageTargets,
    NetworkImages,
    PreparedRows,
    finite_loss,
    shape_in_words,
    targets_of,
    usual_loss,
    weight_of,
)
from crossgraft.geometry.batch_norm import estimate_statistics, moved_batch_norms
from crossgraft.geometry.record import BatchNormRule, InterpolationPathRecord, PathPointRow
from crossgraft.models.classifier import Classifier
from crossgraft.progress import Reporter
from crossgraft.similarity import both_linear_cka

# Networks between two, which cost no training: WiSE-FT.
#
# Source: Wortsman et al., *Robust fine-tuning of zero-shot models*, CVPR 2022 (arXiv 2109.01903), eq. 1.

NetworkT = TypeVar("NetworkT", bound=nn.Module)


def interpolate(
    start: NetworkT,
    end: NetworkT,
    alpha: float | int,
    *,
    images: PreparedRows | AnyImages | None = None,
    batch_norm: BatchNormRule = "estimate",
    device: str = "cpu",
) -> NetworkT:
    """The network whose weights are (1 − α)·start + α·end, in eval mode.

    At 0 and 1 it is a copy of an end, bit for bit. In between every floating tensor is mixed, a number that both ends share
    stays as it is, and whole-number buffers are those of the end. Means and variances of BatchNorm belong to features that
    neither end has. ``estimate`` gives the layers whose statistics differ between the ends new ones, the plain average over
    batches of the training images, with nothing else in train mode; those that never moved stay. A pretrained network with
    statistics of these images is already another one, so similarity falls at once behind α = 0. ``mix`` mixes them, too.

    Args:
        start: Usually the pretrained body with the head of a linear probe.
        end: The fine-tuned network.
        alpha: Weight of the end in [0, 1].
        images: Training images, prepared or as a data set; needed where statistics are estimated.
        batch_norm: ``estimate`` or ``mix``.
        device: Where the statistics are computed.

    Raises:
        UsageError: The networks are not built alike, ``alpha`` is outside [0, 1], ``batch_norm`` is neither word, or images
            are needed and were not given.

    Cost: a pass over the weights; where statistics are estimated also a forward pass of the training images.
    """
    if batch_norm not in ("estimate", "mix"):
        raise UsageError(f"batch_norm is estimate or mix, not {batch_norm!r}.")
    if not 0 <= alpha <= 1:
        raise UsageError(f"alpha must lie between 0 (the start) and 1 (the end), not {alpha:g}.")
    before, after = start.state_dict(), end.state_dict()
    refuse_other_network(before, after)
    if alpha in (0, 1):
        return copy.deepcopy(end if alpha == 1 else start).eval()
    mixed = copy.deepcopy(end).eval()
    mixed.load_state_dict({name: _mix(before[name].to(tensor.device), tensor, alpha) for name, tensor in after.items()})
    layers = moved_batch_norms(start, end) if batch_norm == "estimate" else []
    if layers:
        if images is None:
            raise UsageError(
                f"{len(layers)} BatchNorm layers have other statistics at the two ends. Give the training images "
                "(images=), so that those in between can be estimated."
            )
        rows = NetworkImages(images, end) if isinstance(images, Tensor | Dataset) else images
        estimate_statistics(layers, mixed, rows, device=device)
    return mixed


def with_body_of(end: Classifier, pretrained: Classifier) -> Classifier:
    """The pretrained body under the head of ``end``: a start for somebody who has no linear probe.

    Raises:
        UsageError: The networks are not built alike.
    """
    refuse_other_network(pretrained.state_dict(), end.state_dict())
    start = copy.deepcopy(end)
    start.body.load_state_dict(pretrained.body.state_dict())
    return start.eval()


def _mix(before: Tensor, after: Tensor, alpha: float) -> Tensor:
    if not after.is_floating_point():
        return after
    mixed = torch.lerp(before.double(), after.double(), alpha).to(after.dtype)
    return torch.where(before == after, after, mixed)  # an infinity that both share would become nan


def refuse_other_network(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> None:
    """Raise unless both state dicts have the same tensors in the same shapes.

    Raises:
        UsageError: They do not; the message names the first that differs.
    """
    differing = [name for name in {**before, **after} if shape_in_words(before, name) != shape_in_words(after, name)]
    if differing:
        name = differing[0]
        at_start, at_end = (shape_in_words(state, name) for state in (before, after))
        raise UsageError(
            f"The two networks are not built alike, so there is nothing between them: {name} is "
            f"{at_start} at the start and {at_end} at the end ({len(differing)} tensors differ). "
            "Take two fine-tunings of the same network on the same classes."
        )


ALPHAS = tuple(step / 10 for step in range(11))


InterpolationPath = InterpolationPathRecord


def interpolation_path(
    start: Classifier,
    end: Classifier,
    images: AnyImages,
    targets: ImageTargets | None = None,
    *,
    alphas: Sequence[float | int] = ALPHAS,
    batch_norm: BatchNormRule = "estimate",
    train_images: AnyImages | None = None,
    names: tuple[str, str] = ("start", "end"),
    batch_size: int = BATCH_SIZE,
    reporter: Reporter | None = None,
) -> InterpolationPath:
    """Measure loss and CKA to the start at each α of (1 − α)·start + α·end.

    Statistics of BatchNorm belong to features that neither end has: see ``interpolate``. A network whose statistics were
    estimated is no neighbour of an end that has its own, so that loss and similarity may jump behind α = 0 and before 1.

    Args:
        start: Usually the pretrained body under the head of a linear probe.
        end: The fine-tuned network, built alike.
        images: Held-out images, prepared or as a data set.
        targets: As ``sharpness`` takes them.
        alphas: In [0, 1]; both ends are added.
        batch_norm: ``estimate`` or ``mix``.
        train_images: Training images; needed where statistics are estimated.
        names: Names of the two ends.
        batch_size: Images at once.
        reporter: Reporter of progress.

    Raises:
        UsageError: The networks are not built alike, an α is outside [0, 1], or training images are needed and were not given.
        DataError: Too few images, or a loss that is not finite.

    Cost: a forward pass per image and α, and two of the training images where statistics are estimated.

    Source: RepSim, Proposition 8; eq. 1 of WiSE-FT (Wortsman et al., CVPR 2022).
    """
    chosen = sorted({0.0, 1.0, *(float(alpha) for alpha in alphas)})
    if chosen[0] < 0 or chosen[-1] > 1:
        raise UsageError(f"Every alpha lies between 0 (the start) and 1 (the end); given: {chosen[0]:g} to {chosen[-1]:g}.")
    prepared = NetworkImages(images, end)
    labels = targets_of(images, targets, len(prepared))
    training = None if train_images is None else NetworkImages(train_images, end)
    points: list[PathPointRow] = []
    reference: np.ndarray | None = None
    stages = reporter or Reporter(quiet=True)
    with stages.stage("Measuring networks between two", total=len(chosen), unit="networks") as stage:
        for alpha in chosen:
            network = interpolate(start, end, alpha, images=training, batch_norm=batch_norm)
            features, loss = features_and_loss(network, prepared, labels, batch_size=batch_size)
            reference = features if reference is None else reference
            cka, debiased = _similarity(reference, features)
            points.append(PathPointRow(alpha=alpha, loss=loss, cka=cka, cka_debiased=debiased))
            stage.advance()
    return InterpolationPath(
        start=names[0],
        end=names[1],
        num_images=len(prepared),
        batch_norm=batch_norm,
        num_batch_norms=len(moved_batch_norms(start, end)),
        points=points,
    )


def features_and_loss(
    network: Classifier, images: NetworkImages, targets: Tensor, *, batch_size: int = BATCH_SIZE
) -> tuple[Float32[np.ndarray, "num_images num_features"], float]:
    """Penultimate features, and the mean of the usual loss, from one pass."""
    read = network.features_and_logits
    outputs = list(run_pass(network, images.batches(batch_size), read=read, like=weight_of(network), full_precision=True))
    logits = torch.cat([output.logits.float().cpu() for output in outputs])
    loss: Float64[np.ndarray, " num_images"] = usual_loss(targets)(logits, targets).double().numpy()
    return torch.cat([output.features.float().cpu() for output in outputs]).numpy(), finite_loss(float(loss.mean()))


def _similarity(reference: np.ndarray, features: np.ndarray) -> tuple[float | None, float | None]:
    try:
        cka = both_linear_cka(reference, features)
    except NotApplicable:  # features that are the same for all images are shown as a gap
        return None, None
    return cka.biased, cka.debiased
