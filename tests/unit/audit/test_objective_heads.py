"""GroupDRO, IRM and VREx as mitigations: literal versions, and what they cannot do."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from crossgraft.audit.mitigation import EmpiricalRisk, GroupDROHead, GroupedRows, IRMHead, VRExHead, _objective_head
from crossgraft.audit.mitigation._mitigation import cell_rows
from crossgraft.errors import UsageError
from support.grouped_rows import part

STRATEGIES = [GroupDROHead(), IRMHead(), VRExHead()]


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    """What is asked here holds after any number of steps, or soon."""
    monkeypatch.setattr(_objective_head, "NUM_STEPS", 30)
    return lambda number: monkeypatch.setattr(_objective_head, "NUM_STEPS", number)


COMPARED = [EmpiricalRisk(), GroupDROHead(eta=0.1), IRMHead(), VRExHead()]


def named(strategy):
    return strategy.name


TRAIN, NOTHING = part(0, 150, 0.8, 3), GroupedRows(np.zeros((0, 3)), np.zeros(0, int), np.zeros(0, int))
UNEVEN = part(0, 400, 0.8, 3).take(np.flatnonzero(part(0, 400, 0.8, 3).artefact | (np.arange(400) % 3 == 0)))
"""Twice as many images with the artefact as without."""


def standard(rows):
    return (rows.features - rows.features.mean(0)) / rows.features.std(0)


def losses_of(rows, parameters):
    """Of each image, and the derivative by a factor of its logit at 1."""
    logits = standard(rows) @ parameters[:-1] + parameters[-1]
    signed = np.where(rows.labels == 1, logits, -logits)
    return np.logaddexp(0, -signed), -signed / (1 + np.exp(signed))


def literal(rows, parameters, strategy):
    """What IRM and VREx minimise, written down again."""
    losses, slopes = losses_of(rows, parameters)
    risks, gradients = ([each[rows.artefact == a].mean() for a in (0, 1)] for each in (losses, slopes))
    penalty = np.var(risks) if strategy.name == "vrex" else np.mean(np.square(gradients))
    return np.mean(risks) + strategy.weight * penalty + np.square(parameters[:-1]).sum() / (2 * len(rows.labels))


@pytest.mark.parametrize("strategy", [IRMHead(weight=2.0), VRExHead(weight=20.0)], ids=str)
def test_the_head_minimises_what_the_paper_says(strategy, few_steps):
    few_steps(200)
    scorer = strategy.fit(UNEVEN, NOTHING, seed=0)
    found = literal(UNEVEN, np.r_[scorer.coefficients, scorer.intercept], strategy)
    best = minimize(lambda parameters: literal(UNEVEN, parameters, strategy), np.zeros(4), method="BFGS", tol=1e-9).fun
    assert best - 1e-7 < found < best + 1e-4
    plain = EmpiricalRisk().fit(UNEVEN, NOTHING, seed=0)
    assert literal(UNEVEN, np.r_[plain.coefficients, plain.intercept], strategy) > best + 5e-4


def test_without_a_penalty_it_is_logistic_regression_with_domains_alike(few_steps):
    few_steps(150)
    scorer = VRExHead(weight=0.0).fit(UNEVEN, NOTHING, seed=0)
    weights = len(UNEVEN.labels) / 2 / np.bincount(UNEVEN.artefact)[UNEVEN.artefact]
    model = LogisticRegression(tol=1e-10, max_iter=10_000).fit(standard(UNEVEN), UNEVEN.labels, sample_weight=weights)
    np.testing.assert_allclose(scorer.coefficients, model.coef_[0], atol=0.01)
    np.testing.assert_allclose(scorer.intercept, model.intercept_[0], atol=0.01)


def test_group_dro_by_hand():
    """Algorithm 1 with all images in each step, and Adam, in plain NumPy."""
    rows, inputs = TRAIN, np.c_[standard(TRAIN), np.ones(150)]
    cells = cell_rows(rows.labels, rows.artefact)
    parameters, first, second, shares = np.zeros(4), np.zeros(4), np.zeros(4), np.full(4, 0.25)
    for step in range(30):
        probabilities = 1 / (1 + np.exp(-inputs @ parameters))
        losses, _ = losses_of(rows, parameters)
        shares = shares * np.exp(0.1 * np.array([losses[cell].mean() for cell in cells]))
        shares /= shares.sum()
        weights = np.zeros(150)
        for share, cell in zip(shares, cells, strict=True):
            weights[cell] = share / len(cell)
        gradient = inputs.T @ (weights * (probabilities - rows.labels)) + np.r_[parameters[:-1], 0] / 150
        first, second = 0.9 * first + 0.1 * gradient, 0.95 * second + 0.05 * gradient**2
        rate = 0.1 * (1 + np.cos(np.pi * step / 29)) / 2
        corrected = first / (1 - 0.9 ** (step + 1)), second / (1 - 0.95 ** (step + 1))
        parameters = parameters - rate * corrected[0] / (np.sqrt(corrected[1]) + 1e-8)
    scorer = GroupDROHead(eta=0.1).fit(rows, NOTHING, seed=0)
    np.testing.assert_allclose(scorer.coefficients, parameters[:-1], rtol=1e-6)
    np.testing.assert_allclose(scorer.intercept, parameters[-1], rtol=1e-6)


def worst_cell(scorer, rows):
    right = scorer.decide(rows.features, rows.artefact) == rows.labels
    return min(right[cell].mean() for cell in cell_rows(rows.labels, rows.artefact))


def test_group_dro_raises_the_worst_cell_where_irm_and_vrex_see_nothing(few_steps):
    """The artefact helps in both domains as much as it harms, so that their risks are alike."""
    few_steps(120)
    train, test = part(1, 800, 0.95, width=12), part(21, 4000, 0.5, width=12)
    plain, dro, irm, vrex = (worst_cell(each.fit(train, NOTHING, seed=0), test) for each in COMPARED)
    assert dro > plain + 0.15
    assert abs(irm - plain) < 0.05 and abs(vrex - plain) < 0.05


@pytest.mark.parametrize("strategy", STRATEGIES, ids=named)
def test_neither_order_nor_seed_matters_and_val_is_not_looked_at(strategy):
    shuffled = TRAIN.take(np.random.default_rng(0).permutation(150))
    first, other = strategy.fit(TRAIN, NOTHING, seed=0), strategy.fit(shuffled, TRAIN, seed=1)
    np.testing.assert_allclose(first.coefficients, other.coefficients, atol=1e-9)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=named)
def test_what_cannot_be_told_apart_is_refused(strategy):
    clean = TRAIN.take(np.flatnonzero((TRAIN.labels == 1) | (TRAIN.artefact == 0)))
    with pytest.raises(UsageError, match="negative with the artefact has 0"):
        strategy.fit(clean, NOTHING, seed=0)


@pytest.mark.parametrize("make", [lambda: GroupDROHead(eta=0.0), lambda: IRMHead(-1.0), lambda: VRExHead(-1.0)])
def test_options_without_a_meaning(make):
    with pytest.raises(UsageError, match="must be"):
        make()
