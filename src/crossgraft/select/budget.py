"""How much a selection may cost: a time, or a share of fine-tuning all models."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from crossgraft.errors import UsageError

_SECONDS = {"s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TEXT = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>[a-z%]+)", re.IGNORECASE)
_EXAMPLES = "Examples: --budget 30min, --budget 2h, --budget 25% (of the time to fine-tune all models)."


@dataclass(frozen=True)
class Budget:
    """A budget as it was given.

    Attributes:
        text: As typed.
        fixed_seconds: Seconds; None for a share.
        share: Share of the time to fine-tune all models, in (0, 1]; None for a time.
    """

    text: str
    fixed_seconds: float | None = None
    share: float | None = None

    def seconds(self, seconds_of_all: float) -> float:
        """In seconds, where fine-tuning all models takes ``seconds_of_all``."""
        return self.fixed_seconds if self.fixed_seconds is not None else (self.share or 0.0) * seconds_of_all


def parse_budget(text: str) -> Budget:
    """Read a budget.

    Raises:
        UsageError: It is no time and no share; the message has examples.

    >>> parse_budget("30min").fixed_seconds, parse_budget("25%").share
    (1800.0, 0.25)
    """
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"--budget {text}: this is no time and no share. {_EXAMPLES}")
    number, unit = float(found["number"]), found["unit"].lower()
    if unit == "%":
        if not 0 < number <= 100:
            raise UsageError(f"--budget {text}: a share lies above 0% and at most at 100%. {_EXAMPLES}")
        return Budget(text.strip(), share=number / 100)
    if unit not in _SECONDS:
        raise UsageError(f"--budget {text}: the unit {unit} is not known; it is s, min, h, d or %. {_EXAMPLES}")
    if number == 0 or math.isinf(number * _SECONDS[unit]):
        raise UsageError(f"--budget {text}: a budget is longer than nothing. {_EXAMPLES}")
    return Budget(text.strip(), fixed_seconds=number * _SECONDS[unit])
