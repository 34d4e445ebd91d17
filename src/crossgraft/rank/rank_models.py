"""``rank_models``: labelled images and a list of pretrained models in, an honest ranking out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from crossgraft.compute import available_cores, resolve_device
from crossgraft.data import DATA_OPTIONS, Dataset, open_dataset
from crossgraft.data.checks import check_rows
from crossgraft.data.describe import make_thumbnails
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.models import ModelSpec, read_zoo
from crossgraft.models.trusted_code import AllowedCode
from crossgraft.progress import Reporter
from crossgraft.rank.assemble import assemble_record
from crossgraft.rank.default_score import DEFAULT_PRIMARY, default_reason
from crossgraft.rank.evaluate import ModelEvaluation
from crossgraft.rank.ground_truth import read_ground_truth
from crossgraft.rank.model_history import find_history, look_up_known_results
from crossgraft.rank.ranking import Ranking
from crossgraft.rank.resampling import Resampling, plan_resampling
from crossgraft.rank.zoo import ZooSettings, ZooWalk, with_controls
from crossgraft.rank.zoo_options import Measurements, Options, choose_options
from crossgraft.records import RankingRecord, Role
from crossgraft.report import finish_run
from crossgraft.runs import RunDirectory, open_command_run
from crossgraft.scores import DEFAULT_SCORES, SCORES, AnyScore
from crossgraft.types import ResizePolicy
from crossgraft.words.csv_cells import frame_csv

NOT_CONFIGURATION = {"out", "overwrite", "reporter", "workers", "device", "cache_dir", "data"}
"""Arguments that are not meant to change a number; they are recorded elsewhere or not at all."""


def rank_models(
    data: str | Path | Dataset,
    *,
    models: str | Path | Sequence[str | ModelSpec] | None = None,
    scores: str | Sequence[str] = "default",
    by: str | None = None,
    ground_truth: str | Path | Mapping[str, float] | None = None,
    ground_truth_column: str | None = None,
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
    fold: int = 0,
    per_class: int | None = None,
    limit: int | None = None,
    skip_unreadable: bool = False,
    weights_dir: str | Path | None = None,
    allow_download: bool = False,
    allow_code: AllowedCode = None,
    image_size: int | None = None,
    resize_policy: ResizePolicy | None = None,
    batch_size: int | None = None,
    all_intervals: bool = False,
    strict: bool = False,
    no_images: bool = False,
    show_names: bool = False,
    seed: int = 0,
    device: str = "auto",
    workers: int | None = None,
    cache_dir: str | Path | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    reporter: Reporter | None = None,
) -> Ranking:
    """Rank pretrained models for a labelled image set without fine-tuning them.

    Reads the rows of split ``train`` (all rows if the data have no split) and never opens any other row.

    Args:
        data: Folder, table, ``.npz`` file, ``digits``, or an open ``Dataset``.
        models: Names, checkpoint paths, a zoo YAML file, or None for the default zoo.
        scores: ``default``, ``all``, or names.
        by: The score that orders the ranking; by default LogME, or the first of ``scores`` if LogME is not among them.
        ground_truth: Fine-tuned results (mapping, or CSV with ``model`` and a column of numbers) to compare with.
        ground_truth_column: Column of the CSV, needed when it has several columns of numbers.
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
        split: JSON file of a saved split whose ``train`` rows are used.
        holdout: Share of the images to set aside as ``test`` in a new split, in (0, 1).
        folds: Make this many folds and rank on the training part of one of them.
        fold: Which fold is held out, from 0.
        per_class: Use this many images of each class.
        limit: Use at most this many images, with the class shares kept.
        skip_unreadable: Leave unreadable images out and count them, instead of stopping at the first.
        weights_dir: Folder of checkpoints.
        allow_download: Let weights (and data of a hub) be fetched that are not on this machine.
        allow_code: Python files and folders (``package.module:factory`` for one function) whose functions may build a network
            that a file names.
        image_size: Side of the input in pixels, instead of each model's own.
        resize_policy: ``crop``, ``squash`` or ``pad``, instead of each model's own.
        batch_size: Images at a time; by default what is fastest on the device.
        all_intervals: Compute intervals also for scores that take more than a minute once.
        strict: Refuse data that are unsound, instead of warning and going on.
        no_images: Put no thumbnails into the report.
        show_names: Write names of image files into the run directory.
        seed: Of every random choice.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``mps``.
        workers: Threads; all cores that this process may use by default.
        cache_dir: Where features are kept between runs.
        out: Run directory; nothing is written when None.
        overwrite: Replace another run in ``out``.
        reporter: Where progress goes; silent when None.

    Returns:
        The ranking; with ``out`` also ``report.html``, ``report.json``, ``run.json`` and ``scores.csv`` there.

    Raises:
        DataError: Something is wrong with the images or labels.
        UsageError: An argument is wrong or contradicts another.
        UntrustedCodeError: A zoo file names a function that nobody allowed.
        UnknownNameError: A name is not known, for example of a score.
        MissingWeightsError: Weights are not on this machine.
        WeightsMismatchError: A checkpoint does not fit its architecture.
        RunDirectoryError: ``out`` is in use or holds another run.

    Cost:
        One forward pass of each image through each model and its random control, then 26 evaluations of each score.
    """
    call = {name: value for name, value in locals().items() if name not in NOT_CONFIGURATION}
    reporter = reporter or Reporter(quiet=True)
    chosen = choose_scores(scores)
    primary = _choose_primary(by, chosen)
    check_settings(workers, resize_policy)
    specs = read_zoo(models, weights_dir=weights_dir, allow_code=allow_code)
    known, damage = look_up_known_results(specs, reporter)
    truth = None
    if ground_truth is not None:
        truth = read_ground_truth(ground_truth, [spec.name for spec in specs], column=ground_truth_column)
    zoo_settings = ZooSettings(
        seed=seed,
        device=resolve_device(device),
        num_threads=workers or available_cores(),
        batch_size=batch_size,
        image_size=image_size,
        resize_policy=resize_policy,
        weights_dir=Path(weights_dir) if weights_dir else None,
        cache_dir=Path(cache_dir) if cache_dir else None,
        allow_download=allow_download,
        all_intervals=all_intervals,
    )
    resolved = {
        "models": [spec.describe() for spec in specs],
        "scores": [score.name for score in chosen],
        "by": primary,
        "ground_truth": truth.values if truth else None,
    }
    location = data.name if isinstance(data, Dataset) else data
    if isinstance(models, Sequence) and not isinstance(models, str):
        call["models"] = [model.typed if isinstance(model, ModelSpec) else model for model in models]
    with open_command_run(
        rank_models, "rank", data=location, call=call, resolved=resolved, out=out, overwrite=overwrite
    ) as run:
        dataset = _open(data, reporter=reporter, **{name: call[name] for name in DATA_OPTIONS})
        if run:
            run.describe_data(dataset.fingerprint)
            run.describe_machine(reporter, threads=zoo_settings.num_threads, device=zoo_settings.device)
        findings = check_rows(dataset, strict=strict, reporter=reporter)
        resampling = plan_resampling(dataset.targets, dataset.groups, seed=seed, label_names=dataset.class_names)
        evaluations = _walk(dataset, specs, chosen, zoo_settings, resampling, run=run, reporter=reporter)
        candidates = [evaluation.model for evaluation in evaluations if evaluation.model.role == "candidate"]
        record = assemble_record(
            dataset,
            chosen,
            primary,
            evaluations,
            truth,
            primary_reason=_why(primary, by, chosen),
            history=find_history(candidates, specs, dataset, known),
            findings=[*findings, *damage],
            labels_left_out=resampling.labels_left_out,
            seed=seed,
            show_names=show_names,
        )
        return _finish(record, dataset, run, reporter, no_images=no_images)


def choose_scores(scores: str | Sequence[str]) -> list[AnyScore]:
    """Look up ``default``, ``all`` or names separated by commas, in the given order and each once.

    Raises:
        UnknownNameError: With the nearest names.
        UsageError: No name at all.
    """
    names = [name.strip() for name in scores.split(",")] if isinstance(scores, str) else list(scores)
    groups = {"default": list(DEFAULT_SCORES), "all": SCORES.names()}
    wanted = dict.fromkeys(member for name in names if name for member in groups.get(name, [name]))
    if not wanted:
        raise UsageError("No score was named. Use --scores default, --scores all, or names separated by commas.")
    return [SCORES.get(name) for name in wanted]


def check_settings(workers: int | None, resize_policy: str | None) -> None:
    """What the command line checks by itself.

    Raises:
        UsageError: A number of threads below 1, or an unknown resize policy.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"`workers` must be at least 1 thread, found {workers}.")
    if resize_policy is not None and resize_policy not in get_args(ResizePolicy):
        raise UnknownNameError("resize policy", resize_policy, get_args(ResizePolicy))


