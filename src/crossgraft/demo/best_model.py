"""The best-ranked model is fine-tuned in three ways, and one of them predicts, as a user's own model would.

So is the best-ranked one of another architecture: what a regulariser keeps depends on how a network normalises.

Everything lies in the run directory of the demo: the images as an ``.npz`` file, the model as a zoo file beside its weights, a
few unseen digits as pictures. So the two commands that the demo prints work as they stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossgraft.data.thumbnails import thumbnail_png
from crossgraft.demo.files import DATA_FILE, UNSEEN_FOLDER, write_model, write_unseen
from crossgraft.demo.record import BestModelRecord, ComparedModelRecord, DemoPrediction
from crossgraft.demo.target_task import DemoData
from crossgraft.errors import DataError
from crossgraft.metrics.words import overall
from crossgraft.models import ModelSpec
from crossgraft.predict.verb import predict
from crossgraft.progress import Reporter
from crossgraft.rank.record import RankingRecord
from crossgraft.tune.predictions import Predictions
from crossgraft.tune.record import TuningRecord
from crossgraft.variants.record import FineTuningComparisonRecord
from crossgraft.variants.trainings import read_finished
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
