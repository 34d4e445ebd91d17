"""Networks whose LoRA PEFT writes like we do, and layers that it treats differently; the same weights on every call."""

import torch
from torch import nn

from crossgraft.models.adapted import add_adapters
from crossgraft.models.adapters import AdapterRecipe, adapters_of
from support.small_classifiers import SIZE, _build, wrap


class Fancy(nn.Conv2d):
    """Another constructor than that of Conv2d."""

    def __init__(self, channels):
        super().__init__(channels, channels, 1)


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.last, self.other = nn.Conv2d(6, 6, 1), nn.Conv2d(6, 6, 1)

    def forward(self, maps):
        return torch.tanh(self.last(maps)) + torch.tanh(self.other(maps))


class Grouped(nn.Module):
    """One layer of each kind, in a row."""

    def __init__(self, num_classes=5):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 4, 4)
        self.grouped = nn.Conv2d(6, 8, 3, padding=1, groups=2)
        self.back = nn.Conv2d(8, 6, 1)
        self.inner = Inner()
        self.dilated = nn.Conv2d(6, 6, 3, padding=2, dilation=2)
        self.reflecting = nn.Conv2d(6, 6, 3, padding=1, padding_mode="reflect")
        self.fancy = Fancy(6)
        self.transposed = nn.ConvTranspose2d(6, 6, 2, 2)
        self.last = nn.Conv2d(6, 6, 1)
        self.unused = nn.Linear(6, 6)
        self.fc = nn.Linear(6, num_classes)

    def forward(self, images):
        maps = self.back(torch.tanh(self.grouped(torch.tanh(self.stem(images)))))
        for layer in (self.inner, self.dilated, self.reflecting, self.fancy, self.transposed, self.last):
            maps = torch.tanh(layer(maps)) + maps if layer is not self.transposed else layer(maps)
        return self.fc(maps.mean((2, 3)))


def drawn(build):
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        network = build()
        for layer in network.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.running_mean.normal_(0, 0.2)
                layer.running_var.uniform_(0.5, 2)
    return network.eval()


def grouped_network(num_classes=5):
    return drawn(lambda: Grouped(num_classes))


def vit():
    return drawn(lambda: _build("vit"))


def images(number=4, size=SIZE):
    return torch.randn(number, 3, size, size, generator=torch.Generator().manual_seed(5))


def plain(network, size=SIZE):
    """A classifier without adapters; weights of a network that was built outside are drawn again, always the same."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.2, generator=generator)
            else:
                parameter.fill_(0.1)
    return wrap(network, size)


def with_adapters(classifier, recipes):
    """Adapters and head as after training: none of their weights is zero."""
    add_adapters(classifier, recipes, seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for _, adapter in adapters_of(classifier).values():
            for parameter in adapter.parameters():
                parameter.normal_(0, 0.3, generator=generator)
        classifier.head.weight.normal_(0, 0.5, generator=generator)
        classifier.head.bias.normal_(0, 0.5, generator=generator)
    return classifier


def adapted(network, layers, *, r=2, alpha=None, size=SIZE, **options):
    """LoRA beside these layers of the original network."""
    alpha = float(r if alpha is None else alpha)
    recipes = [AdapterRecipe("lora", f"body.{name}", {"r": r, "alpha": alpha, **options}) for name in layers]
    return with_adapters(plain(network, size), recipes)
