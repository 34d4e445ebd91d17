"""``fine_tune``: labelled images and one pretrained model in, a fine-tuned model with honest numbers out."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crossgraft.data import Dataset
from crossgraft.losses import Loss
from crossgraft.models import ModelSpec
from crossgraft.models.trusted_code import AllowedCode
from crossgraft.progress import Reporter
from crossgraft.runs import open_command_run
from crossgraft.tune.augmentations import Augmentation
from crossgraft.tune.batch_transforms import BatchTransform
from crossgraft.tune.choice import spell
from crossgraft.tune.engine.settings import OptimizerName, ScheduleName
from crossgraft.tune.measuring.thresholds import parse_threshold_rule
from crossgraft.tune.methods._method import Method
from crossgraft.tune.planning.first_adapter import open_adapter
from crossgraft.tune.planning.grid import point_name, read_grid
from crossgraft.tune.planning.preparation import plugins_of, prepare
from crossgraft.tune.planning.rows import VAL_SHARE
from crossgraft.tune.planning.starting_model import find_model
from crossgraft.tune.regularizers._regularizer import Regularizer
from crossgraft.tune.result_rows import look_at_known_results
from crossgraft.tune.tracking import open_tracking
from crossgraft.tune.trainings import train_and_evaluate
from crossgraft.tune.tuned import Tuned
from crossgraft.types import ResizePolicy

NOT_CONFIGURATION = {
    "out", "overwrite", "reporter", "workers", "device", "devices", "data", "plan", "store", "track", "checkpoint_every",
}  # fmt: skip
"""Arguments that are not meant to change a number; they are recorded elsewhere or not at all."""


def fine_tune(
    data: str | Path | Dataset,
    *,
    model: str | Path | ModelSpec,
    method: str | Mapping[str, object] | Method = "full",
    adapter: str | Path | None = None,
    regularizer: str | Regularizer | Sequence[str | Regularizer] = (),
    batch_transform: str | BatchTransform | Sequence[str | BatchTransform] = (),
    augmentation: str | Mapping[str, object] | Augmentation | None = None,
    flip: bool = True,
    loss: str | Mapping[str, object] | Loss | None = None,
    class_weights: str | Sequence[float | int] | None = None,
    sampler: str = "shuffle",
    optimizer: OptimizerName = "adamw",
    learning_rate: float | None = None,
    head_learning_rate: float | None = None,
    weight_decay: float | None = None,
    momentum: float | None = None,
    schedule: ScheduleName = "cosine",
    epochs: int | None = None,
    warmup_epochs: float | None = None,
    batch_size: int | None = None,
    accumulate: int = 1,
    layer_decay: float = 1.0,
    clip_norm: float | None = None,
    patience: int | None = None,
    head_first: bool = False,
    head_epochs: int | None = None,
    head_patience: int | None = None,
    precision: str = "32",
    select_by: str | None = None,
    threshold_rule: str | None = None,
    grid: str | Sequence[str] | Mapping[str, Sequence[float | int]] | None = None,
    subgroups: str | Sequence[str] | None = None,
    val_fraction: float = VAL_SHARE,
    label_column: str | Sequence[str] | None = None,
    label_separator: str | None = None,
    class_names: str | Path | Sequence[str] | None = None,
    ordinal: bool = False,
    group_column: str | None = None,
    path_column: str | None = None,
    image_root: str | Path | None = None,
    allow_outside: bool = False,
    window: str | None = None,
    slices: str | None = None,
    split: str | Path | None = None,
    holdout: float | None = None,
    folds: int | None = None,
    fold: int | None = None,
    per_class: int | None = None,
    limit: int | None = None,
    skip_unreadable: bool = False,
    weights_dir: str | Path | None = None,
    allow_download: bool = False,
    allow_code: AllowedCode = None,
    image_size: int | None = None,
    resize_policy: ResizePolicy | None = None,
    strict: bool = False,
    no_images: bool = False,
    show_names: bool = False,
    plan: bool = False,
    store: bool = True,
    track: str | None = None,
    checkpoint_every: int | None = None,
    seed: int = 0,
    device: str = "auto",
    devices: int = 1,
    workers: int | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    reporter: Reporter | None = None,
) -> Tuned:
    """Fine-tune a pretrained model, and measure it on rows that nothing was decided with.

    Uses the splits train, val and test of the data. A missing test part is a fifth of the rows, a missing val part a fifth of
    the others; groups stay together. Val picks epoch and grid point, and temperature and threshold are fitted to it; test is
    looked at once, at the very end. The same call with the same ``out`` goes on where it was stopped.

    What is left open follows from method, network and number of images, see ``tune.planning.defaults.choose_settings``: AdamW, a
    cosine after 5 warm-up epochs (at most a tenth), weight decay 0.05, about 600 steps in 10 to 50 epochs, batches of 8 to
    128 images, and a learning rate between 1e-4 and 3e-3. ``plan=True`` shows the choices without a step.

    Args:
        data: Folder, table, ``.npz`` file, ``digits``, or an open ``Dataset``.
        model: Name, checkpoint path, or ``package.module:factory``.
        method: What is trained: ``full``, ``linear``, ``scratch``, ``partial:3`` …
        adapter: With ``lora``: folder of an adapter that PEFT saved, which training goes on from. It says rank, alpha, layers and
            dropout; its head is taken where it has as many classes.
        regularizer: What is added to the loss: ``l2_sp:alpha=0.1``; several with commas or as a list.
        batch_transform: What is done to a batch: ``mixup:0.2``; several with commas or as a list.
        augmentation: What is done to an image: ``none``, ``light``, ``thesis``. By default ``light``; ``none`` with ``linear``.
        flip: May an image be mirrored left to right?
        loss: ``cross_entropy``, ``focal:2`` or ``multi_label``; by default what fits the labels.
        class_weights: ``balanced``, or one number a class.
        sampler: ``shuffle``, or ``balanced``: every class is drawn equally often.
        optimizer: ``adamw`` or ``sgd``.
        learning_rate: The largest, after warm-up.
        head_learning_rate: Of the new head, if it is another.
        weight_decay: Of weights with two or more dimensions.
        momentum: Of SGD; 0.9 by default.
        schedule: ``cosine`` or ``constant``.
        epochs: Passes over the training images, at most.
        warmup_epochs: Epochs of rising learning rate; may be a fraction.
        batch_size: Images of one step, of all devices together.
        accumulate: Parts in which a batch goes through the network to save memory.
        layer_decay: Factor of the learning rate from one block to the one before it, in (0, 1].
        clip_norm: Largest norm of the gradient; not clipped by default.
        patience: Stop after so many epochs without a better value; by default all epochs are trained.
        head_first: Train the head alone until it gets no better, then what the method trains.
        head_epochs: Of that first phase, at most; 100 by default.
        head_patience: Of that first phase; 10 by default.
        precision: ``32``, ``bf16``, ``16`` (GPU) or ``64``.
        select_by: Metric on val that picks the model: ``auc``, ``loss``, ``balanced_accuracy`` … By default the AUC, or the
            loss where a class is missing in val.
        threshold_rule: ``youden`` (default), or ``sensitivity:0.95``: of two classes, or of each label.
        grid: Settings to try: ``learning_rate=1e-3,1e-4``; several with commas, as a list or a mapping.
        subgroups: Further columns of a table; metrics are also given for each of their values.
        val_fraction: Share of the training rows that becomes val where there is none; 0: no val.
        label_column: Column of labels of a table; several columns are several labels an image.
        label_separator: What stands between the labels of one cell, where an image may have several.
        class_names: Names of the classes in order, or a text file with one a line.
        ordinal: The order of the classes means something, as with grades.
        group_column: Column of patients (or lesions, writers …): groups stay together in splits and intervals.
        path_column: Column of image paths of a table.
        image_root: Folder that the paths of a table start from.
        allow_outside: May paths of a table lead out of the folder that they start from?
        window: Which intensities of DICOM and NIfTI images become black and white.
        slices: Which slices of volumes and frames of multi-frame files are images.
        split: JSON file of a saved split.
        holdout: Share of the images to set aside as test, in (0, 1), where the data have no split.
        folds: Cross-validation: every row is a test row once, in one of so many folds.
        fold: Only this fold, from 0.
        per_class: Train on this many images of each class; val and test stay whole.
        limit: Use at most this many images in all, with the class shares kept.
        skip_unreadable: Leave unreadable images out and count them, instead of stopping at the first.
        weights_dir: Folder of checkpoints.
        allow_download: Let weights (and data of a hub) be fetched that are not on this machine.
        allow_code: Python files and folders (``package.module:factory`` for one function) whose functions may build a network
            that a file names.
        image_size: Side of the input in pixels, instead of the model's own.
        resize_policy: ``crop``, ``squash`` or ``pad``, instead of the model's own.
        strict: Refuse data that are unsound, instead of warning and going on.
        no_images: Put no thumbnails into the report.
        show_names: Write names of image files into the run directory.
        plan: Only make the plan: no step is taken and nothing is written.
        store: Add the result to the user's known results, which ``rank`` starts from.
        track: ``mlflow`` or ``wandb``: also log there; the files of the run directory stay complete.
        checkpoint_every: Steps between two checkpoints; one an epoch by default.
        seed: Of every random choice.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``mps``.
        devices: How many of them share each batch; results do not depend on it beyond rounding.
        workers: Threads that read images and compute; all cores that this process may use by default. Another number rounds
            differently.
        out: Run directory; nothing is written when None.
        overwrite: Replace another run in ``out``.
        reporter: Where progress goes; silent when None.

    Returns:
        Every number, and with ``out`` the folder ``model`` that ``predict`` uses, ``report.html``, ``history.csv``,
        ``metrics.csv`` and ``predictions.csv`` there.

    Raises:
        DataError: Something is wrong with the images or labels, or there are too few for a part.
        UsageError: An argument is wrong or contradicts another; the message gives the reason.
        UntrustedCodeError: A zoo file names a function that nobody allowed.
        UnknownNameError: A name is not known, for example of a method.
        MissingWeightsError: Weights are not on this machine.
        DivergedError: A loss or a gradient is not finite.
        RunDirectoryError: ``out`` is in use or holds another run.

    Cost:
        Each step is about three forward passes of its images; the plan says how long all of it takes.
    """
    call = {name: value for name, value in locals().items() if name not in ("data", "reporter")}
    call["adapter"] = open_adapter(adapter, method)
    reporter = reporter or Reporter(quiet=True)
    points = read_grid(grid)
    plugins = plugins_of(call, "multi-class")  # misspelled names come to light before any image is read
    parse_threshold_rule(threshold_rule or "youden")
    spec = find_model(model, weights_dir, allow_code)
    tracking = open_tracking(track, reporter)
    if store and not plan:
        look_at_known_results(reporter)
    location = data.name if isinstance(data, Dataset) else data
    resolved: dict[str, Any] = {
        "model": spec.describe(),
        "method": spell(plugins.method),
        "regularizer": [spell(each) for each in plugins.regularizers],
        "batch_transform": [spell(each) for each in plugins.batch_transforms],
        "grid": [point_name(point) for point in points],
    }
    configuration = {name: value for name, value in call.items() if name not in NOT_CONFIGURATION}
    with open_command_run(
        fine_tune,
        "tune",
        data=location,
        call=as_typed(configuration),
        resolved=resolved,
        out=None if plan else out,
        overwrite=overwrite,
    ) as run:
        given = frozenset(name for name, value in call.items() if value != DEFAULTS[name])
        prepared = prepare(data, call, given=given, points=points, spec=spec, run=run, reporter=reporter)
        if plan:
            return Tuned(plan=prepared.plan)
        return train_and_evaluate(prepared, call, run=run, tracking=tracking, reporter=reporter)


DEFAULTS = {name: parameter.default for name, parameter in inspect.signature(fine_tune).parameters.items()}


def as_typed(call: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as a command line would give them: objects and mappings become their text."""
    typed = dict(call)
    for name in ("method", "regularizer", "batch_transform", "augmentation", "loss"):
        value = typed[name]
        several = isinstance(value, Sequence) and not isinstance(value, str)
        typed[name] = tuple(_text(each) for each in value) if several else _text(value)
    if isinstance(typed["grid"], Mapping):
        typed["grid"] = [f"{name}={','.join(f'{v:g}' for v in values)}" for name, values in typed["grid"].items()]
    if typed["adapter"] is not None:
        typed["adapter"] = typed["adapter"].fingerprint  # the folder may be moved
    if isinstance(typed["model"], ModelSpec):
        typed["model"] = typed["model"].typed
    return typed


def _text(choice: Any) -> Any:
    if isinstance(choice, Mapping):
        options = ",".join(f"{name}={value}" for name, value in choice.items() if name != "name")
        return f"{choice.get('name', '')}:{options}" if options else choice.get("name", "")
    return choice if choice is None or isinstance(choice, str) else spell(choice)
