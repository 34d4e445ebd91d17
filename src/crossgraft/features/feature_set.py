"""The features of one data set as one backbone sees it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crossgraft.types import Features, SourceLogits


@dataclass(frozen=True)
class FeatureSet:
    """One row per image, in the order of the data set; read-only arrays that live in a memory-mapped file.

    Attributes:
        features: Penultimate features (n, d), float32.
        source_logits: Logits of the pretrained head (n, Z), float32; None for a backbone without a head.
        seconds: What looking at all images took when it was done, also if this call only read the result.
        from_cache: Whether everything was in the cache already.
    """

    features: Features
    source_logits: SourceLogits | None
    seconds: float
    from_cache: bool

    def __len__(self) -> int:
        return len(self.features)

    def in_memory(self) -> FeatureSet:
        """The same without the file."""
        logits = None if self.source_logits is None else np.array(self.source_logits)
        return replace(self, features=np.array(self.features), source_logits=logits)
