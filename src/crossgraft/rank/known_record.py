"""What is known of models from other targets."""

from __future__ import annotations

import re

from pydantic import ConfigDict, Field

from crossgraft.records.base import SCHEMA_VERSION, Record

_END_OF_METHOD = re.compile(r", |;")
STATIC_PRIOR = "static_prior"
"""Stands for a score where the static prior is compared with fine-tuned results."""


class KnownResult(Record):
    """What fine-tuning one model on one target gave; a row of the results store."""

    schema_version: int = SCHEMA_VERSION
    model: str
    weights: str = Field(description="Fingerprint of the weights, or how they are known.")
    source: str = Field(description="What the weights were pretrained on.")
    target: str
    target_group: str = Field(default="", description="Targets of one group tell about each other; empty: alone.")
    target_fingerprint: str | None = Field(default=None, description="Of the images, where they were at hand.")
    protocol: str = Field(description="How the model was tuned and tested; only equal protocols are comparable.")
    metric: str
    value: float
    low: float | None = None
    high: float | None = None
    origin: str = Field(description="The paper, or the command, that measured it.")

    @property
    def identity(self) -> str:
        """The model with its source, as the prior tells models apart."""
        return f"{self.model}/{self.source}"

    @property
    def method(self) -> str:
        """How the model was tuned, which a protocol says first."""
        return _END_OF_METHOD.split(self.protocol, maxsplit=1)[0]

    @property
    def key(self) -> tuple[str, ...]:
        """What makes two rows the same measurement."""
        target = self.target_fingerprint or self.target
        return (self.model, self.weights, self.source, target, self.protocol, self.metric)


class PriorRow(Record):
    """What is known of one model from other targets."""

    model_config = ConfigDict(extra="ignore")  # an aggregation with scores that earlier versions wrote

    model: str
    num_targets: int = Field(description="Other targets on which the model was fine-tuned; 0 = nothing is known.")
    mean_rank: float | None = Field(description="Mean relative rank there: 0 = best, 1 = last; None = not known.")
    prior_rank: int | None = Field(description="Place by the static prior among the models that are known.")
    origins: list[str] = Field(default_factory=list, description="Who measured this model elsewhere.")


class PriorRecord(Record):
    """The static prior, a ranking that never looks at the images."""

    model_config = ConfigDict(extra="ignore")  # as above

    targets: list[str] = Field(description="Other targets with results of at least two of the models.")
    origins: list[str] = Field(description="Who measured them.")
    rows: list[PriorRow] = Field(description="The best first.")
    summary: str
