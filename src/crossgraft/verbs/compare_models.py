"""``compare_models``: what fine-tuning changed, and whether two models see and fail alike."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from crossgraft.compare import ComparedModels, Comparison, HowToCompare, StoredFeatures
from crossgraft.compute import available_cores, limit_threads, resolve_device, reuse_freed_memory
from crossgraft.data.checks import check_rows
from crossgraft.data.describe import describe_dataset
from crossgraft.errors import UsageError
from crossgraft.models import ModelSpec
from crossgraft.models.trusted_code import NOTHING, TrustedCode, trusted_code
from crossgraft.options import CompareModelsOptions, configuration
from crossgraft.records import CheckRecord, ComparedModel, ModelComparisonRecord, Reference
from crossgraft.result import Result
from crossgraft.runs import RunDirectory
from crossgraft.tune.looks import count_test_look
from crossgraft.verbs._compared import ComparedRows, Given, open_compared_rows, open_model
from crossgraft.verbs._given_images import location_of
from crossgraft.verbs._verb import Run, verb
from crossgraft.verbs.publish import publish
from crossgraft.words.model_comparison_words import answer_in_words

_LABELS = ("A", "B", "A before", "B before")
_REFERENCES = (
    ("CKA", "Kornblith, Norouzi, Lee and Hinton, Similarity of Neural Network Representations Revisited, ICML 2019."),
    (
        "CCA of layers",
        "Raghu, Gilmer, Yosinski and Sohl-Dickstein, SVCCA, NeurIPS 2017; drawn as in Juodelyte's thesis, eq. 3.1.",
    ),
    ("PWCCA", "Morcos, Raghu and Bengio, Insights on Representational Similarity in Neural Networks, NeurIPS 2018."),
    (
        "Procrustes",
        "Ding, Denain and Steinhardt, Grounding Representation Similarity with Statistical Testing, NeurIPS 2021.",
    ),
    (
        "RSA",
        "Kriegeskorte, Mur and Bandettini, Representational similarity analysis, Front. Syst. Neurosci. 2 (2008) 4.",
    ),
    (
        "Shared mistakes",
        "Mania, Miller, Schmidt, Hardt and Recht, Model Similarity Mitigates Test Set Overuse, NeurIPS 2019.",
    ),
    (
        "κ of mistakes",
        "Geirhos, Meding and Wichmann, Beyond accuracy: quantifying trial-by-trial behaviour, NeurIPS 2020.",
    ),
)


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(Result[ModelComparisonRecord]):
    """Two models beside each other: ``record`` holds every number."""

    def summary(self) -> str:
        """How alike features and mistakes are."""
        return answer_in_words(self.record)

    def to_frame(self) -> pd.DataFrame:
        """One row per pair of models and measure of their penultimate features."""
        return pd.DataFrame(
            [
                {"first": pair.first, "second": pair.second, **row.model_dump(exclude={"notes"})}
                for pair in self.record.pairs
                for row in pair.features
            ]
        )


@verb("compare", CompareModelsOptions)
def compare_models(a: Any, b: Any, options: CompareModelsOptions, run: Run) -> ModelComparison:
    """Measure how alike two models are, layer by layer, in their features and in their mistakes.

    Each number stands beside that of two untrained networks of the same architectures, which are more alike than one would
    think. With ``before`` the comparison is that of chapter 3 of the thesis: what fine-tuning changed in each model, and whether
    it made the two more alike. Networks are only looked at: weights, modes and hooks stay as they are.

    Args:
        a: Run directory of ``crossgraft tune``, or of one of its folds; a checkpoint, timm name or zoo entry as ``rank`` takes
            it; or features on disk, an npz or safetensors file of arrays (n, d), one per layer (``features:FILE``).
        b: The other model, of any of these kinds. Sizes and preprocessing may differ.
        {options}

    Returns:
        CKA of all pairs of layers, penultimate features by every measure, CCA of layers by the protocol of the thesis, and
        shared mistakes; with ``out`` also ``report.html``, ``report.json``, ``layers.csv``, ``features.csv`` and ``run.json``
        there.

    Raises:
        DataError: The data are others than those of the runs, or features are NaN or of another number of images; or there
            are fewer than four images.
        RunDirectoryError: A run has no single model (folds), or ``out`` is in use or holds another run.
        UsageError: An argument is wrong, or contradicts another.
        UnknownNameError: A layer or model is not known; the message gives the nearest names.
        MissingWeightsError: Weights are not on this machine.

    Cost: one forward pass of each network, and of two untrained ones, per image; with ``linear_probe`` also per training image.
    """
    reporter, began = run.reporter, time.perf_counter()
    device, threads = resolve_device(options.device), options.workers or available_cores()
    typed = {**configuration(options), "a": _as_typed(a), "b": _as_typed(b), "data": location_of(options.data)}
    with limit_threads(threads), reuse_freed_memory():
        trusted = _trusted(options, (a, b))
        given = _open_all(a, b, options, trusted, device=device, run=run)
        how = _how(options)
        comparison = Comparison(
            {label: each.model for label, each in given.items()}, how, trusted=trusted, reporter=reporter
        )
        resolved = {"models": {label: _fingerprint(each) for label, each in given.items()}}
        with run.directory(location_of(options.data), typed=typed, resolved=resolved, out=options.out) as directory:
            if directory:
                directory.describe_machine(reporter, threads=threads, device=device)
            rows = open_compared_rows(list(given.values()), options, reporter)
            checks = [] if rows.dataset is None else check_rows(rows.dataset, strict=options.strict, reporter=reporter)
            targets = None if rows.dataset is None else rows.dataset.targets
            found = comparison.run(rows.dataset, rows.rows, rows.train, targets)
            record = _record(given, found, rows, options, list(checks), seconds=time.perf_counter() - began)
            if options.ledger and rows.dataset is not None:
                measured = [_fingerprint(each) for each in given.values()]
                looks = count_test_look(rows.dataset, rows.rows, measured, None, command="compare", reporter=reporter)
                record = record.model_copy(update={"looks": looks})
            return _finish(ModelComparison(record), rows, directory, reporter)


def _open_all(
    a: Any, b: Any, options: CompareModelsOptions, trusted: TrustedCode, *, device: str, run: Run
) -> dict[str, Given]:
    """All models by their label."""
    before = _before(options.before)
    named = dict(zip(_LABELS, [a, b, *before], strict=False))
    opened = {
        label: open_model(each, label, options, trusted, device=device, reporter=run.reporter)
        for label, each in named.items()
    }
    for label in ("A", "B"):
        start, after = opened.get(f"{label} before"), opened[label]
        if start is not None and (isinstance(start.model, StoredFeatures) or isinstance(after.model, StoredFeatures)):
            raise UsageError("--before is about networks, and one of the models is features on disk. Leave it out.")
        if start is not None and after.saved is not None:
            _refuse_other_start(start, after, label)
    return opened


def _before(given: object) -> list[Any]:
    """The starts of A and B; one alone is that of both."""
    if given is None:
        return []
    found = [each.strip() for each in given.split(",")] if isinstance(given, str) else given
    several = list(found) if isinstance(found, Sequence) else [found]
    if len(several) not in (1, 2):
        raise UsageError(f"--before names the starts of A and B, with a comma, or one for both; got {len(several)}.")
    return several * 2 if len(several) == 1 else several


def _refuse_other_start(start: Given, after: Given, label: str) -> None:
    if isinstance(start.model, StoredFeatures) or isinstance(after.model, StoredFeatures):
        return
    if start.model.weights_fingerprint != after.model.start_fingerprint:
        raise UsageError(
            f"{label} was not fine-tuned from {start.model.name}: its pretrained weights are others. Name the start of {label} "
            "in --before."
        )


def _how(options: CompareModelsOptions) -> HowToCompare:
    return HowToCompare(
        layers=_names(options.layers),
        layers_b=_names(options.layers_b),
        pool=options.pool,
        cca_preset=options.cca_preset,
        linear_probe=options.linear_probe,
        seed=options.seed,
    )


def _names(given: str | Sequence[str] | None) -> list[str] | None:
    if given is None:
        return None
    return [each.strip() for each in given.split(",")] if isinstance(given, str) else list(given)


def _trusted(options: CompareModelsOptions, models: Sequence[object]) -> TrustedCode:
    """The code that the user named, and that of specs which were made with some."""
    found = trusted_code(options.allow_code)
    for each in models:
        found = found.and_also(each.code if isinstance(each, ModelSpec) else NOTHING)
    return found


def _fingerprint(given: Given) -> str:
    model = given.model
    return model.fingerprint if isinstance(model, StoredFeatures) else model.weights_fingerprint


def _as_typed(given: object) -> object:
    """What stands for a model in a configuration: no object and no path."""
    if isinstance(given, ModelSpec):
        return given.typed
    return str(given) if isinstance(given, str | Path) else type(given).__name__


def _record(
    given: Mapping[str, Given],
    found: ComparedModels,
    rows: ComparedRows,
    options: CompareModelsOptions,
    checks: list[CheckRecord],
    *,
    seconds: float,
) -> ModelComparisonRecord:
    return ModelComparisonRecord(
        models=[_describe(label, each, found, len(rows.train)) for label, each in given.items()],
        pairs=found.pairs,
        dataset=None if rows.dataset is None else describe_dataset(rows.dataset),
        num_images=len(rows.rows),
        images_in_words=rows.in_words,
        pool=options.pool,
        cca_preset=options.cca_preset,
        seed=options.seed,
        checks=checks,
        notes=[*rows.notes, *found.notes],
        references=[Reference(key=key, text=text) for key, text in _REFERENCES],
        seconds=seconds,
    )


def _describe(label: str, given: Given, found: ComparedModels, num_train: int) -> ComparedModel:
    model = given.model
    if isinstance(model, StoredFeatures):
        return ComparedModel(
            label=label,
            name=model.name,
            kind="features",
            architecture=None,
            weights_fingerprint=None,
            start_fingerprint=None,
            num_features=found.num_features[label],
            layers=found.layers[label],
            images_become=None,
        )
    return ComparedModel(
        label=label,
        name=model.name,
        kind="pretrained" if model.saved is None else "fine-tuned",
        architecture=model.architecture,
        weights_fingerprint=model.weights_fingerprint,
        start_fingerprint=model.start_fingerprint,
        num_features=found.num_features[label],
        layers=found.layers[label],
        images_become=model.preprocessing.describe(),
        probe_train_images=num_train if label in found.probed else None,
    )


def layers_frame(record: ModelComparisonRecord) -> pd.DataFrame:
    """One row per pair of layers of each pair of models: CKA, and that of untrained networks."""
    rows: list[dict[str, object]] = []
    for pair in record.pairs:
        for grid, what in ((pair.cka, "models"), (pair.cka_untrained, "untrained")):
            if grid is None:
                continue
            about = {"first": pair.first, "second": pair.second, "of": what}
            rows.extend(
                {**about, "layer": row, "other_layer": column, "cka": value}
                for row, values in zip(grid.rows, grid.values, strict=True)
                for column, value in zip(grid.columns, values, strict=True)
            )
    return pd.DataFrame(rows)


def _finish(result: ModelComparison, rows: ComparedRows, run: RunDirectory | None, reporter: Any) -> ModelComparison:
    if run is None:
        return result
    if rows.dataset is not None:
        run.describe_data(rows.dataset.fingerprint)
    fingerprints = {each.label: each.weights_fingerprint for each in result.record.models if each.weights_fingerprint}
    run.update(weights_fingerprints=fingerprints)
    tables = {"features.csv": result.to_frame(), "layers.csv": layers_frame(result.record)}
    page = publish(run, result.record, reporter, tables=tables)
    return replace(result, out=run.path, report=page)
