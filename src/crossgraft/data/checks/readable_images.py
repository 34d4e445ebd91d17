"""Images that cannot be decoded, and samples that have no meaning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from crossgraft.data.checks._finding import finding
from crossgraft.data.checks.record import FindingRecord
from crossgraft.data.checks.survey import Survey
from crossgraft.data.inspection import describe_dark
from crossgraft.words.formatting import count, counted

_MOST_REASONS = 3


def check_readable_images(survey: Survey) -> list[FindingRecord]:
    """Unreadable images are unsound; 16-bit images that use little of their range are a warning."""
    dark = describe_dark(survey.facts)
    found = [] if dark is None else [finding("sample_range", "Dark 16-bit images", "warning", dark)]
    if not survey.unreadable:
        text = f"All {count(len(survey))} images can be read."
        return [*found, finding("readable_images", "Readable images", "passed", text)]
    text = f"{counted(len(survey.unreadable), 'image')} cannot be read: {_in_words(survey.unreadable.values())}."
    advice = "Repair or remove them; --skip-unreadable leaves them out of a run."
    rows = [[row] for row in survey.unreadable]
    reasons = list(survey.unreadable.values())
    title = "Unreadable images"
    return [
        *found,
        finding("readable_images", title, "unsound", text, advice=advice, images=rows, reasons=reasons),
    ]


def _in_words(reasons: Iterable[str]) -> str:
    """The commonest reasons, with their numbers where there is more than one."""
    counts = Counter(reasons).most_common()
    if len(counts) == 1:
        return counts[0][0]
    shown = [f"{reason} ({count(number)})" for reason, number in counts[:_MOST_REASONS]]
    others = sum(number for _, number in counts[_MOST_REASONS:])
    return "; ".join([*shown, f"other reasons ({count(others)})"] if others else shown)
