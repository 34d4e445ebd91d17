"""Translation with ρSIM: cats into dogs by CUT, as in Table 6 and Fig. 4 of Self Identity Mapping, at 32 pixels.

    python examples/sim/translation.py FILES docs/results/sim-other-tasks/translation.csv

Of the cats and dogs of CIFAR-10 (``cifar10_jpeg_5000_1000.npz``), 300 of each are trained on, and as many others are
measured. A small generator and a patch discriminator (least squares) learn without pairs; what holds on to the cat is

- ``without``: nothing, the GAN alone,
- ``patch_nce``: PatchNCE, as in CUT (Park et al. 2020), with the same for dogs that are to stay dogs,
- ``rho_sim`` or its ``placebo``: ρSIM on the blocks of the generator, in its place.

Measured with the ResNet-56 of CIFAR-10 (``cifar10_resnet56.safetensors`` in the folder ``weights`` beside FILES): the Fréchet
distance of its features, which is no FID, from translated cats to dogs, and the average precision of "dog" where translated cats
stand among cats as they are. *Grey values kept* is the correlation of a cat and what it became, at 8 × 8 pixels. Beside the
table, a picture shows the features of each generator.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from arms import TRIVIAL, Measured, Table, parameters_of, read_command, sim_of
from matplotlib.figure import Figure
from safetensors.torch import load_file
from sklearn.metrics import average_precision_score
from torch import Tensor, nn
from torch.nn import functional

from crossgraft.seeding import torch_generator

sys.path.append(str(Path(__file__).resolve().parents[1] / "own_models"))
from cifar_resnet import CifarResNet, resnet56

DATA, NETWORK = "cats → dogs", "ResNet generator"
NCE = "patch_nce"
TRANSLATIONS = ("without", NCE, "rho_sim", "placebo")
CAT, DOG = 3, 5
BATCH_SIZE = 8
TEMPERATURE = 0.07
NUM_PATCHES = 64


class Pets(NamedTuple):
    """Images from −1 to 1, (n, 3, 32, 32): to train on, and others to measure."""

    cats: Tensor
    dogs: Tensor
    other_cats: Tensor
    other_dogs: Tensor


def read_pets(files: Path, num_train: int) -> Pets:
    """The others are from the published training and test part alike."""
    with np.load(files / "cifar10_jpeg_5000_1000.npz") as arrays:
        images = np.concatenate([arrays["train_images"], arrays["test_images"]])
        labels = np.concatenate([arrays["train_labels"], arrays["test_labels"]]).ravel()
    cats, dogs = (torch.tensor(images[labels == kind]).movedim(-1, 1) / 127.5 - 1 for kind in (CAT, DOG))
    return Pets(cats[:num_train], dogs[:num_train], cats[num_train:], dogs[num_train:])


# The networks


class Layer(nn.Sequential):
    """One convolution, and what follows it in generators."""

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1, scale: int = 1) -> None:
        larger = [nn.Upsample(scale_factor=scale)] if scale > 1 else []
        convolution = nn.Conv2d(in_channels, out_channels, 3, stride, padding=1, padding_mode="reflect")
        super().__init__(*larger, convolution, nn.InstanceNorm2d(out_channels), nn.ReLU())


class Residual(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(Layer(channels, channels), *[*Layer(channels, channels)][:2])

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x)


class Painter(nn.Module):
    """From features to an image."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, 3, 3, padding=1, padding_mode="reflect")

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(x).tanh()


class Generator(nn.Module):
    """Half the size, some residual blocks, and back; its blocks are what ρSIM reconstructs."""

    ENCODER = (0, 1, 3, 4)
    """Blocks whose features PatchNCE compares, beside the pixels."""
    SHOWN: Mapping[str, int] = {"first": 0, "middle": 3, "last but one": 5}
    """Blocks of the picture."""

    def __init__(self, width: int = 16, num_residual: int = 3) -> None:
        super().__init__()
        inner = [Residual(2 * width) for _ in range(num_residual)]
        self.blocks = nn.ModuleList(
            [Layer(3, width), Layer(width, 2 * width, stride=2), *inner, Layer(2 * width, width, scale=2), Painter(width)]
        )

    def forward(self, images: Tensor) -> Tensor:
        for block in self.blocks:
            images = block(images)
        return images

    def features(self, images: Tensor, places: tuple[int, ...]) -> list[Tensor]:
        """What these blocks give."""
        given = list[Tensor]()
        for block in self.blocks[: max(places) + 1]:
            images = block(images)
            given.append(images)
        return [given[place] for place in places]


def patch_discriminator(width: int = 32) -> nn.Sequential:
    """One number for each of 4 × 4 patches, which overlap: large for dogs."""
    return nn.Sequential(
        nn.Conv2d(3, width, 4, 2, padding=1), nn.LeakyReLU(0.2),
        nn.Conv2d(width, 2 * width, 4, 2, padding=1), nn.BatchNorm2d(2 * width), nn.LeakyReLU(0.2),
        nn.Conv2d(2 * width, 4 * width, 4, 2, padding=1), nn.BatchNorm2d(4 * width), nn.LeakyReLU(0.2),
        nn.Conv2d(4 * width, 1, 3, padding=1),
    )  # fmt: skip


