"""One self-contained HTML page from the records of a run directory."""

from crossgraft.report.finish import finish_run as finish_run
from crossgraft.report.page import write_report as write_report

__all__ = ["finish_run", "write_report"]
