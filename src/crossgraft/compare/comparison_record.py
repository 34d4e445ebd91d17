"""A comparison of models as a record, and its tables."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from crossgraft.compare import ComparedModels, StoredFeatures
from crossgraft.compare.compared import ComparedRows, Given
from crossgraft.compare.options import CompareModelsOptions
from crossgraft.compare.record import ComparedModel, ModelComparisonRecord
from crossgraft.data.describe import describe_dataset
from crossgraft.records.base import CheckRecord, Reference
from crossgraft.report.paths import configuration_without_absolute_paths
from crossgraft.tune.pretrained_start import start_as_typed

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


def comparison_record(
    given: Mapping[str, Given],
    found: ComparedModels,
    rows: ComparedRows,
    options: CompareModelsOptions,
    checks: list[CheckRecord],
    *,
    seconds: float,
) -> ModelComparisonRecord:
    """Everything that was found of the models, by their label."""
    return ModelComparisonRecord(
        models=[_describe(label, each, found, len(rows.train)) for label, each in given.items()],
        pairs=found.pairs,
        dataset=None if rows.dataset is None else describe_dataset(rows.dataset),
        num_images=len(rows.rows),
        images_in_words=rows.in_words,
        geometry=found.geometry,
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
        started_with={} if given.run is None else _without_places(start_as_typed(given.run)),
        num_features=found.num_features[label],
        layers=found.layers[label],
        images_become=model.preprocessing.describe(),
        probe_train_images=num_train if label in found.probed else None,
    )


def _without_places(flags: Mapping[str, str]) -> dict[str, str]:
    return {flag: str(configuration_without_absolute_paths(value)) for flag, value in flags.items()}


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
