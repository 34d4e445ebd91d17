"""Which slices of a volume, and which frames of a file of several, are images: the policy ``--slices``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from crossgraft.errors import UsageError

_NUMBERED = re.compile(r"slice:(\d+)")


@dataclass(frozen=True)
class SlicePolicy:
    """What to take from each file.

    Attributes:
        kind: ``middle``, ``all``, ``count`` (that many, evenly spaced), ``place`` (0 is the first slice and 1 the
            last) or ``number`` (one slice, counted from 1).
        value: The count, the place or the number.
    """

    kind: Literal["middle", "all", "count", "place", "number"] = "middle"
    value: float = 0.0

    def choose(self, num_slices: int) -> list[int]:
        """Which slices to take, from 0, in order; every file of one slice gives that one.

        A count above the number of slices takes all. The count takes the middle of each of so many equal parts, so
        a count of 1 is the middle. A number beyond the last slice is kept: reading it is an error that names the file.
        """
        if num_slices == 1:
            return [0]
        if self.kind == "all":
            return list(range(num_slices))
        if self.kind == "place":
            return [int(self.value * (num_slices - 1) + 0.5)]
        if self.kind == "number":
            return [int(self.value) - 1]
        count = min(int(self.value), num_slices) if self.kind == "count" else 1
        return [(2 * part + 1) * num_slices // (2 * count) for part in range(count)]

    def describe(self) -> str:
        """What was taken of each file, in words."""
        value = f"{self.value:g}"
        words = {
            "middle": "the middle slice",
            "all": "all slices",
            "count": "1 slice" if self.value == 1 else f"{value} evenly spaced slices",
            "place": f"the slice at {value} of the way",
            "number": f"slice {value}",
        }
        return words[self.kind]


def parse_slices(text: str | None) -> SlicePolicy:
    """The policy that ``--slices`` names; None is ``middle``.

    Raises:
        UsageError: It is none of the five forms.
    """
    name = "middle" if text is None else text.strip().casefold()
    if name == "middle" or name == "all":
        return SlicePolicy(name)
    if re.fullmatch(r"\d+", name) and int(name) > 0:
        return SlicePolicy("count", float(name))
    if re.fullmatch(r"\d*\.\d+|\d+\.", name) and 0 <= float(name) <= 1:
        return SlicePolicy("place", float(name))
    numbered = _NUMBERED.fullmatch(name)
    if numbered is not None and int(numbered[1]) > 0:
        return SlicePolicy("number", float(numbered[1]))
    raise UsageError(
        "--slices is middle, all, a count such as 5, a place from 0.0 (first slice) to 1.0 (last), or a number such as "
        f"slice:12; not {text}."
    )
