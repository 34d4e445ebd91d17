"""Features of images by class, with empty places where a class has fewer than another."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from crossgraft.fewshot.heads._head import Classes, Rows

Cache = Float[Tensor, "num_classes shots width"]
Filled = Bool[Tensor, "num_classes shots"]


def cached(rows: Rows, classes: Classes, num_classes: int) -> tuple[Cache, Filled]:
    """Features by class; where a class has fewer than the others places stay empty."""
    places = place_within_class(classes)
    cache = rows.new_zeros(num_classes, int(places.max()) + 1, rows.shape[1])
    cache[classes, places] = rows
    filled = torch.zeros(cache.shape[:2], dtype=torch.bool)
    filled[classes, places] = True
    return cache, filled


def place_within_class(classes: Classes) -> Classes:
    """How many of the same class come before each."""
    order = classes.argsort(stable=True)
    counts = torch.bincount(classes)
    firsts = (counts.cumsum(0) - counts)[classes[order]]
    places = torch.empty_like(classes)
    places[order] = torch.arange(len(classes)) - firsts
    return places
