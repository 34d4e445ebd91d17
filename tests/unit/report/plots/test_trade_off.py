import itertools
import math

import pytest
from matplotlib.figure import Figure

from crossgraft.interpolate import plot_trade_off as trade_off
from crossgraft.interpolate.plot_trade_off import TradeOff, trade_off_figure
from crossgraft.report.plots.scatter import Interval

LABELS = {"x_label": "Similarity", "y_label": "Accuracy", "identifier": "figure"}
SWEEP = [TradeOff(f"hcs:{value}", Interval(value), Interval(0.5), "hcs", value) for value in (0.2, 0.8)]
POINTS = [(1.0, 0.3), (0.5, 0.4), (0.4, 0.5), (0.3, 0.6)]


@pytest.fixture
def drawn(monkeypatch):
    """The lines of a figure that are dashed, as the curve is; each as the points that it joins."""

    def lines(curve, joined):
        figures = []

        def keep(width, height, paint, **_):
            figures.append(Figure(figsize=(width / 72, height / 72)))
            paint(figures[-1])

        monkeypatch.setattr(trade_off, "draw", keep)
        trade_off_figure(SWEEP, curve, joined, **LABELS)
        axes = figures[0].axes[0]
        (lines.legend,) = axes.get_legend().get_lines()
        return [list(zip(*line.get_data(), strict=True)) for line in axes.lines if line.get_linestyle() == "--"]

    return lines


def test_each_measured_point_of_the_curve_is_a_dot():
    def num_dots(curve, joined):
        return trade_off_figure(SWEEP, curve, joined, **LABELS).count("<use")

    assert num_dots(POINTS[:3], [True] * 2) == num_dots(POINTS[:2], [True]) + 1
    assert num_dots(POINTS[:3], [False] * 2) == num_dots(POINTS[:3], [True] * 2)


@pytest.mark.parametrize("joined", list(itertools.product([True, False], repeat=3)))
def test_no_line_crosses_what_was_not_measured(drawn, joined):
    steps = [pair for line in drawn(POINTS, joined) for pair in itertools.pairwise(line)]
    assert steps == [pair for pair, is_one in zip(itertools.pairwise(POINTS), joined, strict=True) if is_one]
    assert (drawn.legend.get_linestyle() == "--") == any(joined)  # the legend shows no line where there is none


def test_a_point_without_a_value_is_a_gap(drawn):
    curve = [POINTS[0], (math.nan, 0.4), *POINTS[2:]]
    steps = [pair for line in drawn(curve, [True] * 3) for pair in itertools.pairwise(line)]
    assert steps == [(POINTS[2], POINTS[3])]


def test_names_keep_away_from_the_lines_of_sweeps_too(monkeypatch):
    avoided = []

    class Watched(trade_off.LabelPlaces):
        def place(self, dot, width, height):
            avoided.extend(self.avoided)
            return super().place(dot, width, height)

    monkeypatch.setattr(trade_off, "LabelPlaces", Watched)
    trade_off_figure(SWEEP, [], [], **LABELS)
    assert len(avoided) > 10
    assert len({round(spot.y) for spot in avoided}) == 1  # both dots are equally high
