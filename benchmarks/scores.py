"""What each score costs, as a ratio to numpy's float32 ``X.T @ X`` measured in the same process, on one thread.

    python benchmarks/scores.py            # shapes A (5000 × 2048, 100 classes) and B (20 000 × 768, 10 classes)
    python benchmarks/scores.py --smoke    # tiny shapes, a second: checks that it runs

A score may cost 1.25 times the sum of the floors that it needs. Floors move between machines (LAPACK's eigensolver by a
factor of two), so they are measured here, not written down. N-LEEP has no such floor: its bound is a multiple of the
product. Seconds are CPU seconds of this process; the best of the repetitions counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky

from crossgraft.compute import limit_threads
from crossgraft.scores import SCORES, ScoreInputs

SLACK = 1.25


class Shape(NamedTuple):
    """One problem, with the multiples of X.T @ X that N-LEEP may cost."""

    name: str
    num_samples: int
    num_features: int
    num_classes: int
    nleep_bound: float


SHAPES = [Shape("A", 5000, 2048, 100, 120.0), Shape("B", 20_000, 768, 10, 40.0)]
SMOKE_SHAPES = [Shape("A, tiny", 300, 64, 6, np.inf), Shape("B, tiny", 600, 32, 3, np.inf)]
SMOKE_SECONDS = 0.01
"""Below this the product is too short to be a unit, and no bound is shown."""

FLOORS_OF = {
    "logme": ("product", "eigh"),
    "regularized_h_score": ("product", "cholesky"),
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
    logits = rng.standard_normal((shape.num_samples, 1000)).astype(np.float32)
    return features, labels, logits


def cpu_seconds(work: Callable[[], object], repetitions: int) -> float:
    """Best CPU seconds of ``work``."""
    best = np.inf
    for _ in range(repetitions):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def measure_floors(features: np.ndarray, num_classes: int, repetitions: int) -> dict[str, float]:
    """Seconds of the building blocks that no exact implementation can leave out."""
    num_features = features.shape[1]
    gram = (features.T @ features).astype(np.float64)
    gram.flat[:: num_features + 1] += gram.diagonal().mean()
    other = features.copy()
    right = np.ones((num_features, num_classes))
    return {
        "product": cpu_seconds(lambda: features.T @ features, repetitions),
        "gemm": cpu_seconds(lambda: features.T @ other, repetitions),
        "eigh": cpu_seconds(lambda: np.linalg.eigh(gram), min(repetitions, 2)),
        "cholesky": cpu_seconds(lambda: cho_solve((cholesky(gram, lower=True), True), right), repetitions),
    }


def run(shape: Shape, names: list[str], repetitions: int) -> None:
    """Measure one shape and print its table."""
    features, labels, logits = make_problem(shape, relu=shape.name.startswith("B"))
    arrays = {"features": features, "labels": labels, "source_logits": logits}
    floors = measure_floors(features, shape.num_classes, repetitions)
    unit = floors["product"]
    print(f"\n{shape.name}: n={shape.num_samples}, d={shape.num_features}, C={shape.num_classes}; unit {unit:.3f} s")
    print("  floors: " + ", ".join(f"{name} {seconds / unit:.2f}" for name, seconds in floors.items()))
    for name in names:
        score = SCORES.get(name)

        def evaluate(score=score) -> object:
            return score.evaluate(ScoreInputs(**{name: arrays[name] for name in score.inputs if name in arrays}))

        ratio = cpu_seconds(evaluate, 1 if name in ("nleep", "knn_probe", "linear_probe") else repetitions) / unit
        bound = SLACK * sum(floors[floor] for floor in FLOORS_OF[name]) / unit if name in FLOORS_OF else np.inf
        bound = shape.nleep_bound if name == "nleep" else bound
        bound = bound if unit > SMOKE_SECONDS else np.inf
        verdict = "" if np.isinf(bound) else f"  bound {bound:7.2f}  {'ok' if ratio <= bound else 'TOO SLOW'}"
        print(f"  {name:22s} {ratio:9.2f}{verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="tiny shapes")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--scores", nargs="+", default=[name for name in SCORES.names() if name != "linear_probe"])
    parser.add_argument("--shapes", nargs="+", help="names of shapes, for example A")
    arguments = parser.parse_args()
    with limit_threads(1):
        for shape in SMOKE_SHAPES if arguments.smoke else SHAPES:
            if not arguments.shapes or shape.name in arguments.shapes:
                run(shape, arguments.scores, arguments.repetitions)


if __name__ == "__main__":
    main()
