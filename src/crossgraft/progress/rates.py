"""How fast it goes, in words."""

from __future__ import annotations


def describe_rate(done: int, seconds: float, unit: str) -> str:
    """How fast, in words that suit slow and quick work; nothing where seconds are counted.

    >>> describe_rate(500, 10, "images"), describe_rate(3, 2, "rounds"), describe_rate(2, 60, "models")
    ('50 images/s', '1.5 rounds/s', '30 s each')
    """
    if unit.startswith("seconds"):
        return ""
    rate = done / max(seconds, 1e-9)
    if rate >= 10:
        return f"{rate:.0f} {unit}/s"
    return f"{rate:.1f} {unit}/s" if rate >= 0.5 else f"{1 / rate:.0f} s each"
