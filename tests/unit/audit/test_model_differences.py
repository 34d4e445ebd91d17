"""Models of one audit beside each other: written out for one pair, and found where a difference was planted."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from crossgraft.audit.fold_scores import AuditedImages, FoldScores
from crossgraft.audit.model_differences import SweptModel, compare_models_of_audit, model_difference
from crossgraft.statistics import holm
from support.audit_records import audit_entry

SHARES = (0.0, 0.2, 1.0)
FOLDS, POSITIVES, NEGATIVES = 4, 30, 36
LABELS = np.r_[np.ones(POSITIVES, bool), np.zeros(NEGATIVES, bool)]
PATIENTS = np.repeat(np.arange(len(LABELS) // 3), 3)


def of_test(groups=None):
    return AuditedImages(LABELS, groups, [f"image {row}" for row in range(len(LABELS))])


def swept(leaning, *, seed=0, shares=SHARES, disease=0.3):
    """A network whose probabilities rise with the artefact, the more often it carried it in training."""
    rng, found = np.random.default_rng(seed), []
    for fold in range(FOLDS):
        for share in shares:
            clean = np.clip(rng.normal(0.4 + disease * LABELS, 0.15), 0, 1)
            edited = np.clip(clean + leaning * share, 0, 1)
            decided = np.stack([clean, edited]) >= 0.5
            found.append(FoldScores(fold, share, share, clean, edited, decided, decided))
    return found


def model(name, scores, index, *, confounder="tag", outcome="relies"):
    return SweptModel(audit_entry(name, confounder, outcome, index), scores, of_test(PATIENTS))


def placement(scores, positive):
    """How many of the other class each image is right about: the influence on its AUC, before the mean is taken off."""
    ahead = scores[positive][:, None] - scores[~positive]
    wins = (ahead > 0) + 0.5 * (ahead == 0)
    found = np.zeros(len(scores))
    found[positive] = (wins.mean(axis=1) - wins.mean()) / positive.sum()
    found[~positive] = (wins.mean(axis=0) - wins.mean()) / (~positive).sum()
    return wins.mean(), found


def test_one_pair_is_what_the_equations_say():
    """Areas by scikit-learn, influences and deals of folds by loops."""
    first, second = swept(0.3), swept(0.1, seed=1)
    found = model_difference(model("a", first, 0.3), model("b", second, 0.1))
    carried = [round(POSITIVES * share) / POSITIVES for share in SHARES]
    index, ood = [], []
    for scores in (first, second):
        gaps, against = np.zeros((FOLDS, 3)), np.zeros((FOLDS, 3))
        for one in scores:
            place = SHARES.index(one.share)
            clean = roc_auc_score(LABELS, one.clean)
            aligned = roc_auc_score(LABELS, np.where(LABELS, one.edited, one.clean))
            against[one.fold, place] = roc_auc_score(LABELS, np.where(LABELS, one.clean, one.edited))
            gaps[one.fold, place] = clean + carried[place] * (aligned - clean) - against[one.fold, place]
        index.append(np.mean([np.trapezoid(gap - gap[0], SHARES) for gap in gaps]))
        ood.append(against)
    assert found.reliance.value == pytest.approx(index[0] - index[1], abs=1e-12)
    for place, point in enumerate(found.points):
        assert point.share == SHARES[place]
        one, other = ood[0][:, place], ood[1][:, place]
        assert point.ood.value == pytest.approx(one.mean() - other.mean(), abs=1e-12)
        influence = sum(
            sign * placement(np.where(LABELS, each.clean, each.edited), LABELS)[1] / FOLDS
            for sign, scores in ((1, first), (-1, second))
            for each in scores
            if each.share == point.share
        )
        by_patient = np.bincount(PATIENTS, influence)
        half = point.ood.patients_high - point.ood.value
        crude = stats.norm.ppf(0.975) * np.sqrt(np.square(by_patient).sum())  # corrected for few patients by ``auc``
        assert 0.9 * crude < half < 1.6 * crude
        together, hits = np.r_[one, other], 0
        for chosen in combinations(range(2 * FOLDS), FOLDS):
            rest = np.setdiff1d(np.arange(2 * FOLDS), chosen)
            apart = abs(together[list(chosen)].mean() - together[rest].mean())
            hits += apart >= abs(one.mean() - other.mean()) - 1e-12
        assert (point.p_value, point.floor) == (pytest.approx(hits / 70), 2 / 70)


def test_the_interval_is_that_of_drawing_patients_again():
    """Paired bootstrap of patients, 2 000 draws."""
    first, second = swept(0.3, shares=(0.0, 0.5, 1.0)), swept(0.1, seed=1, shares=(0.0, 0.5, 1.0))
    found = model_difference(model("a", first, 0.3), model("b", second, 0.1)).points[-1].ood
    sides = [[np.where(LABELS, each.clean, each.edited) for each in scores if each.share == 1.0] for scores in (first, second)]
    rng, drawn = np.random.default_rng(0), []
    for _ in range(2000):
        rows = (3 * rng.integers(0, len(LABELS) // 3, len(LABELS) // 3)[:, None] + np.arange(3)).ravel()
        if 0 < LABELS[rows].sum() < len(rows):
            areas = [np.mean([placement(scores[rows], LABELS[rows])[0] for scores in side]) for side in sides]
            drawn.append(areas[0] - areas[1])
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert 0.95 < (found.patients_high - found.patients_low) / (high - low) < 1.4
    assert (found.patients_low, found.patients_high) == pytest.approx((low, high), abs=0.04)


def test_models_that_say_the_same_differ_by_exactly_nothing():
    (found,) = compare_models_of_audit([model("a", swept(0.3), 0.3), model("b", swept(0.3), 0.3)])
    for metric in (found.reliance, *(point.ood for point in found.points)):
        assert metric.value == 0 and metric.patients_low == -metric.patients_high < 0  # they may differ on other images
    assert [(point.p_value, point.p_value_holm) for point in found.points] == [(1.0, 1.0)] * 3


def test_the_one_that_leans_is_told_from_the_sound_one():
    found = compare_models_of_audit(
        [
            model("leaning", swept(0.5), 0.5),
            model("sound", swept(0.0, seed=1), 0.0),
            model("blind", swept(0.0), -0.1, outcome="untrained"),
        ]
    )
    (difference,) = found  # what cannot be assessed is not compared, though it looks most robust
    assert (difference.model, difference.reference, difference.confounder) == ("leaning", "sound", "tag")
    assert difference.reliance.patients_low > 0.1 and difference.reliance.low is None
    clean, last = difference.points[0], difference.points[-1]
    assert last.ood.patients_high < -0.3 and last.p_value == last.floor == 2 / 70
    assert clean.ood.patients_low < 0 < clean.ood.patients_high
    # the smallest of three tests, times three
    assert last.p_value_holm == pytest.approx(6 / 70) and clean.p_value_holm >= clean.p_value


def test_p_values_are_corrected_over_shares_and_confounders_of_a_model():
    several = [
        model(name, swept(leaning, seed=seed), leaning, confounder=confounder)
        for seed, (name, leaning) in enumerate((("a", 0.5), ("b", 0.0), ("c", 0.2)))
        for confounder in ("tag", "ruler")
    ]
    found = compare_models_of_audit(several)
    assert [(each.confounder, each.model) for each in found] == [
        ("tag", "c"), ("tag", "a"), ("ruler", "c"), ("ruler", "a")
    ]  # fmt: skip
    for name in ("a", "c"):
        points = [point for each in found if each.model == name for point in each.points]
        assert [point.p_value_holm for point in points] == holm([point.p_value for point in points])
        assert len(points) == 6 and min(point.p_value_holm for point in points) == pytest.approx(6 * 2 / 70)


def test_an_attribute_is_compared_in_its_own_cells():
    who = np.arange(len(LABELS)) % 3 == 0
    first, second = swept(0.3), swept(0.1, seed=1)
    tested = AuditedImages(LABELS, None, of_test().identities, attribute=who)
    last = model_difference(*(replace(model("a", scores, 0.3), tested=tested) for scores in (first, second))).points[-1].ood
    cells = (LABELS & ~who) | (~LABELS & who)
    areas = [
        np.mean([roc_auc_score(LABELS[cells], np.where(LABELS, each.clean, each.edited)[cells]) for each in scores
                 if each.share == 1.0])
        for scores in (first, second)
    ]  # fmt: skip
    assert last.value == pytest.approx(areas[0] - areas[1], abs=1e-12)
    assert compare_models_of_audit([model("alone", first, 0.3)]) == []
