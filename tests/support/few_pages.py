"""Pages of the trainings of a comparison take half the time of a test that is about something else."""

from crossgraft.running import publishing as finish
from crossgraft.running.verb import PAGE_FILE
from crossgraft.variants.study import TRAININGS_FOLDER

A_PAGE = '<meta name="generator" content="crossgraft of a test">'
"""What a page is recognised by."""


def leave_out_pages(monkeypatch, *, of_comparisons):
    """Write a word in the place of the page of each training, and of each comparison too where that is asked."""
    written = finish.write_report

    def few(run, *others, **keywords):
        if others or keywords or (not of_comparisons and run.parent.name != TRAININGS_FOLDER):
            return written(run, *others, **keywords)
        (run / PAGE_FILE).write_text(A_PAGE)
        return run / PAGE_FILE

    monkeypatch.setattr(finish, "write_report", few)
