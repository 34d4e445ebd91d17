"""What each epoch of a fine-tuning gave."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.records.base import Record


class EpochRow(Record):
    """One epoch of one job."""

    job: str
    epoch: int = Field(description="From 1; epochs of the head alone come first.")
    stage: Literal["head", "all"] = "all"
    learning_rate: float
    train_loss: float | None
    terms: dict[str, float] = Field(default={}, description="Mean of each term that regularisers add to the loss.")
    val_loss: float | None
    val_metric: float | None
    metric_reason: str | None = Field(default=None, description="Why there is no metric.")
    val_cka: float | None = Field(
        default=None,
        description="Similarity of the features of the validation rows to those of the pretrained network.",
    )
    val_cka_debiased: float | None = Field(default=None, description="The same without the bias of few rows.")
    val_cka_adapted: float | None = Field(
        default=None,
        description="Similarity to the pretrained weights with BatchNorm statistics of the training images.",
    )
    val_cka_debiased_adapted: float | None = Field(default=None, description="The same without the bias of few rows.")
    is_best: bool = Field(default=False, description="The epoch whose weights were kept.")
    seconds: float
    images_per_second: float | None = None
