"""The best-ranked model is fine-tuned in three ways, and one of them predicts, as a user's own model would.

So is the best-ranked one of another architecture: what a regulariser keeps depends on how a network normalises.

Everything lies in the run directory of the demo: the images as an ``.npz`` file, the model as a zoo file beside its weights, a
few unseen digits as pictures. So the two commands that the demo prints work as they stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from crossgraft.audit.verb import audit_model
from crossgraft.data import Dataset, prepare_batch
from crossgraft.data.describe import thumbnail_png
from crossgraft.demo.files import DATA_FILE, UNSEEN_FOLDER, write_model, write_unseen, write_zoo
from crossgraft.demo.record import (
    AuditedModelRecord,
    BestModelRecord,
    ComparedModelRecord,
    DemoPrediction,
    DemoSelectionRecord,
    FineTunedRow,
)
from crossgraft.demo.toy_zoo import DemoData
from crossgraft.demo.training import FINE_TUNING, FineTuneBoth, FineTuned, FineTuneJob, TargetTask, TrainingRecipe
from crossgraft.errors import DataError
from crossgraft.metrics import accuracy, accuracy_difference
from crossgraft.metrics.words import overall
from crossgraft.models import Backbone, ModelSpec, load_backbone
from crossgraft.predict.verb import predict
from crossgraft.progress import Reporter
from crossgraft.rank.record import RankingRecord
from crossgraft.running.jobs import Job, results_of, run_jobs
from crossgraft.seeding import derive_seed
from crossgraft.select.verb import select_model
from crossgraft.tune.predictions import Predictions
from crossgraft.tune.record import TuningRecord
from crossgraft.variants.record import FineTuningComparisonRecord
from crossgraft.variants.study import read_finished
from crossgraft.variants.verb import compare_fine_tunings

MODEL_FILE, OTHER_MODEL_FILE = "best_model.yaml", "other_model.yaml"
COMPARED = "full,linear,repsim"
"""Everything is trained, only the head, and everything while the features are held near those of the start."""
COMPARE_FOLDER, OTHER_FOLDER, PREDICT_FOLDER = "compare", "compare-other", "predict"


@dataclass(frozen=True)
class BestModelOptions:
    """What the demo says to ``compare_fine_tunings`` beyond data and model.

    Attributes:
        epochs: Passes over the training images; None leaves the choice to ``fine_tune``.
        seed: Random seed.
        no_images: Put no pictures into records and reports.
    """

    epochs: int | None
    seed: int
    no_images: bool

    def typed(self) -> list[str]:
        """The same for the command line. Mirrored digits are no digits, and a toy is no known result."""
        epochs = [] if self.epochs is None else ["--epochs", str(self.epochs)]
        seed = [] if self.seed == 0 else ["--seed", str(self.seed)]
        return ["--group-column", "writer", "--no-flip", *epochs, *seed, "--no-store"]


def best_candidate(ranking: RankingRecord, specs: Sequence[ModelSpec]) -> ModelSpec:
    """The first model by the primary score."""
    rows = [row for row in ranking.ranking(ranking.primary_score).rows if row.rank is not None]
    best = min(rows, key=lambda row: row.rank or 0).model
    return next(spec for spec in specs if spec.name == best)


def best_of_others(ranking: RankingRecord, specs: Sequence[ModelSpec], best: ModelSpec) -> ModelSpec | None:
    """The first model of another architecture than ``best``; None where all are of one."""
    rows = [row for row in ranking.ranking(ranking.primary_score).rows if row.rank is not None]
    named = {spec.name: spec for spec in specs if spec.family != best.family}
    others = [row for row in rows if row.model in named]
    return named[min(others, key=lambda row: row.rank or 0).model] if others else None


def tune_best_model(
    spec: ModelSpec,
    data: DemoData,
    options: BestModelOptions,
    *,
    other: ModelSpec | None = None,
    folder: Path,
    reporter: Reporter,
) -> BestModelRecord:
    """Fine-tune ``spec`` on the training writers, measure it on the unseen ones, and predict one digit of each of those.

    The images are ``DATA_FILE`` in ``folder``, as ``write_data`` writes it.

    ``compare`` and ``predict`` in ``folder``, the run directory of the demo, become run directories of their own, and with an
    ``other`` model, which is only compared, ``compare-other``.

    Raises:
        DataError: The whole network could not be trained.
        StorageError: ``folder`` cannot be written.

    Cost:
        About 15 seconds of one core for each model.
    """
    pictures = write_unseen(data.test, folder / UNSEEN_FOLDER, seed=options.seed)
    comparison = _compare(spec, folder / MODEL_FILE, folder / COMPARE_FOLDER, options, reporter)
    full = next(row for row in comparison.trainings if row.variant == "full")
    tune_folder = f"{COMPARE_FOLDER}/{full.folder}"
    tuned = read_finished(folder / tune_folder)
    if tuned is None:
        raise DataError(f"The whole network could not be trained: {full.reason}")
    predicted = predict(
        folder / tune_folder,
        folder / UNSEEN_FOLDER,
        allow_code=spec.source,
        no_images=options.no_images,
        device="cpu",
        workers=1,
        out=folder / PREDICT_FOLDER,
        overwrite=True,
        ledger=False,
        reporter=reporter,
    )
    best = _in_one_record(tuned, predicted, comparison, tune_folder, pictures, spec, options)
    if other is None:
        return best
    beside = _compare(other, folder / OTHER_MODEL_FILE, folder / OTHER_FOLDER, options, reporter)
    about = ComparedModelRecord(model=other.name, compare_folder=OTHER_FOLDER, comparison=beside)
    return best.model_copy(update={"other": about})


def _compare(
    spec: ModelSpec, model_file: Path, out: Path, options: BestModelOptions, reporter: Reporter
) -> FineTuningComparisonRecord:
    """Three ways to fine-tune one model, which is written beside its weights."""
    write_model(spec, model_file)
    return compare_fine_tunings(
        model_file.parent / DATA_FILE,
        model=model_file,
        allow_code=spec.source,
        compare=COMPARED,
        group_column="writer",
        flip=False,
        epochs=options.epochs,
        seed=options.seed,
        no_images=options.no_images,
        store=False,
        device="cpu",
        workers=1,
        out=out,
        overwrite=True,
        reporter=reporter,
    ).record


def _in_one_record(
    tuned: TuningRecord,
    predicted: Predictions,
    comparison: FineTuningComparisonRecord,
    tune_folder: str,
    pictures: Mapping[str, np.ndarray],
    spec: ModelSpec,
    options: BestModelOptions,
) -> BestModelRecord:
    """What the page of the demo shows of all runs."""
    return BestModelRecord(
        model=spec.name,
        splits=tuned.splits,
        settings=tuned.plan.settings_line,
        num_epochs=max(row.num_epochs or 0 for row in tuned.grid),
        selection_rule=tuned.selection_rule,
        metrics=[row for row in overall(tuned.metrics) if row.split == "test"],
        primary_metric=tuned.primary_metric,
        predictions=[
            DemoPrediction(
                target=row.target or "",
                decision=row.decision,
                probability=row.probability_of_decision(predicted.record.class_names),
                png_base64=None if options.no_images else thumbnail_png(pictures[name]),
            )
            for name, row in zip(predicted.names, predicted.record.rows, strict=True)
        ],
        data_file=DATA_FILE,
        model_file=MODEL_FILE,
        unseen_folder=UNSEEN_FOLDER,
        tune_folder=tune_folder,
        predict_folder=PREDICT_FOLDER,
        code=spec.source,
        tune_options=options.typed(),
        compare_folder=COMPARE_FOLDER,
        compared=COMPARED,
        comparison=comparison,
    )


NUM_SEEDS = 3


@dataclass(frozen=True)
class HonestCheck:
    """Accuracy of every model after fine-tuning, and what is needed to compare two of them.

    Attributes:
        rows: One per model, in the order of the zoo.
        family: Family of each model, by name.
        full_shares: By model, for each test image the share of seeds with which the fine-tuned network is
            right.
        writers: Writer of each test image.
    """

    rows: list[FineTunedRow]
    family: dict[str, str]
    full_shares: dict[str, Float[np.ndarray, " num_test"]]
    writers: np.ndarray

    @property
    def full_accuracy(self) -> dict[str, float]:
        """Mean accuracy over seeds of the whole fine-tuned network, by model."""
        return {row.model: row.full_accuracy for row in self.rows}


def check_zoo(
    specs: Sequence[ModelSpec],
    train: Dataset,
    test: Dataset,
    recipe: TrainingRecipe = FINE_TUNING,
    num_seeds: int = NUM_SEEDS,
    *,
    pool: Executor,
    reporter: Reporter,
    seed: int = 0,
) -> HonestCheck:
    """Fine-tune all models, a linear layer and the whole network, on ``train``, and test them on ``test``.

    ``train`` are the images that were ranked on, ``test`` those of other writers; the ranking must use the same ``seed``, because
    of random weights.

    Cost:
        About 0.4 seconds of one core for each model and seed.
    """
    backbones = [load_backbone(spec, seed=seed) for spec in specs]
    seeds = tuple(derive_seed(seed, "demo fine-tuning", number) for number in range(num_seeds))
    jobs = [
        Job(
            backbone.name,
            FineTuneJob(
                factory=spec.source.rpartition(":")[2],
                num_source_classes=backbone.num_source_classes or 0,
                state={name: tensor.numpy() for name, tensor in backbone.module.state_dict().items()},
                task=_prepare(train, test, backbone),
                recipe=recipe,
                seeds=seeds,
            ),
        )
        for spec, backbone in zip(specs, backbones, strict=True)
    ]
    title = f"Fine-tuning {len(jobs)} toy models to check the ranking"
    with reporter.stage(title, total=len(jobs), unit="models") as stage:
        outcomes = run_jobs(jobs, FineTuneBoth(), keep_going=False, told=lambda _: stage.advance(), executor=pool)
    by_name = {job.name: result for job, result in zip(jobs, results_of(outcomes), strict=True)}
    writers = np.asarray(test.groups)
    return HonestCheck(
        rows=[_row(name, result, writers) for name, result in by_name.items()],
        family={backbone.name: backbone.family for backbone in backbones},
        full_shares={name: result.full.mean(axis=0) for name, result in by_name.items()},
        writers=writers,
    )


def _prepare(train: Dataset, test: Dataset, backbone: Backbone) -> TargetTask:
    """The same preprocessing as in the ranking."""
    train_images, test_images = (
        prepare_batch([part.read(row) for row in range(len(part))], backbone.preprocessing).numpy() for part in (train, test)
    )
    return TargetTask(train_images, train.targets.astype(np.int64), test_images, test.targets.astype(np.int64))


def _row(name: str, result: FineTuned, writers: np.ndarray) -> FineTunedRow:
    linear = accuracy(result.linear, writers)
    full = accuracy(result.full.mean(axis=0), writers)
    return FineTunedRow(
        model=name,
        num_test_images=len(writers),
        linear_accuracy=linear.value,
        linear_low=linear.low,
        linear_high=linear.high,
        full_accuracy=full.value,
        full_low=full.low,
        full_high=full.high,
        seeds=len(result.full),
    )


ZOO_FILE = "zoo.yaml"
SELECT_FOLDER = "select"
BUDGET = "25%"


def select_from_zoo(
    specs: Sequence[ModelSpec], check: HonestCheck, options: BestModelOptions, *, folder: Path, reporter: Reporter
) -> DemoSelectionRecord:
    """Select one model for a quarter of the time that fine-tuning all of them takes.

    ``check`` fine-tuned all of them on the same images, so that it is known what another choice would have given.

    Args:
        specs: The zoo; networks with random weights are left out.
        check: Accuracy of each after real fine-tuning.
        options: As for ``tune_best_model``.
        folder: Run directory of the demo with ``DATA_FILE``; it gets the zoo, and ``select``, a run directory of its own.
        reporter: Reporter of progress.

    Raises:
        StorageError: ``folder`` cannot be written.

    Cost:
        About 10 seconds on two cores; which models are tried depends on how long a step of each takes on this machine.
    """
    pretrained = [spec for spec in specs if spec.weights != "random"]
    write_zoo(pretrained, folder / ZOO_FILE)
    code = list(dict.fromkeys(spec.source for spec in pretrained))
    selection = select_model(
        folder / DATA_FILE,
        models=folder / ZOO_FILE,
        budget=BUDGET,
        allow_code=code,
        group_column="writer",
        flip=False,
        epochs=options.epochs,
        seed=options.seed,
        no_images=options.no_images,
        store=False,
        ledger=False,  # nothing is chosen by what comes out
        device="cpu",
        workers=1,
        out=folder / SELECT_FOLDER,
        overwrite=True,
        reporter=reporter,
    ).record
    accuracies = {spec.name: check.full_accuracy[spec.name] for spec in pretrained}
    best = max(accuracies, key=accuracies.__getitem__)
    regret = accuracy_difference(check.full_shares[best], check.full_shares[selection.selected], check.writers)
    return DemoSelectionRecord(
        select_folder=SELECT_FOLDER,
        zoo_file=ZOO_FILE,
        data_file=DATA_FILE,
        code=code,
        select_options=["--budget", BUDGET, *options.typed()],
        selection=selection,
        accuracy=accuracies[selection.selected],
        best=best,
        best_accuracy=accuracies[best],
        regret_low=regret.low,
        regret_high=regret.high,
    )


CONFOUNDERS = ("low_pass:0.2", "intensity_shift:1.0,offset=0.15", "jpeg:10")
"""Another resolution, another exposure, and strong compression: what a digit of 8 × 8 pixels has room for."""
AUDIT_FOLDER = "audit"


def audit_best_model(best: BestModelRecord, folder: Path, *, no_images: bool, reporter: Reporter) -> BestModelRecord:
    """Ask each fine-tuned model about the digits of the unseen writers without and with three artefacts.

    Args:
        best: What was fine-tuned in ``folder``.
        folder: Run directory of the demo; the audits become run directories in its folder ``audit``.
        no_images: Put no pictures into records and reports.
        reporter: Reporter of progress.

    Raises:
        StorageError: ``folder`` cannot be written.

    Cost: about two seconds of one core.
    """
    trainings = [] if best.comparison is None else best.comparison.trainings
    audits: list[AuditedModelRecord] = []
    for row in trainings:
        if row.folder is None:
            continue
        where = f"{AUDIT_FOLDER}/{row.variant}"
        audit = audit_model(
            folder / str(best.compare_folder) / row.folder,
            data=folder / best.data_file,
            group_column="writer",
            confounders=list(CONFOUNDERS),
            allow_code=best.code,
            ledger=False,  # nothing is chosen by what comes out
            no_images=no_images,
            device="cpu",
            workers=1,
            out=folder / where,
            overwrite=True,
            reporter=reporter,
        ).record
        audits.append(AuditedModelRecord(variant=row.variant, audit_folder=where, audit=audit))
    return best.model_copy(update={"audits": audits})
