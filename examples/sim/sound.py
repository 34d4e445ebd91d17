"""ρSIM on sound: which digit was spoken, with three networks over time.

    python examples/sim/sound.py FILES docs/results/sim-other-tasks/sound.csv

Spoken digits of six people, as the logarithm of the power in bands of the mel scale. Split as published (``official``: the first
five recordings of each digit and person are tested), and with one person at a time that training never heard (``unseen NAME``).
The trivial answer is a linear model of the mean spectrum; digits are equally frequent, so that one alone would have 0.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from arms import ARMS, TRIVIAL, Measured, Table, parameters_of, read_command, sim_of
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.nn import functional

BANDS, FRAMES, WINDOW, HOP = 40, 64, 200, 80
"""25 ms every 10 ms, for 0.65 s: at 8 kHz most digits are shorter."""
EPOCHS, BATCH, LARGEST_SHIFT = 6, 64, 6
TESTED = 5
"""Recordings of each digit and person that the official split tests."""

Part = tuple[torch.Tensor, torch.Tensor]
"""(n, BANDS, FRAMES) sounds and their (n,) digits."""


def log_mel(sound: np.ndarray, rate: int) -> np.ndarray:
    """(BANDS, FRAMES) power, from −1 (silent: 50 dB below the loudest) to 1; what is too short is silent at its end."""
    padded = np.pad(sound.astype(np.float64), (0, max(0, WINDOW + HOP * (FRAMES - 1) - len(sound))))
    frames = np.stack([padded[HOP * place : HOP * place + WINDOW] for place in range(FRAMES)], axis=1)
    power = np.abs(np.fft.rfft(frames * np.hanning(WINDOW)[:, None], n=512, axis=0)) ** 2
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), BANDS + 2) / 2595) - 1)
    hertz, low, tip, high = np.linspace(0, rate / 2, len(power)), edges[:-2, None], edges[1:-1, None], edges[2:, None]
    bands = np.maximum(0, np.minimum((hertz - low) / (tip - low), (high - hertz) / (high - tip)))
    decibels = 10 * np.log10(np.maximum(bands @ power, 1e-10))
    return 1 + np.maximum(decibels - decibels.max(), -50) / 25


class Tdnn(nn.Sequential):
    """A layer over time: convolution with holes, ReLU, batch norm."""

    def __init__(self, taken: int, given: int, size: int, hole: int = 1) -> None:
        super().__init__(
            nn.Conv1d(taken, given, size, padding=hole * (size // 2), dilation=hole), nn.ReLU(), nn.BatchNorm1d(given)
        )


class Res2Block(nn.Module):
    """Groups of channels, each of which sees the result of the one before it, around an identity."""

    def __init__(self, width: int, hole: int, scale: int = 4) -> None:
        super().__init__()
        self.enter, self.leave = Tdnn(width, width, 1), Tdnn(width, width, 1)
        self.steps = nn.ModuleList(Tdnn(width // scale, width // scale, 3, hole) for _ in range(scale - 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, *others = self.enter(x).chunk(len(self.steps) + 1, dim=1)
        groups = [first]
        for step, group in zip(self.steps, others, strict=True):
            groups.append(step(group + groups[-1] if len(groups) > 1 else group))
        return x + self.leave(torch.cat(groups, dim=1))


class MaskedDense(nn.Module):
    """A layer of a dense TDNN whose new channels are masked by their context: all of the sound, and the segment around."""

    def __init__(self, taken: int, new: int, hole: int, segment: int = 16) -> None:
        super().__init__()
        self.segment = segment
        self.enter = nn.Sequential(
            nn.BatchNorm1d(taken), nn.ReLU(), nn.Conv1d(taken, 2 * new, 1), nn.BatchNorm1d(2 * new), nn.ReLU()
        )
        self.local = nn.Conv1d(2 * new, new, 3, padding=hole, dilation=hole)
        self.mask = nn.Sequential(nn.Conv1d(2 * new, new, 1), nn.ReLU(), nn.Conv1d(new, new, 1), nn.Sigmoid())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        entered = self.enter(x)
        around = functional.avg_pool1d(entered, self.segment, ceil_mode=True).repeat_interleave(self.segment, dim=2)
        context = entered.mean(dim=2, keepdim=True) + around[:, :, : x.shape[2]]
        return torch.cat([x, self.local(entered) * self.mask(context)], dim=1)


class Listener(nn.Module):
    """Blocks over time, mean and spread over all of it, and ten digits."""

    def __init__(self, width: int, *blocks: nn.Module) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.last = nn.Linear(2 * width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.last(torch.cat([x.mean(dim=2), (x.var(dim=2) + 1e-5).sqrt()], dim=1))


def tdnn() -> Listener:
    """Four layers, each of which sees a longer time."""
    return Listener(128, Tdnn(BANDS, 64, 5), Tdnn(64, 64, 3, 2), Tdnn(64, 64, 3, 3), Tdnn(64, 128, 1))


def res2net() -> Listener:
    """One layer, and three blocks of four groups of channels."""
    return Listener(64, Tdnn(BANDS, 64, 5), *(Res2Block(64, hole) for hole in (1, 2, 3)))


def cam() -> Listener:
    """One layer, and four masked layers that keep all that went before."""
    return Listener(128, Tdnn(BANDS, 64, 5), *(MaskedDense(64 + 16 * i, 16, 1 + i // 2) for i in range(4)))


NETWORKS = {"TDNN": tdnn, "Res2Net-like": res2net, "CAM++-like": cam}


def splits(folder: Path) -> Iterator[tuple[str, Part, Part]]:
    """Name of each split, what is heard in training, and what is tested."""
    with np.load(folder / "free_spoken_digits_1200.npz", allow_pickle=False) as stored:
        clips = [stored["audio"][start:stop] for start, stop in pairwise(stored["offsets"])]
        sounds = torch.from_numpy(np.stack([log_mel(clip, int(stored["sample_rate"])) for clip in clips])).float()
        digits, people = torch.from_numpy(stored["labels"].astype(np.int64)), stored["speakers"]
        tested = {"official": stored["index"] < TESTED} | {f"unseen {name}": people == name for name in np.unique(people)}
    for name, chosen in tested.items():
        yield name, (sounds[~chosen], digits[~chosen]), (sounds[chosen], digits[chosen])


def scored(digits: torch.Tensor, answers: np.ndarray) -> Measured:
    """Accuracy, and the mean of F1 over the digits."""
    return {"accuracy": float(accuracy_score(digits, answers)), "macro_f1": float(f1_score(digits, answers, average="macro"))}


def best_trivial(train: Part, test: Part) -> Measured:
    """A linear model of the mean spectrum."""
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(train[0].mean(dim=2), train[1])
    return scored(test[1], linear.predict(test[0].mean(dim=2)))


def train_one(name: str, arm: str, seed: int, train: Part, test: Part, *, epochs: int) -> Measured:
    """Train a network as one arm has it, and listen to what is tested."""
    torch.manual_seed(seed)
    network = NETWORKS[name]()
    sim = sim_of(arm, network, train[0][:2], seed=seed, blocks=list(network.blocks))
    optimizer = torch.optim.AdamW(parameters_of(network, sim), lr=2e-3, weight_decay=1e-2)
    steps = len(train[1]) // BATCH or 1
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=epochs * steps)
    drawn = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        order = torch.randperm(len(train[1]), generator=drawn)
        for batch in order[: steps * BATCH].split(BATCH):
            shift = int(torch.randint(-LARGEST_SHIFT, LARGEST_SHIFT + 1, (), generator=drawn))
            loss = functional.cross_entropy(network(train[0][batch].roll(shift, dims=2)), train[1][batch]) + sim.loss()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    network.eval()
    with torch.no_grad():
        return scored(test[1], network(test[0]).argmax(dim=1).numpy())


def main() -> None:
    """All splits, networks, seeds and arms."""
    asked = read_command(__doc__)
    table = Table(asked.out)
    for data, train, test in splits(asked.files):
        table.measure(data, "linear", TRIVIAL, 0, lambda train=train, test=test: best_trivial(train, test))
        for name in NETWORKS:
            for seed in range(asked.seeds):
                for arm in ARMS:
                    table.measure(
                        data, name, arm, seed,
                        lambda given=(name, arm, seed, train, test): train_one(*given, epochs=1 if asked.smoke else EPOCHS),
                    )  # fmt: skip


if __name__ == "__main__":
    main()
