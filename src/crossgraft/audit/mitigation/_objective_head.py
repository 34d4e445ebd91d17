"""Heads on frozen features that minimise an objective over domains; the artefact is the domain."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn.functional import one_hot

from crossgraft.audit.mitigation._mitigation import FittedScorer, GroupedRows, scorer_of
from crossgraft.losses import CrossEntropy
from crossgraft.tune.objectives import Objective, ObjectiveContext
from crossgraft.tune.schedules import Cosine, Steps

NUM_STEPS, ANNEAL_STEPS = 400, 100
LEARNING_RATE, BETAS = 0.1, (0.9, 0.95)
"""Second moments are forgotten within some twenty steps: those of the first ones are large, and would hold up all that follow."""
_NUM_DOMAINS = _NUM_CLASSES = 2


def objective_scorer(rows: GroupedRows, objective: Objective) -> FittedScorer:
    """A linear head that minimises ``objective`` + ‖w‖² / 2n, all images in every step, in float64.

    With the mean as objective that is ``logistic_scorer``, to 1e-4. 400 steps of Adam from w = 0, whose rate falls along a cosine
    from 0.1 to 0; nothing is drawn. For an objective that needs two images of a group each image stands there twice: so it is in
    both halves of its domain, and what IRM estimates from two halves of a batch is the square itself.

    Args:
        rows: Images of all four cells, in an order that says nothing.
        objective: Domains are 0 without the artefact and 1 with it.

    Cost: two products with the features a step.
    """
    scaler = StandardScaler().fit(rows.features)
    features = torch.from_numpy(scaler.transform(rows.features))
    copies = objective.fewest_per_group
    labels, domains = (torch.from_numpy(np.repeat(flags, copies)) for flags in (rows.labels, rows.artefact))
    targets, loss = one_hot(labels, _NUM_CLASSES).to(features), CrossEntropy()
    weights, intercept = nn.Parameter(features.new_zeros(features.shape[1])), nn.Parameter(features.new_zeros(()))
    optimizer = torch.optim.Adam([weights, intercept], lr=LEARNING_RATE, betas=BETAS)
    schedule, steps = Cosine(0.0), Steps(NUM_STEPS, 0, NUM_STEPS)
    objective.attach(num_domains=_NUM_DOMAINS, num_classes=_NUM_CLASSES)
    for step in range(NUM_STEPS):
        if step == objective.restarts_optimizer_at:
            optimizer.state.clear()
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * schedule.share(step, steps)
        logits = _two_columns(features @ weights + intercept).repeat_interleave(copies, dim=0)
        losses = loss(logits, targets)
        context = ObjectiveContext(losses, logits, targets, domains, _NUM_DOMAINS, step, loss, torch.Generator())
        decay = weights.square().sum() / (2 * len(features))
        total = torch.stack([*objective(context).values(), decay]).sum()
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    return scorer_of(scaler, weights.detach().numpy(), float(intercept.detach()))


def _two_columns(logits: Float[Tensor, " num_images"]) -> Float[Tensor, "num_images 2"]:
    """Logits of both classes, of which the first is 0."""
    return torch.stack([torch.zeros_like(logits), logits], dim=1)
