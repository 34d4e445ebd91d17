"""Wrong answers about single images."""

from __future__ import annotations

from pydantic import Field

from crossgraft.records.base import Record


class MistakeRecord(Record):
    """One wrong answer about an image that selection did not see."""

    row: int = Field(description="Number of the image, from 1.")
    target: str = Field(description="Its true class, or all its labels.")
    answer: str = Field(description="What was said instead; with several labels per image the label, or 'no LABEL'.")
    probability: float = Field(description="That the model states for its answer, after temperature.")


class MistakesRecord(Record):
    """The images that were answered wrongly, and those of them that the model was surest of."""

    num_wrong: int = Field(description="Images with a wrong answer.")
    num_images: int
    most_certain: list[MistakeRecord] = Field(description="The surest first, at most 12, one per image.")
