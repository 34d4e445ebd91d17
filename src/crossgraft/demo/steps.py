"""``run_demo``: everything once, offline, on real handwriting, with an honest check at the end."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from crossgraft.compute import limit_threads
from crossgraft.data import open_dataset
from crossgraft.demo.audited import audit_best_model
from crossgraft.demo.best_model import BestModelOptions, best_candidate, best_of_others, tune_best_model
from crossgraft.demo.files import DATA_FILE, write_data
from crossgraft.demo.fine_tuning import FINE_TUNING
from crossgraft.demo.honest_check import NUM_SEEDS, check_zoo
from crossgraft.demo.limits import limits_of
from crossgraft.demo.pretrain import PRETRAINING
from crossgraft.demo.record import DemoRecord, FineTunedRow
from crossgraft.demo.selected import select_from_zoo
from crossgraft.demo.source_tasks import make_source_tasks
from crossgraft.demo.split_comparison import compare_splits
from crossgraft.demo.target_task import divide_digits
from crossgraft.demo.toy_zoo import FAMILIES, Family, build_zoo, default_cache_dir, factory_of
from crossgraft.demo.training import TrainingRecipe
from crossgraft.models import read_zoo
from crossgraft.progress import Reporter
from crossgraft.rank.verb import rank_models
from crossgraft.running.workers import worker_pool
from crossgraft.storage.atomic import write_atomically
from crossgraft.storage.temporaries import scratch_folder
from crossgraft.words.csv_cells import csv_text

Timed = Callable[[str], AbstractContextManager[object]]

GROUND_TRUTH_NAME = "accuracy on unseen writers after fine-tuning"


@dataclass(frozen=True)
class DemoPlan:
    """How much the demo does; ``tune_epochs`` None leaves the choice to ``fine_tune``."""

    families: Sequence[Family]
    pretraining: TrainingRecipe
    fine_tuning: TrainingRecipe
    num_seeds: int
    tune_epochs: int | None


FULL = DemoPlan(FAMILIES, PRETRAINING, FINE_TUNING, NUM_SEEDS, None)
FAST = DemoPlan(FAMILIES[:1], replace(PRETRAINING, steps=60), replace(FINE_TUNING, steps=40), 1, 10)


def run_demo(
    *,
    out: str | Path | None = None,
    seed: int = 0,
    cache_dir: str | Path | None = None,
    fast: bool = False,
    no_images: bool = False,
    reporter: Reporter | None = None,
    timed: Timed = nullcontext,
) -> DemoRecord:
    """Compare two ways to split, pretrain a toy zoo, fine-tune all of it, and see whether a ranking agrees.

    All models are fine-tuned by a short loop in worker processes, three times each. ``select_model`` takes one of them within a
    budget; the best-ranked one goes through ``fine_tune``, ``predict`` and ``audit_model``.

    Args:
        out: Folder for ``fine_tuned.csv``, the accuracy of each model, and for all that the best one needs and gives (see
            ``demo.best_model``); nothing is kept when None.
        seed: Random seed.
        cache_dir: Where the toy zoo and features are kept; ``CROSSGRAFT_CACHE`` or the user's cache folder when
            None.
        fast: One architecture, fewer steps, one fine-tuning of each model: to see that it runs.
        no_images: Put no pictures into records and reports.
        reporter: Where progress goes; silent when None.
        timed: Makes the block around each step, given its name (``RunDirectory.stage``).

    Returns:
        All that was measured, and what it does not show.

    Raises:
        CrossgraftError: A worker process was killed.
        StorageError: The cache or ``out`` cannot be written.

    Cost:
        About 85 seconds of one core, shared by two; 70 once the zoo is in the cache.
    """
    plan = FAST if fast else FULL
    reporter = reporter or Reporter(quiet=True)
    cache = Path(cache_dir) if cache_dir is not None else default_cache_dir()
    digits = open_dataset("digits")
    data = divide_digits(digits, seed=seed)
    with limit_threads(1), worker_pool() as pool:
        with timed("compare splits"), reporter.stage("Comparing shuffled folds with folds of whole writers"):
            comparison = compare_splits(digits, seed=seed)
        with timed("pretrain the toy zoo"):
            tasks = make_source_tasks(data.source, seed=seed)
            zoo_file = build_zoo(
                tasks, plan.families, plan.pretraining, pool=pool, cache_dir=cache, reporter=reporter, seed=seed
            )
            specs = read_zoo(zoo_file, allow_code=[factory_of(family) for family in plan.families])
        with timed("fine-tune"):
            check = check_zoo(
                specs, data.train, data.test, plan.fine_tuning, plan.num_seeds, pool=pool, reporter=reporter, seed=seed
            )
    if out is not None:
        write_atomically(Path(out) / "fine_tuned.csv", _as_csv(check.rows))
    with timed("rank"):
        ranking = rank_models(
            data.train,
            models=specs,
            ground_truth=check.full_accuracy,
            ground_truth_column=GROUND_TRUTH_NAME,
            holdout=0.0,  # the unseen writers are held out already
            seed=seed,
            device="cpu",
            workers=1,  # the networks are so small that a second thread only waits
            cache_dir=cache / "features",
            reporter=reporter,
        ).record
    options = BestModelOptions(plan.tune_epochs, seed, no_images)
    with _folder(out) as folder:
        write_data(data, folder / DATA_FILE)
        with timed("select within a budget"):
            selected = select_from_zoo(specs, check, options, folder=folder, reporter=reporter)
        with timed("fine-tune the best model"):
            first = best_candidate(ranking, specs)
            other = best_of_others(ranking, specs, first)
            best = tune_best_model(first, data, options, other=other, folder=folder, reporter=reporter)
        with timed("audit"):
            best = audit_best_model(best, folder, no_images=no_images, reporter=reporter)
    return DemoRecord(
        split_comparison=comparison,
        fine_tuned=check.rows,
        limits=limits_of(ranking, check, data.train),
        ranking=ranking,
        best_model=best,
        selected=selected,
    )


@contextmanager
def _folder(out: str | Path | None) -> Generator[Path]:
    """``out``, or a folder that is gone after the block: ``predict`` reads the model from a file."""
    if out is not None:
        yield Path(out)
        return
    with scratch_folder("demo") as folder:
        yield folder


def _as_csv(rows: Sequence[FineTunedRow]) -> str:
    return csv_text(list(FineTunedRow.model_fields), [list(row.model_dump().values()) for row in rows])
