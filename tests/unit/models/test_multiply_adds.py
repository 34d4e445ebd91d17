"""#FLOPs against counts by hand."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from crossgraft.models.multiply_adds import forward_multiply_adds, multiply_adds


def test_a_small_cnn_is_counted_as_by_hand():
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False),  # 16 × 16 → 8 × 8
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1, groups=8),  # one channel at a time
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 5),
    )
    network.train()
    network[2].eval()
    images, drawn, statistics = torch.zeros(1, 3, 16, 16), torch.get_rng_state(), network[1].running_mean.clone()
    found = forward_multiply_adds(network, lambda: network(images))
    assert found == 8 * 8 * 8 * (3 * 3 * 3) + 8 * 8 * 8 * (3 * 3) + 8 * 5
    assert network[0].training and not network[2].training  # modes are as they were
    assert torch.equal(network[1].running_mean, statistics) and torch.equal(torch.get_rng_state(), drawn)
    assert multiply_adds(lambda: network(images.expand(4, -1, -1, -1))) == 4 * found


class Block(nn.Module):
    """A pre-norm block of a vision transformer, with torch's own attention."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, tokens):
        images, number, width = tokens.shape
        qkv = self.qkv(self.norm(tokens)).reshape(images, number, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*qkv.unbind())
        tokens = tokens + self.out(mixed.transpose(1, 2).reshape(images, number, width))
        return tokens + self.mlp(self.norm2(tokens))


@pytest.mark.parametrize("has_graph", [True, False])
def test_a_block_of_a_transformer_is_counted_with_its_attention(has_graph):
    width, number, tokens = 16, 10, torch.zeros(1, 10, 16)
    by_hand = number * width * (3 * width + width + 8 * width) + 2 * number * number * width
    block, of_torch = Block(width, heads=4), nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
    for network in (block, of_torch.eval()):  # in eval mode the second has a kernel of its own, with the whole layer
        with torch.set_grad_enabled(has_graph):
            assert multiply_adds(lambda network=network: network(tokens)) == by_hand
    assert torch.backends.mha.get_fastpath_enabled()


def test_random_numbers_that_are_drawn_meanwhile_leave_no_trace():
    network, before = nn.Sequential(nn.Linear(4, 4), nn.Dropout()), torch.get_rng_state()
    assert multiply_adds(lambda: network(torch.zeros(1, 4))) == 16
    assert torch.equal(torch.get_rng_state(), before)
