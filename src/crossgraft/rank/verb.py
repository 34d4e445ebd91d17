"""``rank_models``: labelled images and a list of pretrained models in, an honest ranking out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from crossgraft.compute import available_cores, resolve_device
from crossgraft.data import Dataset
from crossgraft.data.checks import check_rows
from crossgraft.data.describe import make_thumbnails
from crossgraft.data.opening import data_errors_first, open_divided
from crossgraft.data.selection import RowSelection
from crossgraft.errors import UsageError
from crossgraft.features.passes import ResizedOnce
from crossgraft.features.store import cache_folder
from crossgraft.models import ModelSpec
from crossgraft.models.device import choose_precision
from crossgraft.models.load import require_own_weights
from crossgraft.models.zoo import zoo_as_asked
from crossgraft.options._option import configuration
from crossgraft.progress import Reporter
from crossgraft.rank.assemble import assemble_record, takes_scenario
from crossgraft.rank.default_score import DEFAULT_PRIMARY, default_reason, score_name, score_names, scores_left_out
from crossgraft.rank.evaluate import plan_resampling
from crossgraft.rank.feature_maps import look_at_features
from crossgraft.rank.ground_truth import read_ground_truth
from crossgraft.rank.model_history import find_history, look_up_known_results
from crossgraft.rank.options import RankOptions
from crossgraft.rank.ranking import Ranking
from crossgraft.rank.sweep import evaluate_zoo
from crossgraft.rank.zoo import Zoo, check_networks
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import RunDirectory
from crossgraft.running.verb import Run, verb
from crossgraft.scores import DEFAULT_SCORES, SCORES, AnyScore


@verb("rank", RankOptions)
def rank_models(data: str | Path | Dataset, options: RankOptions, run: Run) -> Ranking:
    """Rank pretrained models for a labelled image set without fine-tuning them.

    Reads the training rows and never opens any other row. Parts that the data do not have are drawn as ``fine_tune`` draws
    them, so that no model is selected with images that it will be tested on; ``holdout=0`` makes every row a training row.

    Args:
        data: Folder, table, ``.npz`` file, ``digits``, or an open ``Dataset``.
        {options}

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
    reporter = run.reporter
    scores, by = score_names(options.scores), None if options.by is None else score_name(options.by)
    options = replace(options, scores=scores, by=by)
    chosen = choose_scores(scores)
    primary = _choose_primary(by, chosen)
    _check_scenario(options.scenario, chosen)
    with data_errors_first(data, options):
        specs = zoo_as_asked(options.models, options, reporter)
        RowSelection.of(options)  # what contradicts itself comes first
        folder = None if options.weights_dir is None else Path(options.weights_dir)
        for spec in specs:  # before any image is looked at by the models in front of it
            require_own_weights(spec, folder, allow_download=options.allow_download, reporter=reporter)
        check_networks(specs, options)
    known, damage = look_up_known_results(specs, reporter)
    truth = None
    if options.ground_truth is not None:
        names = [spec.name for spec in specs]
        truth = read_ground_truth(options.ground_truth, names, column=options.ground_truth_column)
    device, threads = resolve_device(options.device), options.workers or available_cores()
    precision = choose_precision(options.precision, device)
    resolved: dict[str, object] = {
        "models": [spec.describe() for spec in specs],
        "scores": [score.name for score in chosen],
        "by": primary,
        "ground_truth": truth.values if truth else None,
    }
    if precision != "32":
        resolved["precision"] = precision
    location = data.name if isinstance(data, Dataset) else data
    with run.directory(location, typed=_as_typed(options), resolved=resolved, out=options.out) as directory:
        dataset = _open(data, options, reporter)
        if directory:
            directory.describe_data(dataset.fingerprint)
            directory.describe_machine(reporter, threads=threads, device=device)
        if options.feature_maps is not None and not dataset.task.partitions:
            raise UsageError("--feature-maps draws images by their class, and these may have several labels each. Leave it out.")
        findings = check_rows(dataset, strict=options.strict, reporter=reporter)
        resampling = plan_resampling(dataset.targets, dataset.groups, seed=options.seed, label_names=dataset.class_names)
        left_out = scores_left_out(scores, by, chosen, len(dataset))
        for name, reason in left_out.items():
            reporter.say(f"Left out: {SCORES.get(name).title}. {reason}")
        resampling = replace(resampling, scores_left_out=left_out)
        with ResizedOnce(dataset, cache_folder(options.cache_dir), reporter) as images:
            zoo = Zoo(
                dataset,
                images,
                chosen,
                resampling,
                options,
                device,
                threads,
                run=directory,
                reporter=reporter,
                primary=primary,
                precision=precision,
            )
            evaluations = evaluate_zoo(zoo, specs)
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
                seed=options.seed,
                show_names=options.show_names,
                scenario=options.scenario,
            )
            if options.feature_maps is not None:
                features = look_at_features(zoo, specs, record, num_maps=options.feature_maps)
                record = record.model_copy(update={"features": features})
        ranking = Ranking(record, specs={spec.name: spec for spec in specs})
        return _finish(ranking, dataset, directory, reporter, no_images=options.no_images)


def _as_typed(options: RankOptions) -> dict[str, object]:
    """The configuration as a command line gives it."""
    typed = configuration(options)
    if isinstance(options.models, Sequence) and not isinstance(options.models, str):
        typed["models"] = [model.typed if isinstance(model, ModelSpec) else model for model in options.models]
    return typed


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


def _choose_primary(by: str | None, chosen: Sequence[AnyScore]) -> str:
    names = [score.name for score in chosen]
    if by is None:
        return DEFAULT_PRIMARY if DEFAULT_PRIMARY in names else names[0]
    if by not in names:
        SCORES.get(by)
        raise UsageError(f"--by {by}: this score is not among those computed ({', '.join(names)}).")
    return by


def _check_scenario(scenario: str, chosen: Sequence[AnyScore]) -> None:
    if scenario != "datasets" and not any(map(takes_scenario, chosen)):
        raise UsageError(
            f"--scenario {scenario} is about nca_gradient, which is not among the scores. Add it: --scores default,nca_gradient."
        )


def _why(primary: str, by: str | None, chosen: Sequence[AnyScore]) -> str:
    """Why this score orders the ranking, in words."""
    if by is not None:
        return "chosen with --by"
    if primary == DEFAULT_PRIMARY:
        return default_reason()
    return "the only one that was asked for" if len(chosen) == 1 else "the first of --scores"


def _open(data: str | Path | Dataset, options: RankOptions, reporter: Reporter) -> Dataset:
    """The training rows; a class that has images only in other rows is not known."""
    dataset = open_divided(data, options, use_split="train", reporter=reporter)
    present = [dataset.class_names[index] for index in dataset.task.present(dataset.targets, len(dataset.class_names))]
    if len(present) == len(dataset.class_names):
        return dataset
    return replace(dataset.select_classes(present), rows_used=dataset.rows_used)


def _finish(ranking: Ranking, dataset: Dataset, run: RunDirectory | None, reporter: Reporter, *, no_images: bool) -> Ranking:
    record = ranking.record
    if run is None:
        return ranking
    run.describe_weights(reporter, {model.name: model.weights_fingerprint for model in record.models})
    page = publish(
        run,
        record,
        reporter,
        tables={"scores.csv": ranking.to_frame()},
        split=dataset.split,
        thumbnails=None if no_images else lambda: make_thumbnails(dataset),
    )
    return replace(ranking, out=run.path, report=page)