class PatchNCE(nn.Module):
    """A patch of the result is to be more like the same patch of the image than like others of it, in the generator's eyes."""

    def __init__(self, generator: Generator, rng: torch.Generator, width: int = 64) -> None:
        super().__init__()
        self.generator, self.rng = [generator], rng  # a list, so that its parameters are not those of this module
        with torch.no_grad():
            channels = [each.shape[1] for each in self._features(torch.zeros(1, 3, 32, 32))]
        heads = (nn.Sequential(nn.Linear(each, width), nn.ReLU(), nn.Linear(width, width)) for each in channels)
        self.heads = nn.ModuleList(heads)

    def _features(self, images: Tensor) -> list[Tensor]:
        return [images, *self.generator[0].features(images, Generator.ENCODER)]

    def forward(self, images: Tensor, results: Tensor) -> Tensor:
        losses = list[Tensor]()
        for head, of_image, of_result in zip(self.heads, self._features(images), self._features(results), strict=True):
            chosen = torch.randperm(of_image[0, 0].numel(), generator=self.rng)[:NUM_PATCHES]
            keys, queries = (
                functional.normalize(head(each.flatten(2)[:, :, chosen].movedim(1, 2)), dim=2) for each in (of_image, of_result)
            )
            likeness = queries @ keys.detach().movedim(1, 2) / TEMPERATURE  # (images, patches of the result, of the image)
            same = torch.arange(len(chosen)).expand(len(images), -1)
            losses.append(functional.cross_entropy(likeness.flatten(0, 1), same.flatten()))
        return torch.stack(losses).mean()


# Training


