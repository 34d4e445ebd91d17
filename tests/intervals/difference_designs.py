"""Designs of differences: of two models on the same images, of subgroups, of variants with several seeds, of audits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np

from crossgraft.audit.fold_scores import (
    AuditedImages,
    FoldScores,
    difference_of_areas,
    reliance_terms,
    scores_by_share,
    sum_of_areas,
)
from crossgraft.data import dataset_from_arrays
from crossgraft.fewshot.evaluate import EpisodeTable
from crossgraft.metrics import (
    MetricRow,
    MetricValue,
    accuracy,
    accuracy_difference,
    auc,
    auc_combination,
    auc_difference,
    share_of_images,
)
from crossgraft.metrics.subgroups import confidence_of_each, gap_row
from crossgraft.statistics import WithInterval, independent_difference
from crossgraft.variants.comparison import MeasuredImages, difference
from intervals.coverage import Design, Found
from intervals.images import Patients, Rng, distance, shares_by_group, two_scores
from intervals.metric_designs import found


def designs() -> Iterator[Design]:
    """All of them."""
    yield from _accuracies()
    yield from _areas()
    yield from _gaps()
    yield from _variants()
    yield from _reliance()
    yield from _episodes()


def _accuracies() -> Iterator[Design]:
    for number, both, first, second in (
        (20, 0.9, 0.05, 0.01),
        (20, 0.85, 0.06, 0.04),
        (40, 0.9, 0.05, 0.01),
        (40, 0.85, 0.06, 0.04),
        (10, 0.8, 0.1, 0.0),
        (60, 0.5, 0.2, 0.1),
        (200, 0.9, 0.01, 0.01),
        (400, 0.9, 0.005, 0.0),
        (20, 0.9, 0.0, 0.0),
        (8, 0.3, 0.3, 0.3),
    ):

        def draw(rng: Rng, drawn: tuple = (number, both, first, second)) -> Found:
            number, both, first, second = drawn
            of = rng.choice(4, p=[both, first, second, 1 - both - first - second], size=number)
            estimate = accuracy_difference(of <= 1, (of == 0) | (of == 2))
            return Found(estimate.value, estimate.low, estimate.high)

        words = f"n {number}, both right {both:g}, only one {first:g}, only the other {second:g}"
        yield Design("difference of accuracies", words, first - second, draw)
    for groups, images, alike in ((10, 10, 0.3), (20, (1, 20), 0.5), (60, 5, 0.3), (5, 20, 0.1)):

        def by_patient(rng: Rng, groups: int = groups, images: int | tuple = images, alike: float = alike) -> Found:
            changed, patient = shares_by_group(rng, groups, images, 0.1, alike)
            gained = changed & (rng.random(len(patient)) < 0.7)
            lost = changed & ~gained
            estimate = accuracy_difference(~lost, ~gained, patient)
            return Found(estimate.value, estimate.low, estimate.high)

        words = f"{groups} patients, {images} images each, 0.07 gained, 0.03 lost, intra-class {alike:g}"
        yield Design("difference of accuracies", words, 0.04, by_patient)

    def of_seeds(rng: Rng) -> Found:
        hard = rng.beta(4, 1, size=60)
        one, other = (np.mean([rng.random(60) < hard - shift for _ in range(3)], axis=0) for shift in (0.0, 0.05))
        estimate = accuracy_difference(one, other)
        return Found(estimate.value, estimate.low, estimate.high)

    many = np.random.default_rng(0).beta(4, 1, size=1_000_000)
    truth = float(np.clip(many, 0, 1).mean() - np.clip(many - 0.05, 0, 1).mean())
    yield Design("difference of accuracies", "n 60, shares of three seeds", truth, of_seeds)


def _areas() -> Iterator[Design]:
    for positive, negative, first, second, alike in (
        (10, 30, 0.97, 0.9, 0.0),
        (10, 30, 0.97, 0.9, 0.5),
        (10, 30, 0.9, 0.9, 0.95),
        (20, 20, 0.8, 0.7, 0.5),
        (20, 20, 0.6, 0.55, 0.9),
        (50, 50, 0.99, 0.98, 0.8),
        (5, 55, 0.9, 0.8, 0.5),
        (3, 57, 0.9, 0.8, 0.5),
        (100, 100, 0.7, 0.68, 0.3),
        (20, 180, 0.95, 0.95, 0.0),
    ):

        def draw(rng: Rng, drawn: tuple = (positive, negative, first, second, alike)) -> Found:
            positive, negative, first, second, alike = drawn
            truth = np.arange(positive + negative) < positive
            one = rng.normal(size=len(truth))
            other = two_scores(rng, one, alike)
            return found(auc_difference(one + distance(first) * truth, other + distance(second) * truth, truth.astype(np.int64)))

        words = f"n {positive + negative}, {positive} positive, {first:g} and {second:g}, correlation {alike:g}"
        yield Design("difference of AUCs", words, first - second, draw)
    for positive, negative, area, changed in ((10, 30, 0.9, 0.03), (20, 20, 0.55, 0.05), (50, 150, 0.9, 0.01)):

        def nearly_equal(rng: Rng, drawn: tuple = (positive, negative, area, changed)) -> Found:
            positive, negative, area, changed = drawn
            truth = np.arange(positive + negative) < positive
            one = rng.normal(size=len(truth)) + distance(area) * truth
            other = np.where(rng.random(len(truth)) < changed, rng.normal(size=len(truth)), one)
            return found(auc_difference(one, other, truth.astype(np.int64)))

        words = f"n {positive + negative}, {positive} positive, {area:g}, scores equal but for {changed:g} of the images"
        yield Design("difference of AUCs", words, changed * (area - 0.5), nearly_equal)
    for patients, first, second, alike in (
        (Patients(4, 16, 5, 0.7), 0.9, 0.85, 0.5),
        (Patients(10, 10, 5, 0.7), 0.9, 0.8, 0.5),
        (Patients(30, 30, (1, 12), 0.3), 0.9, 0.88, 0.8),
        (Patients(6, 54, 5, 0.5), 0.8, 0.8, 0.9),
    ):

        def by_patient(rng: Rng, patients: Patients = patients, drawn: tuple = (first, second, alike)) -> Found:
            truth, groups = patients.draw(rng)
            first, second, alike = drawn
            noise = [patients.noise(rng, groups, len(truth)) for _ in range(2)]
            other = alike * noise[0] + np.sqrt(1 - alike**2) * noise[1]
            scores = noise[0] + distance(first) * truth, other + distance(second) * truth
            return found(auc_difference(*scores, truth.astype(np.int64), groups))

        words = f"{patients.positive + patients.negative} patients, {patients.positive} positive, {patients.images} images "
        words += f"each, intra-class {patients.alike:g}, {first:g} and {second:g}, correlation {alike:g}"
        yield Design("difference of AUCs", words, first - second, by_patient)

    def of_cells(rng: Rng) -> Found:
        truth, cell = np.repeat([1, 1, 0, 0], 12), np.tile(np.repeat([True, False], 12), 2)
        scores = rng.normal(size=48) + distance(0.8) * truth
        among = [np.where(truth == 1, cell, ~cell), np.where(truth == 1, ~cell, cell)]
        return found(auc_combination([(0.5, scores), (-0.5, scores)], truth, among=among))

    yield Design("difference of AUCs", "two cells of 24 images by an attribute, 0.8", 0.0, of_cells)
    for number in (20, 60):

        def several(rng: Rng, number: int = number) -> Found:
            truth = np.arange(number) % 3
            noise = rng.normal(size=(number, 3))
            other = 0.7 * noise + np.sqrt(0.51) * rng.normal(size=(number, 3))
            signal = distance(0.8) / np.sqrt(2) * np.eye(3)[truth]
            return found(auc_difference(noise + signal, other + signal, truth))

        yield Design("difference of AUCs", f"macro over three classes, n {number}, correlation 0.7", 0.0, several)


def _gaps() -> Iterator[Design]:
    for sizes, shares in (
        ((50, 50, 50), (0.8, 0.8, 0.8)),
        ((50, 50), (0.8, 0.8)),
        ((40, 15, 12, 20, 30), (0.9,) * 5),
        ((100, 40, 30), (0.95, 0.9, 0.7)),
        ((30,) * 10, (0.85,) * 10),
    ):
        for metric in ("accuracy", "auc") if len(sizes) == 3 else ("accuracy",):

            def draw(rng: Rng, sizes: tuple = sizes, shares: tuple = shares, metric: str = metric) -> Found | None:
                attribute = np.repeat(np.arange(len(sizes)), sizes)
                truth = rng.integers(0, 2, size=len(attribute))
                logits = rng.normal(size=len(truth)) + 2 * distance_of_share(shares)[attribute] * (truth - 0.5)
                rows = []
                for each in range(len(sizes)):
                    mine, confidence = attribute == each, confidence_of_each(len(sizes))
                    if metric == "auc" and len(np.unique(truth[mine])) < 2:
                        return None
                    value = (
                        auc(logits[mine], truth[mine], confidence=confidence)
                        if metric == "auc"
                        else share_of_images((logits > 0)[mine] == truth[mine], None, confidence=confidence)
                    )
                    rows.append(MetricRow(metric, *value[:5], attribute="site", attribute_value=str(each)))
                gap = gap_row(rows)
                return None if gap is None or gap.value is None else Found(gap.value, gap.low, gap.high)

            areas = [_area_of_share(share) if metric == "auc" else share for share in shares]
            words = f"{metric}, subgroups of {sizes}, {shares} right"
            yield Design("largest gap", words, max(areas) - min(areas), draw)

    def val_and_test(rng: Rng) -> Found:
        ends = []
        for number, share in ((30, 0.9), (60, 0.8)):
            value, low, high, *_ = accuracy(rng.random(number) < share)
            ends.append(WithInterval(value, low, high))
        return Found(*independent_difference(*ends))

    yield Design("difference of other images", "accuracy of 30 images at 0.9, of 60 at 0.8", 0.1, val_and_test)


def distance_of_share(shares: tuple[float, ...]) -> np.ndarray:
    """Half the distance of two normal distributions of which this share lies on its own side of the middle."""
    return np.array([distance(share) / np.sqrt(2) for share in shares])


def _area_of_share(share: float) -> float:
    from scipy import stats

    return float(stats.norm.cdf(2 * stats.norm.ppf(share) / np.sqrt(2)))


def _variants() -> Iterator[Design]:
    for number, num_classes, num_seeds, of_seed, patients in (
        (40, 2, 1, 0.0, 0),
        (40, 4, 1, 0.0, 0),
        (40, 2, 3, 0.05, 0),
        (200, 3, 5, 0.03, 0),
        (100, 2, 2, 0.03, 0),
        (100, 2, 3, 0.02, 20),
    ):
        truth = np.arange(number) % num_classes
        groups = np.arange(number) * patients // number if patients else None
        pictures = np.zeros((number, 2, 2, 3), np.uint8)
        data = dataset_from_arrays(pictures, truth, groups=groups)

        def draw(rng: Rng, data: object = data, num_seeds: int = num_seeds, of_seed: float = of_seed) -> Found:
            images = MeasuredImages(data, "balanced_accuracy")
            targets = data.targets
            units = np.arange(len(targets)) if data.groups is None else np.unique(data.groups, return_inverse=True)[1]
            hard = rng.normal(size=units.max() + 1)[units] * 0.7 + rng.normal(size=len(targets)) * 0.7

            def answers(better: float) -> np.ndarray:
                # latent ability, with noise of the seed that all of its images share
                right = hard + 0.5 * rng.normal(size=len(targets)) < better + rng.normal() * of_seed * 4
                return np.where(right, targets, (targets + 1) % (targets.max() + 1))

            sides = [[images.measure(answers(better)) for _ in range(num_seeds)] for better in (0.9, 0.7)]
            record = difference(*sides, images)
            return Found(record.value or 0.0, record.low, record.high)

        from scipy import stats

        spread = np.sqrt(0.98 + 0.25 + (4 * of_seed) ** 2)
        right = [float(stats.norm.cdf(better / spread)) for better in (0.9, 0.7)]
        words = f"n {number}, {num_classes} classes, {num_seeds} seeds"
        words += f", {patients} patients" if patients else ""
        yield Design("tune --compare, balanced accuracy", words, right[0] - right[1], draw, in_ci=num_seeds == 1)
    data = dataset_from_arrays(np.zeros((60, 2, 2, 3), np.uint8), (np.arange(60) < 12).astype(np.int64))

    def areas(rng: Rng) -> Found:
        images = MeasuredImages(data, "auc")
        noise = rng.normal(size=60)
        sides = []
        for area in (0.9, 0.85):
            scores = 0.7 * noise + np.sqrt(0.51) * rng.normal(size=60) + distance(area) * data.targets
            positive = 1 / (1 + np.exp(-scores))
            sides.append([images.measure(np.column_stack([1 - positive, positive]))])
        record = difference(*sides, images)
        return Found(record.value or 0.0, record.low, record.high)

    yield Design("tune --compare, AUC", "n 60, 12 positive, 0.9 and 0.85", 0.05, areas)

    def the_same(rng: Rng) -> Found:
        images = MeasuredImages(data, "balanced_accuracy")
        one = images.measure(np.where(rng.random(60) < 0.8, data.targets, 1 - data.targets))
        record = difference([one], [one], images)
        return Found(record.value or 0.0, record.low, record.high)

    yield Design("tune --compare, balanced accuracy", "n 60, the same answers", 0.0, the_same)


def _reliance() -> Iterator[Design]:
    shares = (0.0, 0.5, 1.0)
    for patients, relies, num_folds in (
        (Patients(20, 60), 0.0, 3),
        (Patients(20, 60), 1.0, 3),
        (Patients(6, 24, 3, 0.5), 0.5, 3),
        (Patients(100, 100), 0.3, 5),
    ):

        def scores(rng: Rng, patients: Patients, relies: float, num_folds: int, slope: float = 1.0) -> tuple:
            truth, groups = patients.draw(rng)
            noise = patients.noise(rng, groups, len(truth))
            found_scores = []
            for fold in range(num_folds):
                for share in shares:
                    clean = distance(0.85) * truth + 0.9 * noise + np.sqrt(0.19) * rng.normal(size=len(truth))
                    edited = clean + relies * share * slope + 0.1 * rng.normal(size=len(truth))
                    p, q = (1 / (1 + np.exp(-each)) for each in (clean, edited))
                    decided = np.stack([p, q]) >= 0.5
                    found_scores.append(FoldScores(fold, share, share, p, q, decided, decided))
            names = [str(row) for row in range(len(truth))]
            return found_scores, AuditedImages(truth.astype(bool), groups, names)

        def draw(rng: Rng, drawn: tuple = (patients, relies, num_folds), scores: object = scores) -> Found:
            return found(_reliance_of(*scores(rng, *drawn)))

        def truth(relies: float = relies, scores: Callable[..., tuple] = scores) -> float:
            return _reliance_of(*scores(np.random.default_rng(0), Patients(50_000, 50_000), relies, 2)).value

        words = f"{patients.positive + patients.negative} patients, {patients.positive} positive, {patients.images} images "
        words += f"each, {num_folds} folds, slope {relies:g}"
        yield Design("shortcut reliance index", words, truth, draw, in_ci=False)

    def models(rng: Rng) -> Found:
        one, tested = scores(rng, Patients(20, 60), 0.5, 2)
        other = [
            FoldScores(each.fold, each.share, each.share, each.clean, each.clean, each.decided, each.decided) for each in one
        ]
        terms = [reliance_terms(scores_by_share(each), tested) for each in (one, other)]
        return found(difference_of_areas(*terms, tested))

    yield Design(
        "difference of reliance", "80 patients, 20 positive, 2 folds", functools.partial(truth, 0.5, scores), models, in_ci=False
    )


def _reliance_of(scores: list[FoldScores], tested: AuditedImages) -> MetricValue:
    return sum_of_areas(reliance_terms(scores_by_share(scores), tested), tested)


def _episodes() -> Iterator[Design]:
    for number, share, alike, queries in (
        (5, 0.7, 0.1, 75),
        (10, 0.95, 0.1, 25),
        (20, 0.98, 0.1, 15),
        (100, 0.9, 0.2, 75),
        (600, 0.7, 0.1, 75),
    ):

        def draw(rng: Rng, drawn: tuple = (number, share, alike, queries)) -> Found:
            number, share, alike, queries = drawn
            spread = 1 / alike - 1
            right = rng.binomial(queries, rng.beta(share * spread, (1 - share) * spread, size=number)) / queries
            return _of_table(right[:, None], None)

        words = f"{number} episodes of {queries} queries, {share:g} right"
        yield Design("fewshot mean", words, share, draw)
    for number, changed, queries in ((5, 0.1, 75), (20, 0.01, 25), (20, 0.1, 25), (100, 0.002, 75), (600, 0.02, 75)):

        def paired(rng: Rng, number: int = number, changed: float = changed, queries: int = queries) -> Found:
            each = rng.beta(8, 3, size=number)
            right = rng.binomial(queries, each)
            gained = rng.binomial(queries - right, changed)
            lost = rng.binomial(right, changed / 4)
            return _of_table(np.column_stack([right + gained - lost, right]) / queries, "b")

        truth = changed * 3 / 11 - changed / 4 * 8 / 11
        words = f"{number} episodes of {queries} queries, answers changed in {changed:g}"
        yield Design("fewshot difference", words, truth, paired)


def _of_table(accuracies: np.ndarray, other: str | None) -> Found:
    number, heads = accuracies.shape
    counts = np.full(number, 5)
    table = EpisodeTable(("a", "b")[:heads], accuracies, np.zeros(heads), counts, counts, counts)
    value = table.accuracy("a") if other is None else table.difference("a", other)
    if value.reason is not None:
        return Found(value.mean, None, None)
    return Found(value.mean, value.mean - value.half_width, value.mean + value.half_width)
