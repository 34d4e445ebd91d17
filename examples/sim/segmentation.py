"""Segmentation with ρSIM: a UNet with the heads FCN, DeepLabV3 and PSP, as in Table 7 of Self Identity Mapping.

    python examples/sim/segmentation.py FILES docs/results/sim-other-tasks/segmentation.csv

Two sets of small images with masks, of which no real ones are at hand:

- *made-up vessels*: strokes of Omniglot (``omniglot_images_background_small1.zip``), drawn as thin dark vessels onto
  the photograph of a retina that scikit-image brings. Training and test images have other alphabets, other drawers, and other
  halves of the photograph. Vessels of the photograph itself are in no mask: they are there to be told apart.
- *coins*: the photograph of scikit-image, cut in two; its masks are a threshold with holes filled, not anybody's drawing.

Beside the table a picture shows what was asked and answered.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from arms import ARMS, TRIVIAL, Measured, Table, parameters_of, read_command, sim_of
from PIL import Image
from scipy import ndimage
from skimage import data as photographs
from skimage.filters import sato, threshold_otsu
from skimage.transform import resize
from torch import Tensor, nn
from torch.nn import functional

from crossgraft.seeding import generator, torch_generator

SIDE = 64
"""Pixels, of images and drawings."""
TRAIN_ALPHABETS = ("Balinese", "Early_Aramaic", "Greek")
VESSEL_COLOUR = (0.35, 1.0, 0.6)
"""How much a vessel takes from red, green and blue, as multiples of its depth."""
NOISE = 0.01
"""Standard deviation in each pixel."""
BATCH_SIZE = 8


class Masked(NamedTuple):
    """Images from 0 to 1, (n, 3, side, side), and which pixels are wanted, (n, side, side)."""

    images: Tensor
    masks: Tensor


class Parts(NamedTuple):
    """Two parts that share nothing, and which pixels are wanted: those that are darker, or brighter."""

    train: Masked
    test: Masked
    is_dark: bool


# The two sets


def made_up_vessels(files: Path, num_train: int, num_test: int) -> Parts:
    """So many images in each part."""
    with zipfile.ZipFile(files / "omniglot_images_background_small1.zip") as archive:
        names = [Path(name) for name in sorted(archive.namelist()) if name.endswith(".png")]
        drawn = {name: _ink(archive.read(name.as_posix())) for name in names}
    retina = resize(photographs.retina(), (SIDE * 11, SIDE * 11), anti_aliasing=True)  # half the size: 704 pixels
    middle = retina.shape[1] // 2

    def part(num_images: int, *, is_train: bool) -> Masked:
        strokes = [
            ink
            for path, ink in drawn.items()
            if (path.parts[1] in TRAIN_ALPHABETS) == is_train and (int(path.stem.split("_")[1]) <= 10) == is_train
        ]
        half = retina[:, :middle] if is_train else retina[:, middle:]
        pairs = [_with_vessels(half, strokes, generator(0, is_train, place)) for place in range(num_images)]
        images, masks = (np.stack(each) for each in zip(*pairs, strict=True))
        return Masked(torch.tensor(images, dtype=torch.float32).movedim(-1, 1), torch.tensor(masks))

    return Parts(part(num_train, is_train=True), part(num_test, is_train=False), is_dark=True)


def _ink(png: bytes) -> np.ndarray:
    """Share of ink in each pixel."""
    black_on_white = np.asarray(Image.open(io.BytesIO(png)).convert("L"), dtype=float) / 255
    return 1 - resize(black_on_white, (SIDE, SIDE), anti_aliasing=True)


def _with_vessels(photograph: np.ndarray, strokes: list[np.ndarray], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A piece of the photograph that shows nothing but retina, with two drawings on it, and where these are."""
    while True:
        top, left = (int(rng.integers(size - SIDE + 1)) for size in photograph.shape[:2])
        piece = photograph[top : top + SIDE, left : left + SIDE].copy()
        if piece[..., 0].min() > 0.25:  # outside of the eye it is black
            break
    mask = np.zeros((SIDE, SIDE), dtype=bool)
    for drawing in rng.choice(len(strokes), 2, replace=False):
        ink = strokes[drawing][:: rng.choice([-1, 1]), :: rng.choice([-1, 1])]
        piece *= 1 - rng.uniform(0.05, 0.15) * ink[..., None] * np.array(VESSEL_COLOUR)
        mask |= ink > 0.5
    return piece + rng.normal(0, NOISE, piece.shape), mask


