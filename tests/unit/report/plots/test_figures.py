"""Scatter, class balance and split comparison."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.data.page import class_balance_figure, split_counts_figure
from crossgraft.demo.plot_split_comparison import split_figure
from crossgraft.report.plots.plain import whole_ticks
from crossgraft.report.plots.scatter import Interval, Point, is_drawable, scatter_figure
from crossgraft.report.plots.svg import Mark


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def num_marks(svg: str) -> int:
    return len(re.findall(r"<use [^>]*#fefefe|<use [^>]*var\(--paper\)", svg))


def test_scatter_draws_each_point_that_has_both_values():
    mark = Mark("#0072B2", "o")
    points = [
        Point(Interval(0.1, 0.0, 0.2), Interval(0.5, 0.4, 0.6), mark, rank=1),
        Point(Interval(0.2), Interval(0.6), None),
        Point(Interval(None), Interval(0.6), mark),
        Point(Interval(0.3), Interval(math.nan), mark),
        Point(Interval(0.3, 0.2, math.inf), Interval(0.3), mark, rank=2),
    ]
    assert [is_drawable(point) for point in points] == [True, True, False, False, True]
    svg = scatter_figure(points, x_label="LogME (score)", y_label="LEEP (score)", identifier="s")
    assert num_marks(svg) == 3
    assert {"1", "2", "LogME (score)", "LEEP (score)"} <= set(texts(svg))


def test_ranks_of_dots_that_lie_together_do_not_cover_each_other():
    mark = Mark("#0072B2", "o")
    near = [(0.0, 0.0), (1.0, 1.0), (0.5, 0.5), (0.51, 0.52), (0.49, 0.53), (0.5, 0.48)]
    points = [Point(Interval(x), Interval(y), mark, rank=70 + k) for k, (x, y) in enumerate(near)]
    svg = scatter_figure(points, x_label="x", y_label="y", identifier="s")
    found = re.findall(r'x="([\d.]+)" y="([\d.]+)"[^>]*>7\d<', svg)
    places = [(float(x), float(y)) for x, y in found]
    assert len(places) == len(points)
    together = [(one, other) for k, one in enumerate(places) for other in places[:k]]
    assert all(abs(one[0] - other[0]) >= 14 or abs(one[1] - other[1]) >= 11 for one, other in together)


def test_scatter_without_points_is_an_empty_frame():
    assert num_marks(scatter_figure([], x_label="x", y_label="y", identifier="s")) == 0


def test_class_balance_names_and_counts_each_class(ranking, examples):
    found = texts(class_balance_figure(ranking.dataset, identifier="c"))
    assert {"malignant", "147", "399", "Images"} <= set(found)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in found


@given(most=st.floats(0.1, 1e9))
def test_ticks_of_counts_are_whole_few_and_round(most):
    ticks = whole_ticks(most)
    steps = set(np.diff(ticks).tolist())
    assert ticks[0] == 0 and len(ticks) <= 5 and ticks[-1] <= most
    assert len(steps) <= 1 and all(str(step).strip("0") in ("1", "2", "5") for step in steps)
    assert most < 1 or len(ticks) >= 2


@pytest.mark.parametrize("is_wide", [True, False])
def test_bars_of_splits_are_as_long_as_their_counts(is_wide):
    drawn = split_counts_figure(["<b>", "b"], ["train", "val"], [[20, 25], [10, 0]], identifier="s", is_wide=is_wide)
    lengths = [float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)"', drawn)]
    assert lengths == pytest.approx([0.8 * max(lengths), 0.4 * max(lengths), max(lengths), 0], abs=0.01)
    assert {"&lt;b&gt;", "train", "val", "20", "25", "10", "0", "Images"} <= set(texts(drawn))


def test_many_classes_become_a_profile(ranking):
    names = [f"class {index}" for index in range(31)]
    dataset = ranking.dataset.model_copy(update={"class_names": names, "class_counts": list(range(31))})
    found = texts(class_balance_figure(dataset, identifier="c"))
    assert "Classes, largest first" in found
    assert not set(names) & set(found)


def test_split_comparison_shows_both_accuracies(examples):
    found = texts(split_figure(examples.demo_record().split_comparison, identifier="s"))
    assert {"0.962", "0.914", "Accuracy of a linear probe (fraction)"} <= set(found)
