"""What each score costs, as a ratio to numpy's float32 ``X.T @ X`` measured in the same process, on one thread.

    python benchmarks/scores.py                       # shapes A (5000 × 2048, 100 classes) and B (20 000 × 768, 10 classes)
    python benchmarks/scores.py --scores parc,sfda    # some of them
    python benchmarks/scores.py --rounds              # with what a ranking adds: 20 blocks left out, 5 shuffled labels
    python benchmarks/scores.py --ranking             # the default scores of one model of a ranking, 10 000 × 1 280, 500 classes
    python benchmarks/scores.py --smoke               # tiny shapes, a second: checks that it runs

A score may cost 1.25 times the sum of the floors that it needs. Floors move between machines (LAPACK's eigensolver by a
factor of two), so they are measured here, not written down. N-LEEP and NCA have no such floor: their bound is a multiple
of the product. Seconds are CPU seconds of this process; floors and scores are measured in turns, and the best of the
rounds counts, so that other work on the machine meets all alike. Gradient scores need a network and are not here.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, eigh

from crossgraft.compute import limit_threads, measure_cost, reuse_freed_memory
from crossgraft.progress import Stage
from crossgraft.rank.evaluate import evaluate_scores, plan_resampling, without_intervals
from crossgraft.scores import DEFAULT_SCORES, SCORES, ScoreInputs

SLACK = 1.25


class Shape(NamedTuple):
    """One problem, with the multiples of X.T @ X that N-LEEP and NCA may cost."""

    name: str
    num_samples: int
    num_features: int
    num_classes: int
    bounds: dict[str, float]


SHAPES = [
    Shape("A", 5000, 2048, 100, {"nleep": 120.0, "nca_score": 40.0}),
    Shape("B", 20_000, 768, 10, {"nleep": 40.0, "nca_score": 60.0}),
]
SMOKE_SHAPES = [Shape("A, tiny", 300, 64, 6, {}), Shape("B, tiny", 600, 32, 3, {})]
SMOKE_SECONDS = 0.01
"""Below this the product is too short to be a unit, and no bound is shown."""
GROWTH = [(1000, 10), (3000, 10), (10_000, 10), (10_000, 100), (10_000, 500)]
"""Images and classes of ``--rounds``; the exponents are those between the last two of the images, and of the classes."""
GROWTH_FEATURES = 512
_TICK = 1e-4
RANKED = Shape("ranking", 10_000, 1280, 500, {})
"""Of ``--ranking``, as efficientnet-lite0 gives them."""
SMOKE_GROWTH = [(60, 3), (120, 3), (120, 6)]
NUM_SOURCE_CLASSES = 1000
MEMORY_OF = "parc"
"""The score whose memory could grow with the pairs of images."""

FLOORS_OF = {
    "logme": ("product", "eigh"),
    "h_score": ("product", "eigh"),
    "regularized_h_score": ("product", "cholesky"),
    "gbc": ("product", "leading"),
    "parc": ("product", "pairs"),
    "sfda": ("product", "product", "cholesky", "cholesky"),
    "etran": ("product", "cholesky"),
    "ped": ("product", "product", "cholesky", "cholesky"),
    "ncti": ("product", "leading"),
    "transrate": ("product", "cholesky", "classes"),
    "lfc": ("product",),
    "itm": ("training",),
    "lead": ("product", "eigh", "gemm", "head"),
}
ONCE = ("nleep", "knn_probe", "linear_probe", "pactran", "nca_score")
"""Evaluated once whatever the number of rounds."""
FAMILY = (
    *("nce", "leep", "logme", "h_score", "regularized_h_score", "gbc", "ncti", "sfda", "etran", "ped", "energy"),
    *("transrate", "lfc", "parc", "nleep"),
)
"""The scores that train nothing, in an order in which the last two find every shared statistic ready."""
FAMILY_FLOORS = ("product", "eigh", "eigh", "cholesky")
FAMILY_SLACK = 1.3
ROUNDS_TAKE_MINUTES = ("parc", "pactran", "nca_score", "linear_probe", "nleep", "itm", "lead")
"""Not with ``--rounds``, unless they are named."""
NOT_MEASURED = {
    "linear_probe": "minutes; name it with --scores",
    "gradient_ratio": "needs a network and images",
    "nca_gradient": "needs a network and images",
}


def make_problem(shape: Shape, *, relu: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features with a decaying spectrum and class means, labels, and source logits."""
    rng = np.random.default_rng(0)
    labels = np.arange(shape.num_samples) % shape.num_classes
    spectrum = 1 / np.sqrt(1 + np.arange(shape.num_features) / 16)
    mixing = np.linalg.qr(rng.standard_normal((shape.num_features, shape.num_features)))[0].astype(np.float32)
    means = 0.7 * rng.standard_normal((shape.num_classes, shape.num_features))
    noise = rng.standard_normal((shape.num_samples, shape.num_features))
    features = ((noise + means[labels]) * spectrum).astype(np.float32) @ mixing
    if relu:
        features = np.maximum(features, 0)
    logits = rng.standard_normal((shape.num_samples, NUM_SOURCE_CLASSES)).astype(np.float32)
    return features, labels, logits


