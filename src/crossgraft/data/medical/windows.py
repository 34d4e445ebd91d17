"""Which intensities become black and white: the policy ``--window``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from crossgraft.errors import UsageError, nearest_names

HOUNSFIELD_WINDOWS: dict[str, tuple[float, float]] = {
    "lung": (-600.0, 1500.0),
    "mediastinum": (50.0, 350.0),
    "soft-tissue": (50.0, 400.0),
    "abdomen": (50.0, 400.0),
    "liver": (30.0, 150.0),
    "brain": (40.0, 80.0),
    "stroke": (40.0, 40.0),
    "subdural": (75.0, 215.0),
    "spine": (50.0, 250.0),
    "bone": (400.0, 1800.0),
    "temporal-bone": (600.0, 2800.0),
}
"""Name → centre and width in Hounsfield units, as radiology teaches them for CT."""


@dataclass(frozen=True)
class Window:
    """A range of intensities in the units of the file, and how it is spread from black to white.

    Attributes:
        center: The middle of the range.
        width: Above 0.
        function: ``LINEAR_EXACT`` spreads ``center ± width/2``; ``LINEAR`` and ``SIGMOID`` are those of DICOM
            PS3.3 C.11.2.1.
    """

    center: float
    width: float
    function: Literal["LINEAR", "LINEAR_EXACT", "SIGMOID"] = "LINEAR_EXACT"


@dataclass(frozen=True)
class WindowPolicy:
    """What the user wants to see.

    Attributes:
        kind: ``file``: the file's own window if it has one, else its full range; ``full``: stored values
            of up to 16 bits apart from each other; ``given``: the window below.
        window: Window, for ``given`` only.
        name: Name as the user wrote it.
        is_hounsfield: Whether the window only makes sense for CT.
    """

    kind: Literal["file", "full", "given"] = "file"
    window: Window | None = None
    name: str = "file"
    is_hounsfield: bool = False


def parse_window(text: str | None) -> WindowPolicy:
    """The policy that ``--window`` names; None is ``file``.

    Raises:
        UsageError: It is neither ``file`` nor ``full``, nor the name of a window, nor CENTER,WIDTH.
    """
    name = "file" if text is None else text.strip().casefold()
    if name == "file" or name == "full":
        return WindowPolicy(name, name=name)
    if name in HOUNSFIELD_WINDOWS:
        center, width = HOUNSFIELD_WINDOWS[name]
        return WindowPolicy("given", Window(center, width), name=name, is_hounsfield=True)
    numbers = _numbers(name)
    if len(numbers) != 2:
        near = nearest_names(name, ["file", "full", *HOUNSFIELD_WINDOWS])
        advice = f"Did you mean {' or '.join(near)}?" if near else f"Known names: {', '.join(HOUNSFIELD_WINDOWS)}."
        raise UsageError(f"--window is file, full, a name, or CENTER,WIDTH such as -600,1500; not {text}. {advice}")
    center, width = numbers
    if not (math.isfinite(center) and math.isfinite(width) and width > 0):
        raise UsageError(f"The width of --window must be above 0, and both numbers finite; not {text}.")
    return WindowPolicy("given", Window(center, width), name=f"{center:g},{width:g}")


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return []
