import re

import numpy as np
import pytest
from markupsafe import Markup
from matplotlib.figure import Figure

from crossgraft.audit import plots as reliance
from crossgraft.audit.plots import RelianceCurve, reliance_figure
from crossgraft.report.plots.scatter import Interval

SHARES = (0.0, 0.5, 1.0)
IID = [Interval(0.8, 0.7, 0.9), Interval(0.9, 0.8, 0.95), Interval(0.95, 0.9, 1.04)]
OOD = [Interval(0.8, 0.7, 0.9), Interval(0.6), Interval(0.25, 0.2, 0.3)]
CURVE = RelianceCurve("mobilenet, tag", SHARES, IID, OOD)


@pytest.fixture
def axes_of(monkeypatch):
    """What matplotlib was told to draw."""

    def painted(curve):
        figures = []

        def keep(width, height, paint, **_):
            figures.append(Figure(figsize=(width / 72, height / 72)))
            paint(figures[-1])
            return Markup()

        monkeypatch.setattr(reliance, "draw", keep)
        reliance_figure(curve, identifier="curve")
        return figures[0].axes[0]

    return painted


def lines(axes, style):
    return [np.asarray(line.get_ydata(), float) for line in axes.lines if line.get_marker() == style]


def names(axes):
    return {text.get_text(): text.xy[1] for text in axes.texts if hasattr(text, "xy")}


def test_both_curves_are_drawn_with_their_values(axes_of):
    iid, ood = lines(axes_of(CURVE), "o")
    np.testing.assert_array_equal(iid, [0.8, 0.9, 0.95])
    np.testing.assert_array_equal(ood, [0.8, 0.6, 0.25])


def test_a_model_that_sees_the_artefact_alone_is_dotted(axes_of):
    """AUC ½ + p/2 on i.i.d. images; on o.o.d. images chance at 0, and 0 above it."""
    dotted = [line for line in axes_of(CURVE).lines if line.get_marker() != "o"][1:]
    iid, ood = [np.asarray(line.get_ydata(), float) for line in dotted]
    np.testing.assert_allclose(iid, [0.5, 0.75, 1.0])
    np.testing.assert_allclose(ood, [0.5, 0.0, 0.0])


def test_bands_stay_within_0_and_1_and_a_point_without_ends_has_none(axes_of):
    bands = [collection.get_paths()[0].vertices[:, 1] for collection in axes_of(CURVE).collections]
    assert len(bands) == 2
    assert max(band.max() for band in bands) <= 1 and min(band.min() for band in bands) >= 0
    assert 0.6 in bands[1]  # where both ends are the value itself


def test_a_point_without_a_value_is_a_gap(axes_of):
    curve = CURVE._replace(ood=[OOD[0], Interval(None), OOD[2]])
    assert np.isnan(lines(axes_of(curve), "o")[1][1])


def test_a_curve_without_an_end_is_said_to_be_unknown_there():
    last = CURVE._replace(ood=[*OOD[:2], Interval(None)])
    assert "o.o.d. 0.95, unknown" in reliance_figure(last, identifier="curve")


@pytest.mark.parametrize(("iid", "ood"), [(0.9, 0.9), (0.9, 0.87), (0.87, 0.9), (0.5, 0.5)])
def test_names_of_curves_that_end_together_do_not_cover_each_other(axes_of, iid, ood):
    curve = CURVE._replace(iid=[*IID[:2], Interval(iid)], ood=[*OOD[:2], Interval(ood)])
    placed = names(axes_of(curve))
    assert set(placed) == {"i.i.d.", "o.o.d."}
    assert abs(placed["i.i.d."] - placed["o.o.d."]) >= 0.08
    if iid != ood:
        assert (placed["i.i.d."] > placed["o.o.d."]) == (iid > ood)


def test_names_of_curves_that_end_apart_stand_at_their_ends(axes_of):
    assert names(axes_of(CURVE)) == pytest.approx({"i.i.d.": 0.95, "o.o.d.": 0.25})


def test_who_cannot_see_the_figure_is_told_its_ends():
    svg = reliance_figure(CURVE, identifier="curve")
    assert "mobilenet, tag: AUC by share; at the largest share i.i.d. and o.o.d. 0.95, 0.25." in svg


def test_the_same_curve_is_the_same_drawing_and_names_stay_text():
    evil = CURVE._replace(name="<script>alert(1)</script>")
    assert reliance_figure(evil, identifier="curve") == reliance_figure(evil, identifier="curve")
    assert not re.search(r"<script", reliance_figure(evil, identifier="curve"))
