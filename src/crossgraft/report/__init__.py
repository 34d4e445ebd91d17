"""One self-contained HTML page from the records of a run directory."""

from crossgraft.report.page import write_report as write_report

__all__ = ["write_report"]
