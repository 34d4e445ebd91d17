"""Every registered score keeps every promise, and every promise can be broken."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import crossgraft.scores as scores_package
from crossgraft.scores import SCORES, ScoreValue, scale_over_zoo, score, zoo_score
from crossgraft.testing import NUM_IMAGES, SCORE_CONTRACTS, ContractError, check_score, contracts


@pytest.mark.parametrize("contract", SCORE_CONTRACTS, ids=lambda contract: contract.__name__)
@pytest.mark.parametrize("name", SCORES.names())
def test_registered_score_keeps_promise(name, contract):
    score = SCORES.get(name)
    contract(score, **(model_and_images() if "model" in score.inputs else {}))


def model_and_images():
    """A small network with seeded weights, and images for it."""
    import torch
    from torch import nn

    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.5, generator=generator)
    images = np.random.default_rng(0).standard_normal((NUM_IMAGES, 1, 8, 8)).astype(np.float32)
    return {"model": network, "images": images}


def test_every_score_module_is_registered_and_exported():
    from pathlib import Path

    folder = Path(scores_package.__file__).parent
    modules = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    assert modules == {name for name in SCORES.names() if SCORES.origin(name) == "crossgraft"}
    assert modules <= set(vars(scores_package))


def fact(function, **facts):
    return score(**{"title": "Made up", "reference": "These tests", **facts})(function)


def nearest_mean(features, labels):
    """Share of images whose class mean is the nearest."""
    means = np.array([features[labels == c].mean(axis=0) for c in range(labels.max() + 1)])
    distances = np.square(features[:, None].astype(float) - means).sum(axis=2)
    return float(np.mean(distances.argmin(axis=1) == labels))


def without_reference():
    return fact(nearest_mean, reference=" ")


def infinite():
    return fact(lambda features, labels: np.inf)


def counting():
    counter = itertools.count()

    def never_twice(features, labels):
        return float(next(counter))

    return fact(never_twice)


def overwriting():
    def overwrites(features, labels):
        features += 1
        return 0.0

    return fact(overwrites)


def first_rows():
    def looks_at_first_rows(features, labels):
        return float(features[:5].sum())

    return fact(looks_at_first_rows)


def class_index():
    def uses_class_numbers(features, labels):
        return float(features[:, 0] @ labels)

    return fact(uses_class_numbers)


def dtype_reader():
    def reads_dtype(features, labels):
        return float(features.dtype.itemsize)

    return fact(reads_dtype)


def upside_down():
    return fact(lambda features, labels: -nearest_mean(features, labels))


def stale():
    def never_forgets(features, labels, *, statistics=None):
        return statistics.label_free.remember("value", lambda: nearest_mean(features, labels))

    return fact(never_forgets)


def falsely_invariant():
    def size(features, labels):
        return float(np.abs(features).sum())

    return fact(size, invariances=("scale",))


def falsely_padded():
    def mean(features, labels):
        return float(features.mean())

    return fact(mean, invariances=("padding",))


def falsely_without_value():
    return fact(nearest_mean, no_value_for=("constant features",))


def silently_without_value():
    def over_the_spread(features, labels):
        return nearest_mean(features, labels) if features.std() > 1e-6 else np.nan

    return fact(over_the_spread, no_value_for=("constant features",))


def valued_all_the_same():
    def warns(features, labels):
        return ScoreValue(nearest_mean(features, labels), warnings=["No spread."] if features.std() < 1e-6 else [])

    return fact(warns, no_value_for=("constant features",))


def falsely_warning():
    return fact(nearest_mean, warns_of=("a class of one image",))


@pytest.mark.parametrize(
    ("contract", "make_broken"),
    [
        (contracts.declares_its_facts, without_reference),
        (contracts.gives_a_finite_value, infinite),
        (contracts.is_repeatable, counting),
        (contracts.leaves_its_inputs_alone, overwriting),
        (contracts.ignores_the_order_of_rows, first_rows),
        (contracts.ignores_the_names_of_classes, class_index),
        (contracts.agrees_between_precisions, dtype_reader),
        (contracts.prefers_classes_that_separate, upside_down),
        (contracts.shares_statistics_faithfully, stale),
        (contracts.keeps_its_invariances, falsely_invariant),
        (contracts.keeps_its_invariances, falsely_padded),
        (contracts.meets_awkward_inputs_as_it_says, falsely_without_value),
        (contracts.meets_awkward_inputs_as_it_says, silently_without_value),
        (contracts.meets_awkward_inputs_as_it_says, valued_all_the_same),
        (contracts.meets_awkward_inputs_as_it_says, falsely_warning),
    ],
    ids=lambda value: value.__name__,
)
def test_contract_finds_the_broken_score(contract, make_broken):
    with pytest.raises(ContractError):
        contract(make_broken())


def test_contract_finds_a_missing_refusal(monkeypatch):
    from crossgraft.scores import _inputs

    monkeypatch.setattr(_inputs, "float_matrix", lambda name, values: np.asarray(values))
    with pytest.raises(ContractError, match="NaN in features"):
        contracts.refuses_what_has_no_value(fact(nearest_mean))


def test_each_contract_has_a_name_in_the_table():
    public = {name for name, value in vars(contracts).items() if callable(value) and value in SCORE_CONTRACTS}
    assert len(public) == len(SCORE_CONTRACTS) == 12


def test_contracts_accept_all_four_kinds_of_input():
    @zoo_score(title="Zoo", reference="These tests", combine=lambda parts: scale_over_zoo([part["accuracy"] for part in parts]))
    def zoo(features, labels):
        """A zoo-level score."""
        return {"accuracy": nearest_mean(features, labels)}

    def against_source(features, labels, source_features):
        """Nearest mean after subtracting the source mean."""
        return nearest_mean(features - source_features.mean(axis=0), labels)

    def through_model(labels, model, images):
        """Nearest mean of what a model says."""
        return nearest_mean(model(images), labels)

    images = np.eye(3)[np.arange(NUM_IMAGES) % 3] + 0.01 * np.arange(NUM_IMAGES)[:, None]
    check_score(zoo)
    check_score(fact(nearest_mean))
    check_score(fact(against_source))
    check_score(fact(through_model), model=lambda batch: batch * 2, images=images)
    assert [s.kind for s in (zoo, fact(nearest_mean), fact(against_source), fact(through_model))] == [
        "zoo",
        "arrays",
        "arrays and source features",
        "model and images",
    ]
