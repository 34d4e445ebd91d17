"""Does what is believed of networks come true as often as it says? Every published table: docs/results/calibration.md.

    python recipes/benchmark_calibration.py --out docs/results/calibration.md
    python recipes/benchmark_calibration.py --smoke     # one small table; the same code

It needs the package alone. As in recipes/benchmark.py nothing is known of the target, nor of related ones, in any table. What is
believed of its networks is compared with their results before anything is seen of it, after cheap trainings and after whole ones.
What is measured is kept beside the page as a CSV file.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmark import ALL, CHEAP, SMOKE, Replay, cheap_trainings, own_share, replay_of, val_errors
from benchmark_calibration_page import NOTHING, OTHER_PUBLICATIONS, OTHER_TARGETS, WHOLE, Calibration, write_page
from benchmark_select_page import read_rows, write_rows
from scipy import special, stats

from crossgraft.compute import limit_threads
from crossgraft.rank.aggregate import normal_scores
from crossgraft.rank.belief import Belief, Observation, believe
from crossgraft.rank.kinds import without_outliers
from crossgraft.rank.scale_mixture import BeliefPart

SHARE_TRIED, LEAST_TRIED = 0.2, 3
"""Networks that are fine-tuned whole, as many as a selection within a fifth of the budget would try."""
LEAST_JUDGED = 3
SMALL_CHANCE = 0.05
INTERVALS = (0.5, 0.9, 0.95)


class Judged(NamedTuple):
    """Networks of one target with what is believed of them and what came out, both less their mean.

    Attributes:
        belief: What is believed of all.
        places: Numbers of the networks.
        truth: What came out, in the unit of the belief.
    """

    belief: Belief
    places: np.ndarray
    truth: np.ndarray


def main(command_line: Sequence[str] | None = None) -> None:
    """Measure, keep the numbers and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/results/calibration.md"))
    parser.add_argument("--smoke", action="store_true", help="One small table.")
    parser.add_argument("--page-only", action="store_true", help="Write the page of the numbers that are kept.")
    arguments = parser.parse_args(command_line)
    kept = arguments.out.with_suffix(".csv")
    if not arguments.page_only:
        write_rows(kept, Calibration, measure_all(SMOKE if arguments.smoke else ALL))
    arguments.out.write_text(write_page(read_rows(kept, Calibration)), encoding="utf-8")
    print(f"Page: {arguments.out.name}")


def measure_all(names: Sequence[str]) -> Iterator[Calibration]:
    """Every target of the tables."""
    with limit_threads(1):
        for name in names:
            replay = replay_of(name)
            for target in range(len(replay.benchmark.targets)):
                yield from measure(replay, target)
            print(f"{name}: {len(replay.benchmark.targets)} targets", flush=True)


def measure(replay: Replay, target: int) -> Iterator[Calibration]:
    """One target, with and without the other targets of its table, after each sort of evidence."""
    benchmark = replay.benchmark
    models = benchmark.known(target)
    names = [replay.names[model] for model in models]
    own = [row.model_copy(update={"origin": "replay"}) for row in replay.rows]
    results, name = benchmark.results[target, models], benchmark.targets[target]
    beliefs = {
        OTHER_TARGETS: believe(names, known=own, target=name, metric=replay.metric),
        OTHER_PUBLICATIONS: believe(names, target=name, metric=replay.metric, without=[replay.origin]),
    }
    for knows, belief in beliefs.items():
        every = np.arange(len(names))
        states = {NOTHING: (belief, every)}
        for seen, observations in cheap(replay, target, models, names):
            states[seen] = belief.after(observations), every
        tried = np.argsort(-belief.mean, kind="stable")[: max(LEAST_TRIED, round(SHARE_TRIED * len(names)))]
        states[WHOLE] = belief.after(whole(replay, target, models, names, tried)), np.setdiff1d(every, tried)
        for seen, (after, places) in states.items():
            if len(places) >= LEAST_JUDGED:
                judged = Judged(after, places, truth_of(after, results)[places])
                yield Calibration(benchmark.name, name, benchmark.groups[target], knows, seen, *judge(judged))


