"""Fig. 6.4: size, similarity and diversity of the source data as predictors of transfer."""

from __future__ import annotations

import numpy as np

from crossgraft.rank.published.benchmark import Benchmark
from crossgraft.rank.published.means import mean_over_targets
from crossgraft.rank.published.record import AnswerRecord
from crossgraft.rank.published.sources import shipped
from crossgraft.rank.published.verdict import estimate
from crossgraft.rank.static_prior import relative_ranks
from crossgraft.statistics import spearman
from crossgraft.words.formatting import NumberFormat, count

_TWO = NumberFormat(decimals=2)
BROAD = ("imagenet", "radimagenet", "medmnist")
"""Sources of many kinds of images; all others hold one kind."""


def fig_6_4_answers(benchmark: Benchmark) -> list[AnswerRecord]:
    """The questions of section 6.5.1, answered from the shipped AUCs."""
    return [_size(benchmark), _similarity(benchmark), _diversity(benchmark), _natural(benchmark)]


def _size(benchmark: Benchmark) -> AnswerRecord:
    sizes: dict[str, int] = shipped("source_sizes")["num_training_images"]
    single = [m for m, name in enumerate(benchmark.models) if name in sizes]
    images = np.log([sizes[benchmark.models[m]] for m in single])
    correlations: list[float] = []
    for row in benchmark.results[:, single]:
        known = np.isfinite(row)
        correlations.append(spearman(images[known], row[known]))
    mean_rank = np.nanmean(relative_ranks(benchmark.results[:, single]), axis=0)
    wins, of = _wins(benchmark, "breastmnist", "organsmnist")
    mean = mean_over_targets(np.array(correlations), benchmark.groups, limits=(-1.0, 1.0))
    return AnswerRecord(
        question="Does the size of the source data predict transfer?",
        answer=(
            f"A little. Among the {len(single)} single MedMNIST sources, Spearman's correlation of training images with AUC "
            f"has the mean {estimate(mean)} over {len(correlations)} targets, from {_TWO(min(correlations))} to "
            f"{_TWO(max(correlations))}; with the mean rank of a source it is {_TWO(spearman(images, -mean_rank))}. The thesis "
            f"sees no trend; its example holds: Breast, with {count(sizes['breastmnist'])} images, outperforms OrganS, with "
            f"{count(sizes['organsmnist'])}, on {wins} of {of} targets."
        ),
    )


def _similarity(benchmark: Benchmark) -> AnswerRecord:
    similar = {"Pneumonia": ["chestmnist"], "OrganA": ["organcmnist", "organsmnist"]}
    similar |= {"OrganC": ["organamnist", "organsmnist"], "OrganS": ["organamnist", "organcmnist"]}
    places: list[str] = []
    firsts = 0
    for target, alike in similar.items():
        row = dict(zip(benchmark.models, benchmark.results[list(benchmark.targets).index(target)].tolist(), strict=True))
        order = sorted((name for name in row if np.isfinite(row[name])), key=lambda name: -row[name])
        best = min(alike, key=order.index)
        firsts += order.index(best) == 0
        places.append(f"{target}: {best} is {order.index(best) + 1} of {len(order)}")
    return AnswerRecord(
        question="Is the source of the same kind of images the best one?",
        answer=(
            f"Not reliably: it is the best on {firsts} of the {len(similar)} targets that have a source of their own kind "
            f"({'; '.join(places)})."
        ),
    )


def _diversity(benchmark: Benchmark) -> AnswerRecord:
    ranks = np.nanmean(relative_ranks(benchmark.results), axis=0)
    broad = [m for m, name in enumerate(benchmark.models) if name in BROAD]
    narrow = [m for m in range(len(benchmark.models)) if m not in broad]
    wins, of = _wins(benchmark, "medmnist", "radimagenet")
    best = int(np.sum([np.nanargmax(row) in broad for row in benchmark.results]))
    return AnswerRecord(
        question="Do diverse sources transfer better?",
        answer=(
            f"Yes, here: the three broad sources have the mean relative rank {_TWO(float(ranks[broad].mean()))} (0 = best), the "
            f"{len(narrow)} narrow ones {_TWO(float(ranks[narrow].mean()))}, and a broad one is best on {best} of "
            f"{len(benchmark.targets)} targets. MedMNIST without the target outperforms the larger RadImageNet on {wins} of "
            f"{of}. Three broad sources, each of another size and domain, do not tell diversity from the rest."
        ),
    )


def _natural(benchmark: Benchmark) -> AnswerRecord:
    natural = list(benchmark.models).index("imagenet")
    beaten = [
        target
        for target, row in zip(benchmark.targets, benchmark.results, strict=True)
        if np.nanmax(np.delete(row, natural)) > row[natural]
    ]
    return AnswerRecord(
        question="Do medical sources outperform ImageNet?",
        answer=f"On {len(beaten)} of {len(benchmark.targets)} targets the best medical one does: {', '.join(beaten)}.",
    )


def _wins(benchmark: Benchmark, first: str, second: str) -> tuple[int, int]:
    columns = [benchmark.results[:, list(benchmark.models).index(name)] for name in (first, second)]
    both = np.isfinite(columns[0]) & np.isfinite(columns[1])
    return int(np.sum(columns[0][both] > columns[1][both])), int(both.sum())
