"""Spectra as multiples of a flat one, and AUC by cutoff: what is drawn is what was measured."""

import re

import numpy as np
import pytest
from markupsafe import Markup
from matplotlib.figure import Figure

from crossgraft.audit import plots as spectra
from crossgraft.audit.plots import BandCurve, SpectrumCurve, bands_figure, spectra_figure
from crossgraft.report.plots.scatter import Interval

FREQUENCIES = [0.0, 0.125, 0.25, 0.375]
FLAT = SpectrumCurve("images", [0, 1 / 3, 1 / 3, 1 / 3], "images")
BEFORE = SpectrumCurve("before", [0, 0.5, 0.3, 0.2], "network before")
AFTER = SpectrumCurve("after", [0, 0.2, 0.3, 0.5], "network")
LOW = BandCurve("low-pass", [1 / 8, 1 / 4], [Interval(0.5, 0.4, 0.6), Interval(0.75)])
HIGH = BandCurve("high-pass", [1 / 8, 1 / 4], [Interval(None), Interval(0.25, 0.2, 0.3)])


@pytest.fixture
def axes_of(monkeypatch):
    """What matplotlib was told to draw."""

    def painted(figure, *arguments, **options):
        figures = []

        def keep(width, height, paint, **_):
            figures.append(Figure(figsize=(width / 72, height / 72)))
            paint(figures[-1])
            return Markup()

        monkeypatch.setattr(spectra, "draw", keep)
        figure(*arguments, identifier="one", **options)
        return figures[0].axes[0]

    return painted


def named(axes):
    return {line.get_label(): line for line in axes.lines}


def test_a_flat_spectrum_is_one_everywhere_and_the_mean_is_left_out(axes_of):
    axes = axes_of(spectra_figure, "net", FREQUENCIES, [FLAT, BEFORE, AFTER])
    lines = named(axes)
    np.testing.assert_allclose(lines["images"].get_ydata(), [1, 1, 1])
    np.testing.assert_allclose(lines["after"].get_ydata(), [0.6, 0.9, 1.5])
    np.testing.assert_allclose(lines["images"].get_xdata(), FREQUENCIES[1:])
    assert axes.get_yscale() == "log"


def test_before_and_after_differ_in_their_line_and_share_a_colour(axes_of):
    lines = named(axes_of(spectra_figure, "net", FREQUENCIES, [FLAT, BEFORE, AFTER]))
    assert lines["before"].get_color() == lines["after"].get_color() != lines["images"].get_color()
    assert lines["before"].get_linestyle() != lines["after"].get_linestyle()


def test_artefacts_have_colours_of_their_own_and_nothing_is_drawn_at_the_edge(axes_of):
    artefacts = [SpectrumCurve(f"edit {number}", [0, 1, 0, 0], "artefact") for number in range(spectra.MOST_DRAWN_ARTEFACTS)]
    lines = named(axes_of(spectra_figure, "net", FREQUENCIES, [FLAT, AFTER, *artefacts]))
    colours = {line.get_color() for name, line in lines.items() if not name.startswith("_")}
    assert len(colours) == 2 + spectra.MOST_DRAWN_ARTEFACTS
    np.testing.assert_allclose(lines["edit 0"].get_ydata(), [3, 0.01, 0.01])


def test_auc_by_cutoff_with_intervals_chance_and_no_filter(axes_of):
    axes = axes_of(bands_figure, "net", [LOW, HIGH], clean=0.8, chance=0.5)
    lines = named(axes)
    np.testing.assert_array_equal(lines["low-pass"].get_ydata(), [0.5, 0.75])
    np.testing.assert_array_equal(lines["high-pass"].get_ydata(), [np.nan, 0.25])
    assert set(lines["no filter"].get_ydata()) == {0.8}
    assert any(set(line.get_ydata()) == {0.5} for line in axes.lines if line.get_label().startswith("_"))
    low, _ = (band.get_paths()[0].vertices for band in axes.collections)
    assert {0.4, 0.6} <= set(low[:, 1])


def test_without_a_value_of_all_images_there_is_no_line(axes_of):
    assert "no filter" not in named(axes_of(bands_figure, "net", [LOW, HIGH], clean=None, chance=0.5))


def test_who_cannot_see_a_figure_is_told_and_names_stay_text():
    svg = spectra_figure("net", FREQUENCIES, [FLAT, BEFORE], identifier="one")
    assert "net: spectra by frequency: images, before." in svg
    assert "AUC by cutoff of low-pass and high-pass" in bands_figure("net", [LOW, HIGH], clean=0.8, chance=0.5, identifier="two")
    evil = spectra_figure("<script>alert(1)</script>", FREQUENCIES, [FLAT], identifier="one")
    assert not re.search(r"<script", evil)
    assert evil == spectra_figure("<script>alert(1)</script>", FREQUENCIES, [FLAT], identifier="one")
