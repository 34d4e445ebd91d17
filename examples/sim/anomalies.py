"""ρSIM on time series: where a machine is not as it was, by what a network cannot reconstruct.

    python examples/sim/anomalies.py FILES docs/results/sim-other-tasks/anomalies.csv

Telemetry of two spacecraft (the channels P-1 of SMAP and C-1 of MSL) and a water circuit with valves (SKAB). Networks learn to
reconstruct windows without anomalies; the score of a time step is its mean squared error over the variables: of the spacecraft
over the telemetry alone, since all others are commands, which are no symptom. F1 is taken

- at a threshold that sees no test data, the 0.99 quantile of the scores in training (``f1``), and at the best one of all, which
  looks at the answers (``best_f1``);
- of time steps as they are, and *point-adjusted* (``…_adjusted``), as papers on these data do: one step found in a segment of
  anomalies counts as all of it found.

``auc_pr`` needs no threshold. The trivial answers are random numbers and a linear autoencoder (PCA), which nothing trains.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from arms import ARMS, TRIVIAL, Measured, Table, parameters_of, read_command, sim_of
from sklearn.decomposition import PCA
from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve
from torch import nn
from torch.nn import functional

WINDOW, STRIDE, STEPS, BATCH = 64, 8, 200, 32
"""Time steps of a window; from one window in training to the next; steps and windows of a training."""
QUANTILE, COMPONENTS, WIDTH = 0.99, 16, 64
LARGEST = 10.0
"""Standard deviations: what leaves the range of the training by more is cut, so that no variable decides alone."""


class Series(NamedTuple):
    """(steps, variables) of training and of each recorded test, and for each test whether its steps are anomalous.

    ``scored`` variables, from the first on, have a say in the score.
    """

    train: np.ndarray
    tests: Sequence[np.ndarray]
    answers: Sequence[np.ndarray]
    scored: int


def read_series(folder: Path) -> dict[str, Series]:
    """All three, as published."""
    found: dict[str, Series] = {}
    for channel in ("P-1", "C-1"):
        train, test, answers = (
            np.load(folder / "smap_msl" / f"{channel}_{part}.npy") for part in ("train", "test", "test_labels")
        )
        found[channel] = Series(train, [test], [answers.astype(bool)], scored=1)
    train = pd.read_csv(folder / "skab" / "anomaly-free_anomaly-free.csv", sep=";", index_col="datetime")
    files = sorted(file for file in (folder / "skab").glob("*.csv") if not file.name.startswith("anomaly-free"))
    tests = [pd.read_csv(file, sep=";", index_col="datetime") for file in files]
    values, answers = [test[train.columns].to_numpy() for test in tests], [test["anomaly"].to_numpy(dtype=bool) for test in tests]
    return found | {"SKAB": Series(train.to_numpy(), values, answers, scored=len(train.columns))}


def standardised(series: Series) -> Series:
    """By mean and standard deviation of the training; a variable that never moved there keeps its unit."""
    mean, spread = series.train.mean(axis=0), series.train.std(axis=0)
    spread = np.where(spread > 1e-6, spread, 1)
    train, *tests = (np.clip((part - mean) / spread, -LARGEST, LARGEST) for part in (series.train, *series.tests))
    return series._replace(train=train, tests=tests)


def windows(series: np.ndarray, stride: int) -> torch.Tensor:
    """(windows, WINDOW, variables), the last of them up to the last step."""
    starts = sorted({*range(0, len(series) - WINDOW + 1, stride), len(series) - WINDOW})
    return torch.from_numpy(np.stack([series[start : start + WINDOW] for start in starts])).float()


class InvertedTransformer(nn.Module):
    """As iTransformer: a token is a variable with its whole window; windows are standardised and put back."""

    def __init__(self, variables: int) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(WINDOW, WIDTH), nn.Linear(WIDTH, WINDOW)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0, activation="gelu", batch_first=True) for _ in range(2)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, spread = x.mean(dim=1, keepdim=True), (x.var(dim=1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        tokens = self.enter(((x - mean) / spread).mT)
        for block in self.blocks:
            tokens = block(tokens)
        return self.leave(tokens).mT * spread + mean


class LightBlock(nn.Module):
    """The exchange of LightTS: within each column, then between columns, and a straight way past both."""

    def __init__(self, rows: int, columns: int, width: int) -> None:
        super().__init__()
        self.within = nn.Sequential(nn.Linear(rows, width), nn.LeakyReLU(), nn.Linear(width, width))
        self.between, self.past, self.leave = nn.Linear(columns, columns), nn.Linear(rows, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, columns, rows) → (n, columns, width)."""
        exchanged = self.within(x)
        exchanged = exchanged + self.between(exchanged.mT).mT
        return self.leave(exchanged) + self.past(x)