def cpu_seconds(work: Callable[[], object], repetitions: int = 1) -> float:
    """Best CPU seconds of ``work``."""
    best = np.inf
    for _ in range(repetitions):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def floors_of(features: np.ndarray, labels: np.ndarray) -> dict[str, Callable[[], object]]:
    """The building blocks that no exact implementation can leave out."""
    num_samples, num_features = features.shape
    num_classes = int(labels.max()) + 1
    gram = (features.T @ features).astype(np.float64)
    gram.flat[:: num_features + 1] += gram.diagonal().mean()
    other = features.copy()
    right = np.ones((num_features, num_classes))
    of_class = [features[labels == index] for index in range(num_classes)]
    head = [np.ones(size, dtype=np.float32) for size in ((num_features, 1024), (1024, 2048))]
    asked = features[: min(64 * num_classes, num_samples)]
    weights, batch = np.ones((num_features, num_classes), dtype=np.float32), features[:256]

    def pairs() -> None:
        """Half of all products of two rows, and a sort of them."""
        for start in range(0, num_samples, 512):
            products = features[start : start + 512] @ features[start:].T
            np.sort(products.ravel()[: products.size - 512 * 256])  # less the half of its first square

    def classes() -> None:
        for rows in of_class:
            product = (rows @ rows.T if len(rows) < num_features else rows.T @ rows).astype(np.float64)
            product.flat[:: len(product) + 1] += gram[0, 0]
            cholesky(product, lower=True, overwrite_a=True, check_finite=False)

    def random_head() -> None:
        """Forward and, through the second layer, back."""
        hidden = asked @ head[0]
        (hidden @ head[1]) @ head[1].T

    def training() -> None:
        """500 steps of a linear map: forward, and the gradient of its weights."""
        for _ in range(500):
            batch.T @ (batch @ weights)

    return {
        "product": lambda: features.T @ features,
        "gemm": lambda: features.T @ other,
        "eigh": lambda: np.linalg.eigh(gram),
        "leading": lambda: eigh(gram, subset_by_index=(max(0, num_features - 64), num_features - 1)),
        "cholesky": lambda: cho_solve((cholesky(gram, lower=True), True), right),
        "pairs": pairs,
        "classes": classes,
        "head": random_head,
        "training": training,
    }


def run(shape: Shape, names: list[str], repetitions: int, *, with_family: bool) -> None:
    """Measure one shape and print its table; ``with_family`` also what many scores cost on shared inputs."""
    features, labels, logits = make_problem(shape, relu=shape.name.startswith("B"))
    arrays = {"features": features, "labels": labels, "source_logits": logits}
    floors = floors_of(features, labels)
    needed = {"product", "gemm", "eigh", "cholesky", *(floor for name in names for floor in FLOORS_OF.get(name, ()))}

    def evaluate(name: str) -> object:
        score = SCORES.get(name)
        return score.evaluate(ScoreInputs(**{key: arrays[key] for key in score.inputs if key in arrays}))

    best: dict[str, float] = defaultdict(lambda: np.inf)
    for number in range(repetitions):
        for name, floor in floors.items():
            if name in needed:
                best[name + " floor"] = min(best[name + " floor"], cpu_seconds(floor))
        for name in names:
            if number == 0 or name not in ONCE:
                best[name] = min(best[name], cpu_seconds(lambda name=name: evaluate(name)))
    unit = best["product floor"]
    print(f"\n{shape.name}: n={shape.num_samples}, d={shape.num_features}, C={shape.num_classes}; unit {unit:.3f} s")
    print("  floors: " + ", ".join(f"{name} {best[name + ' floor'] / unit:.2f}" for name in floors if name in needed))
    for name in names:
        bound = shape.bounds.get(name, np.inf)
        if name in FLOORS_OF:
            bound = SLACK * sum(best[floor + " floor"] for floor in FLOORS_OF[name]) / unit
        print_row(name, best[name] / unit, bound if unit > SMOKE_SECONDS else np.inf)
    if MEMORY_OF in names:
        with measure_cost() as cost:
            evaluate(MEMORY_OF)
        print(f"  {MEMORY_OF}: peak {cost.peak_bytes / 1e9:.2f} GB beside {features.nbytes / 1e9:.2f} GB of features")
    if with_family:
        run_family(shape, best, arrays, repetitions)