def truth_of(belief: Belief, results: np.ndarray) -> np.ndarray:
    """Results in the unit of the belief; a training that went wrong is last, however far."""
    return normal_scores(results[None])[0] if belief.unit == "normal score" else without_outliers(results)


def cheap(
    replay: Replay, target: int, models: np.ndarray, names: Sequence[str]
) -> Iterator[tuple[str, list[Observation]]]:
    """Each kind of cheap training, of all networks."""
    for kind, words in CHEAP.items():
        if replay.table is not None and kind in replay.table.kinds:
            yield words, cheap_trainings(replay, kind, target, models, names)


def whole(
    replay: Replay, target: int, models: np.ndarray, names: Sequence[str], tried: np.ndarray
) -> list[Observation]:
    """Whole trainings of some networks: val where it is published, else the result itself with the error of its seeds."""
    table, values = replay.table, replay.benchmark.results[target, models]
    errors = np.zeros(len(models))
    if table is not None and table.validation is not None:
        values = table.validation[target, models]
        errors = own_share(replay, target) * val_errors(table, target, models)
    elif table is not None and table.standard_deviations is not None:
        errors = np.nan_to_num(table.standard_deviations[target, models] / np.sqrt(table.num_seeds))
    return [Observation(names[i], "full", float(values[i]), float(errors[i])) for i in tried.tolist()]


def judge(judged: Judged) -> tuple[int, float, float, float, float, float, float, int, float, float]:
    """What ``Calibration`` says of the networks and of their pairs; see the page for what the numbers mean."""
    belief, places, truth = judged
    number, spread = len(places), float(truth.std()) or 1.0
    mean, deviation = marginals(belief, places)
    left = (truth - truth.mean()) / spread - mean / spread
    weights = np.array([part.weight for part in parts_of(belief)])
    each = stats.norm(scale=np.maximum(deviation / spread, 1e-6))
    log_score = float(special.logsumexp(each.logpdf(left), b=weights[:, None], axis=0).mean())
    central = np.abs(2 * weights @ each.cdf(left) - 1)
    half, nine_tenths, most = (float(np.mean(central <= share)) for share in INTERVALS)
    expected = weights @ mean
    variance = weights @ (deviation**2 + (mean - expected) ** 2)
    z_squared = float(np.mean((truth - truth.mean() - expected) ** 2 / np.maximum(variance, 1e-12)))
    return (number, z_squared, log_score, half, nine_tenths, most, *of_pairs(judged))


def parts_of(belief: Belief) -> tuple[BeliefPart, ...]:
    """The normal distributions whose mixture it is."""
    return belief.parts or (BeliefPart(1.0, belief.mean, belief.covariance),)


def marginals(belief: Belief, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of networks less their mean, a row for each part of the belief."""
    centre = np.eye(len(places)) - 1 / len(places)
    means = [centre @ part.mean[places] for part in parts_of(belief)]
    variances = [np.diag(centre @ part.covariance[np.ix_(places, places)] @ centre) for part in parts_of(belief)]
    return np.array(means), np.sqrt(np.maximum(variances, 1e-12))


def of_pairs(judged: Judged) -> tuple[float, int, float, float]:
    """Mean logarithm of the chance of what came true; number of small chances, their mean and how often they came true."""
    belief, places, truth = judged
    chances: list[tuple[float, bool]] = []
    for i, a in enumerate(places):
        for j, b in enumerate(places):
            if truth[i] > truth[j]:
                chance = belief.probability_better(belief.models[a], belief.models[b])
                chances += [(chance, True), (1 - chance, False)]
    said, came = np.array([chance for chance, _ in chances]), np.array([true for _, true in chances])
    small = said < SMALL_CHANCE
    shares = (float(said[small].mean()), float(came[small].mean())) if small.any() else (0.0, 0.0)
    return float(np.log(np.maximum(said[came], 1e-6)).mean()), int(small.sum()), *shares


if __name__ == "__main__":
    main()
