"""Rows that train, rows that select the model, and rows that are only used when everything is decided."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from crossgraft.data import Dataset, Split, k_folds, take_per_class
from crossgraft.data.domains import Domains, read_domains
from crossgraft.data.opening import open_divided
from crossgraft.data.selection import NO_ROWS, RowSelection, column_of, draw_part
from crossgraft.data.splits import PARTS
from crossgraft.errors import DataError, UsageError
from crossgraft.losses import Loss
from crossgraft.models.classifier import Classifier
from crossgraft.options._option import narrowed
from crossgraft.options.data import VAL_SHARE, DatasetOptions
from crossgraft.progress import Reporter
from crossgraft.tune.engine.contract import Evaluate
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.feed.batches import BatchMaker, BatchPlan
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.measuring.drift import PretrainedFeatures
from crossgraft.tune.measuring.selection_metrics import SelectionMetrics
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import FoldRows, Rows, TuningRows, drawn_by
from crossgraft.tune.planning.choices import Plugins
from crossgraft.tune.planning.fold_networks import FoldNetworks
from crossgraft.tune.planning.leave_out import leave_domains_out, refuse_beside_leave_out


@dataclass(frozen=True, eq=False)
class FoldData:
    """What all trainings of one fold share.

    Attributes:
        fold: Number of the fold, from 0; None without folds.
        images: Images of the training rows.
        targets: (n, C) of the training rows.
        loss: Loss with weights counted from these rows.
        evaluate: Evaluation on the validation rows.
        networks: Networks that trainings start from and are compared with.
        fingerprint: Fingerprint of everything about the data that decides the result.
        domains: Domain of each training row, from 0; None: nobody said.
        domain_names: Names of the domains among the training rows, in that order.
        left_out: The domain that is left out; None: none is.
    """

    fold: int | None
    images: TrainingImages
    targets: Float[Tensor, "num_samples num_classes"]
    loss: Loss
    evaluate: Evaluate
    networks: FoldNetworks
    fingerprint: str
    domains: Int64[Tensor, " num_samples"] | None = None
    domain_names: tuple[str, ...] = ()
    left_out: str | None = None


def make_fold_data(
    dataset: Dataset,
    parts: FoldRows,
    classifier: Classifier,
    plugins: Plugins,
    settings: TrainerSettings,
    num_threads: int,
    *,
    start: Callable[[], Classifier],
    pretrained: Callable[[], Classifier | None],
    adapts: bool = False,
    domains: Domains | None = None,
) -> FoldData:
    """Read the images and count the weights of the loss; where a run computes is in ``settings``.

    Every evaluation compares features with those of the networks that ``pretrained`` leads to (None if it is not here),
    unless they never change. ``start`` and ``adapts`` are those of ``FoldNetworks``.
    """
    train, val = dataset.take(parts.train), dataset.take(parts.val) if parts.val.size else None
    targets = target_matrix(dataset, parts.train)
    loss = plugins.loss.resolve(targets, task=dataset.task.name)
    val_images = None if val is None else TrainingImages(val, classifier.preprocessing, num_threads=num_threads)
    batch_size = max(settings.batch_size, 32)
    images = TrainingImages(train, classifier.preprocessing, num_threads=num_threads)
    networks = FoldNetworks(start, pretrained, images, settings.device, adapts)

    def features_of(load: Callable[[], Classifier | None]) -> PretrainedFeatures | None:
        if val_images is None or plugins.method.features_are_fixed:
            return None
        number_type = torch.float64 if settings.precision == "64-true" else torch.float32
        return PretrainedFeatures(val_images, load, batch_size=batch_size, device=settings.device, number_type=number_type)

    evaluate = SelectionMetrics(
        images=val_images,
        targets=dataset.targets[parts.val],
        matrix=target_matrix(dataset, parts.val),
        loss=loss,
        task=dataset.task,
        batch_size=batch_size,
        device=settings.device if settings.num_processes == 1 else "cpu",
        pretrained=features_of(networks.pretrained),
        adapted=features_of(networks.adapted),
    )
    here, index = ((), None) if domains is None else _domains_of(domains, parts.train)
    fingerprint = _fingerprint(dataset, parts, classifier, domains)
    return FoldData(parts.fold, images, targets, loss, evaluate, networks, fingerprint, index, here, parts.domain)


def _domains_of(domains: Domains, rows: np.ndarray) -> tuple[tuple[str, ...], Int64[Tensor, " num_rows"]]:
    """Names of the domains that rows come from, and the place of each row's domain among them."""
    present, index = np.unique(domains.index[rows], return_inverse=True)
    return tuple(domains.names[number] for number in present), torch.from_numpy(index.astype(np.int64))


def make_feed(data: FoldData, plugins: Plugins, settings: TrainerSettings) -> BatchMaker:
    """The batches of one training."""
    plan = BatchPlan(
        data.targets, batch_size=settings.batch_size, sampler=plugins.sampler, seed=settings.seed, domains=data.domains
    )
    return BatchMaker(
        data.images,
        data.targets,
        plan,
        augmentation=plugins.augmentation,
        batch_transforms=plugins.batch_transforms,
        seed=settings.seed,
        device=settings.device if settings.num_processes == 1 else "cpu",
    )