def run_family(shape: Shape, best: dict[str, float], arrays: dict[str, np.ndarray], repetitions: int) -> None:
    """All scores that train nothing, on one set of inputs, so that each statistic is computed once."""

    def evaluate_all() -> dict[str, float]:
        start = time.process_time()
        inputs = ScoreInputs(**arrays)
        seconds = {"checks": time.process_time() - start}
        for name in FAMILY:
            seconds[name] = cpu_seconds(lambda name=name: SCORES.get(name).evaluate(inputs))
        return seconds

    seconds = min((evaluate_all() for _ in range(repetitions)), key=lambda measured: sum(measured.values()))
    unit = best["product floor"]
    bound = FAMILY_SLACK * sum(best[floor + " floor"] for floor in FAMILY_FLOORS) + seconds["parc"] + seconds["nleep"]
    total = sum(seconds.values())
    print(f"\n{shape.name}: all scores that train nothing, on one set of inputs")
    print("  " + ", ".join(f"{name} {value / unit:.2f}" for name, value in seconds.items()))
    print_row("together", total / unit, bound / unit if unit > SMOKE_SECONDS else np.inf)


class _NoStage:
    """Rounds of ``rank`` without a bar."""

    def advance(self, amount: int = 1) -> None:
        """Nothing to show."""

    def note(self, text: str) -> None:
        """Nothing to tell."""


class Rounds(NamedTuple):
    """CPU seconds of one score of one model.

    Attributes:
        value: Seconds of the value of all images.
        blocks: Seconds of the values without each of 20 blocks.
        shuffled: Seconds of the values with shuffled labels, five times.
        floor: What value and blocks cannot do without: the product over all rows, and over the rows of every block, to take
            them out again; every other floor of the score once for the value and once for each block. NaN where none is known.
    """

    value: float
    blocks: float
    shuffled: float
    floor: float

    @property
    def total(self) -> float:
        """All three."""
        return self.value + self.blocks + self.shuffled


def run_rounds(growth: Sequence[tuple[int, int]], num_features: int, names: list[str]) -> None:
    """What a ranking evaluates of each score, for several numbers of images and of classes, and how it grows with both."""
    stage: Stage = _NoStage()
    measured: dict[str, list[Rounds]] = defaultdict(list)
    for num_samples, num_classes in growth:
        features, labels, logits = make_problem(Shape("", num_samples, num_features, num_classes, {}), relu=True)
        arrays = {"features": features, "labels": labels, "source_logits": logits}
        floors = floors_of(features, labels)
        resampling = plan_resampling(labels, None, seed=0)
        print(f"\nrounds: n={num_samples}, d={num_features}, C={num_classes}; CPU seconds, value and blocks by their floor")
        for name in names:
            score = SCORES.get(name)
            needed = FLOORS_OF.get(name, ())
            seconds = {floor: cpu_seconds(floors[floor], 3) for floor in {*needed}}
            repeated = sum(seconds[floor] * (2 if floor == "product" else 21) for floor in needed)
            given = {key: arrays[key] for key in score.inputs if key in arrays}
            parts: list[float] = []
            for blocks, shuffled in (((), ()), (resampling.blocks, ()), ((), resampling.shuffled_labels)):
                rounds = replace(resampling, blocks=blocks, shuffled_labels=shuffled)
                inputs = ScoreInputs(**given)
                parts.append(
                    cpu_seconds(
                        lambda s=score, i=inputs, r=rounds: evaluate_scores([s], i, r, interval_seconds=math.inf, stage=stage)
                    )
                )
            one = Rounds(parts[0], parts[1] - parts[0], parts[2] - parts[0], repeated or math.nan)
            measured[name].append(one)
            print_rounds(name, one)
        defaults = [measured[name][-1] for name in DEFAULT_SCORES if name in names]
        if len(defaults) == len(DEFAULT_SCORES):
            print(f"  {'all default scores':22s} {sum(one.total for one in defaults):8.2f}", flush=True)
    print("\nexponents of value, and of all rounds: in images, in classes")
    for name, rounds in measured.items():
        print(f"  {name:22s} " + "  ".join(f"{value:5.2f} {total:5.2f}" for value, total in _exponents(growth, rounds)))


