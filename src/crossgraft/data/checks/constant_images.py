"""Images that show nothing: all pixels have one value."""

from __future__ import annotations

from crossgraft.data.checks._finding import finding
from crossgraft.data.checks.record import FindingRecord
from crossgraft.data.checks.survey import Survey
from crossgraft.words.formatting import counted


def check_constant_images(survey: Survey) -> list[FindingRecord]:
    """A warning: an empty slice or a failed export, not a picture."""
    rows = [[int(row)] for row in survey.readable_rows if survey.facts[row].is_constant]
    if not rows:
        return [finding("constant_images", "Constant images", "passed", "Every image has more than one value.")]
    text = f"{counted(len(rows), 'image')} {'has' if len(rows) == 1 else 'have'} one value in all pixels."
    advice = "Look at them: an empty slice or a failed export teaches nothing but its label."
    return [finding("constant_images", "Constant images", "warning", text, advice=advice, images=rows)]
