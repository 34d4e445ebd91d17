"""Records of what was measured: the same numbers, fewer points, nothing that is not finite."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from crossgraft.errors import UsageError
from crossgraft.geometry import AttentionMaps, Sharpness, distances_to_centre, feature_map, first_layer_filters
from crossgraft.geometry.describe import (
    attention_record,
    distance_record,
    feature_map_record,
    filters_record,
    sharpness_record,
    tsne_record,
)
from crossgraft.geometry.feature_map import TsneMap

DRAWS = np.random.default_rng(0)


def rise(value, *, steps=1, rho=0.01):
    return Sharpness(value, 0.5, 2.0, 2 * rho, rho, steps, False, 20)


def test_sharpness_keeps_the_radius_and_refuses_to_mix_them():
    found = sharpness_record({"a": rise(0.02)}, {"a": rise(0.03, steps=10)}, {"a": rise(0.05)}, batch_size=16)
    (row,) = found.rows
    assert (row.one_step, row.many_steps, row.per_batch, row.first_order) == (0.02, 0.03, 0.05, 0.02)
    assert (found.rho, found.steps, found.num_images) == (0.01, 10, 20)
    with pytest.raises(UsageError, match="one radius alone"):
        sharpness_record({"a": rise(0.02)}, {"a": rise(0.03, rho=0.1)}, batch_size=16)
    with pytest.raises(UsageError, match="at least one"):
        sharpness_record({}, {}, batch_size=16)


def test_a_start_of_zeros_has_no_relative_distance():
    networks = {name: nn.Linear(2, 2) for name in ("a", "b", "zero")}
    with torch.no_grad():
        for weight in networks["zero"].parameters():
            weight.zero_()
    start = networks.pop("zero")
    found = distance_record(distances_to_centre(networks, start), start="zero")
    assert [row.to_start.relative for row in found.rows] == [None, None]
    assert found.num_weights == 6 and found.batch_norm is None


def test_maps_keep_at_most_300_points_and_a_density_of_largest_one():
    one = DRAWS.standard_normal((350, 3))
    found = feature_map_record(feature_map({"a": one, "b": one + 1, "flat": np.ones((350, 3))}), images="test images")
    assert [len(row.points) for row in found.networks] == [300, 300, 300]
    assert max(map(max, found.networks[0].density)) == 1
    assert found.networks[2].density is None and found.num_images == 350
    assert found.networks[0].overlap == pytest.approx(1)
    maps = {"flat": TsneMap(None, None, None, None, 13.0, "flat gives nearly all images the same features")}
    assert tsne_record(maps, class_name="c", num_images=40, seed=0).networks[0].points == []


def test_attention_is_compared_over_all_images_and_drawn_of_some():
    maps = [AttentionMaps(DRAWS.random((6, 3, 4)), np.zeros((6, 8, 8)), "attn", "class token", False) for _ in range(2)]
    found = attention_record({"a": maps[0], "b": maps[1]}, reference="a", images="test images", drawn=[4, 1])
    assert found.num_images == 6 and found.drawn == [4, 1]
    assert found.networks[0].overlap is None and 0 <= found.networks[1].overlap <= 1
    assert max(map(max, found.networks[1].attention[0])) == 1
    same = attention_record({"a": maps[0], "b": maps[0]}, reference="a", images="test images", drawn=[4])
    assert same.networks[1].overlap_low is None and same.networks[1].no_interval_reason  # every overlap is 1
    low, high = maps[1].attention[4].min(), maps[1].attention[4].max()
    assert found.networks[1].attention[0][0][0] == pytest.approx((maps[1].attention[4, 0, 0] - low) / (high - low), abs=1e-3)


def test_filters_keep_their_patterns_and_say_what_is_flat(monkeypatch):
    monkeypatch.setattr("crossgraft.geometry.filters._of_random_filters", lambda *_: 0.3)
    convolution = nn.Conv2d(1, 2, 7)
    convolution.weight.data[1] = 2.0
    (row,) = filters_record({"net": first_layer_filters(nn.Sequential(convolution))}).networks
    assert row.num_flat == 1 and row.r2[1] is None and row.random_likeness == 0.3
    assert max(abs(value) for line in row.patterns[0] for value in line) == 1
    assert all(math.isfinite(value) for line in row.patterns[1] for value in line)
