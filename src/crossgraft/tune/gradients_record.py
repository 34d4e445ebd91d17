"""How long the gradients of a fine-tuning were."""

from __future__ import annotations

from pydantic import Field

from crossgraft.records.base import Count, Record


class BlockGradientRecord(Record):
    """Norm of the gradient of one building block over the steps of a training; what overflowed counts nowhere but as a spike."""

    block: str = Field(description="Its name in the network.")
    median: float | None
    largest: float | None
    num_spikes: Count = Field(description="Steps with more than twice the moving average of the step before.")
    averages: list[float | None] = Field(description="Moving average in each of the listed steps.")


class GradientNormsRecord(Record):
    """L2 norms of the gradient of each building block, before clipping; every step stands in ``gradient_norms.csv``."""

    job: str
    num_steps: Count
    smoothing: float = Field(
        description="What a step counts for in the moving average, over what the one after it does."
    )
    steps: list[int] = Field(description="Steps that are listed, from 1; at most 200, evenly spread.")
    blocks: list[BlockGradientRecord] = Field(description="Blocks with a trained parameter, first to last.")
