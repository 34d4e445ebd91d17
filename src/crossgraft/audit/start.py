"""The network that an audited model started from, and the clean images that heads on it are fitted to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from crossgraft.audit.explained import NO_START, Start
from crossgraft.audit.options import AuditOptions
from crossgraft.audit.subjects import Subject
from crossgraft.data import Dataset
from crossgraft.errors import UsageError
from crossgraft.models import ModelSpec, load_backbone, read_zoo
from crossgraft.progress import Reporter
from crossgraft.tune.pretrained_start import pretrained_start
from crossgraft.tune.result import FineTuningResult
from crossgraft.tune.rows_of_run import run_directory_of, split_of_run

_ONLY_THE_HEAD = "linear"
"""Method that leaves the network as it was."""


def named_start(options: AuditOptions, reporter: Reporter) -> ModelSpec | None:
    """The model of ``--start``.

    Raises:
        UsageError: It names several.
        UnknownNameError: There is no such model.
        MissingWeightsError: Its weights are not on this machine.
    """
    if options.start is None:
        return None
    several = [options.start] if isinstance(options.start, ModelSpec) else options.start
    found = read_zoo(
        several,
        weights_dir=options.weights_dir,
        weights_key=options.weights_key,
        weights_prefix=options.weights_prefix,
        allow_code=options.allow_code,
        reporter=reporter,
    )
    if len(found) != 1:
        raise UsageError(
            f"--start is one network, and {options.start} names {len(found)}. Add its name: zoo.yaml:NAME."
        )
    return found[0]


def start_of(
    model: Any,
    subject: Subject,
    dataset: Dataset,
    audited: np.ndarray,
    is_positive: np.ndarray,
    options: AuditOptions,
    reporter: Reporter,
    device: str,
) -> Start | str:
    """The starting network with the images that its heads are fitted to; or why there is none, as a sentence.

    Args:
        model: What was given.
        subject: The same, as what is asked.
        dataset: All images.
        audited: Numbers of the audited rows.
        is_positive: (n,) whether an image is of the class in question.
        options: Options of the audit.
        reporter: Reporter of progress.
        device: Where the network of ``--start`` goes.
    """
    rows = _training_rows(model, subject, dataset)
    rows = rows[~np.isin(rows, audited)]
    fitting = None if not len(rows) else dataset.take(rows)
    is_fitting = None if fitting is None else is_positive[rows]
    saved = subject.model
    spec = named_start(options, reporter)
    if spec is not None:
        side = None
        if saved is not None:
            wanted = saved.classifier.preprocessing
            side = wanted.height_pixels if wanted.height_pixels == wanted.width_pixels else None
        network = load_backbone(
            spec,
            seed=options.seed,
            device=device,
            weights_dir=options.weights_dir,
            allow_download=options.allow_download,
            image_size=side,
            reporter=reporter,
        )
        return Start(network, f"{spec.name} as named", fitting, is_fitting)
    if saved is None:
        return NO_START
    if any(each.kind == "method" and each.spelling == _ONLY_THE_HEAD for each in saved.facts.plugins):
        in_words = f"{subject.name}, of which only the head was trained,"
        return Start(saved.classifier, in_words, fitting, is_fitting, is_of_model=True)
    found = pretrained_start(model, saved, options, reporter)
    if isinstance(found, str):
        return f"{found} Or name it with --start."
    return Start(found, f"{subject.name} as it was pretrained", fitting, is_fitting)


def _training_rows(model: Any, subject: Subject, dataset: Dataset) -> np.ndarray:
    """Rows that the model learned from, where the data are those of its run; else those that the data themselves train with."""
    run = model.out if isinstance(model, FineTuningResult) else model
    facts = None if subject.model is None else subject.model.facts
    is_its_own = facts is not None and dataset.fingerprint in facts.trained_on.fingerprints
    if is_its_own and isinstance(run, str | Path) and (run_directory_of(Path(run)) / "split.json").is_file():
        split = split_of_run(Path(run))
        return np.sort(np.concatenate([split.rows("train"), split.rows("val")]))
    if dataset.splits is None:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero((dataset.splits == "train") | (dataset.splits == "val"))
