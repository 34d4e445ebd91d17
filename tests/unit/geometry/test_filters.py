"""Likeness to Gabor filters: 1 of true ones, low of noise, none below 7×7."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from crossgraft.errors import DataError, UsageError
from crossgraft.geometry import filters as module
from crossgraft.geometry import first_layer_filters, gabor_r2


def gabor(angle, frequency, phase, *, sigma=2.0, gamma=0.8, side=7, x0=3.3, y0=2.6):
    ys, xs = np.mgrid[:side, :side]
    u = (xs - x0) * math.cos(angle) + (ys - y0) * math.sin(angle)
    v = (ys - y0) * math.cos(angle) - (xs - x0) * math.sin(angle)
    return np.exp(-(u**2 + gamma**2 * v**2) / (2 * sigma**2)) * np.cos(2 * math.pi * frequency * u + phase)


@pytest.mark.parametrize(("angle", "frequency", "phase"), [(0.0, 0.15, 0.0), (0.7, 0.22, 1.2), (2.4, 0.3, -0.6)])
def test_a_gabor_filter_is_found_whatever_its_place_scale_and_offset(angle, frequency, phase):
    filter_ = gabor(angle, frequency, phase)
    assert gabor_r2(filter_) > 0.995
    assert gabor_r2(-3e-4 * filter_ + 5) == pytest.approx(gabor_r2(filter_), abs=1e-3)


def test_channels_that_share_a_pattern_count_as_one_filter_and_noise_is_far_from_it(monkeypatch):
    monkeypatch.setattr(module, "NUM_RANDOM_FILTERS", 4)
    module._of_random_filters.cache_clear()
    network = nn.Sequential(nn.Conv2d(3, 3, 7))
    weight = np.zeros((3, 3, 7, 7))
    weight[0] = np.array([1.0, -0.5, 2.0])[:, None, None] * gabor(0.5, 0.2, 0.3)
    weight[1] = np.random.default_rng(0).standard_normal((3, 7, 7))
    weight[2] = np.array([1.0, 2.0, 3.0])[:, None, None]
    network[0].weight.data = torch.from_numpy(weight).float()
    found = first_layer_filters(network)
    assert found.layer == "0" and found.num_flat == 1
    assert found.r2[0] > 0.995 and found.r2[1] < 0.7 and math.isnan(found.r2[2])
    assert found.gabor_likeness == pytest.approx(found.r2[:2].mean())
    assert 0.05 < found.random_likeness < 0.6
    module._of_random_filters.cache_clear()


def test_small_filters_are_not_assessable_and_what_is_no_convolution_is_refused():
    found = first_layer_filters(nn.Sequential(nn.Conv2d(3, 4, 3)))
    assert found.gabor_likeness is None and "3×3 pixels; below 7×7" in found.reason
    assert found.filters.shape == (4, 3, 3, 3)
    with pytest.raises(UsageError, match="no two-dimensional convolution"):
        first_layer_filters(nn.Linear(3, 3))
    with pytest.raises(UsageError, match=r"stem is no two-dimensional convolution .* Known: 0"):
        first_layer_filters(nn.Sequential(nn.Conv2d(3, 4, 3)), layer="stem")
    broken = nn.Sequential(nn.Conv2d(3, 4, 7))
    broken[0].weight.data[0] = math.nan
    with pytest.raises(DataError, match="0 holds NaN"):
        first_layer_filters(broken)
