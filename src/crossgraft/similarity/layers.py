"""Similarity of every layer of one network to every layer of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Float64

from crossgraft.errors import DataError
from crossgraft.similarity._features import Features, as_rows, not_finite

Matrix = Float64[np.ndarray, "num_layers num_other_layers"]
LayerRows = Float[np.ndarray, "num_samples _"]
Values = Sequence[float] | Float64[np.ndarray, " _"]
Flags = Bool[np.ndarray, " _"]
NO_SPREAD = "all images have the same features"


@dataclass(frozen=True, eq=False)
class LayerSimilarity:
    """A value for each pair of layers; no entry is ever NaN.

    Attributes:
        matrix: One row per layer of the first network, one column per layer of the second.
        rows: Names of the layers of the first.
        columns: Names of the layers of the second.
        estimator: Name of the measure, with its variant.
        n: Number of images that it is of.
        seed: Random seed of what was drawn; None where nothing was.
        left_out_rows: Layers of the first network without a value, and why.
        left_out_columns: The same of the second.
        warnings: Warnings about the values, each a sentence.
    """

    matrix: Matrix
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    estimator: str
    n: int
    seed: int | None = None
    left_out_rows: Mapping[str, str] = field(default_factory=dict[str, str])
    left_out_columns: Mapping[str, str] = field(default_factory=dict[str, str])
    warnings: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """The matrix with its names."""
        return pd.DataFrame(self.matrix, index=list(self.rows), columns=list(self.columns))


def layer_rows(
    layers: Mapping[str, Features], others: Mapping[str, Features]
) -> tuple[list[LayerRows], list[LayerRows]]:
    """Features of all layers as checked arrays of the same images.

    Raises:
        DataError: There are no layers, the numbers of rows differ, or a number is not finite; the message names the layer.
    """
    if not layers or not others:
        raise DataError("CKA of layers needs at least one layer of each network.")
    first = next(iter(layers.values()))
    found: list[list[LayerRows]] = []
    for side in (layers, others):
        found.append([])
        for name, features in side.items():
            rows, _ = as_rows(features, first, f"CKA of {name}")
            if not np.isfinite(rows).all():
                raise not_finite(name)
            found[-1].append(rows)
    return found[0], found[1]


def from_products(
    between: Matrix,
    own: Sequence[Values],
    spread: Sequence[Flags],
    names: Sequence[Sequence[str]],
    *,
    estimator: str,
    n: int,
    warnings: Sequence[str] = (),
) -> LayerSimilarity:
    """HSIC(K, L) / √(HSIC(K, K) HSIC(L, L)) of all pairs, without layers that have no spread.

    Args:
        between: HSIC of each pair.
        own: HSIC of each layer with itself.
        spread: Whether the features of each layer differ between images.
        names: Names of the layers.
        estimator: Name of the measure.
        n: Number of images.
        warnings: Warnings.
    """
    kept, left_out, roots = [], [], []
    for values, varies, labels in zip(own, spread, names, strict=True):
        good = np.array([bool(does) and value > 0 for value, does in zip(values, varies, strict=True)], dtype=bool)
        kept.append(good)
        left_out.append(
            {
                name: "the unbiased estimate of its spread is not positive; use more images" if does else NO_SPREAD
                for name, fine, does in zip(labels, good, varies, strict=True)
                if not fine
            }
        )
        roots.append(np.sqrt(np.asarray(values, dtype=np.float64)[good]))
    matrix = between[np.ix_(*kept)] / roots[0][:, None] / roots[1]
    return LayerSimilarity(
        np.minimum(matrix, 1.0),
        *(
            tuple(name for name, fine in zip(label, good, strict=True) if fine)
            for label, good in zip(names, kept, strict=True)
        ),
        estimator=estimator,
        n=n,
        left_out_rows=left_out[0],
        left_out_columns=left_out[1],
        warnings=tuple(warnings),
    )
