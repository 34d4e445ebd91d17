"""The ranking figure shows every model once, in order, and joins what is not separable."""

from __future__ import annotations

import re

import pytest

from crossgraft.rank.plots import _lanes, inseparable_runs, ranking_figure
from crossgraft.rank.record import RankRow


def rows(*not_separable_from: list[int]) -> list[RankRow]:
    return [
        RankRow(model=f"m{rank}", role="candidate", rank=rank, not_separable_from=others)
        for rank, others in enumerate(not_separable_from, start=1)
    ]


def test_runs_hold_only_rows_of_which_no_two_are_separable():
    # 1 and 3 are separable although both are not separable from 2.
    assert inseparable_runs(rows([2], [1, 3], [2])) == [(0, 1), (1, 2)]
    assert inseparable_runs(rows([2, 3], [1, 3], [1, 2])) == [(0, 2)]
    assert inseparable_runs(rows([], [], [])) == []
    assert inseparable_runs(rows([3], [], [1])) == []


def test_controls_join_nothing():
    control = RankRow(model="c", role="random weights", rank=None, not_separable_from=[])
    assert inseparable_runs([*rows([2], [1]), control]) == [(0, 1)]


def test_overlapping_runs_get_lanes_of_their_own():
    assert _lanes([(0, 2), (1, 3), (3, 4)]) == [[(0, 2), (3, 4)], [(1, 3)]]


@pytest.mark.parametrize("is_wide", [True, False])
def test_every_model_is_named_in_order(ranking, is_wide):
    svg = ranking_figure(ranking, "logme", identifier="r", is_wide=is_wide)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    for row in ranking.ranking("logme").rows:
        assert any(text[:8] == row.model[:8] for text in texts)
    ranks = [int(text) for text in texts if text.isdigit()]
    assert ranks == list(range(1, 13))
    assert "best of 75 shuffled-label values" in texts
    assert "LogME (larger is better)" in texts


def test_a_model_without_a_value_keeps_its_row(ranking):
    svg = ranking_figure(ranking, "leep", identifier="r")
    assert svg.count(">no value<") == 1


def test_controls_are_hollow(ranking):
    svg = ranking_figure(ranking, "logme", identifier="r")
    hollow = [
        style for style in re.findall(r'<use [^>]*style="([^"]*)"', svg) if re.search("fill: none|fill-opacity: 0(;|$)", style)
    ]
    assert len(hollow) == 3 + 1  # three controls and the legend


def test_without_intervals_shuffled_values_and_controls(ranking):
    candidates = [model for model in ranking.models if model.role == "candidate"]
    order = ranking.ranking("linear_probe")
    bare = ranking.model_copy(
        update={
            "models": candidates,
            "rankings": [
                order.model_copy(
                    update={"rows": [row for row in order.rows if row.rank], "best_shuffled": None, "num_shuffled": 0}
                )
            ],
        }
    )
    svg = ranking_figure(bare, "linear_probe", identifier="r")
    assert "shuffled" not in svg
    assert ">control<" not in svg


def test_a_ranking_without_any_value_still_draws(ranking):
    cells = [cell.model_copy(update={"value": None, "low": None, "high": None}) for cell in ranking.cells]
    svg = ranking_figure(ranking.model_copy(update={"cells": cells}), "logme", identifier="r")
    assert svg.count(">no value<") == 15