def target_matrix(dataset: Dataset, rows: np.ndarray) -> Float[Tensor, "num_rows num_classes"]:
    """One-hot classes, or 0 and 1 for every label, float32."""
    return torch.from_numpy(dataset.task.marks(dataset.targets[rows], len(dataset.class_names)).astype(np.float32))


def _fingerprint(dataset: Dataset, parts: FoldRows, classifier: Classifier, domains: Domains | None) -> str:
    rows = "|".join(",".join(map(str, part.tolist())) for part in (parts.train, parts.val, parts.test))
    facts = [dataset.fingerprint, rows, ",".join(dataset.class_names), classifier.preprocessing.describe()]
    facts += [hashlib.sha256(dataset.targets.tobytes()).hexdigest(), classifier.recipe.weights_fingerprint]
    if domains is not None:
        facts += [",".join(domains.of_rows[parts.train].tolist())]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def open_rows(data: str | Path | Dataset, options: TuneOptions, reporter: Reporter) -> TuningRows:
    """Open the data and give every row its part.

    Parts that come with the data (or a saved split) are used. A missing test part is taken from the training rows at
    random, then a missing val part; whole groups stay together, and classes keep their shares. With folds, every row is a
    test row once, and each fold takes its val rows from the others. ``per_class`` leaves val and test whole, ``val_per_class``
    train and test.

    Args:
        data: Location as in ``open_dataset``, or an open ``Dataset``.
        options: Options of ``fine_tune``.
        reporter: Reporter of notices about the data.

    Raises:
        DataError: The data are wrong, or too few rows are left for a part; the message names it.
        UsageError: Options contradict each other, the data have a split already, or have no column of the subgroups.
    """
    RowSelection.of(narrowed(DatasetOptions, options))
    refuse_beside_leave_out(options)
    share, seed, per_class = options.val_fraction, options.seed, options.per_class
    if not 0 <= share < 1:
        raise UsageError(f"--val-fraction must lie between 0 and 1 (0: no validation rows), not {share:g}.")
    dataset = open_parts(data, options, reporter)
    domains = None if options.domains is None else read_domains(dataset, options.domains)
    if domains is not None and options.leave_out is not None:
        rows = leave_domains_out(dataset, domains, options, reporter)
    else:
        rows = replace(_folds(dataset, options.folds, options) if options.folds else _one_split(dataset), domains=domains)
    if per_class is not None:
        rows = replace(rows, parts=tuple(_fewer(dataset, parts, per_class, seed) for parts in rows.parts))
        rows.origins["train"] += f", {per_class} images of each class"
    if (fewer := options.val_per_class) is not None:
        rows = replace(rows, parts=tuple(_fewer_val(dataset, parts, fewer, seed) for parts in rows.parts))
        rows.origins["val"] += f", {fewer} images of each class"
    for parts in rows.parts:
        _refuse_missing_classes(dataset, parts)
        if parts.test.size == 0:
            raise DataError(f"{dataset.name} has no test rows{parts.where}, so nothing can be said about the result.")
    columns_of(dataset, options.subgroups)
    return rows


def training_rows(dataset: Dataset, *, val_fraction: float = VAL_SHARE, seed: int = 0) -> TuningRows:
    """All rows train, except a random share that selects the model; none is set aside as test.

    For somebody who has split the images already, and measures the result by their own means.
    Whole groups stay together; with a share of 0 there are no val rows.

    Raises:
        DataError: Too few rows are left for a part.
        UsageError: The share is not in [0, 1).
    """
    if not 0 <= val_fraction < 1:
        raise UsageError(f"The share of validation rows must lie between 0 and 1 (0: none), not {val_fraction:g}.")
    train, val, origin = np.arange(len(dataset)), NO_ROWS, "none"
    if val_fraction > 0:
        train, val = _draw(dataset, train, val_fraction, seed, "val")
        origin = f"{val_fraction:.0%} of the rows, {drawn_by(dataset)}"
    parts = FoldRows(train, val, NO_ROWS)
    _refuse_missing_classes(dataset, parts)
    named = replace(dataset, splits=parts.of_rows(len(dataset)))
    return TuningRows(named, (parts,), {"train": "all other rows", "val": origin, "test": "none"})


def open_parts(data: str | Path | Dataset, options: TuneOptions, reporter: Reporter) -> Dataset:
    """All rows with the part of each, or without parts where folds will be drawn, or parts of each domain.

    Raises:
        DataError, UsageError: As ``open_rows``.
    """
    reading = narrowed(DatasetOptions, options, per_class=None, folds=None, fold=None)
    draws = options.folds is None and options.leave_out is None
    if options.leave_out is not None:
        reading = replace(reading, holdout=None)  # a share of each domain, which is drawn later
    return open_divided(data, reading, use_split=None, default_split=draws, val_fraction=options.val_fraction, reporter=reporter)


