"""An axis holds every value, and no control with a huge interval presses the models into one dot."""

import re

import pytest

from crossgraft.rank.plots import ranking_figure
from crossgraft.report.plots.scatter import Interval, Point, scatter_figure
from crossgraft.report.plots.svg import CONTROL, frame


def test_what_is_needed_is_there_and_the_rest_as_far_as_it_is_near():
    assert frame([0.0, None, 2.0], [1.0]) == (0.0, 2.0)
    assert frame([0.0, 2.0], [2.5, float("inf"), None]) == (0.0, 2.5)
    assert frame([0.0, 2.0], [-100.0]) == (-1.0, 2.0)
    assert frame([None, float("nan")], [1.0]) is None


def ticks(svg):
    """Numbers on the axes."""
    texts = re.findall(r"<text[^>]*>(−?[\d.]+)</text>", str(svg))
    return [float(text.replace("−", "-")) for text in texts]


@pytest.mark.parametrize("is_control", [True, False])
def test_a_huge_interval_stretches_the_axis_of_a_candidate_only(is_control):
    mark = None if is_control else CONTROL
    points = [Point(Interval(at, at - 0.1, at + 0.1), Interval(at, None, None), CONTROL) for at in (0.0, 1.0)]
    points.append(Point(Interval(0.5, -40.0, 40.0), Interval(0.5, None, None), mark))
    drawn = scatter_figure(points, x_label="x", y_label="y", identifier="i")
    assert (max(ticks(drawn)) < 3) is is_control


@pytest.mark.parametrize("is_control", [True, False])
def test_the_same_in_the_ranking(ranking, is_control):
    rows = ranking.ranking("logme").rows
    name = next(row.model for row in rows if (row.role != "candidate") is is_control)
    cells = [
        cell.model_copy(update={"low": -90.0, "high": 90.0}) if (cell.model, cell.score) == (name, "logme") else cell
        for cell in ranking.cells
    ]
    drawn = ranking_figure(ranking.model_copy(update={"cells": cells}), "logme", identifier="i")
    assert (max(ticks(drawn)) < 30) is is_control
