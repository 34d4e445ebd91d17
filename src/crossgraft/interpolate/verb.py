"""``interpolate``: the curve from a pretrained network to a finished fine-tuning, from its run directory."""

from __future__ import annotations

import shlex
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crossgraft.compute import available_cores, limit_threads, resolve_device, reuse_freed_memory
from crossgraft.data import Dataset
from crossgraft.errors import UsageError, WeightsMismatchError
from crossgraft.interpolate.interpolation import (
    Interpolated,
    about_images,
    interpolation_curve,
    read_alphas,
    with_body_of,
    with_look,
)
from crossgraft.interpolate.options import InterpolateOptions
from crossgraft.models import ModelSpec
from crossgraft.models.classifier import Classifier, make_classifier
from crossgraft.models.trusted_code import NOTHING, trusted_code
from crossgraft.options._option import configuration
from crossgraft.progress import Reporter
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import RunDirectory
from crossgraft.running.verb import Run, verb
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.fold_networks import find_model, load_start
from crossgraft.tune.pretrained_start import start_as_typed
from crossgraft.tune.rows_of_run import (
    options_of_run,
    refuse_join_outside,
    refuse_other_data,
    refuse_root_outside,
    rows_of_run,
    split_of_run,
)
from crossgraft.tune.saving.saved_model import SavedModel, load_saved_model


@verb("interpolate", InterpolateOptions)
def interpolate(run: str | Path, data: str | Path | Dataset, options: InterpolateOptions, call: Run) -> Interpolated:
    """Measure the networks between a pretrained and a fine-tuned one (WiSE-FT): accuracy against similarity, for free.

    A pretrained network has no head for these classes. With ``linear``, α = 0 is that linear probe: the pretrained body under
    a head that was trained on it, so both ends work. Without it, the body is interpolated under the tuned head at every α;
    that head never saw pretrained features, so small α look worse than they need.

    Args:
        run: Run directory of ``crossgraft tune`` with the fine-tuned network, by any method but ``scratch``.
        data: As the run was given it; the parts are those of the run.
        {options}

    Returns:
        For each α metrics with intervals on test and val, CKA, and which α val picks; with ``out`` also ``report.html``,
        ``report.json``, ``run.json`` and ``points.csv`` there.

    Raises:
        RunDirectoryError: A run holds no single model (it is not finished, or has folds), or ``out`` is in use.
        DataError: The data are others than those of the runs.
        UsageError: The runs do not belong together, or an argument is missing.
        WeightsMismatchError: ``model`` has other pretrained weights than the run.

    Cost: for each α one forward pass of all images.
    """
    reporter, alphas = call.reporter, read_alphas(options.alphas)
    device, threads = resolve_device(options.device), options.workers or available_cores()
    with limit_threads(threads), reuse_freed_memory():
        ends = _find_ends(run, options, reporter)
        with call.directory(
            data.name if isinstance(data, Dataset) else data,
            typed=_as_typed(options),
            resolved={"model": ends.full.facts.weights_fingerprint, "linear": ends.probe, "alphas": alphas},
            out=options.out,
            seed=ends.asked.seed,
        ) as directory:
            given = {"image_root": options.image_root, "class_names": options.class_names, "join": options.join}
            given = {name: value for name, value in given.items() if value is not None}
            if options.image_root is None:
                refuse_root_outside(ends.asked.image_root, run)
            if options.join is None:
                refuse_join_outside(ends.asked.join, run)
            asked = replace(ends.asked, **given)
            rows = rows_of_run(data, asked, Path(run), reporter, allow_outside=options.allow_outside)
            refuse_other_data(rows.dataset, ends.full, run)
            record = interpolation_curve(
                ends.start,
                ends.full.classifier,
                rows.dataset,
                rows.parts[0],
                pretrained=ends.pretrained,
                alphas=alphas,
                batch_norm=options.batch_norm,
                start_in_words=ends.start_in_words,
                threshold_rule=ends.asked.threshold_rule,
                device=device,
                num_threads=threads,
                reporter=reporter,
                on_point=options.on_point,
            )
            record = about_images(record, rows, has_probe=ends.probe is not None)
            if options.ledger:
                start = ends.probe or ends.pretrained.recipe.weights_fingerprint
                measured = [start, ends.full.facts.weights_fingerprint, options.batch_norm, *map(str, sorted({*alphas}))]
                record = with_look(record, rows, measured, reporter)
            return _finish(Interpolated(record), rows.dataset, directory, reporter)


def interpolate_runs(
    run_full: str | Path, run_linear: str | Path | None = None, *, data: str | Path | Dataset, **options: Any
) -> Interpolated:
    """For one release: ``interpolate(run_full, data, linear=run_linear)``."""
    warnings.warn(
        "crossgraft.interpolate_runs goes with the next release: write crossgraft.interpolate(run, data, linear=…).",
        DeprecationWarning,
        stacklevel=2,
    )
    return interpolate(run_full, data, linear=run_linear, **options)


@dataclass(frozen=True, eq=False)
class _Ends:
    """What is interpolated between.

    Attributes:
        full: The end.
        start: At α = 0.
        pretrained: What features are compared with.
        start_in_words: What ``start`` is.
        probe: Fingerprint of the weights of the linear probe, if that is the start.
        asked: Options of the run.
    """

    full: SavedModel
    start: Classifier
    pretrained: Classifier
    start_in_words: str
    probe: str | None
    asked: TuneOptions


