"""Figures take most of the time of a page, in tests that are about something else."""

import io
import sys
from collections import Counter
from functools import wraps
from types import SimpleNamespace

EMPTY = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>'
MOST_IN_A_FILE = 5
DRAWING = "crossgraft.report.plots.svg"
"""Figures of a question stand in its room and take ``draw`` from here."""


class Paintings:
    """Which figures are painted: of each kind the first one of a test, in few tests of a file where that is asked.

    Attributes:
        is_limited: Otherwise all are.
    """

    def __init__(self):
        self.is_limited = False
        self._of_test = set()
        self._of_files = Counter()
        self._file = None

    def limit(self, monkeypatch, file=None):
        """Until the end of a test of ``file``; None: its file does not matter."""
        count_paintings()
        self._of_test, self._file = set(), file
        monkeypatch.setattr(self, "is_limited", True)

    def is_due(self, paint):
        kind = (paint.__module__, paint.__qualname__)
        if not self.is_limited:
            return True
        if kind in self._of_test or (self._file and self._of_files[self._file, kind] == MOST_IN_A_FILE):
            return False
        self._of_test.add(kind)
        self._of_files[self._file, kind] += 1
        return True


PAINTINGS = Paintings()


def count_paintings():
    """Let modules of figures that are imported by now ask ``PAINTINGS``."""
    svg = sys.modules.get(DRAWING)
    genuine = getattr(svg, "draw", None)
    if genuine is None or hasattr(genuine, "__wrapped__"):
        return

    @wraps(genuine)
    def draw(width, height, paint, **others):
        return genuine(width, height, paint if PAINTINGS.is_due(paint) else lambda _: None, **others)

    for module in [module for name, module in sys.modules.items() if name.startswith("crossgraft.")]:
        if vars(module).get("draw") is genuine:
            module.draw = draw


def leave_out_figures_for_good():
    """In a process of its own: each kind is painted once, and none is written out."""
    import crossgraft.report  # noqa: F401 - figures are imported with it

    for_good = SimpleNamespace(setattr=setattr)
    leave_out_drawings(for_good)
    PAINTINGS.limit(for_good)


def leave_out_drawings(monkeypatch):
    """Figures of pages, which are no files of their own, become an empty drawing."""
    from matplotlib.figure import Figure

    write_out = Figure.savefig

    def savefig(self, file, **settings):
        return file.write(EMPTY) if isinstance(file, io.StringIO) else write_out(self, file, **settings)

    monkeypatch.setattr(Figure, "savefig", savefig)
