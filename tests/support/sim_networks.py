"""Nine small networks and tasks that ρSIM must go with as they are: name → network, what it takes, and its loss."""

import torch
from timm.models import VisionTransformer
from timm.models.resnet import BasicBlock, ResNet
from timm.models.swin_transformer import SwinTransformer
from torch import nn
from torch.nn import functional


class Halving(nn.Module):
    """Two convolutions and a step to half the size, as in a UNet."""

    def __init__(self, width_in, width_out, stride):
        super().__init__()
        self.first = nn.Conv2d(width_in, width_out, 3, stride, 1)
        self.second = nn.Conv2d(width_out, width_out, 3, padding=1)

    def forward(self, maps):
        return torch.relu(self.second(torch.relu(self.first(maps))))


class Doubling(nn.Module):
    """A step to twice the size, beside what the other half gave: it takes two tensors."""

    def __init__(self, width_in, width_out):
        super().__init__()
        self.up = nn.ConvTranspose2d(width_in, width_out, 2, 2)
        self.second = nn.Conv2d(2 * width_out, width_out, 3, padding=1)

    def forward(self, maps, beside):
        return torch.relu(self.second(torch.cat([self.up(maps), beside], 1)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([Halving(3, 8, 1), Halving(8, 16, 2), Halving(16, 16, 2)])
        self.up = nn.ModuleList([Doubling(16, 16), Doubling(16, 8)])
        self.mask = nn.Conv2d(8, 1, 1)

    def forward(self, images):
        first = self.down[0](images)
        second = self.down[1](first)
        maps = self.up[0](self.down[2](second), second)
        return self.mask(self.up[1](maps, first)).sigmoid()


def dice(masks, wanted):
    return 1 - 2 * (masks * wanted).sum() / (masks.sum() + wanted.sum())


class Generator(nn.Module):
    """Residual blocks between two pictures, as in CUT."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.blocks = nn.ModuleList([Halving(8, 8, 1), Halving(8, 8, 1)])
        self.last = nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, images):
        maps = self.first(images)
        for block in self.blocks:
            maps = maps + block(maps)
        return self.last(maps).tanh()


class Against(nn.Module):
    """The generator's loss against a fixed discriminator."""

    def __init__(self):
        super().__init__()
        self.judge = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.LeakyReLU(0.2), nn.Conv2d(8, 1, 3)).requires_grad_(False)

    def forward(self, pictures, wanted):
        return (self.judge(pictures) - 1).square().mean()


class Timed(nn.Module):
    """A dilated convolution over time with a norm, as in a TDNN."""

    def __init__(self, width, dilation):
        super().__init__()
        self.layer = nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation)
        self.norm = nn.BatchNorm1d(width)
        self.point = nn.Conv1d(width, width, 1)

    def forward(self, sounds):
        return sounds + self.point(torch.relu(self.norm(self.layer(sounds))))


class Spoken(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(10, 12, 5, padding=2)
        self.blocks = nn.Sequential(Timed(12, 1), Timed(12, 2))
        self.fc = nn.Linear(12, 4)

    def forward(self, sounds):
        return self.fc(self.blocks(self.first(sounds)).mean(2))


class Series(nn.Module):
    """A recurrent layer, which gives a tuple, and a transformer layer, with the tokens first."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(5, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
        self.back = nn.Linear(8, 5)

    def forward(self, series):
        return self.back(self.layer(self.rnn(series)[0]))


class Volumes(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv3d(1, 6, 3, padding=1), nn.ReLU(inplace=True), nn.Conv3d(6, 8, 3, 2, 1), nn.ReLU(inplace=True)
        )
        self.fc = nn.Linear(8, 3)

    def forward(self, volumes):
        return self.fc(self.layers(volumes).mean((2, 3, 4)))


class Beside(nn.Module):
    """A residual adapter on tokens of frozen features."""

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Linear(12, 4), nn.Linear(4, 12)

    def forward(self, tokens):
        return tokens + self.up(torch.relu(self.down(tokens)))


class FewShot(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = nn.Conv2d(3, 12, 4, 4).requires_grad_(False)
        self.adapter = Beside()
        self.fc = nn.Linear(12, 3)

    def forward(self, images):
        return self.fc(self.adapter(self.frozen(images).flatten(2).transpose(1, 2)).mean(1))


def classes(said, wanted):
    return functional.cross_entropy(said, wanted)


def drawn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def _of_classes(count, images=4):
    return torch.arange(images) % count


IMAGES = drawn(4, 3, 32, 32)
CASES = {
    "resnet": (
        lambda: ResNet(BasicBlock, layers=(1, 1, 1, 1), channels=(8, 16, 16, 24), num_classes=3, stem_width=8),
        drawn(4, 3, 64, 64),
        _of_classes(3),
        classes,
    ),
    "vit": (
        lambda: VisionTransformer(img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=2, num_classes=3),
        IMAGES,
        _of_classes(3),
        classes,
    ),
    "swin": (
        lambda: SwinTransformer(
            img_size=32, patch_size=4, embed_dim=8, depths=(2, 2), num_heads=(2, 2), window_size=4, num_classes=3
        ),
        IMAGES,
        _of_classes(3),
        classes,
    ),
    "segmentation": (UNet, IMAGES, (drawn(4, 1, 32, 32) > 0).float(), dice),
    "translation": (Generator, IMAGES, None, None),
    "sound": (Spoken, drawn(4, 10, 40), _of_classes(4), classes),
    "series": (Series, drawn(12, 4, 5), drawn(12, 4, 5), functional.mse_loss),
    "volumes": (Volumes, drawn(4, 1, 8, 8, 8), _of_classes(3), classes),
    "few-shot": (FewShot, IMAGES, _of_classes(3), classes),
}
"""Name → what builds the network, what it takes, what is wanted, and the loss."""
BLOCKS = {"series": [nn.LSTM, nn.TransformerEncoderLayer], "few-shot": "adapter", "volumes": nn.Conv3d}
"""Where the building blocks are not what one would reconstruct."""


def build(name):
    """Network, input, targets and loss; the same weights each time."""
    make, taken, wanted, loss = CASES[name]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = make()
        loss = Against() if loss is None else loss
    return network, taken, wanted, loss