def _find_ends(run: str | Path, options: InterpolateOptions, reporter: Reporter) -> _Ends:
    if options.model is None and not (options.weights_key is None and options.weights_prefix is None):
        raise UsageError(
            "--weights-key and --weights-prefix name a place inside the checkpoint of --model. Give --model too, or leave them "
            "out."
        )
    spec: ModelSpec | None = None
    if options.model is not None:
        key, prefix = options.weights_key, options.weights_prefix
        spec = find_model(options.model, options.weights_dir, options.allow_code, weights_key=key, weights_prefix=prefix)
    code = trusted_code(options.allow_code).and_also(NOTHING if spec is None else spec.code)
    full = load_saved_model(run, allow_code=code)
    _refuse_scratch(full, run)
    asked = options_of_run(Path(run))
    if options.linear is None:
        if spec is None:
            raise UsageError(_unknown_start(Path(run)))
        pretrained = _pretrained(full, spec, options.weights_dir, asked, reporter)
        words = "the pretrained network with the head of the fine-tuned one"
        return _Ends(full, with_body_of(full.classifier, pretrained), pretrained, words, None, asked)
    linear = load_saved_model(options.linear, allow_code=code)
    _refuse_strangers(full, linear, Path(run), Path(options.linear))
    words = "the pretrained network with the head of the linear probe"
    return _Ends(full, linear.classifier, linear.classifier, words, linear.facts.weights_fingerprint, asked)


def _as_typed(options: InterpolateOptions) -> dict[str, object]:
    """The configuration as a command line gives it."""
    typed = configuration(options)
    if isinstance(options.model, ModelSpec):
        typed["model"] = options.model.typed
    return typed


def _finish(result: Interpolated, dataset: Dataset, run: RunDirectory | None, reporter: Reporter) -> Interpolated:
    if run is None:
        return result
    run.describe_data(dataset.fingerprint)
    page = publish(run, result.record, reporter, tables={"points.csv": result.to_frame()})
    return replace(result, out=run.path, report=page)


def _refuse_scratch(full: SavedModel, run: str | Path) -> None:
    if full.facts.model.from_scratch:
        raise UsageError(
            f"The run in {run} started from random weights, so nothing lies between it and the pretrained network. Give a "
            "run of --method full."
        )


def _refuse_strangers(full: SavedModel, linear: SavedModel, run_full: Path, run_linear: Path) -> None:
    """Raise unless the second run is a linear probe of the same network on the same rows."""
    method = next((each.spelling for each in linear.facts.plugins if each.kind == "method"), "")
    if method != "linear":
        raise UsageError(f"The run in {run_linear} has the method {method or 'unknown'}; the start must be one of linear.")
    one, other = full.classifier.recipe, linear.classifier.recipe
    if (one.network, one.cut, one.weights_fingerprint) != (other.network, other.cut, other.weights_fingerprint):
        raise UsageError(
            f"The runs start from different networks: {one.name} in {run_full}, {other.name} in {run_linear} "
            "(architecture or pretrained weights). Fine-tune the same one twice."
        )
    if one.preprocessing != other.preprocessing:
        raise UsageError(
            f"The runs prepare images differently: {one.preprocessing.describe()} in {run_full}, "
            f"{other.preprocessing.describe()} in {run_linear}. Use the same --image-size and --resize-policy."
        )
    same_data = full.facts.trained_on.fingerprint == linear.facts.trained_on.fingerprint
    if not same_data or full.facts.class_names != linear.facts.class_names:
        raise UsageError(
            f"The runs were made on different data: {full.facts.trained_on.name} in {run_full}, "
            f"{linear.facts.trained_on.name} in {run_linear} (images, labels or groups)."
        )
    first, second = split_of_run(run_full), split_of_run(run_linear)
    other_rows = any(first.rows(part).tolist() != second.rows(part).tolist() for part in ("train", "val", "test"))
    if other_rows or options_of_run(run_full).per_class != options_of_run(run_linear).per_class:
        raise UsageError(
            f"The runs in {run_full} and {run_linear} have other rows in train, val or test, so one of them saw test rows of "
            "the other. Use the same --seed, --split, --per-class and --limit."
        )


def _unknown_start(run: Path) -> str:
    """That the pretrained network has to be named, and how the run was told its name."""
    flags = [word for flag in start_as_typed(run).items() for word in flag]
    named = f"add {shlex.join(flags)}, as the run was told" if flags else "give the --model that the run was told"
    return f"The pretrained network is not known: {named}; or --linear and a run of --method linear to start from."


def _pretrained(
    full: SavedModel, spec: ModelSpec, weights_dir: str | Path | None, asked: TuneOptions, reporter: Reporter
) -> Classifier:
    options = TuneOptions(
        model=spec, seed=asked.seed, weights_dir=weights_dir, image_size=asked.image_size, resize_policy=asked.resize_policy
    )
    backbone = load_start(spec, options, scratch=False, reporter=reporter)
    if backbone.weights_fingerprint != full.classifier.recipe.weights_fingerprint:
        raise WeightsMismatchError(
            f"{spec.name} has other pretrained weights than the run, which started from {full.classifier.recipe.name}. Give the "
            "model of that run."
        )
    return make_classifier(backbone, full.classifier.num_outputs, seed=asked.seed)
