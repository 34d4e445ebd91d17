"""How often the test images of a data set were looked at."""

from __future__ import annotations

from pydantic import Field

from crossgraft.records.base import Count, Record


class Look(Record):
    """One model measured on the test images of a data set. Fingerprints only: no name, no path, no result."""

    test: str = Field(description="Fingerprint of the test images with labels, whatever their order and their groups.")
    measured: str = Field(description="Fingerprint of what was measured: the same training is the same look.")
    command: str = Field(description="Name of the command that measured it.")
    is_result: bool = Field(
        default=True,
        description="Whether it says how good the model is, so that the best of several can be picked by it.",
    )

    @property
    def key(self) -> tuple[str, str]:
        """What makes two looks the same."""
        return self.test, self.measured


class LooksRecord(Record):
    """The place of a result among all results on the same test images that this user has seen."""

    number: Count = Field(description="1 for the first look at these test images.")
    by_command: dict[str, int] = Field(description="Command → number of looks, this one and all before it.")
    num_results: int | None = Field(
        default=None, description="Those that say how good a model is; None in older reports: all of them."
    )
    optimism: float | None = Field(
        description="About how far the best of as many equally good models lies above its true value, in units of the "
        "primary metric, if errors are independent; None without an interval."
    )
