"""Designs of means over folds, seeds and targets, of rank agreement, and of scores with a jackknife."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np
from scipy import stats

from crossgraft.scores import gbc, h_score, knn_probe, logme, transrate
from crossgraft.statistics import (
    LEAST_REGRETS,
    jackknife_blocks,
    jackknife_interval,
    mean_interval,
    weighted_kendall,
    weighted_kendall_interval,
)
from intervals.coverage import Design, Found
from intervals.images import Rng


def designs() -> Iterator[Design]:
    """All of them."""
    yield from _folds()
    yield from _targets()
    yield from _agreement()
    yield from _scores()


def _folds() -> Iterator[Design]:
    def normal(rng: Rng, number: int) -> np.ndarray:
        return rng.normal(0.8, 0.02, size=number)

    def near_one(rng: Rng, number: int) -> np.ndarray:
        return rng.beta(40, 2, size=number)

    def alike(rng: Rng, number: int) -> np.ndarray:
        return 1 - rng.exponential(0.01, size=number)  # CKA of fine-tunings that keep features

    for title, values, truth, numbers in (
        ("mean over folds or seeds", normal, 0.8, (3, 5, 10)),
        ("mean over folds or seeds, metric near 1", near_one, 40 / 42, (3, 5, 10)),
        ("CKA over seeds", alike, 0.99, (3, 5, 10, 20)),
    ):
        for number in numbers:

            def draw(rng: Rng, values: Callable = values, number: int = number) -> Found:
                found = mean_interval(values(rng, number), limits=(-np.inf, 1.0))
                return Found(found.mean, found.low, found.high)

            yield Design(title, f"{number} values", truth, draw)
    for number in (2, 5):

        def none(rng: Rng, number: int = number) -> Found:
            found = mean_interval(np.full(number, 0.9) if number > 2 else rng.random(2))
            return Found(found.mean, found.low, found.high)

        words = f"{number} values" + (", all equal" if number > 2 else "")
        yield Design("mean over folds or seeds", words, 0.9, none, has_interval=False)


def _targets() -> Iterator[Design]:
    for number, groups in ((8, 8), (16, 16), (35, 16), (12, 4), (60, 30)):

        def regret(rng: Rng, number: int = number, groups: int = groups) -> Found:
            of_group = rng.exponential(1.0, size=groups)
            index = np.arange(number) % groups
            values = np.where(rng.random(number) < 0.4, 0.0, 0.02 * of_group[index] * rng.exponential(1.0, size=number))
            found = mean_interval(values, index, limits=(0.0, np.inf), least=LEAST_REGRETS)
            return Found(found.mean, found.low, found.high)

        words = f"{number} targets of {groups} groups, 0 for 0.4 of them"
        yield Design("regret", words, 0.012, regret, has_interval=groups >= LEAST_REGRETS)

        def gained(rng: Rng, number: int = number, groups: int = groups) -> Found:
            index = np.arange(number) % groups
            found = mean_interval(0.01 * rng.standard_t(4, size=groups)[index] + 0.01 * rng.normal(size=number), index)
            return Found(found.mean, found.low, found.high)

        yield Design("difference of regret", f"{number} targets of {groups} groups", 0.0, gained)

        def mean_tau(rng: Rng, number: int = number, groups: int = groups) -> Found:
            index = np.arange(number) % groups
            values = np.tanh(0.8 + 0.5 * rng.normal(size=groups)[index] + 0.3 * rng.normal(size=number))
            found = mean_interval(values, index, limits=(-1.0, 1.0))
            return Found(found.mean, found.low, found.high)

        truth = float(np.tanh(0.8 + np.sqrt(0.34) * stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)).mean())
        yield Design("mean weighted Kendall", f"{number} targets of {groups} groups", truth, mean_tau)


@functools.cache
def _tau(correlation: float, number: int) -> float:
    """Mean over many draws of as many models."""
    rng = np.random.default_rng(0)
    return float(np.mean([weighted_kendall(*_two_orders(rng, correlation, number)) for _ in range(20_000)]))


def _two_orders(rng: Rng, correlation: float, number: int) -> tuple[np.ndarray, np.ndarray]:
    one = rng.normal(size=number)
    return one, correlation * one + np.sqrt(1 - correlation**2) * rng.normal(size=number)


def _agreement() -> Iterator[Design]:
    for number, correlation in ((6, 0.5), (8, 0.8), (12, 0.0), (12, 0.6), (20, 0.9), (40, 0.5)):

        def draw(rng: Rng, number: int = number, correlation: float = correlation) -> Found:
            one, other = _two_orders(rng, correlation, number)
            found = weighted_kendall_interval(one, other)
            return Found(found.mean, found.low, found.high)

        words = f"{number} models, correlation {correlation:g}"
        yield Design(
            "weighted Kendall of one ranking", words, functools.partial(_tau, correlation, number), draw, in_ci=number < 10
        )


SCORES = {"logme": logme, "h_score": h_score, "gbc": gbc, "transrate": transrate, "knn_probe": knn_probe}


def _features(rng: Rng, number: int, groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    targets = np.arange(number) % 3
    if groups:
        index = np.arange(number) % groups
        targets = index % 3
        shared = rng.normal(size=(groups, 6))[index]
    else:
        index, shared = None, 0.0
    return 0.8 * np.eye(3, 6)[targets] * 2 + rng.normal(size=(number, 6)) + 0.5 * shared, targets, index


@functools.cache
def _mean_score(name: str, number: int, groups: int) -> float:
    rng = np.random.default_rng(1)
    values = [float(SCORES[name](features=x, labels=y)) for x, y, _ in (_features(rng, number, groups) for _ in range(3000))]
    return float(np.mean(values))


def _scores() -> Iterator[Design]:
    for name in SCORES:
        for number, groups in ((60, 0), (120, 24)):

            def draw(rng: Rng, name: str = name, number: int = number, groups: int = groups) -> Found:
                x, y, of = _features(rng, number, groups)
                score = SCORES[name]
                value = float(score(features=x, labels=y))
                blocks = jackknife_blocks(y, of, seed=int(rng.integers(1000)))
                rows = [np.setdiff1d(np.arange(len(y)), block) for block in blocks]
                found = jackknife_interval(value, [float(score(features=x[each], labels=y[each])) for each in rows])
                if found.standard_error == 0:
                    return Found(value, None, None)
                return Found(value, found.low, found.high)

            words = f"{name}, n {number}" + (f" of {groups} patients" if groups else "")
            yield Design("score with a jackknife", words, functools.partial(_mean_score, name, number, groups), draw, in_ci=False)
