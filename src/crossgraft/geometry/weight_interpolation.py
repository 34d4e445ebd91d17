"""Networks between two, which cost no training: WiSE-FT.

Source: Wortsman et al., *Robust fine-tuning of zero-shot models*, CVPR 2022 (arXiv 2109.01903), eq. 1.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Literal, TypeVar

import torch
from torch import Tensor, nn

from crossgraft.data import Dataset
from crossgraft.errors import UsageError
from crossgraft.geometry._inputs import AnyImages, NetworkImages, PreparedRows
from crossgraft.geometry.batch_norm import estimate_statistics, moved_batch_norms
from crossgraft.models.classifier import Classifier

NetworkT = TypeVar("NetworkT", bound=nn.Module)
BatchNormRule = Literal["estimate", "mix"]
"""What becomes of means and variances of BatchNorm between the ends."""


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
    differing = [name for name in {**before, **after} if _shape(before, name) != _shape(after, name)]
    if differing:
        name = differing[0]
        raise UsageError(
            f"The two networks are not built alike, so there is nothing between them: {name} is "
            f"{_shape(before, name)} at the start and {_shape(after, name)} at the end ({len(differing)} tensors differ). "
            "Take two fine-tunings of the same network on the same classes."
        )


def _shape(state: Mapping[str, Tensor], name: str) -> str:
    return "×".join(map(str, state[name].shape)) or "one number" if name in state else "missing"
