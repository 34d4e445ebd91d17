"""What is drawn and written of a measure: fewer points, nothing that is not finite."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from crossgraft.geometry import AttentionMaps, TsneMap, distances_to_centre, feature_map, first_layer_filters
from crossgraft.geometry.attention_map import attention_record
from crossgraft.geometry.feature_map import feature_map_record, tsne_row
from crossgraft.geometry.filters import filter_row

DRAWS = np.random.default_rng(0)


def test_a_start_of_zeros_has_no_relative_distance():
    networks = {name: nn.Linear(2, 2) for name in ("a", "b", "zero")}
    with torch.no_grad():
        for weight in networks["zero"].parameters():
            weight.zero_()
    start = networks.pop("zero")
    found = distances_to_centre(networks, start)
    assert [each.relative for each in found.to_start.values()] == [None, None]
    assert found.centre_to_start.num_weights == 6


def test_maps_keep_at_most_300_points_and_a_density_of_largest_one():
    one = DRAWS.standard_normal((350, 3))
    found = feature_map_record(feature_map({"a": one, "b": one + 1, "flat": np.ones((350, 3))}), images="test images")
    assert [len(row.points) for row in found.networks] == [300, 300, 300]
    assert max(map(max, found.networks[0].density)) == 1
    assert found.networks[2].density is None and found.num_images == 350
    assert found.networks[0].overlap == pytest.approx(1)
    flat = TsneMap(None, None, None, None, 13.0, "flat gives nearly all images the same features")
    assert tsne_row("flat", flat).points == []


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
    row = filter_row("net", first_layer_filters(nn.Sequential(convolution)))
    assert row.num_flat == 1 and row.r2[1] is None and row.random_likeness == 0.3
    assert max(abs(value) for line in row.patterns[0] for value in line) == 1
    assert all(math.isfinite(value) for line in row.patterns[1] for value in line)
