"""What plug-ins of ``tune`` give in a step, if its shape is the one asked for: torch would repeat or add up much else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor

from crossgraft.errors import UsageError
from crossgraft.losses import Loss
from crossgraft.tune.image_protocols import Augmentation, BatchTransform
from crossgraft.tune.protocols import Objective, Regularizer

_MEND = "Mend it, or choose another."


def losses_of(loss: Loss, logits: Tensor, targets: Tensor) -> Tensor:
    """(b,) the loss of each image.

    Raises:
        UsageError: It is of another shape.
    """
    losses = cast("object", loss(logits, targets))
    if not isinstance(losses, Tensor) or losses.shape != (len(logits),):
        raise UsageError(
            f"The loss {loss.name} gave {_kind_of(losses)} for {len(logits)} images, not one number for each. {_MEND}"
        )
    return losses


def scalar_terms(plugin: Objective | Regularizer, terms: object) -> list[tuple[str, Tensor]]:
    """The terms that a regulariser or an objective gave, with their names.

    Raises:
        UsageError: They have no names, or one is no tensor of one number.
    """
    if not isinstance(terms, Mapping):
        raise UsageError(f"{plugin.name} gave {_kind_of(terms)}, not terms by name. {_MEND}")
    named = list(cast("Mapping[str, object]", terms).items())
    for name, term in named:
        if not isinstance(term, Tensor) or term.ndim:
            raise UsageError(f"The term {name} of {plugin.name} is {_kind_of(term)}, not a tensor of one number. {_MEND}")
    return cast("list[tuple[str, Tensor]]", named)


def augmented(augmentation: Augmentation, images: Tensor, generator: torch.Generator) -> Tensor:
    """As many images of the same size.

    Raises:
        UsageError: They are not.
    """
    return _alike(images, augmentation(images, generator), "augmentation", augmentation)


def transformed(transform: BatchTransform, images: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images and targets, as many and as large as before.

    Raises:
        UsageError: They are not.
    """
    kind = "batch transform"
    made = cast("object", transform(images, targets, generator))
    if not isinstance(made, tuple) or len(cast("tuple[object, ...]", made)) != 2:
        raise UsageError(f"The {kind} {transform.name} gave {_kind_of(made)}, not images and targets. {_MEND}")
    new_images, new_targets = cast("tuple[object, object]", made)
    return _alike(images, new_images, kind, transform), _alike(targets, new_targets, kind, transform)


def _alike(given: Tensor, made: object, kind: str, plugin: Augmentation | BatchTransform) -> Tensor:
    if not isinstance(made, Tensor) or made.shape != given.shape:
        raise UsageError(f"The {kind} {plugin.name} made {_kind_of(made)} of a tensor of shape {tuple(given.shape)}. {_MEND}")
    return made


def _kind_of(made: object) -> str:
    return f"a tensor of shape {tuple(made.shape)}" if isinstance(made, Tensor) else f"an object of type {type(made).__name__}"
