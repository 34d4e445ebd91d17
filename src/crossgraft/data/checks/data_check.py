"""What ``check_data`` returns."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from crossgraft.records import DataCheckRecord
from crossgraft.words.visible import visible

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class DataCheck:
    """A checked data set: ``record`` holds every finding, ``report`` the HTML report if a run directory was written."""

    record: DataCheckRecord
    out: Path | None = None
    report: Path | None = None

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found that makes results wrong. Warnings and notices do not count."""
        return self.record.is_sound

    @property
    def verdict(self) -> str:
        """The answer in one or two sentences."""
        return self.record.verdict

    def to_frame(self) -> pd.DataFrame:
        """One row per finding, or, where a finding lists images, one row per group of images (row numbers from 1).

        ``text`` says what was found, or, where that differs from image to image, what is wrong with this one.
        """
        import pandas as pd

        names = self.record.image_names
        rows = [
            {
                "check": finding.check,
                "severity": finding.severity,
                "title": finding.title,
                "text": reason or finding.text,
                "images": " ".join(map(str, group)),
                "names": " | ".join(names[row] for row in group if row in names),
            }
            for finding in self.record.findings
            for group, reason in zip_longest(finding.images or [[]], finding.reasons)
        ]
        return pd.DataFrame(rows, columns=["check", "severity", "title", "text", "images", "names"])

    def to_json(self) -> str:
        """The record as one JSON document with ``schema_version``."""
        return self.record.model_dump_json()

    def __repr__(self) -> str:
        """One line: the record may list thousands of images."""
        return f"DataCheck({self.record.dataset.name!r}, is_sound={self.is_sound}, verdict={self.verdict!r})"

    def _repr_html_(self) -> str:
        items = "".join(
            f"<li>{escape(finding.severity)}: {escape(finding.title)}. {escape(finding.text)}</li>"
            for finding in self.record.findings
        )
        return visible(f"<p>{escape(self.verdict)}</p><ul>{items}</ul>", keep="\n")
