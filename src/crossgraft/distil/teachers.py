"""What teachers say of their images, and what a student needs to answer them: a head and a map of features."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossgraft.data.transforms import prepare_batch
from crossgraft.distil.domains import Domain
from crossgraft.models.classifier import ClassifierOutput
from crossgraft.models.modes import modes_kept
from crossgraft.seeding import torch_generator

_AT_ONCE = 64


class TeacherAnswers(NamedTuple):
    """What a teacher says of its images."""

    features: Float[Tensor, "images width"]
    logits: Float[Tensor, "images classes"]
    targets: Int[Tensor, " images"]


def new_head(width: int, outputs: int, seed: int, domain: str) -> nn.Linear:
    """A head as of a fine-tuning: drawn with a standard deviation of 0.02, its bias zero."""
    head = cast("nn.Linear", nn.utils.skip_init(nn.Linear, width, outputs))
    generator = torch_generator(seed, "universal head", domain)
    with torch.no_grad():
        head.weight.copy_(0.02 * torch.randn(head.weight.shape, generator=generator))
        head.bias.zero_()
    return head


def new_map(width: int, teacher_width: int) -> nn.Linear:
    """A_t, without bias; the identity at first, as far as it is square."""
    adapter = cast("nn.Linear", nn.utils.skip_init(nn.Linear, width, teacher_width, bias=False))
    with torch.no_grad():
        adapter.weight.copy_(torch.eye(teacher_width, width))
    return adapter


@torch.no_grad()
def answers_of(domain: Domain, device: torch.device) -> TeacherAnswers:
    """Features and logits of all images, in eval mode; the teacher keeps its modes."""
    teacher, dataset = domain.teacher, domain.dataset
    found: list[ClassifierOutput] = []
    with modes_kept(teacher):
        teacher.eval()
        for first in range(0, len(dataset), _AT_ONCE):
            rows = range(first, min(first + _AT_ONCE, len(dataset)))
            images = prepare_batch([dataset.read(row) for row in rows], teacher.preprocessing)
            found.append(teacher.features_and_logits(images.to(teacher.head.weight)))
    features, logits = (torch.cat(parts).float().to(device) for parts in zip(*found, strict=True))
    return TeacherAnswers(features, logits, torch.from_numpy(np.asarray(dataset.targets)).to(device))
