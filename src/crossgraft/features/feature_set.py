"""The features of one data set as one backbone sees it."""

from __future__ import annotations

from dataclasses import dataclass

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