def batches(pets: Pets, seed: int, num_steps: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Cats and dogs drawn anew for each step, half of them mirrored."""
    rng = torch_generator(seed, "batches")
    for _ in range(num_steps):
        drawn = list[Tensor]()
        for animals in (pets.cats, pets.dogs):
            chosen = animals[torch.randint(len(animals), (BATCH_SIZE,), generator=rng)]
            is_mirrored = torch.rand(BATCH_SIZE, 1, 1, 1, generator=rng) < 0.5
            drawn.append(torch.where(is_mirrored, chosen.flip(-1), chosen))
        yield drawn[0], drawn[1]


def train_generator(pets: Pets, arm: str, seed: int, num_steps: int) -> Generator:
    """One training."""
    torch.manual_seed(seed)
    generator, discriminator = Generator(), patch_discriminator()
    sim = sim_of("without" if arm == NCE else arm, generator, pets.cats[:2], seed=seed)
    nce = PatchNCE(generator, torch_generator(seed, "patches")) if arm == NCE else None
    moved = [*parameters_of(generator, sim), *(nce.parameters() if nce else ())]
    of_generator = torch.optim.Adam(moved, lr=1e-3, betas=(0.5, 0.999))
    of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=5e-4, betas=(0.5, 0.999))
    for cats, dogs in batches(pets, seed, num_steps):
        results = generator(cats)
        real, made = discriminator(dogs), discriminator(results.detach())
        of_discriminator.zero_grad()
        (((real - 1).square().mean() + made.square().mean()) / 2).backward()
        of_discriminator.step()
        loss = (discriminator(results) - 1).square().mean() + sim.loss()
        if nce:
            loss = loss + (nce(cats, results) + nce(dogs, generator(dogs))) / 2
        of_generator.zero_grad()
        loss.backward()
        of_generator.step()
    sim.detach()
    return generator.eval()


# Its measure


class Judge:
    """The ResNet-56 that tells the ten classes of CIFAR-10 apart, and what it sees in the images that are not trained on."""

    def __init__(self, files: Path, pets: Pets) -> None:
        self.network: CifarResNet = resnet56().eval()
        weights = load_file(files.parent / "weights" / "cifar10_resnet56.safetensors")
        self.network.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
        self.last, self.network.linear = self.network.linear, nn.Identity()
        self.cats, self.dogs = self.features(pets.other_cats), self.features(pets.other_dogs)

    @torch.no_grad()
    def features(self, images: Tensor) -> np.ndarray:
        """Of images from −1 to 1; (n, 64)."""
        mean, std = (torch.tensor(CifarResNet.default_cfg[name])[:, None, None] for name in ("mean", "std"))
        return torch.cat([self.network(((part + 1) / 2 - mean) / std) for part in images.split(100)]).double().numpy()

    @torch.no_grad()
    def of_made(self, made: np.ndarray, dogs: np.ndarray) -> Measured:
        """How near features are to those of dogs, and how well "dog" tells them from those of cats."""
        beside = torch.tensor(np.concatenate([made, self.cats]))
        how_dog = self.last(beside.float()).softmax(dim=1)[:, DOG]
        is_made = np.repeat([1, 0], [len(made), len(self.cats)])
        return {
            "Fréchet distance": frechet_distance(made, dogs),
            "AP of dog": float(average_precision_score(is_made, how_dog.double().numpy())),
        }


def frechet_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Of two normal distributions with the means and covariances of these features: |μ − ν|² + tr(Σ + Τ − 2 (ΣΤ)^½)."""
    means = ((first.mean(axis=0) - second.mean(axis=0)) ** 2).sum()
    one, other = np.cov(first.T), np.cov(second.T)
    roots = np.sqrt(np.linalg.eigvals(one @ other).real.clip(min=0))  # their sum is the trace of the root of the product
    return float(means + np.trace(one) + np.trace(other) - 2 * roots.sum())


def measured(results: Tensor, cats: Tensor, judge: Judge) -> Measured:
    """What became of the other cats, beside these cats and other dogs."""
    small = [functional.adaptive_avg_pool2d(each.mean(dim=1, keepdim=True), 8).flatten(1) for each in (results, cats)]
    kept = torch.stack([torch.corrcoef(torch.stack(pair))[0, 1] for pair in zip(*small, strict=True)])
    return {**judge.of_made(judge.features(results), judge.dogs), "grey values kept": kept.nan_to_num().mean().item()}


def translated(pets: Pets, judge: Judge, arm: str, seed: int, num_steps: int, kept: dict[str, Generator]) -> Measured:
    """Train, and measure; the first generator of each arm is kept for the picture."""
    generator = train_generator(pets, arm, seed, num_steps)
    kept.setdefault(arm, generator)
    with torch.no_grad():
        return measured(torch.cat([generator(part) for part in pets.other_cats.split(100)]), pets.other_cats, judge)


def floor(pets: Pets, judge: Judge, seed: int) -> Measured:
    """What dogs themselves would have: one half of all against the other, drawn by the seed."""
    dogs = np.concatenate([judge.features(pets.dogs), judge.dogs])
    first, second = np.array_split(dogs[torch.randperm(len(dogs), generator=torch_generator(seed, "halves")).numpy()], 2)
    return judge.of_made(first, second)


# Fig. 4


@torch.no_grad()
def colours_of(maps: Tensor) -> np.ndarray:
    """The first three principal components of what stands at each position, as red, green and blue."""
    rows = maps.movedim(1, -1).flatten(0, 2)
    centred = rows - rows.mean(dim=0)
    _, _, axes = torch.linalg.svd(centred, full_matrices=False)
    found = centred @ axes[:3].T
    low, high = found.quantile(0.02, dim=0), found.quantile(0.98, dim=0)
    return ((found - low) / (high - low + 1e-9)).clamp(0, 1).reshape(len(maps), *maps.shape[2:], 3).numpy()


@torch.no_grad()
def draw(cats: Tensor, generators: Mapping[str, Generator], file: Path) -> None:
    """A row for each arm: the result of each cat, and the features that its generator has of it."""
    heads = ["result", *Generator.SHOWN]
    figure = Figure(figsize=(0.8 * (1 + len(heads)) * len(cats), 0.95 * len(generators)), dpi=120, layout="constrained")
    panels = figure.subplots(len(generators), (1 + len(heads)) * len(cats), squeeze=False)
    for row, (arm, generator) in zip(panels, generators.items(), strict=True):
        pixels = [((each + 1) / 2).movedim(1, -1).numpy() for each in (cats, generator(cats))]
        features = [colours_of(each) for each in generator.features(cats, (*Generator.SHOWN.values(),))]
        for place, (axes, (cat, shown)) in enumerate(zip(row, product(range(len(cats)), [*pixels, *features]), strict=True)):
            axes.imshow(shown[cat])
            axes.set(xticks=[], yticks=[])
            if arm == next(iter(generators)):
                axes.set_title(["cat", *heads][place % (1 + len(heads))], fontsize=7)
        row[0].set_ylabel(arm, fontsize=8)
    figure.savefig(file)


def main() -> None:
    """Train what the table lacks."""
    asked = read_command(__doc__)
    num_train, num_steps = (4, 2) if asked.smoke else (300, 400)
    pets, table = read_pets(asked.files, num_train), Table(asked.out)
    judge = Judge(asked.files, pets)
    table.measure(DATA, "cats as they are", TRIVIAL, 0, partial(measured, pets.other_cats, pets.other_cats, judge))
    generators = dict[str, Generator]()
    for seed in range(asked.seeds):
        table.measure(DATA, "two halves of the dogs", "floor", seed, partial(floor, pets, judge, seed))
        for arm in TRANSLATIONS:
            table.measure(DATA, NETWORK, arm, seed, partial(translated, pets, judge, arm, seed, num_steps, generators))
    if generators:
        draw(pets.other_cats[:3], generators, asked.out.with_name(f"{asked.out.stem}-features.png"))


if __name__ == "__main__":
    main()
