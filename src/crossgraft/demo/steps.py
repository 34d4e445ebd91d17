"""``run_demo``: everything once, offline, on real handwriting, with an honest check at the end."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crossgraft.compute import limit_threads
from crossgraft.data import Dataset, open_dataset
from crossgraft.data.describe import make_thumbnails
from crossgraft.demo.best_model import (
    AUDIT_FOLDER,
    COMPARE_FOLDER,
    MODEL_FILE,
    NUM_SEEDS,
    OTHER_FOLDER,
    OTHER_MODEL_FILE,
    PREDICT_FOLDER,
    SELECT_FOLDER,
    ZOO_FILE,
    BestModelOptions,
    HonestCheck,
    audit_best_model,
    best_candidate,
    best_of_others,
    check_zoo,
    select_from_zoo,
    tune_best_model,
)
from crossgraft.demo.files import DATA_FILE, UNSEEN_FOLDER, write_data
from crossgraft.demo.record import DemoRecord, FineTunedRow
from crossgraft.demo.toy_zoo import (
    FAMILIES,
    SHUFFLED_LABELS,
    Family,
    build_zoo,
    default_cache_dir,
    divide_digits,
    factory_of,
    make_source_tasks,
)
from crossgraft.demo.training import FINE_TUNING, PRETRAINING, TrainingRecipe, compare_splits
from crossgraft.metrics import accuracy_difference
from crossgraft.models import read_zoo
from crossgraft.options._values import refuse_empty
from crossgraft.progress import Reporter
from crossgraft.rank.record import AgreementRecord, RankingRecord
from crossgraft.rank.verb import rank_models
from crossgraft.records.base import Thumbnail
from crossgraft.result import Result
from crossgraft.running.jobs import worker_pool
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import open_run
from crossgraft.storage.atomic import scratch_folder, write_atomically
from crossgraft.words.formatting import MINUS
from crossgraft.words.visible import csv_text

if TYPE_CHECKING:
    import pandas as pd


def limits_of(ranking: RankingRecord, check: HonestCheck, train: Dataset) -> list[str]:
    """From what holds for any run to what these numbers leave open."""
    return [
        _toy_models(ranking),
        _writers(check, train),
        *_agreement(ranking),
        *_fine_tuned_pairs(check),
        *_shuffled_labels(ranking),
        *_random_weights(ranking, check),
    ]


def _toy_models(ranking: RankingRecord) -> str:
    largest = max(model.num_parameters for model in ranking.models)
    return (
        f"These are toy models: at most {largest:,} parameters, 8×8 pixels, pretrained here for seconds on "
        "images that ship with scikit-learn. Their order says nothing about real backbones; the demo shows "
        "what the tool does."
    )


def _writers(check: HonestCheck, train: Dataset) -> str:
    num_test, num_train = len(np.unique(check.writers)), len(np.unique(np.asarray(train.groups)))
    return (
        "Writers stand in for patients. Who wrote which digit is reconstructed, not official (13 writers "
        f"are documented, the reconstruction gives 14). The test has {len(check.writers)} images of "
        f"{num_test} writers of whom no model has seen any digit. Its intervals are about other test "
        f"writers, not about another choice of the {len(train)} training images from {num_train} writers."
    )


def _agreement(ranking: RankingRecord) -> list[str]:
    """Sentences on whether fine-tuning supports the order by the primary score, over all models and within each family."""
    title = next(score.title for score in ranking.scores if score.name == ranking.primary_score)
    rows = [row for row in ranking.agreement if row.score == ranking.primary_score]
    return [_agreement_sentence(title, row) for row in rows]


def _agreement_sentence(title: str, row: AgreementRecord) -> str:
    among = f"Among the {row.num_models} models" + (f" of the family {row.family}" if row.family else "")
    if row.weighted_kendall is None:
        return f"{among}, {title} cannot be compared with fine-tuning: {row.reason}."
    measured = f"{among}, {title} agrees with fine-tuning with a weighted Kendall of {_signed(row.weighted_kendall)}"
    if row.low is None or row.high is None:
        return f"{measured}, without an interval: {row.reason}."
    measured += f", 95 % interval [{_signed(row.low)}, {_signed(row.high)}]"
    if row.low > 0:
        return f"{measured}: better than chance, with these models and this task."
    return f"{measured}: this does not show that its order is better than chance."


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", MINUS)


def _fine_tuned_pairs(check: HonestCheck) -> list[str]:
    """Sentences on the number of pairs of fine-tuned accuracies that differ, within each family."""
    sentences: list[str] = []
    for family in dict.fromkeys(check.family.values()):
        members = [name for name in check.full_shares if check.family[name] == family]
        pairs = list(combinations(members, 2))
        differing = sum(
            not accuracy_difference(check.full_shares[a], check.full_shares[b], check.writers).contains_zero for a, b in pairs
        )
        sentences.append(
            f"Even after fine-tuning, {differing} of the {len(pairs)} pairs within the family {family} "
            "differ by more than the 95 % interval of their difference over test writers (not corrected for "
            "the number of pairs)."
        )
    return sentences


def _shuffled_labels(ranking: RankingRecord) -> list[str]:
    """Sentences on the ranks of the models that were pretrained on labels without meaning."""
    rows = ranking.ranking(ranking.primary_score).rows
    ranked = [row for row in rows if row.rank is not None]
    controls = [row for row in ranked if row.model.endswith(SHUFFLED_LABELS)]
    if not controls:
        return []
    ranks = " and ".join(f"{row.model} at rank {row.rank}" for row in controls)
    return [
        f"Controls that were pretrained on shuffled labels stand among the {len(ranked)} candidates: "
        f"{ranks}. A candidate that is not separable from them or ranks below them has not shown that its "
        "source taught anything useful."
    ]


def _random_weights(ranking: RankingRecord, check: HonestCheck) -> list[str]:
    """Sentences on the number of pretrained models that beat no pretraining at all, once they are fine-tuned."""
    sentences: list[str] = []
    for control in (model for model in ranking.models if model.role == "random weights"):
        others = [name for name in check.full_shares if check.family[name] == control.family and name != control.name]
        baseline = check.full_shares[control.name]
        better = sum(accuracy_difference(check.full_shares[name], baseline, check.writers).low > 0 for name in others)
        sentences.append(
            f"Fine-tuned from random weights, the {control.family} reaches {baseline.mean():.3f}. Of its "
            f"{len(others)} pretrained versions, {better or 'none'} can be said to do better, by an interval of the "
            "difference above 0."
        )
    return sentences


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
            zoo_file = build_zoo(tasks, plan.families, plan.pretraining, pool=pool, cache_dir=cache, reporter=reporter, seed=seed)
            specs = read_zoo(zoo_file, allow_code=[factory_of(family) for family in plan.families])
        with timed("fine-tune"):
            check = check_zoo(
                specs, data.train, data.test, plan.fine_tuning, plan.num_seeds, pool=pool, reporter=reporter, seed=seed
            )
    if out is not None:
        rows = [list(row.model_dump().values()) for row in check.rows]
        write_atomically(Path(out) / "fine_tuned.csv", csv_text(list(FineTunedRow.model_fields), rows))
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


@dataclass(frozen=True, eq=False, repr=False)
class DemoResult(Result[DemoRecord]):
    """What the demo measured: ``record`` holds every number."""

    def summary(self) -> str:
        """The advice of its ranking."""
        return self.record.ranking.advice

    def to_frame(self) -> pd.DataFrame:
        """One row per model that was fine-tuned."""
        import pandas as pd

        return pd.DataFrame([row.model_dump() for row in self.record.fine_tuned])


OWN = (
    *(f"{folder}/" for folder in (COMPARE_FOLDER, OTHER_FOLDER, PREDICT_FOLDER, AUDIT_FOLDER, SELECT_FOLDER, UNSEEN_FOLDER)),
    *(DATA_FILE, MODEL_FILE, OTHER_MODEL_FILE, ZOO_FILE, "fine_tuned.csv"),
)
"""What is written beside the files of the run itself."""

INTRODUCTION = (
    "crossgraft finds the pretrained model that suits your images without fine-tuning them all, fine-tunes it, and says how far "
    "each number can be trusted. Here is all of that on real handwriting, offline, in about a minute."
)


def write_demo(
    *,
    out: str | Path,
    seed: int = 0,
    cache_dir: str | Path | None = None,
    fast: bool = False,
    no_images: bool = False,
    overwrite: bool = False,
    reporter: Reporter | None = None,
) -> DemoResult:
    """Run the demo; write ``run.json``, ``report.json``, ``fine_tuned.csv`` and ``report.html``.

    The best-ranked model gets run directories of its own inside, ``tune`` and ``predict``, beside the files that were given
    to them (see ``demo.best_model``).

    Args:
        out: Run directory.
        seed: Random seed.
        cache_dir: Where the toy zoo is kept.
        fast: Fewer models and steps.
        no_images: Put no thumbnails into the report.
        overwrite: Replace another run in ``out``.
        reporter: Where progress goes; silent when None.

    Returns:
        What was measured, and the report, unless that could not be written.

    Raises:
        RunDirectoryError: ``out`` is in use or holds another run.
        StorageError: Something cannot be written.
    """
    refuse_empty("out", out)
    path = Path(out)
    reporter = reporter or Reporter(quiet=True)
    config: dict[str, object] = {"seed": seed, "fast": fast, "no_images": no_images}
    named = path.name if path.is_absolute() else str(path)
    words = ["crossgraft", "demo", "--out", named, "--seed", str(seed), *["--fast"] * fast, *["--no-images"] * no_images]
    with open_run(path, command="demo", command_line=shlex.join(words), config=config, seed=seed, overwrite=overwrite) as run:
        run.own(*OWN)
        reporter.say(INTRODUCTION)
        with reporter.spared():
            record = run_demo(
                out=path, seed=seed, cache_dir=cache_dir, fast=fast, no_images=no_images, reporter=reporter, timed=run.stage
            )
        fingerprints = {model.name: model.weights_fingerprint for model in record.ranking.models}
        run.update(data_fingerprint=record.ranking.dataset.fingerprint, weights_fingerprints=fingerprints)
        page = publish(run, record, reporter, thumbnails=None if no_images else lambda: _thumbnails(seed))
        return DemoResult(record, path, page)


def _thumbnails(seed: int) -> list[Thumbnail]:
    return make_thumbnails(divide_digits(open_dataset("digits"), seed=seed).train)
