"""Whether every file of a folder is an image that was read, and what the others are."""

from __future__ import annotations

from crossgraft.data.checks._finding import finding
from crossgraft.data.checks.record import FindingRecord
from crossgraft.data.checks.survey import Survey
from crossgraft.words.formatting import count, counted, joined

_MOST_SHOWN = 8


def check_files_read(survey: Survey) -> list[FindingRecord]:
    """Files by kind and class: a warning where images lack a reader, else a notice; nothing where all are of one kind."""
    files, passed_over = survey.files, survey.files.passed_over
    kinds = joined([f"{count(number)} {kind}" for kind, number in files.kinds_read.most_common()])
    if not passed_over:
        text = f"{counted(files.total, 'file')}: {kinds}."
        return [finding("files_read", "Files read", "passed", text)] if len(files.kinds_read) > 1 else []
    shown = [
        f"{count(each.number)} {each.kind}{f' in {each.place}' if each.place else ''} ({each.reason})"
        for each in passed_over[:_MOST_SHOWN]
    ]
    if len(passed_over) > _MOST_SHOWN:
        shown.append(f"{count(sum(each.number for each in passed_over[_MOST_SHOWN:]))} of other kinds")
    text = f"{counted(files.total, 'file')}: {kinds or 'none'} are read; passed over: {', '.join(shown)}."
    lost = any(each.is_image for each in passed_over)
    advice = "Save them as PNG, or install their reader." if lost else ""
    return [finding("files_read", "Files passed over", "warning" if lost else "notice", text, advice=advice)]