def coins(num_train: int) -> Parts:
    """Random pieces of the left of the photograph, and all of its right in pieces."""
    photograph = photographs.coins()
    smooth = ndimage.gaussian_filter(photograph.astype(float), 1)
    level = ndimage.gaussian_filter(photograph.astype(float), 40)  # the lower part is brighter
    wanted = ndimage.binary_fill_holes(ndimage.binary_opening(smooth - level > threshold_otsu(smooth - level), iterations=2))
    middle, rng = 240, generator(0, "coins")

    def pieces(corners: list[tuple[int, int]]) -> Masked:
        cut = [np.s_[top : top + SIDE, left : left + SIDE] for top, left in corners]
        images = torch.tensor(np.stack([photograph[each] for each in cut]), dtype=torch.float32) / 255
        return Masked(images[:, None].expand(-1, 3, -1, -1).contiguous(), torch.tensor(np.stack([wanted[each] for each in cut])))

    drawn = [(int(rng.integers(303 - SIDE + 1)), int(rng.integers(middle - SIDE + 1))) for _ in range(num_train)]
    right = [(top, left) for top in (0, 60, 120, 180, 239) for left in (middle, middle + 40, 384 - SIDE)]
    return Parts(pieces(drawn), pieces(right), is_dark=False)


# The networks


