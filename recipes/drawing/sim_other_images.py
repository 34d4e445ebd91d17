"""Segmentation and translation, beside Tables 6 and 7 and Fig. 4 of the paper."""

from __future__ import annotations

from pathlib import Path


def fields(results: Path, figures: Path) -> dict[str, str]:
    return {}
