"""How often test images were looked at, in a sentence."""

from __future__ import annotations

from crossgraft.metrics.words import metric_name_in_words
from crossgraft.records.looks import LooksRecord

NOT_SEEN = "Predict images that had no part in it"
"""What to do where images of a fine-tuning are predicted."""


def looks_in_words(looks: LooksRecord | None, metric: str) -> str | None:
    """What a choice among several results costs; None for a first look, or where looks were not counted.

    >>> print(looks_in_words(LooksRecord(number=2, by_command={"tune": 2}, optimism=None), "auc")[:59])
    This is the 2nd look at these test images (2 × tune): the b
    """
    if looks is None or looks.number < 2:
        return None
    commands = ", ".join(f"{number} × {command}" for command, number in looks.by_command.items())
    by = "" if looks.optimism is None else f" by about {looks.optimism:.2g} in {metric_name_in_words(metric)}"
    results = looks.number if looks.num_results is None else looks.num_results
    cost = f": the best of {results} equally good results is too high{by}" if results > 1 else ""
    return (
        f"This is the {ordinal(looks.number)} look at these test images ({commands}){cost}. Confirm a choice on images that "
        "were not looked at."
    )


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 22nd.

    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '13th', '21st', '102nd', '111th']
    """
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