def _choose_primary(by: str | None, chosen: Sequence[AnyScore]) -> str:
    names = [score.name for score in chosen]
    if by is None:
        return DEFAULT_PRIMARY if DEFAULT_PRIMARY in names else names[0]
    if by not in names:
        SCORES.get(by)
        raise UsageError(f"--by {by}: this score is not among those computed ({', '.join(names)}).")
    return by


def _why(primary: str, by: str | None, chosen: Sequence[AnyScore]) -> str:
    """Why this score orders the ranking, in words."""
    if by is not None:
        return "chosen with --by"
    if primary == DEFAULT_PRIMARY:
        return default_reason()
    return "the only one that was asked for" if len(chosen) == 1 else "the first of --scores"


def _open(data: str | Path | Dataset, *, reporter: Reporter, **options: Any) -> Dataset:
    if not isinstance(data, Dataset):
        return open_dataset(data, use_split="train", reporter=reporter, **options)
    given = [name for name, value in options.items() if value and name not in ("seed", "allow_download")]
    if given:
        raise UsageError(
            f"{given[0]} belongs to opening the data, but an open Dataset was given; pass it to open_dataset."
        )
    if data.splits is None:
        return data
    is_train = data.splits == "train"
    if not is_train.any():
        raise DataError(f"{data.name} has the splits {', '.join(sorted(set(data.splits)))} but no split train.")
    train = data.take(is_train, rows_used="split train")
    if train.is_multi_label:
        return train
    present = [name for index, name in enumerate(data.class_names) if index in train.targets]
    return replace(train.select_classes(present), rows_used=train.rows_used)  # a class of the test rows is not known