class LightSampling(nn.Module):
    """As LightTS: each variable cut into pieces, and into steps that lie a piece apart; then all variables together."""

    def __init__(self, variables: int, pieces: int = 8) -> None:
        super().__init__()
        self.pieces, length = pieces, WINDOW // pieces
        self.blocks = nn.ModuleList([
            LightBlock(length, pieces, WIDTH // 4),
            LightBlock(pieces, length, WIDTH // 4),
            LightBlock(WIDTH, variables, WIDTH),
        ])  # fmt: skip
        self.gather = nn.ModuleList([nn.Linear(pieces, 2), nn.Linear(length, 2)])
        self.leave, self.highway = nn.Linear(WIDTH, WINDOW), nn.Linear(WINDOW, WINDOW)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        series = x.mT
        pieces = series.reshape(-1, self.pieces, WINDOW // self.pieces)
        read = [gather(block(cut).mT) for gather, block, cut in zip(self.gather, self.blocks, (pieces, pieces.mT), strict=False)]
        together = torch.cat(read, dim=1).reshape(*series.shape[:2], WIDTH)
        return (self.leave(self.blocks[2](together)) + self.highway(series)).mT


NETWORKS = {"iTransformer-like": InvertedTransformer, "LightTS-like": LightSampling}


def step_scores(error: np.ndarray, length: int) -> np.ndarray:
    """(windows, WINDOW) errors of windows that follow one another → (length,) scores of the steps."""
    *whole, last = error
    left = length - WINDOW * len(whole)
    return np.concatenate([*whole, last[WINDOW - left :]])


def point_adjusted(scores: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Scores in which each step of a segment of anomalies has the largest of the segment.

    A threshold then finds all of the segment where it found one step of it: point adjustment for all thresholds at once.
    """
    adjusted = scores.copy()
    edges = np.flatnonzero(np.diff(answers.astype(int), prepend=0, append=0))
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        adjusted[start:stop] = scores[start:stop].max()
    return adjusted


def measured(training: np.ndarray, scores: Sequence[np.ndarray], answers: Sequence[np.ndarray]) -> Measured:
    """Both F1 at both thresholds, and the area under precision and recall; segments end where a recording ends."""
    threshold, truth, found = np.quantile(training, QUANTILE), np.concatenate(answers), dict[str, float]()
    adjusted = [point_adjusted(*pair) for pair in zip(scores, answers, strict=True)]
    for ending, values in (("", np.concatenate(scores)), ("_adjusted", np.concatenate(adjusted))):
        precision, recall, _ = precision_recall_curve(truth, values)
        found[f"f1{ending}"] = float(f1_score(truth, values > threshold))
        found[f"best_f1{ending}"] = float((2 * precision * recall / np.maximum(precision + recall, 1e-12)).max())
    return found | {"auc_pr": float(average_precision_score(truth, np.concatenate(scores)))}


def judge(series: Series, reconstruct: nn.Module) -> Measured:
    """Scores of windows that follow one another, in training and in each test."""
    scores: list[np.ndarray] = []
    with torch.no_grad():
        for part in (series.train, *series.tests):
            cut = windows(part, WINDOW)
            scores.append(step_scores((reconstruct(cut) - cut)[:, :, : series.scored].square().mean(dim=2).numpy(), len(part)))
    return measured(scores[0], scores[1:], series.answers)


class LinearAutoencoder(nn.Module):
    """The best linear one of whole windows, found in closed form."""

    def __init__(self, train: np.ndarray) -> None:
        super().__init__()
        self.found = PCA(COMPONENTS, svd_solver="full").fit(windows(train, STRIDE).flatten(1).numpy())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        projected = self.found.transform(x.flatten(1).numpy())
        return torch.from_numpy(self.found.inverse_transform(projected)).reshape(x.shape)


def guess(series: Series, seed: int) -> Measured:
    """A random number for each time step."""
    drawn = np.random.default_rng(seed)
    return measured(drawn.random(len(series.train)), [drawn.random(len(test)) for test in series.tests], series.answers)


def train_one(name: str, arm: str, seed: int, series: Series, *, steps: int) -> Measured:
    """Train a network as one arm has it, and judge the tests by what it cannot reconstruct."""
    torch.manual_seed(seed)
    cut = windows(series.train, STRIDE)
    network = NETWORKS[name](cut.shape[2])
    sim = sim_of(arm, network, cut[:2], seed=seed, blocks=list(network.blocks))
    optimizer = torch.optim.Adam(parameters_of(network, sim), lr=2e-3)
    drawn = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        batch = cut[torch.randint(len(cut), (BATCH,), generator=drawn)]
        loss = functional.mse_loss(network(batch), batch) + sim.loss()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return judge(series, network.eval())


def main() -> None:
    """All series, networks, seeds and arms."""
    asked = read_command(__doc__)
    table = Table(asked.out)
    for data, series in ((name, standardised(each)) for name, each in read_series(asked.files).items()):
        variables = series.train.shape[1]
        for name, scored in {"PCA": series.scored, "PCA, all variables": variables}.items():
            if name == "PCA" or scored != series.scored:
                judged = series._replace(scored=scored)
                table.measure(data, name, TRIVIAL, 0, lambda judged=judged: judge(judged, LinearAutoencoder(judged.train)))
        for seed in range(asked.seeds):
            table.measure(data, "random numbers", TRIVIAL, seed, lambda given=(series, seed): guess(*given))
            for name in NETWORKS:
                for arm in ARMS:
                    given = (name, arm, seed, series)
                    table.measure(*(data, *given[:3]), lambda given=given: train_one(*given, steps=5 if asked.smoke else STEPS))


if __name__ == "__main__":
    main()
