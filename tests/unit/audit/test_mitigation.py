"""Strategies against a shortcut: what each minimises, draws or picks, that it helps, and when it is refused."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crossgraft.audit.mitigation import (
    MITIGATIONS,
    BalancedSampling,
    DeepFeatureReweighting,
    EmpiricalRisk,
    GroupedRows,
    GroupThresholds,
    GroupWeights,
    SourceEditing,
    refuse_unidentifiable,
    suited,
)
from crossgraft.audit.mitigation._mitigation import balanced_draw, cell_rows
from crossgraft.audit.mitigation.dfr import INVERSE_PENALTIES
from crossgraft.audit.mitigation.group_weights import cell_weights
from crossgraft.choice import choose, spell
from crossgraft.errors import DataError, UnknownNameError, UsageError
from support.grouped_rows import part

ALL = [cls() for _, cls in MITIGATIONS]
BY_OBJECTIVES = ("group_dro", "irm", "vrex")
"""Which take seconds, see test_objective_heads.py."""
EVERY = [each for each in ALL if each.name not in BY_OBJECTIVES]
CELLS = [(0, 0), (0, 1), (1, 0), (1, 1)]
BALANCING = [BalancedSampling(), GroupWeights(), DeepFeatureReweighting(), GroupThresholds()]


def named(mitigation):
    return mitigation.name


def subset(rows, chosen):
    return rows.take(np.arange(len(rows.labels))[chosen])


def worst_cell(scorer, rows):
    right = scorer.decide(rows.features, rows.artefact) == rows.labels
    return min(right[(rows.labels == y) & (rows.artefact == a)].mean() for y, a in CELLS)


def same(first, second, **tolerance):
    np.testing.assert_allclose(first, second, **tolerance)


TRAIN, VAL, TEST = part(0, 600, 0.9), part(1, 400, 0.9), part(2, 300, 0.5)


def test_the_registry_holds_every_strategy():
    assert MITIGATIONS.names()[0] == "erm"  # which the others are compared with
    for each in ALL:
        assert choose(MITIGATIONS, spell(each)) == each and each.title and each.reference
        with pytest.raises(dataclasses.FrozenInstanceError):
            each.name = "other"
    assert choose(MITIGATIONS, "dfr:3") == DeepFeatureReweighting(draws=3)


@pytest.mark.parametrize("seed", range(3))
def test_what_balances_raises_the_worst_cell(seed):
    train, val, test = part(seed, 2000, 0.95), part(seed + 10, 1000, 0.95), part(seed + 20, 4000, 0.5)
    found = {each.name: worst_cell(each.fit(train, val, seed=0), test) for each in EVERY}
    assert found["erm"] < 0.65
    for name in ("balanced_sampling", "group_weights", "dfr"):
        assert found[name] > found["erm"] + 0.15, name
    assert found["group_thresholds"] > found["erm"] + 0.05
    assert found["source_editing"] == found["erm"]  # the images were not edited


def test_the_baseline_is_that_of_scikit_learn():
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(TRAIN.features, TRAIN.labels)
    for strategy in (EmpiricalRisk(), SourceEditing()):
        scorer = strategy.fit(TRAIN, VAL, seed=0)
        same(scorer.probabilities(TEST.features), probe.predict_proba(TEST.features)[:, 1], atol=1e-4)
        decided = scorer.decide(TEST.features, TEST.artefact)
        assert (decided == (scorer.probabilities(TEST.features) >= 0.5)).all() and 0 < decided.mean() < 1


def test_a_constant_feature_says_nothing():
    constant = TRAIN._replace(features=np.c_[TRAIN.features, np.full(600, 7.0)])
    scorer = EmpiricalRisk().fit(constant, VAL, seed=0)
    same(
        scorer.probabilities(np.c_[TEST.features, np.full(300, 7.0)]),
        EmpiricalRisk().fit(TRAIN, VAL, seed=0).probabilities(TEST.features),
        atol=1e-4,
    )


cells = st.lists(st.integers(1, 30), min_size=4, max_size=4)


def flags_of(sizes, seed):
    """Labels and artefact of cells of these sizes, in any order."""
    order = np.random.default_rng(seed).permutation(sum(sizes))
    return (np.repeat([cell[column] for cell in CELLS], sizes)[order] for column in (0, 1))


@settings(max_examples=40, deadline=None)
@given(cells, st.integers(0, 99))
def test_weights_make_cells_equal(sizes, seed):
    labels, artefact = flags_of(sizes, seed)
    weights = cell_weights(labels, artefact)
    counts = dict(zip(CELLS, sizes, strict=True))
    expected = [sum(sizes) / (4 * counts[y, a]) for y, a in zip(labels.tolist(), artefact.tolist(), strict=True)]
    same(weights, expected)
    assert weights.sum() == pytest.approx(sum(sizes))
    for y, a in CELLS:
        assert weights[(labels == y) & (artefact == a)].sum() == pytest.approx(sum(sizes) / 4)


def test_weights_enter_the_loss():
    """At the minimum of ½‖w‖² + Σ v_i ℓ_i the gradient is 0, by w and by b."""
    scorer = GroupWeights().fit(TRAIN, VAL, seed=0)
    standard = (TRAIN.features - TRAIN.features.mean(0)) / TRAIN.features.std(0)
    slope = cell_weights(TRAIN.labels, TRAIN.artefact) * (scorer.probabilities(TRAIN.features) - TRAIN.labels)
    same(scorer.coefficients + slope @ standard, 0, atol=0.1)  # of 600 images; lbfgs stops at 1e-4 of their mean
    same(slope.sum(), 0, atol=0.1)
    equal = subset(TRAIN, balanced_draw(cell_rows(TRAIN.labels, TRAIN.artefact), np.random.default_rng(0)))
    weighted, plain = (each.fit(equal, VAL, seed=0) for each in (GroupWeights(), EmpiricalRisk()))
    same(weighted.coefficients, plain.coefficients)


@settings(max_examples=40, deadline=None)
@given(cells, st.integers(0, 99))
def test_a_balanced_draw_has_equal_cells(sizes, seed):
    labels, artefact = flags_of(sizes, seed)
    every = cell_rows(labels, artefact)
    drawn = balanced_draw(every, np.random.default_rng(seed))
    assert [((labels[drawn] == y) & (artefact[drawn] == a)).sum() for y, a in CELLS] == [min(sizes)] * 4
    assert len(set(drawn.tolist())) == len(drawn)
    assert (balanced_draw(every, np.random.default_rng(seed)) == drawn).all()


def test_every_image_of_a_cell_may_be_drawn():
    every = [np.arange(0, 5), np.arange(5, 7), np.arange(7, 10), np.arange(10, 14)]
    drawn = [balanced_draw(every, np.random.default_rng(seed)) for seed in range(60)]
    assert set(np.concatenate(drawn).tolist()) == set(range(14))


@pytest.mark.parametrize("strategy", [BalancedSampling(), DeepFeatureReweighting(draws=2)], ids=named)
def test_the_seed_decides_on_draws(strategy):
    first, again, other = (strategy.fit(TRAIN, VAL, seed=seed).probabilities(TEST.features) for seed in (0, 0, 1))
    assert (first == again).all() and not np.allclose(first, other, atol=1e-3)


@pytest.mark.parametrize("strategy", [EmpiricalRisk(), GroupWeights(), GroupThresholds(), SourceEditing()], ids=named)
def test_what_draws_nothing_needs_no_seed(strategy):
    first, other = (strategy.fit(TRAIN, VAL, seed=seed) for seed in (0, 1))
    assert (first.coefficients == other.coefficients).all() and first.thresholds == other.thresholds


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 999))
def test_the_order_of_images_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    shuffled = [subset(rows, rng.permutation(len(rows.labels))) for rows in (TRAIN, VAL)]
    for strategy in EVERY:
        first, other = strategy.fit(TRAIN, VAL, seed=3), strategy.fit(*shuffled, seed=3)
        same(first.coefficients, other.coefficients, atol=1e-9)
        same(first.thresholds, other.thresholds, atol=1e-9)


def test_only_what_says_so_looks_at_val():
    nothing = GroupedRows(np.zeros((0, 3)), np.zeros(0, dtype=int), np.zeros(0, dtype=int))
    other = part(9, 400, 0.6)
    for strategy in EVERY:
        first, second = strategy.fit(TRAIN, VAL, seed=0), strategy.fit(TRAIN, other, seed=0)
        equal = (first.coefficients == second.coefficients).all() and first.thresholds == second.thresholds
        assert equal is not strategy.uses_val
        if strategy.uses_val:
            with pytest.raises(DataError, match="of val"):
                strategy.fit(TRAIN, nothing, seed=0)
        else:
            same(strategy.fit(TRAIN, nothing, seed=0).coefficients, first.coefficients)


def test_reweighting_takes_scales_alone_from_training_images():
    turned = TRAIN._replace(labels=1 - TRAIN.labels, artefact=0 * TRAIN.artefact)
    first, other = (DeepFeatureReweighting().fit(rows, VAL, seed=0) for rows in (TRAIN, turned))
    same(first.coefficients, other.coefficients)
    same(first.mean, TRAIN.features.mean(0))
    same(first.scale, TRAIN.features.std(0))


def test_reweighting_is_a_mean_of_sparse_fits(monkeypatch):
    """Every draw has as many images in each cell, and every fit solves its own problem with L1: |gradient| ≤ 1 / C."""
    fits = []
    fit = LogisticRegression.fit

    def kept(model, features, labels):
        fits.append((model, features, labels))
        return fit(model, features, labels)

    monkeypatch.setattr(LogisticRegression, "fit", kept)
    scorer = DeepFeatureReweighting(draws=4).fit(TRAIN, VAL, seed=0)
    tried, final = fits[:7], fits[7:]
    assert tuple(model.C for model, *_ in tried) == INVERSE_PENALTIES and len(final) == 4
    assert len({model.C for model, *_ in final}) == 1
    assert all((final[0][1] != features).any() for _, features, _ in final[1:])  # draws differ
    same(scorer.coefficients, np.mean([model.coef_[0] for model, *_ in final], axis=0))
    same(scorer.intercept, np.mean([model.intercept_[0] for model, *_ in final]))
    smallest = min(map(len, cell_rows(VAL.labels, VAL.artefact)))
    standard = (VAL.features - TRAIN.features.mean(0)) / TRAIN.features.std(0)
    for rows, number in ((tried, smallest - smallest // 2), (final, smallest)):
        for model, features, labels in rows:
            places = [int(np.flatnonzero(np.isclose(standard, row).all(1))[0]) for row in features]
            assert len(set(places)) == 4 * number
            assert [((labels == y) & (VAL.artefact[places] == a)).sum() for y, a in CELLS] == [number] * 4
            slope = (model.predict_proba(features)[:, 1] - labels) @ features
            assert np.abs(slope).max() <= 1.01 / model.C
            used = model.coef_[0] != 0
            same(slope[used], -np.sign(model.coef_[0][used]) / model.C, rtol=0.02)


@pytest.mark.parametrize("seed", range(6))
def test_reweighting_picks_the_penalty_by_the_worst_cell(monkeypatch, seed):
    """Of images that were not fitted to; few images and many features of noise, so that penalties differ."""
    rows = part(seed, 240, 0.7, width=200)
    measured, fitted = [], []
    fit, predict = LogisticRegression.fit, LogisticRegression.predict_proba
    monkeypatch.setattr(LogisticRegression, "fit", lambda model, x, y: fitted.append((model, x)) or fit(model, x, y))
    monkeypatch.setattr(LogisticRegression, "predict_proba", lambda model, x: measured.append((model, x)) or predict(model, x))
    DeepFeatureReweighting(draws=1).fit(rows, rows, seed=seed)
    standard = (rows.features - rows.features.mean(0)) / rows.features.std(0)
    worst = []
    for model, features in measured:
        places = [int(np.flatnonzero(np.isclose(standard, row).all(1))[0]) for row in features]
        right = model.predict(features) == rows.labels[places]
        of_cell = [(rows.labels[places] == y) & (rows.artefact[places] == a) for y, a in CELLS]
        assert [among.sum() for among in of_cell] == [len(c) // 2 for c in cell_rows(rows.labels, rows.artefact)]
        assert not np.isclose(features[:, None, 0], fitted[0][1][None, :, 0]).any()
        worst.append(min(right[among].mean() for among in of_cell))
    assert len(worst) == 7 and max(worst) > min(worst)
    picked = INVERSE_PENALTIES[worst.index(max(worst))]
    assert picked == fitted[-1][0].C


def halves(monkeypatch, rows, seed):
    """Rows that C is measured on, and those that are fitted for it."""
    measured, fitted = [], []
    fit, predict = LogisticRegression.fit, LogisticRegression.predict_proba
    with monkeypatch.context() as patched:
        patched.setattr(LogisticRegression, "fit", lambda model, x, y: fitted.append(x) or fit(model, x, y))
        patched.setattr(LogisticRegression, "predict_proba", lambda model, x: measured.append(x) or predict(model, x))
        DeepFeatureReweighting(draws=1).fit(rows, rows, seed=seed)
    standard = (rows.features - rows.features.mean(0)) / rows.features.std(0)
    return [
        np.array([int(np.flatnonzero(np.isclose(standard, row).all(1))[0]) for row in found[0]]) for found in (measured, fitted)
    ]


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 999), st.integers(2, 9))
def test_no_patient_is_in_both_halves(seed, images_per_patient):
    rows = part(seed, 120, 0.7)
    patients = np.random.default_rng(seed).integers(0, 120 // images_per_patient, 120)
    with pytest.MonkeyPatch.context() as patched:
        measured, fitted = halves(patched, rows._replace(patients=patients), seed)
        alone = halves(patched, rows._replace(patients=np.arange(120)), seed)
        assert [half.tolist() for half in alone] == [half.tolist() for half in halves(patched, rows, seed)]
    assert not set(patients[measured]) & set(patients[fitted])
    for y, a in CELLS:
        assert ((rows.labels[measured] == y) & (rows.artefact[measured] == a)).any()


def test_a_cell_of_one_patient_cannot_be_halved():
    among = VAL.labels * 2 + VAL.artefact
    patients = np.where(among == 1, -1, np.arange(len(among)))
    with pytest.raises(UsageError, match=r"dfr needs images of two patients .* negative with the artefact"):
        DeepFeatureReweighting().fit(TRAIN, VAL._replace(patients=patients), seed=0)


def test_of_equal_penalties_the_weakest_is_taken(monkeypatch):
    fitted = []
    fit = LogisticRegression.fit
    monkeypatch.setattr(LogisticRegression, "fit", lambda model, x, y: fitted.append(model) or fit(model, x, y))
    clear = TRAIN._replace(features=np.c_[20.0 * TRAIN.labels, TRAIN.artefact])
    DeepFeatureReweighting(draws=1).fit(clear, clear, seed=0)
    assert fitted[-1].C == 1


def test_thresholds_have_the_best_balanced_accuracy_of_their_group():
    scorer, plain = (each.fit(TRAIN, VAL, seed=0) for each in (GroupThresholds(), EmpiricalRisk()))
    assert (scorer.probabilities(TEST.features) == plain.probabilities(TEST.features)).all()
    assert scorer.thresholds[0] < 0.5 < scorer.thresholds[1]  # with the artefact more is asked for
    for carried, threshold in enumerate(scorer.thresholds):
        rows = subset(VAL, VAL.artefact == carried)
        scores = scorer.probabilities(rows.features)
        best = max(balanced_accuracy_score(rows.labels, scores >= cut) for cut in scores)
        assert balanced_accuracy_score(rows.labels, scores >= threshold) == pytest.approx(best)
        among = subset(TEST, TEST.artefact == carried)
        decided = scorer.decide(among.features, among.artefact)
        assert (decided == (scorer.probabilities(among.features) >= threshold)).all()


def test_a_group_that_is_told_worse_than_by_chance_keeps_one_half():
    turned = VAL._replace(labels=np.where(VAL.artefact == 1, VAL.features[:, 0] < 1.2, VAL.labels).astype(int))
    found = GroupThresholds().fit(TRAIN, turned, seed=0).thresholds
    assert found[0] == GroupThresholds().fit(TRAIN, VAL, seed=0).thresholds[0]
    separated = turned._replace(features=turned.features * np.eye(12)[0])
    assert GroupThresholds().fit(TRAIN, separated, seed=0).thresholds[1] == 0.5


@pytest.mark.parametrize("strategy", BALANCING, ids=named)
@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ((0, 1), "negative with the artefact has 0"),
        ((1, 1), "positive with the artefact has 0"),
        ((0, 0), "negative without the artefact has 0"),
        ((1, 0), "positive without the artefact has 0"),
    ],
)
def test_an_empty_cell_is_refused(strategy, cell, said):
    train, val = (subset(rows, (rows.labels != cell[0]) | (rows.artefact != cell[1])) for rows in (TRAIN, VAL))
    least = 2 if strategy.name == "dfr" else 1
    where = f"{strategy.name} needs at least {least} image.*of {strategy.balanced_part}"
    expected = rf"{where}: {said}\. .*cannot be told apart.*both"
    with pytest.raises(UsageError, match=expected):
        strategy.fit(train, val, seed=0)
    with pytest.raises(UsageError, match=said):
        refuse_unidentifiable(train, val, strategy)
    for baseline in (EmpiricalRisk(), SourceEditing()):
        assert baseline.fit(train, val, seed=0).probabilities(TEST.features).shape == (300,)
    # the other part may lack it
    strategy.fit(*((train, VAL) if strategy.balanced_part == "val" else (TRAIN, val)), seed=0)


def test_every_empty_cell_is_named():
    rows = TRAIN._replace(artefact=TRAIN.labels)
    with pytest.raises(UsageError, match=r"negative with the artefact has 0, positive without the artefact has 0\."):
        GroupWeights().fit(rows, VAL, seed=0)


def test_reweighting_needs_two_images_of_each_cell():
    few = np.concatenate([rows[:2] for rows in cell_rows(VAL.labels, VAL.artefact)])
    strategy = DeepFeatureReweighting()
    assert np.isfinite(strategy.fit(TRAIN, subset(VAL, few), seed=0).probabilities(TEST.features)).all()
    with pytest.raises(UsageError, match=r"at least 2 images .* negative with the artefact has 1") as raised:
        strategy.fit(TRAIN, subset(VAL, np.delete(few, 2)), seed=0)
    assert "told apart" not in str(raised.value)


def test_which_strategies_suit_a_confounder():
    assert {"erm", "source_editing"} <= {each.name for each in suited(EVERY, "global")}
    for kind in ("local", "attribute"):
        assert "source_editing" not in {each.name for each in suited(EVERY, kind)} and suited(EVERY, kind)[0].name == "erm"
    assert suited([], "local") == []
    with pytest.raises((UnknownNameError, TypeError), match=r"Did you mean local|parameter 'kind'"):
        suited(EVERY, "locale")


def test_source_editing_names_an_edit_of_the_whole_image():
    assert [each.name for each in EVERY if each.applies_to_images] == ["source_editing"]
    found = choose(MITIGATIONS, "source_editing:low_pass:0.2")
    assert found.image_edit.name == "low_pass" and found.image_edit.cutoff == 0.2
    assert choose(MITIGATIONS, "source_editing:whiten_spectrum").image_edit.name == "whiten_spectrum"
    with pytest.raises(UsageError, match="tag paints a part"):
        choose(MITIGATIONS, "source_editing:tag")
    with pytest.raises(UsageError, match="Did you mean low_pass"):
        choose(MITIGATIONS, "source_editing:low_pas")


@pytest.mark.parametrize(
    ("train", "said"),
    [
        (TRAIN._replace(labels=TRAIN.labels[:-1]), r"train needs features.*\(600, 12\), 599 and 600"),
        (TRAIN._replace(features=TRAIN.features[:, :0]), "train needs features"),
        (TRAIN._replace(features=np.where(TRAIN.features > 2, np.nan, TRAIN.features)), "NaN"),
        (TRAIN._replace(labels=TRAIN.labels + 1), "labels of train must be 0 or 1"),
        (TRAIN._replace(artefact=2 * TRAIN.artefact), "artefact of train must be 0 or 1"),
        (TRAIN._replace(patients=np.arange(599)), "train needs features"),
        (TRAIN._replace(labels=0 * TRAIN.labels), "All 600 images of train have the label 0"),
        (TRAIN._replace(features=TRAIN.features[:, 1:]), "train has 11 features per image, val 12"),
    ],
)
def test_bad_rows(train, said):
    strategy = DeepFeatureReweighting() if "val" in said else EmpiricalRisk()
    with pytest.raises(DataError, match=said):
        strategy.fit(train, VAL, seed=0)


def test_other_bad_input():
    scorer = EmpiricalRisk().fit(TRAIN, VAL, seed=0)
    with pytest.raises(DataError, match=r"fitted to 12 features per image, got \(300, 11\)"):
        scorer.probabilities(TEST.features[:, 1:])
    with pytest.raises((DataError, TypeError), match=r"300 images and 299 artefact flags|num_images"):
        scorer.decide(TEST.features, TEST.artefact[1:])
    with pytest.raises(DataError, match="artefact must be 0 or 1"):
        scorer.decide(TEST.features, TEST.artefact + 1)
    with pytest.raises(UsageError, match="draws of dfr must be at least 1, got 0"):
        choose(MITIGATIONS, "dfr:0")