def _walk(
    dataset: Dataset,
    specs: Sequence[ModelSpec],
    scores: Sequence[AnyScore],
    settings: ZooSettings,
    resampling: Resampling,
    *,
    run: RunDirectory | None,
    reporter: Reporter,
) -> list[ModelEvaluation]:
    walk = ZooWalk(dataset, scores, resampling, settings, run=run, reporter=reporter)
    members = with_controls(specs)
    walk.check_weights([member.spec for member in members if member.role == "candidate"])
    positions = [f"{number} of {len(members)}" for number in range(1, len(members) + 1)]
    roles: list[Role] = [member.role for member in members]
    measured: list[Measurements | None] = [None] * len(members)
    options: list[Options] = [{}] * len(members)
    if walk.adaptive and roles.count("candidate") > 1:
        with run.stage("options of scores") if run else nullcontext():
            first = [walk.measure(member, position) for member, position in zip(members, positions, strict=True)]
        measured = [*first]
        options = choose_options(walk.adaptive, [one.rounds for one in first], roles)
    evaluations: list[ModelEvaluation] = []
    for member, position, of_member, about in zip(members, positions, options, measured, strict=True):
        with run.stage(member.spec.name) if run else nullcontext():
            evaluations.append(walk.evaluate(member, position, options=of_member, measured=about))
    if walk.num_read_back:
        reporter.say(f"{walk.num_read_back} of {len(members)} models were read back from the run directory.")
    return evaluations


def _finish(
    record: RankingRecord, dataset: Dataset, run: RunDirectory | None, reporter: Reporter, *, no_images: bool
) -> Ranking:
    ranking = Ranking(record)
    if run is None:
        return ranking
    run.update(weights_fingerprints={model.name: model.weights_fingerprint for model in record.models})
    run.write_record("report.json", record)
    run.write("scores.csv", frame_csv(ranking.to_frame()))
    if dataset.split is not None:
        run.write_record("split.json", dataset.split)
    page = finish_run(run, reporter, thumbnails=None if no_images else lambda: make_thumbnails(dataset))
    return Ranking(record, out=run.path, report=page)
