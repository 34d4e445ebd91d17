"""Published benchmarks inside the product: their tables recomputed, their scores judged against honest controls."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.rank.published.benchmark import Benchmark as Benchmark
    from crossgraft.rank.published.benchmark import ScoreColumn as ScoreColumn
    from crossgraft.rank.published.benchmark import read_benchmark_table as read_benchmark_table
    from crossgraft.rank.published.evaluate import evaluate_benchmark as evaluate_benchmark
    from crossgraft.rank.published.tables import PUBLISHED as PUBLISHED
    from crossgraft.rank.published.tables import itm_benchmark as itm_benchmark
    from crossgraft.rank.published.tables import thesis_architectures as thesis_architectures
    from crossgraft.rank.published.tables import thesis_datasets as thesis_datasets

lazy_face(__name__)
