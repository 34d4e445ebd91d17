"""What a record says about the gradients of a training."""

from __future__ import annotations

import math

import numpy as np

from crossgraft.tune.engine.gradient_norms import SMOOTHING, GradientNorms
from crossgraft.tune.record import BlockGradientRecord, GradientNormsRecord

SPIKE = 2.0
"""How many times the moving average of the step before a norm must be to count as a spike."""
_MOST_STEPS = 200


def describe_gradient_norms(job: str, norms: GradientNorms) -> GradientNormsRecord:
    """Medians, extremes and spikes of each block, and its moving average in at most 200 steps.

    Args:
        job: Name of the training.
        norms: Norms of all its steps.
    """
    num_steps, averages = len(norms.values), norms.averages
    listed = np.unique(np.linspace(0, num_steps - 1, min(num_steps, _MOST_STEPS)).round().astype(int))
    spikes = (norms.values[1:] > SPIKE * averages[:-1]).sum(axis=0)
    blocks: list[BlockGradientRecord] = []
    for place, block in enumerate(norms.blocks):
        finite = norms.values[np.isfinite(norms.values[:, place]), place]
        blocks.append(
            BlockGradientRecord(
                block=block,
                median=float(np.median(finite)) if len(finite) else None,
                largest=float(finite.max()) if len(finite) else None,
                num_spikes=int(spikes[place]),
                averages=[None if math.isnan(each) else each for each in averages[listed, place].tolist()],
            )
        )
    return GradientNormsRecord(job=job, num_steps=num_steps, smoothing=SMOOTHING, steps=(listed + 1).tolist(), blocks=blocks)
