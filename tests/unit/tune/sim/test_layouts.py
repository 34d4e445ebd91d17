"""Where channels are, and how an input comes to the positions of an output."""

import pytest
import torch
from timm.layers import LayerNorm2d
from torch import nn

from crossgraft.tune.sim import RhoSim
from crossgraft.tune.sim.layouts import LAYOUTS, batch_first, layout_of, on_grid, widths_of

CONVOLUTION = nn.Sequential(nn.Conv2d(6, 8, 3), nn.Linear(7, 7))
MIXING = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 8))


@pytest.mark.parametrize(
    ("block", "shape", "expected"),
    [
        (CONVOLUTION, (2, 6, 7, 7), "nchw"),
        (MIXING, (2, 5, 5, 6), "nhwc"),
        (MIXING, (2, 5, 8), "nlc"),
        (nn.Conv1d(6, 8, 3), (2, 6, 9), "ncl"),
        (nn.Sequential(nn.Linear(8, 8), nn.Conv2d(6, 6, 3)), (2, 6, 8), "nlc"),  # six tokens, and a convolution inside
        (nn.GroupNorm(2, 6), (2, 6, 9), "ncl"),
        (nn.Conv3d(6, 8, 3), (2, 6, 4, 4, 4), "ncdhw"),
        (MIXING, (2, 3, 4, 4, 6), "ndhwc"),
        (nn.LSTM(6, 8), (9, 2, 6), "lnc"),
        (nn.LSTM(6, 8, batch_first=True), (2, 9, 6), "nlc"),
        (nn.LSTM(6, 8, batch_first=True, bidirectional=True), (2, 9, 16), "nlc"),
        (nn.TransformerEncoderLayer(6, 2, 8), (9, 2, 6), "lnc"),
        (nn.MultiheadAttention(6, 2, batch_first=True), (2, 9, 6), "nlc"),
        # as wide as high: the first layer decides
        (nn.Sequential(nn.LayerNorm(6), nn.Conv2d(6, 6, 3)), (2, 6, 6, 6), "nhwc"),
        (nn.Sequential(nn.Conv2d(6, 6, 3), nn.LayerNorm(6)), (2, 6, 6, 6), "nchw"),
        (nn.Sequential(LayerNorm2d(6), nn.Conv2d(6, 6, 3), nn.Linear(6, 6)), (2, 6, 6, 6), "nchw"),
        (nn.ReLU(), (2, 9, 6), "nlc"),
        (nn.ReLU(), (2, 9, 6, 6), "nchw"),
        (nn.ReLU(), (2, 9, 6, 6, 6), "ncdhw"),
    ],
)
def test_the_layers_of_a_block_say_where_channels_are(block, shape, expected):
    assert layout_of(widths_of(block), shape, "auto") == LAYOUTS[expected]


def test_a_layout_that_is_given_counts_where_it_fits():
    widths = widths_of(CONVOLUTION)
    assert layout_of(widths, (2, 6, 7, 7), "nhwc") == LAYOUTS["nhwc"]
    assert layout_of(widths, (2, 6, 7), "nhwc") is None
    assert layout_of(widths, (2, 6), "auto") is None


def test_tokens_first_are_brought_behind_the_batch():
    series = torch.arange(24).reshape(3, 2, 4)
    moved, axis = batch_first(series, LAYOUTS["lnc"])
    assert moved.shape == (2, 3, 4) and axis == 2
    assert torch.equal(moved[1, 2], series[2, 1])


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("channel_axis", [1, -1])
def test_a_coarser_grid_is_averaged_and_a_finer_one_interpolated(axes, channel_axis):
    maps = torch.arange(4.0).reshape(1, 1, 4, *[1] * (axes - 1)).expand(2, 3, *[4] * axes).movedim(1, channel_axis)
    axis = channel_axis % maps.ndim
    coarse, where = on_grid(maps, axis, (2,) * axes)
    assert coarse.shape[2:] == (2,) * axes and where == 1
    assert coarse.flatten(3 if axes > 1 else 2)[0, 0].flatten()[0] == 0.5
    fine, _ = on_grid(maps, axis, (8,) * axes)
    assert fine.shape[2:] == (8,) * axes and fine.mean().item() == pytest.approx(1.5)
    same, where = on_grid(maps, axis, (4,) * axes)
    assert same is maps and where == axis


