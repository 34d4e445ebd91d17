"""The published tables that ship with the package: results of many models on many targets, each with its source."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from crossgraft.errors import DataError
from crossgraft.rank.published.benchmark import Benchmark, Results, ScoreColumn

TITLES: Mapping[str, str] = {
    "logme": "LogME",
    "parc": "PARC",
    "sfda": "SFDA",
    "ncti": "NCTI",
    "leep": "LEEP",
    "nleep": "N-LEEP",
    "ours": "NCA × gradient ratio",
    "lp": "NCA term",
    "fu": "gradient term",
}
PUBLISHED_SCORES: tuple[str, ...] = ("logme", "parc", "sfda", "ncti", "leep", "nleep", "ours")
"""Columns of Tables 6.2 and 6.3, in their order."""
TARGETS: Mapping[str, str] = {
    "bloodmnist": "Blood",
    "breastmnist": "Breast",
    "dermamnist": "Derma",
    "octmnist": "OCT",
    "organamnist": "OrganA",
    "organcmnist": "OrganC",
    "organsmnist": "OrganS",
    "pathmnist": "Path",
    "pneumoniamnist": "Pneumonia",
    "retinamnist": "Retina",
    "tissuemnist": "Tissue",
}
ORGAN_PLANES = ("organamnist", "organcmnist", "organsmnist")
"""Three planes of the same scans: one data set, held out together."""
UNUSABLE: Mapping[str, str] = {
    "parc": "its label distances rank rounding noise as published, which no implementation reproduces",
    "ncti": "the published code adds a term that the method subtracts",
}
"""Columns that this library does not reproduce, and so does not aggregate."""
REVERSED = ("parc", "ncti", "leep", "nleep")
"""Table 6.3 uses 1 − score for these: a choice made after the results were known."""

COMPRESSED = ("sfda_cnn", "tmlr", "medmnistplus", "shift", "dart")
"""Files ``data/<name>.json.gz``."""
PUBLISHED = ("thesis", "itm", *COMPRESSED)
"""Benchmarks that ship with crossgraft."""
TABLES_OF: Mapping[str, str] = {
    "thesis-datasets": "thesis",
    "thesis-architectures": "thesis",
    "medmnistplus_accuracy": "medmnistplus",
    "medmnistplus_auc": "medmnistplus",
}
"""One table of a benchmark that has several, as pages of results call it → the benchmark."""


@cache
def shipped(name: str) -> dict[str, Any]:
    """The JSON document ``data/<name>.json``."""
    file = resources.files("crossgraft.rank.published").joinpath("data", f"{name}.json")
    return json.loads(file.read_text(encoding="utf-8"))


def thesis_datasets() -> Benchmark:
    """Table 6.2: fifteen source data sets of one ResNet18, eleven medical targets."""
    return _thesis(
        "dataset", name="thesis-datasets", title="Which source data set? One architecture, 15 sources, 11 medical targets"
    )


def thesis_architectures() -> Benchmark:
    """Table 6.3: nine architectures from ImageNet, eleven medical targets."""
    return _thesis("model", name="thesis-architectures", title="Which architecture? 9 networks from ImageNet, 11 medical targets")


def itm_benchmark() -> Benchmark:
    """Table 3 of ITM: ten networks of several kinds of pretraining, ten natural targets; no scores are published."""
    tables = shipped("itm")
    models = list(tables["table3_accuracy"])
    return Benchmark(
        name="itm",
        title="Which foundation model? 10 networks, 10 natural targets",
        result="accuracy (%)",
        models=models,
        targets=tables["datasets"],
        groups=tables["datasets"],
        results=np.array([[tables["table3_accuracy"][m][t] for m in models] for t in tables["datasets"]]),
        printed={method: [cells[target] for target in tables["datasets"]] for method, cells in tables["table1_tau_w"].items()},
    )


def _thesis(scenario: str, *, name: str, title: str) -> Benchmark:
    tables = shipped("thesis")[scenario]
    targets: list[str] = tables["targets"]

    def matrix(rows: dict[str, list[float | None]]) -> Results:
        return np.array([rows[target] for target in targets], dtype=np.float64)  # None becomes NaN

    results = matrix(tables["auc"]) / tables["auc_unit"]
    values = {key: np.where(np.isnan(results), np.nan, matrix(rows)) for key, rows in tables["scores"].items()}
    values["ours"] = _nca_gradient(values["lp"], values["fu"], reverse=scenario == "model")
    if scenario == "model":
        values |= {key: 1 - values[key] for key in REVERSED}
        values |= {key: -values[key] for key in ("lp", "fu")}
    return Benchmark(
        name=name,
        title=title,
        result="AUC (fraction)",
        models=tables["sources"],
        targets=[TARGETS[target] for target in targets],
        groups=["Organ" if target in ORGAN_PLANES else TARGETS[target] for target in targets],
        results=results,
        columns={
            key: ScoreColumn(TITLES[key], values[key], part=key in ("lp", "fu"), unusable=UNUSABLE.get(key))
            for key in (*PUBLISHED_SCORES, "lp", "fu")
        },
    )


def _nca_gradient(first: Results, second: Results, *, reverse: bool) -> Results:
    """Eq. 6.6: the product of both terms, each scaled to [0, 1] over the sources; eq. 6.8: of one minus each.

    The sentence beside eq. 6.6 says sum; only the product gives the printed tables.
    """
    scaled = [_min_max(values) for values in (first, second)]
    return (1 - scaled[0]) * (1 - scaled[1]) if reverse else scaled[0] * scaled[1]


def _min_max(values: Results) -> Results:
    low, high = np.nanmin(values, axis=1, keepdims=True), np.nanmax(values, axis=1, keepdims=True)
    spread = high - low
    return np.where(spread > 0, (values - low) / np.where(spread > 0, spread, 1), 0.5 + 0 * values)


# Names that papers print, and the weights that they mean by the names of timm, torchvision or the Hugging Face hub.
#
# ``data/names.json`` has one entry a table, which says why a name means these weights. A name whose weights the publication
# leaves open is no alias: it stays with its architecture, so its results speak of relatives only.


class Names(NamedTuple):
    """Names of one table.

    Attributes:
        why: Reason for which these names mean these weights.
        certain: Printed name → full name of the weights.
        architecture: Printed name → architecture, where the publication leaves the weights open.
    """

    why: str
    certain: Mapping[str, str]
    architecture: Mapping[str, str]


_SAME = {"dart": "tmlr", "medmnistplus_accuracy": "medmnistplus", "medmnistplus_auc": "medmnistplus"}
"""Tables that use the names of another."""


@cache
def printed_names() -> Mapping[str, Names]:
    """Table → its names."""
    return {table: Names(**names) for table, names in shipped("names").items()}


def timm_name(name: str, *, table: str) -> str | None:
    """The weights that ``table`` means by ``name``; a hub name means itself, and an open one has none."""
    names = printed_names()[naming_table(table)]
    return names.certain.get(name) or (name if "/" in name and table == "shift" and name not in names.architecture else None)


def naming_table(table: str) -> str:
    """The table whose names ``table`` uses: publications of one group of authors, or of two metrics, share theirs."""
    return _SAME.get(table, table)


def architecture_name(name: str, *, table: str) -> str | None:
    """The architecture of a name whose weights ``table`` leaves open."""
    return printed_names()[naming_table(table)].architecture.get(name)


def weights_called(name: str) -> str | None:
    """The weights that a printed name means, whichever table prints it; None where no table does.

    Raises:
        DataError: Two tables mean different weights by it, or one leaves them open; the message names the tables.

    >>> weights_called("EfficientNet-B4"), weights_called("resnet34"), weights_called("anything")
    ('efficientnet_b4.ra2_in1k', 'resnet34.tv_in1k', None)
    """
    meanings: dict[str, list[str]] = {}
    for table, names in printed_names().items():
        if name in names.certain:
            meanings.setdefault(names.certain[name], []).append(table)
        elif name in names.architecture:
            meanings.setdefault(f"{names.architecture[name]} with weights that are not said", []).append(table)
    if len(meanings) > 1 or any(" " in meaning for meaning in meanings):
        listed = " and ".join(f"{' and '.join(tables)} means {meaning}" for meaning, tables in meanings.items())
        raise DataError(f"{name} is ambiguous: {listed}. Write the full name of the weights, as timm or torchvision do.")
    return next(iter(meanings), None)


KIND_TITLES: Mapping[str, str] = {
    "low:size=0.125": "Fine-tuning at 28 pixels",
    "low:size=0.286": "Fine-tuning at 64 pixels",
    "low:size=0.571": "Fine-tuning at 128 pixels",
    "low:size=0.5": "Fine-tuning at half the resolution",
    "low:epochs=0.2": "Fine-tuning for a fifth of the epochs",
    "linear_probe": "Linear probe",
    "knn_probe": "Nearest neighbours",
    "h_score": "H-score",
    "regularized_h_score": "Regularised H-score",
    "nce": "NCE",
    "leep": "LEEP",
    "nleep": "N-LEEP",
    "parc": "PARC",
    "sfda": "SFDA",
    "logme": "LogME",
    "gbc": "GBC",
    "pactran": "PACTran",
    "energy": "Energy",
    "ncti": "NCTI",
    "etran": "ETran",
    "ped": "PED",
    "transrate": "TransRate",
    "lfc": "LFC",
    "itm": "ITM",
    "nca_score": "NCA score",
    "lead": "LEAD",
    "tmi": "TMI",
    "ours": "NCA × gradient ratio",
}
THESIS_PROTOCOL = "full fine-tuning, 100 images a class, SGD with a grid of 120 runs, test AUC"
ITM_PROTOCOL = "fine-tuning, highest accuracy"


@dataclass(frozen=True, kw_only=True)
class PublishedTable(Benchmark):
    """What fine-tuning gave in one publication, in one metric: a benchmark whose results are fractions.

    Models are called as printed, and a target the same in every table that has it. Columns are cheaper evidence on the same
    models and targets (``low:size=0.286``, ``logme``).

    Args:
        source: Where the figures are published.
        origin: The publication in a few words.
        protocol: How models were tuned and tested.
        metric: Metric; values are fractions.
    """

    source: str
    origin: str
    protocol: str
    metric: str


def _evidence(kinds: Mapping[str, Results], results: Results) -> dict[str, ScoreColumn]:
    """Cheap evidence at the size at which the networks were fine-tuned; a target without a value has no result either."""
    names = {kind.removeprefix("score:"): values for kind, values in kinds.items() if "@" not in kind}
    return {
        name: ScoreColumn(KIND_TITLES.get(name, name), np.where(np.isnan(results), np.nan, values))
        for name, values in names.items()
    }


@cache
def published_tables() -> tuple[PublishedTable, ...]:
    """Every table of models; those of *sources* of one architecture are not among them."""
    thesis, itm = thesis_architectures(), itm_benchmark()
    return (
        *(table for name in COMPRESSED for table in _of_file(name)),
        _of_benchmark(thesis, "auc", "thesis, Table 6.5", THESIS_PROTOCOL),
        _of_benchmark(itm, "accuracy", "ITM, Table 3", ITM_PROTOCOL, scale=0.01),
    )


def table_of_sources() -> PublishedTable:
    """Table 6.4: its columns are sources of one ResNet18."""
    return _of_benchmark(thesis_datasets(), "auc", "thesis, Table 6.4", THESIS_PROTOCOL)


def published_table(name: str) -> PublishedTable:
    """One table by its name."""
    return next(table for table in published_tables() if table.name == name)


class ImageNetResult(NamedTuple):
    """What timm, or torchvision, publishes of one network at its best image size."""

    model: str
    top1_percent: float
    parameters_millions: float
    gmacs: float | None
    cpu_images_per_second: float | None


@cache
def imagenet_results() -> Mapping[str, ImageNetResult]:
    """Every network with an ImageNet result, by its full name (``resnet18.a1_in1k``, ``torchvision:resnet18``).

    Where several image sizes are published, that with the highest top-1.
    """
    document = compressed("imagenet")
    by_name: dict[str, ImageNetResult] = {}
    for model, _, top1, _, _, _, parameters, gmacs, speed in document["rows"]:
        if model not in by_name or top1 > by_name[model].top1_percent:
            by_name[model] = ImageNetResult(model, top1, parameters, gmacs, speed)
    return by_name


@cache
def compressed(name: str) -> dict[str, Any]:
    """The JSON document ``data/<name>.json.gz``."""
    file = resources.files("crossgraft.rank.published").joinpath("data", f"{name}.json.gz")
    return json.loads(gzip.decompress(file.read_bytes()).decode("utf-8"))


def _of_file(name: str) -> Iterator[PublishedTable]:
    document = compressed(name)
    for metric, cells in document["metrics"].items():
        several, results = len(document["metrics"]) > 1, _matrix(cells["results"])
        yield PublishedTable(
            name=f"{name}_{metric}" if several else name,
            title=f"{document['title']} ({metric})" if several else document["title"],
            source=document["source"],
            origin=document["origin"],
            protocol=document["protocol"],
            metric=metric,
            result=f"{metric} (fraction)",
            models=document["models"],
            targets=document["targets"],
            groups=document["groups"],
            results=results,
            columns=_evidence({kind: _matrix(rows) for kind, rows in cells["kinds"].items()}, results),
            standard_deviations=_maybe(cells.get("standard_deviations")),
            validation=_maybe(cells.get("validation")),
            seconds=_maybe(cells.get("seconds")),
        )


def _of_benchmark(benchmark: Benchmark, metric: str, origin: str, protocol: str, *, scale: float = 1.0) -> PublishedTable:
    scores = {name: column.values for name, column in benchmark.columns.items() if not column.part and not column.unusable}
    return PublishedTable(
        name=benchmark.name,
        title=benchmark.title,
        source=origin,
        origin=origin,
        protocol=protocol,
        metric=metric,
        result=f"{metric} (fraction)",
        models=benchmark.models,
        targets=benchmark.targets,
        groups=benchmark.groups,
        results=benchmark.results * scale,
        columns=_evidence(scores, benchmark.results),
    )


def _matrix(rows: list[list[float | None]]) -> Float64[np.ndarray, "num_targets num_models"]:
    return np.array(rows, dtype=np.float64)  # None becomes NaN


def _maybe(rows: list[list[float | None]] | None) -> Results | None:
    return None if rows is None else _matrix(rows)
