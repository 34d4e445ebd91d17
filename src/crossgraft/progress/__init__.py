"""Progress on stderr: bars on a terminal, lines otherwise, nothing when quiet; and how long all of it will take."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.progress.forecast import Forecast as Forecast
    from crossgraft.progress.forecast import Piece as Piece
    from crossgraft.progress.reporter import SHORT_SECONDS as SHORT_SECONDS
    from crossgraft.progress.reporter import SILENT_SECONDS as SILENT_SECONDS
    from crossgraft.progress.reporter import Reporter as Reporter
    from crossgraft.progress.reporter import Stage as Stage
    from crossgraft.progress.reporter import TypicalClock as TypicalClock
    from crossgraft.progress.reporter import default_reporter as default_reporter
    from crossgraft.progress.reporter import describe_rate as describe_rate

lazy_face(__name__)
