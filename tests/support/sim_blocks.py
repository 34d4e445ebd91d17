"""A network of two blocks for ρSIM, with what a block may do: a stride, work in place, run again, be checkpointed."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    """Two convolutions; the first works in place on what it takes where it is told to."""

    def __init__(self, width_in=4, width_out=6, stride=1, in_place=False):
        super().__init__()
        self.first = nn.Conv2d(width_in, width_out, 3, stride, 1)
        self.second = nn.Conv2d(width_out, width_out, 1)
        self.in_place = in_place

    def forward(self, maps):
        maps = maps.relu_() if self.in_place else maps.relu()
        return self.second(self.first(maps).tanh())


class Network(nn.Module):
    def __init__(self, *, stride=1, in_place=False, times=1, repeat=False):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 1)
        self.blocks = nn.ModuleList([Block(4, 6, stride, in_place), Block(6, 6)])
        self.times, self.repeat = times, repeat

    def forward(self, images):
        maps = self.stem(images)
        maps = checkpoint(self.blocks[0], maps, use_reentrant=False) if self.repeat else self.blocks[0](maps)
        for _ in range(self.times):
            maps = self.blocks[1](maps)
        return maps.mean((2, 3))


def network(**options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Network(**options).double()


def images(count=3, size=6, seed=0):
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
