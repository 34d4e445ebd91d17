"""Class weights from the head that a network was pretrained with: what stands in where there are no features of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from crossgraft.errors import UsageError
from crossgraft.models import Backbone


def class_weights_from_head(
    backbone: Backbone, source_classes: Mapping[Any, Sequence[int]]
) -> dict[Any, Float[np.ndarray, " num_features"]]:
    """For each class the mean of the rows of the pretrained head whose source classes name it, each of unit length.

    With ImageNet's head and the breeds of dogs, ``dog`` gets a vector without an image of a dog: for ``TipAdapterHead`` and
    ``MetaAdapterHead`` what the features of its name are with CLIP, and alone a classifier without any support set. Classes that
    the network was not pretrained to tell apart get nothing by it.

    Args:
        backbone: Backbone with a linear head.
        source_classes: Label → numbers of the source classes that name it, from 0 to Z − 1.

    Raises:
        UsageError: The backbone has no linear head, a label no number, or a number is not one of its classes or no whole number.

    Source: head rows as class weights in Tip-Adapter's equation, Zhang et al., ECCV 2022; the stand-in is not theirs.

    Example:
        >>> from crossgraft.models import ModelSpec, load_backbone
        >>> backbone = load_backbone(ModelSpec("r", "test_resnet", weights="random"), image_size=32)
        >>> weights = class_weights_from_head(backbone, {"cat": [3, 4], "dog": [7]})
        >>> {label: vector.shape for label, vector in weights.items()} == {"cat": (backbone.num_features,)} | {
        ...     "dog": (backbone.num_features,)
        ... }
        True
    """
    head = backbone.linear_head
    if head is None:
        raise UsageError(
            f"{backbone.name} has no linear head, so that there are no class weights to take. Give vectors of your own: "
            "class_weights=FILE."
        )
    rows = head.weight.detach().double().cpu().numpy()
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return {label: _mean(rows, label, numbers) for label, numbers in source_classes.items()}


def _mean(rows: np.ndarray, label: object, numbers: Sequence[int]) -> np.ndarray:
    chosen = np.asarray(numbers)
    if chosen.ndim != 1 or len(chosen) == 0:
        raise UsageError(f"The class {label} has no source class. Name at least one, or leave the class out.")
    if chosen.dtype.kind not in "iu":
        raise UsageError(
            f"The source classes of {label} are of type {chosen.dtype}, and must be whole numbers from 0 to {len(rows) - 1}."
        )
    wrong = chosen[(chosen < 0) | (chosen >= len(rows))]
    if len(wrong):
        raise UsageError(f"The class {label} names the source class {wrong[0]}; there are 0 to {len(rows) - 1}.")
    return rows[chosen].mean(axis=0).astype(np.float32)
