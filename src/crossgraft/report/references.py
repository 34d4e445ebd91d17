"""The papers behind the numbers."""

from __future__ import annotations

from typing import Any

from crossgraft.report.blocks import Literature, Section
from crossgraft.report.source import Source


def references_section(source: Source[Any]) -> Section | None:
    """One entry a paper; None when the record names none."""
    if not source.record.references:
        return None
    return Section(
        name="references",
        title="References",
        part="references",
        blocks=[Literature(source.record.references)],
    )
