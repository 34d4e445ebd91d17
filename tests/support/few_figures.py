"""Writing figures out takes most of the time of a page, in tests that are about something else."""

EMPTY = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>'


def leave_out_drawings(monkeypatch):
    """Figures are painted, and become an empty drawing."""
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda self, file, **_: file.write(EMPTY))
