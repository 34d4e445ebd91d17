"""Networks that were timed remember nothing of it, and work while they are."""

import threading
from functools import partial

import pytest
import torch
from torch import nn

from crossgraft.models.taps import state_kept


class Notebook:
    """What a hook writes to and the network reads."""

    def __init__(self):
        self.pages = []

    def __call__(self, layer, given, output):
        self.pages.append(output)

    def write(self, layer, given, output):
        self(layer, given, output)


class Noted(nn.Module):
    """Its features are what a function wrote down."""

    def __init__(self, way):
        super().__init__()
        self.body, self.notebook = nn.Conv2d(3, 4, 3), Notebook()
        own = self.notebook
        if way == "replaced":
            forward = self.body.forward
            self.body.forward = lambda images: own.pages.append(forward(images))
        else:
            hooks = {
                "object": own,
                "method": own.write,
                "closure": lambda *seen: own(*seen),
                "partial": partial(Notebook.write, own),
            }
            self.body.register_forward_hook(hooks[way])

    def forward(self, images):
        self.notebook.pages.clear()
        self.body(images)
        return self.notebook.pages[-1].mean((2, 3))


@pytest.mark.parametrize("way", ["object", "method", "closure", "partial", "replaced"])
def test_what_functions_write_is_read_while_the_state_is_kept(way):
    network, images = Noted(way), torch.rand(2, 3, 8, 8)
    with state_kept(network):
        assert network(images).shape == (2, 4)
    assert network(images).shape == (2, 4)


class Shared(nn.Module):
    """Two of them use one object that cannot be copied."""

    def __init__(self, own):
        super().__init__()
        self.own = own

    def forward(self, images):
        with self.own.lock:
            return images * self.own.factor


def test_what_cannot_be_copied_stays_whole_where_several_layers_share_it():
    own = Notebook()
    own.lock, own.factor = threading.Lock(), 2
    network = nn.Sequential(Shared(own), Shared(own))
    with state_kept(network):
        assert network(torch.ones(1)).item() == 4


class First(nn.Module):
    """Does something once, before its first images."""

    def __init__(self):
        super().__init__()
        self.begun, self.handle = 0, self.register_forward_pre_hook(First.begin)

    def begin(self, given):
        self.handle.remove()
        self.begun += 1

    def forward(self, images):
        return images + self.begun


def test_hooks_that_are_gone_after_the_first_images_come_back():
    network = First()
    with state_kept(network):
        assert [network(torch.zeros(1)).item() for _ in range(2)] == [1, 1]
    assert network.begun == 0
    assert [network(torch.zeros(1)).item() for _ in range(2)] == [1, 1]


def test_lazy_layers_know_their_width_afterwards():
    layers = nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.LazyInstanceNorm2d(affine=True), nn.Flatten(), nn.LazyLinear(5)
    network, images = nn.Sequential(*layers).eval(), torch.rand(2, 3, 8, 8)
    with state_kept(network):
        before = network(images)
    torch.testing.assert_close(network(images), before)
