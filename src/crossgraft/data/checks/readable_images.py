"""Images that can not be decoded, and samples that have no meaning."""

from __future__ import annotations

from collections import Counter

from crossgraft.data.checks._finding import finding, listed
from crossgraft.data.checks.survey import Survey
from crossgraft.data.inspection import describe_dark
from crossgraft.records import FindingRecord
from crossgraft.report.formatting import count, counted


def check_readable_images(survey: Survey) -> list[FindingRecord]:
    """Unreadable images are unsound; 16-bit images that use little of their range are a warning."""
    dark = describe_dark(survey.facts)
    found = [] if dark is None else [finding("sample_range", "Dark 16-bit images", "warning", dark)]
    if not survey.unreadable:
        text = f"All {count(len(survey))} images can be read."
        return [*found, finding("readable_images", "Readable images", "passed", text)]
    reasons = [f"{reason} ({number})" for reason, number in Counter(survey.unreadable.values()).most_common()]
    text = f"{counted(len(survey.unreadable), 'image')} can not be read: {listed(reasons)}."
    advice = "Repair or remove them; --skip-unreadable leaves them out of a run."
    rows = [[row] for row in survey.unreadable]
    return [*found, finding("readable_images", "Unreadable images", "unsound", text, advice=advice, images=rows)]
