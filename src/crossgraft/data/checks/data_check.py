"""What ``check_data`` returns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from crossgraft.data.checks.record import DataCheckRecord
from crossgraft.result import Result

if TYPE_CHECKING:
    import pandas as pd

EXIT_UNSOUND = 3


@dataclass(frozen=True, eq=False, repr=False)
class DataCheck(Result[DataCheckRecord]):
    """A checked data set: ``record`` holds every finding."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found that makes results wrong. Warnings and notices do not count."""
        return self.record.is_sound

    @property
    def exit_code(self) -> int:
        """3 where something unsound was found."""
        return 0 if self.is_sound else EXIT_UNSOUND

    @property
    def verdict(self) -> str:
        """The answer in one or two sentences."""
        return self.record.verdict

    def summary(self) -> str:
        """The data and the verdict."""
        return f"{self.record.dataset.name}: {self.verdict}"

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

    def _most_important(self) -> pd.DataFrame:
        import pandas as pd

        rows = [(finding.severity, finding.title, finding.text) for finding in self.record.findings]
        return pd.DataFrame(rows, columns=["severity", "title", "text"])
