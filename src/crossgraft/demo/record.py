"""What ``crossgraft demo`` writes around its ranking."""

from __future__ import annotations

import shlex
from pathlib import PurePath
from typing import Literal

from pydantic import Field

from crossgraft.audit.record import AuditRecord
from crossgraft.data.record import SplitRow
from crossgraft.metrics.record import MetricRecord
from crossgraft.rank.record import RankingRecord
from crossgraft.records.base import Record
from crossgraft.select.record import SELECTION_VERSION, SelectionRecord
from crossgraft.variants.record import FineTuningComparisonRecord


class SplitComparison(Record):
    """Accuracy of one probe under two ways to split the same images."""

    probe: str
    shuffled_accuracy: float
    shuffled_low: float
    shuffled_high: float
    grouped_accuracy: float
    grouped_low: float
    grouped_high: float
    explanation: str


class FineTunedRow(Record):
    """Test accuracy of one model after real fine-tuning."""

    model: str
    num_test_images: int
    linear_accuracy: float
    linear_low: float
    linear_high: float
    full_accuracy: float
    full_low: float
    full_high: float
    seeds: int


class DemoPrediction(Record):
    """What the fine-tuned model says about one digit of a held-out writer."""

    target: str = Field(description="The digit that was written.")
    decision: str
    probability: float | None = Field(description="Of the decision, after temperature.")
    png_base64: str | None = Field(default=None, description="The picture; None with --no-images.")


class ComparedModelRecord(Record):
    """Ways to fine-tune a model of another architecture."""

    model: str
    compare_folder: str = Field(description="Run directory, which starts at that of the demo.")
    comparison: FineTuningComparisonRecord


class AuditedModelRecord(Record):
    """What artefacts do to one way to fine-tune the best-ranked model."""

    variant: str
    audit_folder: str = Field(description="Run directory, which starts at that of the demo.")
    audit: AuditRecord


class BestModelRecord(Record):
    """The best-ranked model after ``crossgraft tune``. All paths start at the run directory of the demo."""

    model: str
    splits: list[SplitRow]
    settings: str = Field(description="What was in the slots of the fine-tuning, in one line.")
    num_epochs: int
    selection_rule: str
    metrics: list[MetricRecord] = Field(description="On the unseen writers, over all classes.")
    primary_metric: str
    predictions: list[DemoPrediction]
    data_file: str = Field(description="Training and test images, with writer and split.")
    model_file: str = Field(description="A zoo file of this one model.")
    unseen_folder: str = Field(description="A few pictures of unseen writers, in one folder per class.")
    tune_folder: str = Field(description="Run directory of the fine-tuning.")
    predict_folder: str = Field(description="Run directory of the predictions.")
    code: str | None = Field(default=None, description="The function that builds the network, as --code names it.")
    tune_options: list[str] = Field(description="What to type after data and model to get the same fine-tuning.")
    compared: str | None = Field(default=None, description="Ways to fine-tune; None: written by an earlier version.")
    compare_folder: str | None = Field(default=None, description="Run directory of all of them.")
    comparison: FineTuningComparisonRecord | None = Field(default=None, description="What they gave and kept.")
    other: ComparedModelRecord | None = Field(
        default=None, description="The best-ranked model of another architecture; None: there is none."
    )
    audits: list[AuditedModelRecord] = Field(
        default=[], description="Each way to fine-tune it with artefacts; empty: written by an earlier version."
    )

    def commands(self, run_directory: str | PurePath) -> list[str]:
        """What to type to fine-tune, predict, compare and audit, where ``run_directory`` is how the demo's folder is reached.

        >>> best = BestModelRecord.model_construct(
        ...     data_file="digits.npz", model_file="best.yaml", unseen_folder="new", tune_folder="tune", tune_options=[],
        ...     compared=None, audits=[],
        ... )
        >>> best.commands("runs/demo")[1]
        'crossgraft predict runs/demo/tune runs/demo/new'
        """
        folder = PurePath(run_directory)

        def inside(name: str) -> str:
            return (folder / name).as_posix()

        code = [] if self.code is None else ["--code", self.code]
        tune = ["crossgraft", "tune", inside(self.data_file), "--model", inside(self.model_file), *code]
        tune += self.tune_options
        predict = ["crossgraft", "predict", inside(self.tune_folder), inside(self.unseen_folder), *code]
        compare = [] if self.compared is None else [[*tune, "--compare", self.compared]]
        painted = [row.confounder for audit in self.audits[:1] for row in audit.audit.confounders]
        artefacts = [word for name in painted for word in ("--confounder", name)]
        columns = self.tune_options[:2]  # --group-column writer
        audit = ["crossgraft", "audit", inside(self.tune_folder), "--data", inside(self.data_file), *columns, *code, *artefacts]
        return [shlex.join(words) for words in (tune, predict, *compare, *([audit] if artefacts else []))]


class DemoSelectionRecord(Record):
    """One model selected from the toy zoo within a budget. All paths start at the run directory of the demo."""

    select_folder: str = Field(description="Run directory of the selection.")
    zoo_file: str
    data_file: str
    code: list[str] = Field(description="Functions that build the networks, as --code names them.")
    select_options: list[str] = Field(description="What to type after data and models to select again.")
    selection: SelectionRecord
    accuracy: float = Field(description="Of the selected model, fine-tuned for the check of the ranking.")
    best: str = Field(description="The model with the highest accuracy there.")
    best_accuracy: float
    regret_low: float = Field(description="Interval of the difference, paired over unseen writers.")
    regret_high: float

    def command(self, run_directory: str | PurePath) -> str:
        """What to type to select again, where ``run_directory`` is how the demo's folder is reached."""
        folder = PurePath(run_directory)
        words = ["crossgraft", "select", (folder / self.data_file).as_posix(), "--models", (folder / self.zoo_file).as_posix()]
        return shlex.join([*words, "--code", ",".join(self.code), *self.select_options])


class DemoRecord(Record):
    """What the demo shows around its ranking."""

    schema_version: int = SELECTION_VERSION
    kind: Literal["demo"] = "demo"
    split_comparison: SplitComparison
    fine_tuned: list[FineTunedRow]
    limits: list[str] = Field(description="What the demo cannot show, in sentences.")
    ranking: RankingRecord
    best_model: BestModelRecord | None = Field(default=None, description="None: written by an earlier version.")
    selected: DemoSelectionRecord | None = Field(default=None, description="None: written by an earlier version.")
