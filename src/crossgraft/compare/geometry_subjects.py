"""What measures of geometry are told: the models, the images, and what one pass over these found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from crossgraft.compare.looking import KeptImages
from crossgraft.compare.networks import ComparedNetwork, Model, Rows
from crossgraft.data import Dataset
from crossgraft.data.rows import ImageRows
from crossgraft.progress import Reporter
from crossgraft.types import Preprocessing

Features = Float[np.ndarray, "num_images num_features"]


@dataclass(frozen=True, eq=False)
class OtherImages:
    """Images beside those that the models are compared on.

    Attributes:
        probe: Other labelled images, which linear probes are fitted to and tested on.
        probe_train: Rows that probes learn from.
        probe_test: Rows that they are tested on.
        source: Images of the source, for attention.
    """

    probe: Dataset | None = None
    probe_train: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    probe_test: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    source: ImageRows | None = None


@dataclass(frozen=True, eq=False)
class Subjects:
    """The models and the images.

    Attributes:
        models: By label; one start of both stands once.
        links: Pairs of labels that are compared, the two models first.
        images: All images; None where every model is features on disk.
        rows: Rows that the models are compared on.
        train: Training rows.
        in_words: What the images are.
        others: Further images.
        seed: Random seed.
        reporter: Reporter of progress.
    """

    models: Mapping[str, Model]
    links: Sequence[tuple[str, str]]
    images: Dataset | None
    rows: Rows
    train: Rows
    in_words: str
    others: OtherImages
    seed: int
    reporter: Reporter

    @property
    def networks(self) -> dict[str, ComparedNetwork]:
        """The models that are no features on disk."""
        return {label: each for label, each in self.models.items() if isinstance(each, ComparedNetwork)}

    def reference(self, labels: Sequence[str]) -> str:
        """The one that others are compared with: the start of A, else A, else the first."""
        return next((label for label in ("A before", "A") if label in labels), labels[0])


@dataclass(frozen=True, eq=False)
class SeenImages:
    """What the pass over the images found.

    Attributes:
        features: Penultimate features by label.
        kept: Prepared images of the pass; None without images.
    """

    features: Mapping[str, Features]
    kept: KeptImages | None = None


@dataclass(frozen=True, eq=False)
class Later:
    """A measure that applies, and waits for the pass.

    Attributes:
        measure: Gives its record; raises ``NotApplicable`` where features say that there is none.
        ways: Preprocessing of the images that it looks at again.
    """

    measure: Callable[[SeenImages], Any]
    ways: frozenset[Preprocessing] = frozenset()


Say = Callable[[str], object]
"""Gets a sentence on a model that a measure does not apply to."""