def test_maps_and_tokens_meet_as_rows_of_tokens():
    maps = torch.randn(2, 3, 4, 4)
    tokens, axis = on_grid(maps, 1, (16,))
    assert axis == 1 and torch.equal(tokens, maps.flatten(2))
    assert on_grid(maps, 1, (5,))[0].shape == (2, 3, 5)


MAP = torch.arange(16.0).reshape(1, 1, 4, 4).expand(2, 3, 4, 4)
POOLED = torch.tensor([2.5, 4.5, 10.5, 12.5])
"""Means of its four quarters."""


def as_tokens(maps):
    return maps.flatten(2).transpose(1, 2)


def test_tokens_of_square_maps_are_averaged_as_maps():
    coarse, axis = on_grid(as_tokens(MAP), 2, (4,))
    assert axis == 1 and torch.equal(coarse[1, 2], POOLED)
    fine, _ = on_grid(as_tokens(MAP), 2, (64,))
    assert torch.equal(fine, on_grid(MAP, 1, (8, 8))[0].flatten(2))


def test_a_class_token_stays_in_front():
    class_token = torch.full((2, 1, 3), -1.0)
    coarse, _ = on_grid(torch.cat([class_token, as_tokens(MAP)], dim=1), 2, (5,))
    assert torch.equal(coarse[1, 2], torch.cat([torch.tensor([-1.0]), POOLED]))


def test_a_map_beside_tokens_says_how_they_lie():
    wide = torch.arange(32.0).reshape(1, 1, 4, 8).expand(2, 3, 4, 8)
    tokens, axis = on_grid(wide, 1, (8,))
    assert axis == 1 and torch.equal(tokens, on_grid(wide, 1, (2, 4))[0].flatten(2))
    maps, _ = on_grid(as_tokens(wide), 2, (2, 4))
    assert torch.equal(maps, on_grid(wide, 1, (2, 4))[0])
    assert torch.equal(on_grid(wide, 1, (7,))[0], on_grid(wide.flatten(2), 1, (7,))[0])  # no map of its proportions


def test_series_are_no_maps():
    series = MAP.flatten(2)
    assert torch.equal(on_grid(series, 1, (4,))[0][0, 0], series[0, 0].reshape(4, 4).mean(1))


class Attending(nn.Module):
    """A block around an attention that has its tokens first, with its own order of axes."""

    def __init__(self, *, transposes):
        super().__init__()
        self.norm, self.attention, self.transposes = nn.LayerNorm(6), nn.MultiheadAttention(6, 2), transposes

    def forward(self, tokens):
        """Of the tokens alone."""
        given = self.norm(tokens.transpose(0, 1) if self.transposes else tokens)
        said, _ = self.attention(given, given, given)
        return tokens + (said.transpose(0, 1) if self.transposes else said)


@pytest.mark.parametrize("transposes", [True, False])
def test_a_block_may_transpose_around_an_attention_with_the_tokens_first(transposes):
    """The 2 images must not be taken for tokens, of which there are 9; one order is undecided as long as both are as many."""
    network = nn.Sequential(Attending(transposes=transposes))
    sim = RhoSim(network, blocks="0", rho=1.0, example=torch.randn(4, 4, 6))
    assert network[0].attention._forward_pre_hooks
    for _ in range(2):
        network(torch.randn(*((2, 9) if transposes else (9, 2)), 6))
        (seen,) = sim._watch.seen
        assert seen.given.shape == seen.taken.shape == (2, 9, 6)
        sim.loss()
    assert not network[0].attention._forward_pre_hooks
