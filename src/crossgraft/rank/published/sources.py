"""The published tables that ship with the package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

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

PUBLISHED = ("thesis", "itm", "sfda_cnn", "tmlr", "medmnistplus", "shift", "dart")
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
