"""Designs of metrics: small n, rare classes, few patients, all right."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np

from crossgraft.metrics import (
    MetricValue,
    accuracy,
    auc,
    average_precision,
    balanced_accuracy,
    brier_score,
    calibration_error,
    f1,
    negative_log_likelihood,
    sensitivity,
)
from crossgraft.metrics.proper_scores import LEAST_UNITS_OF_LOSS
from intervals.coverage import Design, Found
from intervals.images import Patients, Rng, distance, probabilities, shares_by_group

MANY = 400_000
"""Images from which a truth without a formula is computed."""


def found(value: MetricValue) -> Found:
    """The ends of a metric."""
    return Found(value.value, value.low, value.high)


def designs() -> Iterator[Design]:
    """All of them."""
    yield from _shares()
    yield from _balanced()
    yield from _f1()
    yield from _areas()
    yield from _several_classes()
    yield from _precisions()
    yield from _losses()


def _shares() -> Iterator[Design]:
    for number, share in ((5, 0.9), (10, 0.98), (20, 0.9), (40, 0.95), (60, 0.5), (100, 0.99), (400, 0.9), (40, 1.0)):

        def alone(rng: Rng, number: int = number, share: float = share) -> Found:
            return Found(*accuracy(rng.random(number) < share)[:3])

        yield Design("accuracy", f"n {number}, {share:g} right", share, alone)
    for groups, images, share, alike in (
        (7, 60, 0.9, 0.06),
        (10, 10, 0.9, 0.3),
        (5, 10, 0.8, 0.2),
        (20, 5, 0.97, 0.3),
        (30, (1, 30), 0.95, 0.5),
        (60, (1, 12), 0.9, 0.3),
        (60, 5, 0.8, 0.5),
        (20, 5, 0.9, 0.0),
        (3, 20, 0.8, 0.1),
    ):

        def grouped(rng: Rng, drawn: tuple = (groups, images, share, alike)) -> Found:
            return Found(*accuracy(*shares_by_group(rng, *drawn))[:3])

        words = f"{groups} patients, {images} images each, {share:g} right, intra-class {alike:g}"
        yield Design("accuracy", words, share, grouped)
    for number, positive, share in ((60, 3, 0.7), (200, 10, 0.95), (40, 20, 1.0)):

        def found_ones(rng: Rng, number: int = number, positive: int = positive, share: float = share) -> Found:
            truth = np.arange(number) < positive
            return found(sensitivity(truth & (rng.random(number) < share), truth))

        yield Design("sensitivity", f"n {number}, {positive} positive, {share:g} found", share, found_ones)


def _balanced() -> Iterator[Design]:
    for sizes, shares in (
        ((50, 50), (0.8, 0.8)),
        ((200, 20, 8), (0.95, 0.8, 0.6)),
        ((100, 3), (0.97, 0.7)),
        ((60, 4, 2), (0.95, 0.9, 0.9)),
        ((10, 10), (0.9, 0.7)),
        ((20,) * 8, (0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.95)),
        ((40, 40), (1.0, 1.0)),
    ):

        def draw(rng: Rng, sizes: tuple = sizes, shares: tuple = shares) -> Found:
            truth = np.repeat(np.arange(len(sizes)), sizes)
            right = rng.random(len(truth)) < np.array(shares)[truth]
            return found(balanced_accuracy(np.where(right, truth, (truth + 1) % len(sizes)), truth))

        yield Design("balanced accuracy", f"classes of {sizes}, {shares} right", float(np.mean(shares)), draw)
    for groups, images, rare in ((60, 5, 20), (20, 5, 5), (12, (1, 10), 4)):

        def by_patient(rng: Rng, groups: int = groups, images: int | tuple = images, rare: int = rare) -> Found:
            right, patient = shares_by_group(rng, groups, images, 0.8, 0.2)
            truth = (patient < rare).astype(np.int64)
            return found(balanced_accuracy(np.where(right, truth, 1 - truth), truth, patient))

        words = f"{groups} patients, {images} images each, {rare} of the rare class, 0.8 right, intra-class 0.2"
        yield Design("balanced accuracy", words, 0.8, by_patient)

    def grades(rng: Rng) -> Found:
        truth = np.repeat(np.arange(5), (40, 10, 8, 6, 4))
        step = rng.choice([-1, 0, 1], p=[0.1, 0.75, 0.15], size=len(truth))
        return found(balanced_accuracy(np.clip(truth + step, 0, 4), truth))

    yield Design("balanced accuracy", "grades of 40, 10, 8, 6, 4 images, neighbours mistaken", 0.8, grades)


def _f1() -> Iterator[Design]:
    for number, prevalence, sensitive, specific in (
        (40, 0.5, 0.8, 0.9),
        (60, 0.1, 0.7, 0.9),
        (200, 0.05, 0.8, 0.95),
        (20, 0.3, 0.9, 0.95),
        (100, 0.2, 0.99, 0.99),
    ):

        def draw(rng: Rng, drawn: tuple = (number, prevalence, sensitive, specific)) -> Found | None:
            number, prevalence, sensitive, specific = drawn
            truth = rng.random(number) < prevalence
            if truth.all() or not truth.any():
                return None
            decided = rng.random(number) < np.where(truth, sensitive, 1 - specific)
            return found(f1(decided[:, None], truth[:, None]))

        right = prevalence * sensitive
        named = prevalence * (1 + sensitive) + (1 - prevalence) * (1 - specific)
        words = f"n {number}, prevalence {prevalence:g}, sensitivity {sensitive:g}, specificity {specific:g}"
        yield Design("F1", words, 2 * right / named, draw)


def _areas() -> Iterator[Design]:
    for positive, negative, area in (
        (10, 190, 0.97),
        (10, 190, 0.9),
        (4, 56, 0.9),
        (4, 56, 0.7),
        (3, 57, 0.85),
        (2, 58, 0.85),
        (5, 5, 0.8),
        (50, 50, 0.6),
        (20, 200, 0.99),
        (50, 50, 0.99),
        (4, 196, 0.99),
        (200, 200, 0.95),
        (20, 20, 0.5),
    ):

        def draw(rng: Rng, positive: int = positive, negative: int = negative, area: float = area) -> Found:
            truth = np.arange(positive + negative) < positive
            return found(auc(rng.normal(size=len(truth)) + distance(area) * truth, truth.astype(np.int64)))

        yield Design("AUC", f"n {positive + negative}, {positive} positive, true {area:g}", area, draw)
    for number, prevalence, area in ((60, 0.05, 0.85), (100, 0.02, 0.9)):

        def at_random(rng: Rng, number: int = number, prevalence: float = prevalence, area: float = area) -> Found | None:
            truth = rng.random(number) < prevalence
            if truth.all() or not truth.any():
                return None
            return found(auc(rng.normal(size=number) + distance(area) * truth, truth.astype(np.int64)))

        yield Design("AUC", f"n {number}, prevalence {prevalence:g}, true {area:g}", area, at_random)
    for patients, area in (
        (Patients(4, 16, 5, 0.7), 0.9),
        (Patients(5, 5, 5, 0.7), 0.9),
        (Patients(10, 10, 5, 0.7), 0.9),
        (Patients(6, 54, 5, 0.7), 0.9),
        (Patients(4, 16, (1, 10), 0.3), 0.9),
        (Patients(30, 30, (1, 12), 0.3), 0.9),
        (Patients(10, 50, 10, 0.1), 0.95),
        (Patients(2, 20, 5, 0.7), 0.8),
        (Patients(3, 20, 5, 0.9), 0.7),
        (Patients(4, 40, (1, 20), 0.5), 0.8),
        (Patients(30, 30, 5, 0.1), 0.6),
    ):

        def by_patient(rng: Rng, patients: Patients = patients, area: float = area) -> Found:
            truth, groups = patients.draw(rng)
            scores = patients.noise(rng, groups, len(truth)) + distance(area) * truth
            return found(auc(scores, truth.astype(np.int64), groups))

        words = f"{patients.positive + patients.negative} patients, {patients.positive} positive, {patients.images} images "
        words += f"each, intra-class {patients.alike:g}, true {area:g}"
        yield Design("AUC", words, area, by_patient)

    def one_patient(rng: Rng) -> Found:
        truth, groups = Patients(1, 9, 5, 0.7).draw(rng)
        return found(auc(rng.normal(size=len(truth)) + truth, truth.astype(np.int64), groups))

    yield Design("AUC", "10 patients, 1 positive", 0.76, one_patient, has_interval=False)


@functools.cache
def _three_classes(metric: Callable[..., MetricValue], shares: tuple[float, ...]) -> float:
    scores, truth = _of_classes(np.random.default_rng(2), MANY, shares)
    return metric(scores.argmax(axis=1) if metric is f1 else scores, truth).value


def _of_classes(rng: Rng, number: int, shares: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    truth = rng.choice(len(shares), p=shares, size=number)
    return rng.normal(size=(number, len(shares))) + 1.2 * np.eye(len(shares))[truth], truth


def _several_classes() -> Iterator[Design]:
    for metric, title in ((auc, "macro AUC"), (average_precision, "macro average precision"), (f1, "macro F1")):
        for number, shares in ((200, (0.6, 0.3, 0.1)), (60, (0.5, 0.4, 0.1)), (40, (0.25,) * 4)):

            def draw(rng: Rng, metric: Callable = metric, number: int = number, shares: tuple = shares) -> Found | None:
                scores, truth = _of_classes(rng, number, shares)
                if len(np.unique(truth)) < len(shares):
                    return None  # the mean would be another one
                return found(metric(scores.argmax(axis=1) if metric is f1 else scores, truth))

            truth = functools.partial(_three_classes, metric, shares)
            yield Design(title, f"n {number}, classes {shares}", truth, draw)


@functools.cache
def _precision(prevalence: float, area: float) -> float:
    rng = np.random.default_rng(0)
    truth = rng.random(MANY) < prevalence
    return average_precision(rng.normal(size=MANY) + distance(area) * truth, truth.astype(np.int64)).value


def _precisions() -> Iterator[Design]:
    for number, prevalence, area in (
        (40, 0.5, 0.8),
        (40, 0.3, 0.9),
        (60, 0.2, 0.8),
        (60, 0.1, 0.85),
        (200, 0.05, 0.85),
        (200, 0.05, 0.97),
        (200, 0.02, 0.9),
        (400, 0.1, 0.99),
        (200, 0.5, 0.9),
        (80, 0.5, 0.6),
        (100, 0.9, 0.8),
        (20, 0.5, 0.8),
    ):

        def draw(rng: Rng, number: int = number, prevalence: float = prevalence, area: float = area) -> Found | None:
            truth = rng.random(number) < prevalence
            if truth.all() or not truth.any():
                return None
            return found(average_precision(rng.normal(size=number) + distance(area) * truth, truth.astype(np.int64)))

        words = f"n {number}, prevalence {prevalence:g}, AUC {area:g}"
        yield Design("average precision", words, functools.partial(_precision, prevalence, area), draw)
    for number, images, alike, prevalence, area in (
        (20, 5, 0.7, 0.5, 0.9),
        (20, 5, 0.7, 0.2, 0.9),
        (60, 5, 0.7, 0.1, 0.9),
        (60, (1, 12), 0.3, 0.5, 0.8),
    ):

        def by_patient(rng: Rng, drawn: tuple = (number, images, alike, prevalence, area)) -> Found | None:
            number, images, alike, prevalence, area = drawn
            positive = int(rng.binomial(number, prevalence))
            if not 0 < positive < number:
                return None
            patients = Patients(positive, number - positive, images, alike)
            truth, groups = patients.draw(rng)
            scores = patients.noise(rng, groups, len(truth)) + distance(area) * truth
            return found(average_precision(scores, truth.astype(np.int64), groups))

        words = f"{number} patients, {images} images each, intra-class {alike:g}, prevalence {prevalence:g}, AUC {area:g}"
        yield Design("average precision", words, functools.partial(_precision, prevalence, area), by_patient)


@functools.cache
def _loss(metric: Callable[..., MetricValue], prevalence: float, area: float, temperature: float) -> float:
    truth, p = probabilities(np.random.default_rng(1), MANY * 5, prevalence, area, temperature)
    return metric(p, truth).value


def _losses() -> Iterator[Design]:
    for metric, title in ((brier_score, "Brier score"), (negative_log_likelihood, "negative log-likelihood")):
        for number, prevalence, area, temperature in (
            (10, 0.5, 0.8, 1.0),
            (20, 0.5, 0.8, 1.0),
            (40, 0.5, 0.85, 1.0),
            (40, 0.5, 0.95, 1.0),
            (40, 0.5, 0.85, 0.5),
            (60, 0.1, 0.85, 1.0),
            (200, 0.05, 0.85, 1.0),
            (200, 0.02, 0.9, 1.0),
            (400, 0.05, 0.9, 0.5),
            (60, 0.02, 0.85, 1.0),
            (20, 0.5, 0.95, 1.0),
            (40, 0.5, 0.995, 0.2),
        ):

            def draw(rng: Rng, metric: Callable = metric, drawn: tuple = (number, prevalence, area, temperature)) -> Found:
                truth, p = probabilities(rng, *drawn)
                return found(metric(p, truth))

            words = f"n {number}, prevalence {prevalence:g}, AUC {area:g}"
            words += {1.0: "", 0.5: ", too sure", 0.2: ", far too sure"}[temperature]
            true = functools.partial(_loss, metric, prevalence, area, temperature)
            yield Design(title, words, true, draw, has_interval=number >= LEAST_UNITS_OF_LOSS)
        for number, images, alike in ((10, 5, 0.5), (20, (1, 10), 0.5), (60, 5, 0.3)):

            def by_patient(rng: Rng, metric: Callable = metric, drawn: tuple = (number, images, alike)) -> Found:
                number, images, alike = drawn
                patients = Patients(int(rng.binomial(number, 0.5)), 0, images, alike)
                patients = patients._replace(negative=number - patients.positive)
                truth, groups = patients.draw(rng)
                apart = distance(0.85)
                logits = apart * (patients.noise(rng, groups, len(truth)) + apart * truth) - apart**2 / 2
                positive = 1 / (1 + np.exp(-logits))
                return found(metric(np.column_stack([1 - positive, positive]), truth.astype(np.int64), groups))

            words = f"{number} patients, {images} images each, intra-class {alike:g}, AUC 0.85"
            true = functools.partial(_loss, metric, 0.5, 0.85, 1.0)
            yield Design(title, words, true, by_patient, has_interval=number >= LEAST_UNITS_OF_LOSS)

    def calibration(rng: Rng) -> Found:
        truth, p = probabilities(rng, 60, 0.5, 0.8, 1.0)
        return found(calibration_error(p, truth))

    yield Design("calibration error", "n 60", 0.0, calibration, has_interval=False)
