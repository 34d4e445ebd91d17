"""What is asked of an audit, and what both kinds of audit give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from crossgraft.audit.frequency_record import AuditFrequencies
from crossgraft.audit.mitigation import Mitigation
from crossgraft.audit.options import AuditOptions
from crossgraft.audit.record import AuditDifference, AuditEntry, AuditMode, ConfounderRecord, FileFactRow, ImagesNeeded
from crossgraft.data import Dataset
from crossgraft.edit._image_edit import ImageEdit
from crossgraft.models.record import ModelRecord
from crossgraft.progress import Reporter
from crossgraft.records.base import CheckRecord, Reference, Thumbnail
from crossgraft.running.run_directory import RunDirectory


@dataclass(frozen=True, eq=False)
class Asked:
    """What the options name.

    Attributes:
        edits: Artefacts that are put into images.
        attributes: Columns whose groups confound, as they were written.
        absent: Edits of images that do not carry the artefact.
        mitigations: What plain training is compared with.
        shares: p_art, ascending from 0.
    """

    edits: Sequence[ImageEdit]
    attributes: Sequence[str]
    absent: Sequence[ImageEdit]
    mitigations: Sequence[Mitigation]
    shares: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class AuditCall:
    """One call of ``audit_model``, and where it runs.

    Attributes:
        model: What is audited.
        asked: What the options name.
        options: All options.
        directory: Run directory, or None.
        reporter: Reporter of progress.
        device: ``cpu``, ``cuda`` …
        num_threads: Number of threads that read images and compute.
    """

    model: Any
    asked: Asked
    options: AuditOptions
    directory: RunDirectory | None
    reporter: Reporter
    device: str
    num_threads: int


@dataclass(eq=False)
class Audited:
    """What was found, before it becomes a record.

    Attributes:
        dataset: All rows.
        test: Those that were measured on.
        positive: Class in question.
        is_positive: (n,) who is of it.
        mode: How it was measured.
        fingerprint: What names the models.
        training_key: What names the training of a fine-tuned model in the ledger; None for others.
        models: The models; empty for what can only be asked.
        confounders: What was put into images.
        entries: One per model, confounder and mitigation.
        differences: Models beside the one that relies least.
        needs: Numbers of images that a verdict needs.
        manifest: One row per image and fold, with the share from which on it carries an artefact.
        attribute_rows: One row per image that is taken for an attribute, by share and fold.
        frequency: Frequencies of images, artefacts and networks; None: they were not asked for.
        file_facts: How well facts of the file tell the class.
        checks: Findings about the rows.
        notes: What the report says beside the numbers.
        references: Publications.
        pictures: Makes the pictures of the report.
    """

    dataset: Dataset
    test: np.ndarray
    positive: str
    is_positive: np.ndarray
    mode: AuditMode
    fingerprint: str = ""
    training_key: str | None = None
    models: list[ModelRecord] = field(default_factory=list[ModelRecord])
    confounders: list[ConfounderRecord] = field(default_factory=list[ConfounderRecord])
    entries: list[AuditEntry] = field(default_factory=list[AuditEntry])
    differences: list[AuditDifference] = field(default_factory=list[AuditDifference])
    needs: list[ImagesNeeded] = field(default_factory=list[ImagesNeeded])
    manifest: pd.DataFrame = field(default_factory=pd.DataFrame)
    attribute_rows: pd.DataFrame = field(default_factory=pd.DataFrame)
    frequency: AuditFrequencies | None = None
    file_facts: list[FileFactRow] = field(default_factory=list[FileFactRow])
    checks: list[CheckRecord] = field(default_factory=list[CheckRecord])
    notes: list[str] = field(default_factory=list[str])
    references: list[Reference] = field(default_factory=list[Reference])
    pictures: Callable[[], list[Thumbnail]] | None = None
