"""All designs in one list."""

from __future__ import annotations

from intervals import difference_designs, metric_designs, other_designs
from intervals.coverage import Design


def every_design() -> list[Design]:
    """In the order of the page."""
    return [*metric_designs.designs(), *difference_designs.designs(), *other_designs.designs()]