def _one_split(dataset: Dataset) -> TuningRows:
    splits, split = dataset.splits, dataset.split
    if splits is None or not isinstance(split, Split):
        raise UsageError(
            "With --holdout 0 there are no test images, so the result could not be measured. Leave it out, or give a share."
        )
    train, val, test = (np.flatnonzero(splits == part) for part in PARTS)
    origins = {part: split.origins.get(part, split.method) for part in PARTS}
    return TuningRows(dataset, (FoldRows(train, val, test),), origins)


def _folds(dataset: Dataset, num_folds: int, options: TuneOptions) -> TuningRows:
    val_fraction, seed = options.val_fraction, options.seed
    if dataset.splits is not None:
        raise UsageError(f"{dataset.name} has a split of its own, which is kept. Leave out --folds.")
    drawn = k_folds(dataset.targets, dataset.groups, num_folds=num_folds, seed=seed, class_names=dataset.class_names)
    parts: list[FoldRows] = []
    for number, split in enumerate(drawn):
        if options.fold not in (None, number):
            continue
        train, val = split.rows("train"), NO_ROWS
        if val_fraction > 0:
            train, val = _draw(dataset, train, val_fraction, seed, f"val of fold {number}")
        parts.append(FoldRows(train, val, split.rows("test"), fold=number))
    if options.pair_by is not None:
        _refuse_divided_pairs(dataset, parts, options.pair_by)
    how = drawn_by(dataset)
    val = f"{val_fraction:.0%} of the rows of the other folds, {how}" if val_fraction else "none"
    origins = {"train": "the other folds", "val": val, "test": f"one of {num_folds} folds, {how}"}
    return TuningRows(dataset, tuple(parts), origins, num_folds=num_folds)


def _refuse_divided_pairs(dataset: Dataset, folds: Sequence[FoldRows], column: str) -> None:
    """Pairs are made before folds are drawn: those of one group of ``column`` stay together where folds are drawn by it."""
    values = column_of(dataset, column, flag="--pair-by").astype(str)
    for fold in folds:
        of_parts = [set(values[part]) for part in (fold.train, fold.val, fold.test)]
        if sum(map(len, of_parts)) > len(set().union(*of_parts)):
            raise UsageError(
                f"--folds, {drawn_by(dataset)}, would divide pairs of one {column} between training and test (--pair-by "
                f"{column}). Draw folds by it: --group-column {column}."
            )


def _draw(dataset: Dataset, rows: Rows, share: float, seed: int, purpose: str) -> tuple[Rows, Rows]:
    """``rows`` without the drawn ones, and the drawn ones, both ascending."""
    names = dataset.class_names
    return draw_part(dataset.targets, dataset.groups, rows, share, seed=seed, purpose=purpose, class_names=names)


def _fewer(dataset: Dataset, parts: FoldRows, per_class: int, seed: int) -> FoldRows:
    chosen = take_per_class(dataset.targets[parts.train], per_class, seed=seed, class_names=dataset.class_names)
    return replace(parts, train=parts.train[chosen])


def _fewer_val(dataset: Dataset, parts: FoldRows, per_class: int, seed: int) -> FoldRows:
    if len(parts.val) == 0:
        raise UsageError("--val-per-class takes images of val, but there are none (--val-fraction 0). Leave one out.")
    targets, names = dataset.targets[parts.val], dataset.class_names
    chosen = take_per_class(targets, per_class, seed=seed, class_names=names, flag="--val-per-class", of="of val")
    return replace(parts, val=parts.val[chosen])


def _refuse_missing_classes(dataset: Dataset, parts: FoldRows) -> None:
    """Every class must be there to be learned; a label of several needs images with it and images without it."""
    where = parts.where
    if len(dataset.class_names) < dataset.task.fewest_classes:
        raise DataError(
            f"All {len(dataset)} images of {dataset.name} have the class {', '.join(dataset.class_names)}, so there is nothing "
            "to tell apart. Give images of a second class, or look whether the labels were read from the right column."
        )
    for index, name in enumerate(dataset.class_names):
        here = int(dataset.members(index)[parts.train].sum())
        if here == 0 or (not dataset.task.partitions and here == len(parts.train)):
            extent, what = "no" if here == 0 else "every", f"{dataset.task.noun} {name}"
            raise DataError(
                f"Among the {len(parts.train)} training rows{where} of {dataset.name}, {extent} image has the {what}, so it "
                "cannot be learned. Give more images, leave it out, or choose another split."
            )


def columns_of(dataset: Dataset, names: str | Sequence[str] | None) -> dict[str, np.ndarray]:
    """The attribute columns to report subgroups of.

    Raises:
        UsageError: A column does not exist.
    """
    wanted = names.split(",") if isinstance(names, str) else list(names or ())
    wanted = [name.strip() for name in wanted if name.strip()]
    for name in wanted:
        if name not in dataset.attributes:
            known = ", ".join(dataset.attributes) or "none"
            raise UsageError(f"--subgroups {name}: {dataset.name} has no such further column (it has: {known}).")
    return {name: dataset.attributes[name] for name in wanted}