class Block(nn.Module):
    """Two convolutions: what ρSIM reconstructs."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*_layer(in_channels, out_channels), *_layer(out_channels, out_channels))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def _layer(in_channels: int, out_channels: int, size: int = 3, dilation: int = 1) -> list[nn.Module]:
    padding = dilation * (size // 2)
    convolution = nn.Conv2d(in_channels, out_channels, size, padding=padding, dilation=dilation, bias=False)
    return [convolution, nn.BatchNorm2d(out_channels), nn.ReLU()]


class FCN(nn.Module):
    """One convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*_layer(channels, channels), nn.Conv2d(channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class DeepLabV3(nn.Module):
    """Convolutions with holes of several widths beside each other (ASPP), and the mean of the image."""

    def __init__(self, channels: int, dilations: tuple[int, ...] = (3, 6, 9)) -> None:
        super().__init__()
        narrow = nn.Sequential(*_layer(channels, channels, 1))
        self.branches = nn.ModuleList([narrow, *(nn.Sequential(*_layer(channels, channels, 3, each)) for each in dilations)])
        self.of_image = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, channels, 1), nn.ReLU())
        self.layers = nn.Sequential(*_layer(channels * (len(dilations) + 2), channels), nn.Conv2d(channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        beside = [branch(x) for branch in self.branches]
        return self.layers(torch.cat([*beside, self.of_image(x).expand_as(x)], dim=1))


class PSP(nn.Module):
    """Means over grids of several sizes beside each other."""

    def __init__(self, channels: int, grids: tuple[int, ...] = (1, 2, 3, 6)) -> None:
        super().__init__()
        pools = [nn.Sequential(nn.AdaptiveAvgPool2d(grid), nn.Conv2d(channels, channels, 1), nn.ReLU()) for grid in grids]
        self.pools = nn.ModuleList(pools)
        self.layers = nn.Sequential(*_layer(channels * (len(grids) + 1), channels), nn.Conv2d(channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        pooled = [functional.interpolate(pool(x), size=x.shape[2:], mode="bilinear") for pool in self.pools]
        return self.layers(torch.cat([x, *pooled], dim=1))


HEADS: Mapping[str, Callable[[int], nn.Module]] = {"UNet+FCN": FCN, "UNet+DeepLabV3": DeepLabV3, "UNet+PSPNet": PSP}
"""As Table 7 calls them."""


class UNet(nn.Module):
    """Down and up again, with what was seen at each size beside it; gives one logit for each pixel."""

    def __init__(self, head: Callable[[int], nn.Module], widths: tuple[int, ...] = (8, 16, 32)) -> None:
        super().__init__()
        ins = (3, *widths)
        self.down = nn.ModuleList([Block(one, other) for one, other in zip(ins, widths, strict=False)])
        self.up = nn.ModuleList([Block(one + other, one) for one, other in zip(widths[-2::-1], widths[:0:-1], strict=True)])
        self.head = head(widths[0])

    def forward(self, images: Tensor) -> Tensor:
        x, seen = images - 0.5, list[Tensor]()
        for place, block in enumerate(self.down):
            x = block(functional.max_pool2d(x, 2) if place else x)
            seen.append(x)
        for block, beside in zip(self.up, seen[-2::-1], strict=True):
            x = block(torch.cat([beside, functional.interpolate(x, scale_factor=2, mode="bilinear")], dim=1))
        return self.head(x)[:, 0]


# Training and its measure


def overlap(found: Tensor, masks: Tensor) -> Measured:
    """Dice and IoU over the pixels of all images together, in percent."""
    both, either = (found & masks).sum().item(), (found | masks).sum().item()
    return {"Dice": 100 * 2 * both / max(1, both + either), "IoU": 100 * both / max(1, either)}


def segmentation_loss(logits: Tensor, masks: Tensor) -> Tensor:
    """Cross-entropy + Dice loss."""
    wanted, share = masks.float(), logits.sigmoid()
    dice = 2 * (share * wanted).sum() / (share.sum() + wanted.sum() + 1)
    return functional.binary_cross_entropy_with_logits(logits, wanted) + 1 - dice


def batches(train: Masked, seed: int, num_steps: int) -> Iterator[Masked]:
    """Images drawn anew for each step, each batch mirrored or turned at random."""
    rng = torch_generator(seed, "batches")
    for _ in range(num_steps):
        chosen = torch.randint(len(train.images), (BATCH_SIZE,), generator=rng)
        turns, is_mirrored = int(torch.randint(4, (), generator=rng)), bool(torch.randint(2, (), generator=rng))
        turned = [part[chosen].rot90(turns, (-2, -1)) for part in train]
        yield Masked(*(part.flip(-1) if is_mirrored else part for part in turned))


def train_network(train: Masked, head: str, arm: str, seed: int, num_steps: int) -> UNet:
    """One training."""
    torch.manual_seed(seed)
    network = UNet(HEADS[head])
    sim = sim_of(arm, network, train.images[:2], seed=seed, blocks=Block)
    optimizer = torch.optim.Adam(parameters_of(network, sim), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, num_steps)
    for images, masks in batches(train, seed, num_steps):
        loss = segmentation_loss(network(images), masks) + sim.loss()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    sim.detach()
    return network.eval()


@torch.no_grad()
def answer(network: UNet, images: Tensor) -> Tensor:
    """Pixels that are more likely wanted than not."""
    return torch.cat([network(part) > 0 for part in images.split(BATCH_SIZE)])


def trained_overlap(parts: Parts, head: str, arm: str, seed: int, num_steps: int, answers: dict[str, Tensor]) -> Measured:
    """Train, and measure on test images; the first answer of each arm is kept for the picture."""
    found = answer(train_network(parts.train, head, arm, seed, num_steps), parts.test.images)
    answers.setdefault(arm, found)
    return overlap(found, parts.test.masks)


# What is right without training


def trivial_answers(images: Tensor, *, is_dark: bool) -> dict[str, np.ndarray]:
    """Name → a number for each pixel, larger where it is rather wanted."""
    green = images[:, 1].double().numpy() * (-1 if is_dark else 1)
    level = np.stack([ndimage.gaussian_filter(each, 8) for each in green])
    ridges = np.stack([sato(each, sigmas=(1, 2), black_ridges=False) for each in green])
    return {"everything": np.ones_like(green), "green": green, "green − surroundings": green - level, "ridge filter": ridges}


def best_trivial(train: Masked, *, is_dark: bool) -> tuple[str, float]:
    """The answer and the threshold with the largest Dice on training images."""
    tried = [
        (overlap(torch.tensor(numbers >= cut), train.masks)["Dice"], name, float(cut))
        for name, numbers in trivial_answers(train.images, is_dark=is_dark).items()
        for cut in np.quantile(numbers, np.linspace(0, 0.99, 100))
    ]
    return max(tried)[1:]


def trivial_overlap(parts: Parts, name: str, cut: float) -> Measured:
    """The same on test images."""
    numbers = trivial_answers(parts.test.images, is_dark=parts.is_dark)[name]
    return overlap(torch.tensor(numbers >= cut), parts.test.masks)


def draw(test: Masked, answers: Mapping[str, Tensor], file: Path, num_images: int = 6) -> None:
    """Images, masks and answers in rows, twice as large."""
    shown = test.images[:num_images]
    rows = [shown, *(each[:num_images, None].expand_as(shown).float() for each in (test.masks, *answers.values()))]
    tiles = torch.cat([torch.cat([functional.pad(tile, (1, 1, 1, 1), value=1) for tile in row], dim=2) for row in rows], dim=1)
    pixels = (255 * tiles.clamp(0, 1)).byte().movedim(0, -1).numpy()
    picture = Image.fromarray(pixels)
    picture.resize((2 * picture.width, 2 * picture.height), Image.Resampling.NEAREST).save(file)


def main() -> None:
    """Train what the table lacks."""
    asked = read_command(__doc__)
    num_train, num_test = (4, 4) if asked.smoke else (20, 48)
    num_steps = {"made-up vessels": 300, "coins": 100}
    table = Table(asked.out)
    sets = {"made-up vessels": made_up_vessels(asked.files, num_train, num_test), "coins": coins(num_train)}
    for data, parts in sets.items():
        name, cut = best_trivial(parts.train, is_dark=parts.is_dark)
        table.measure(data, name, TRIVIAL, 0, partial(trivial_overlap, parts, name, cut))
        answers = dict[str, Tensor]()
        for seed, head, arm in product(range(asked.seeds), HEADS, ARMS):
            steps = 1 if asked.smoke else num_steps[data]
            table.measure(data, head, arm, seed, partial(trained_overlap, parts, head, arm, seed, steps, answers))
        if answers:
            draw(parts.test, answers, asked.out.with_name(f"{asked.out.stem}-{data.replace(' ', '-')}.png"))


if __name__ == "__main__":
    main()
