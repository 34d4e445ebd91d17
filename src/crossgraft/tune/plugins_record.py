"""A plug-in as it was used."""

from __future__ import annotations

from pydantic import Field

from crossgraft.records.base import Record


class PluginRecord(Record):
    """A method, regulariser, batch transform, augmentation or loss as it was used."""

    kind: str = Field(description="For example 'method'.")
    spelling: str = Field(description="What to type to get it again, with its options: 'l2_sp:alpha=0.1'.")
    title: str
    reference: str = ""
    in_full: str | None = Field(
        default=None, description="The same, with what was left open filled in, where that differs."
    )

    @property
    def used(self) -> str:
        """What was used, whatever of it was typed."""
        return self.in_full or self.spelling