def run_ranking(shape: Shape) -> None:
    """One model as a ranking has it: values of all default scores, later their 20 blocks and 5 shufflings, on shared inputs.

    The floor: distances of all pairs by one product, the Gram matrix and that of the blocks, a tridiagonal form with its vectors
    (an eigendecomposition) and a Cholesky factor of all rows and of the rows without each block.
    """
    features, labels, logits = make_problem(shape, relu=True)
    floors = floors_of(features, labels)
    seconds = {name: cpu_seconds(floors[name], 2) for name in ("product", "eigh", "cholesky")}
    pairs = cpu_seconds(lambda: [features[start : start + 512] @ features.T for start in range(0, len(features), 512)])
    floor = pairs + 2 * seconds["product"] + 21 * (seconds["eigh"] + seconds["cholesky"])
    resampling, stage = plan_resampling(labels, None, seed=0), _NoStage()
    scores = [SCORES.get(name) for name in DEFAULT_SCORES]
    arrays = {"features": features, "labels": labels, "source_logits": logits}
    with reuse_freed_memory():
        start = time.process_time()
        inputs = ScoreInputs(**arrays)
        first = evaluate_scores(scores, inputs, without_intervals(resampling), interval_seconds=math.inf, stage=stage)
        values = time.process_time() - start
        again = ScoreInputs(**arrays)
        again.share(inputs)
        evaluate_scores(scores, again, resampling, interval_seconds=math.inf, stage=stage, first=first)
        total = time.process_time() - start
    print(f"\nranking: n={shape.num_samples}, d={shape.num_features}, C={shape.num_classes}; CPU seconds")
    print(
        f"  values {values:.2f}  intervals {total - values:.2f}  together {total:.2f}  {total / floor:.2f} × floor ({floor:.2f})"
    )


def _exponents(growth: Sequence[tuple[int, int]], rounds: Sequence[Rounds]) -> list[tuple[float, float]]:
    """The b of seconds ~ images^b, between the two largest numbers of images with the fewest classes, and the same of classes."""
    fewest, most = growth[0][1], growth[-1][0]
    pairs = [
        [place for place, shape in enumerate(growth) if shape[1] == fewest][-2:],
        [place for place, shape in enumerate(growth) if shape[0] == most][-2:],
    ]
    exponents: list[tuple[float, float]] = []
    for axis, (first, last) in enumerate(pairs):
        grown = math.log(growth[last][axis] / growth[first][axis])
        less, more = rounds[first], rounds[last]
        exponents.append((_log_ratio(more.value, less.value) / grown, _log_ratio(more.total, less.total) / grown))
    return exponents


def _log_ratio(more: float, less: float) -> float:
    """Of seconds, of which a clock of CPU time may see none."""
    return math.log(max(more, _TICK) / max(less, _TICK))


def print_rounds(name: str, one: Rounds) -> None:
    ratio = "" if math.isnan(one.floor) else f"  {(one.value + one.blocks) / one.floor:6.2f} × floor"
    print(f"  {name:22s} value {one.value:7.3f}  blocks {one.blocks:7.2f}  shuffled {one.shuffled:6.2f}{ratio}", flush=True)


def print_row(name: str, ratio: float, bound: float) -> None:
    verdict = "" if np.isinf(bound) else f"  bound {bound:7.2f}  {'ok' if ratio <= bound else 'TOO SLOW'}"
    floors = f"  ({' + '.join(FLOORS_OF[name])})" if name in FLOORS_OF else ""
    print(f"  {name:22s} {ratio:9.2f}{verdict}{floors}", flush=True)


def chosen_scores(given: list[str]) -> list[str]:
    """Names apart by commas or blanks; by default all that can be measured here in minutes."""
    named = [name for part in given for name in part.split(",") if name]
    if named:
        return [SCORES.get(name).name for name in named]
    for name, reason in NOT_MEASURED.items():
        print(f"{name}: not measured ({reason})")
    return [name for name in SCORES.names() if name not in NOT_MEASURED]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="tiny shapes")
    parser.add_argument("--repetitions", type=int, default=3, help="rounds of which the best counts")
    parser.add_argument("--scores", nargs="+", default=[], help="names, apart by commas or blanks")
    parser.add_argument("--family", action="store_true", help="with --scores: also all that train nothing, together")
    parser.add_argument("--shapes", nargs="+", help="names of shapes, for example A")
    parser.add_argument("--ranking", action="store_true", help="the default scores of one model, together")
    parser.add_argument("--rounds", action="store_true", help="what a ranking evaluates, for more and more images and classes")
    arguments = parser.parse_args()
    names = chosen_scores(arguments.scores)
    with limit_threads(1):
        if arguments.ranking or arguments.smoke:
            run_ranking(SMOKE_SHAPES[0] if arguments.smoke else RANKED)
            if arguments.ranking:
                return
        if arguments.rounds or arguments.smoke:
            growth, num_features = (SMOKE_GROWTH, 16) if arguments.smoke else (GROWTH, GROWTH_FEATURES)
            left_out = () if arguments.scores else ROUNDS_TAKE_MINUTES
            wanted = [name for name in names if name not in left_out and (not arguments.smoke or name in DEFAULT_SCORES)]
            run_rounds(growth, num_features, wanted)
            if arguments.rounds:
                return
        for shape in SMOKE_SHAPES if arguments.smoke else SHAPES:
            if not arguments.shapes or shape.name in arguments.shapes:
                run(shape, names, arguments.repetitions, with_family=not arguments.scores or arguments.family)


if __name__ == "__main__":
    main()
