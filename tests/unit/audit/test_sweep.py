"""From features of images to how far a model relies: what is trained, what it scores, and what it sums up to."""

from dataclasses import dataclass, replace
from itertools import combinations

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from crossgraft.audit import detectability
from crossgraft.audit.confounded import AuditRows, divide_rows
from crossgraft.audit.detectability import realised_share, sweep_features
from crossgraft.audit.fold_scores import AuditedImages, FoldScores, micro_auc
from crossgraft.audit.group_metrics import best_threshold, group_metrics
from crossgraft.audit.mitigation import EmpiricalRisk, GroupWeights, Mitigation
from crossgraft.audit.options import AuditOptions
from crossgraft.audit.outcomes import conclude
from crossgraft.audit.reliance import pair_auc
from crossgraft.audit.result import IidDraw, reliance_of
from crossgraft.audit.sweep import Sweep
from crossgraft.audit.sweep_modes import sweep_mitigated
from crossgraft.edit.injection import num_edited
from crossgraft.errors import DataError, UsageError
from crossgraft.options._option import from_mapping
from crossgraft.progress import Reporter
from support.audited_images import images

SHARES = (0.0, 0.5, 1.0)
THESIS_SHARES = (0.0, 0.1, 0.2, 0.5, 0.8, 1.0)


def features_of(rows, *, disease=2.0, artefact=4.0, width=4, seed=0):
    """The disease in the first feature, the artefact in the second, noise in all."""
    rng = np.random.default_rng(seed)
    clean = rng.standard_normal((len(rows.dataset), width))
    clean[:, 0] += disease * rows.is_positive
    return clean, clean + artefact * np.eye(width)[1]


def part_test(rows):
    groups = rows.dataset.groups
    return AuditedImages(
        rows.is_positive[rows.test], None if groups is None else groups[rows.test], [rows.identities[row] for row in rows.test]
    )


@dataclass(frozen=True)
class Sound(Mitigation):
    """Logistic regression that does not look at the feature of the artefact."""

    name = "sound"
    title = "Sound"
    reference = "None"

    def fit_rows(self, train, val, *, seed):
        without = train.features.copy()
        without[:, 1] = 0
        return EmpiricalRisk().fit_rows(train._replace(features=without), val, seed=seed)


# scores of one model


def two_sided(positives, negatives, seed=0, *, share=0.1, fold=0, effect=0.2):
    """A model that leans on the artefact a little, with ties."""
    rng = np.random.default_rng(seed)
    labels = np.r_[np.ones(positives, bool), np.zeros(negatives, bool)]
    clean = np.round(np.clip(rng.random(len(labels)) * 0.6 + 0.2 * labels, 0, 1), 2)
    edited = np.round(np.clip(clean + effect * rng.random(len(labels)), 0, 1), 2)
    decided = np.stack([clean, edited]) >= 0.5
    scores = FoldScores(fold, share, share, clean, edited, decided, decided)
    return scores, AuditedImages(labels, None, [f"image {row}" for row in range(len(labels))])


def test_every_sampled_draw_together_is_exact_mode():
    """Fifteen ways to draw 2 of 6; each of them comes up, and their mean is what exact mode says."""
    scores, of_test = two_sided(6, 9)
    drawn = {scores.sampled_iid(of_test, 0.35, seed=seed) for seed in range(400)}
    every = []
    for chosen in combinations(range(6), 2):
        mixed = scores.clean.copy()
        mixed[list(chosen)] = scores.edited[list(chosen)]
        every.append(roc_auc_score(of_test.is_positive, mixed))
    assert len(every) == 15
    assert {round(each, 9) for each in drawn} == {round(each, 9) for each in every}
    assert scores.cells(of_test).iid(0.35) == pytest.approx(np.mean(every))


def test_negatives_that_carry_it_in_training_do_so_in_test_images_like_those():
    """Two of six positives and one of four negatives, drawn in every way: sampled mode has them all, exact mode their mean."""
    scores, of_test = two_sided(6, 4, effect=0.6)
    of_test = replace(of_test, negatives=0.3)
    every = []
    for positives in combinations(range(6), 2):
        for negative in range(6, 10):
            mixed, chosen = scores.clean.copy(), [*positives, negative]
            mixed[chosen] = scores.edited[chosen]
            every.append(roc_auc_score(of_test.is_positive, mixed))
    drawn = {scores.sampled_iid(of_test, 0.35, seed=seed) for seed in range(1200)}
    assert {round(each, 9) for each in drawn} == {round(each, 9) for each in every}
    assert of_test.carrying_negatives == 0.25
    assert scores.cells(of_test).iid(0.35, negatives=0.25) == pytest.approx(np.mean(every), abs=1e-12)
    swept = [replace(scores, share=share) for share in (0.0, 0.35, 1.0)]
    found = reliance_of(swept, of_test)
    assert found.points[1].metric("iid").value == pytest.approx(np.mean(every), abs=1e-12)
    assert found.over_patients.value == pytest.approx(found.shortcut_reliance_index.mean, abs=1e-12)
    assert found.shortcut_reliance_index.mean != reliance_of(swept, replace(of_test, negatives=0.0))[0].mean
    sham = [replace(each, edited=each.clean) for each in swept]
    assert reliance_of(sham, of_test).over_patients.value == reliance_of(sham, of_test)[0].mean == 0.0


def test_three_of_31_is_not_a_tenth():
    scores, of_test = two_sided(31, 52, effect=0.9)
    cells = scores.cells(of_test)
    sampled = np.array([scores.sampled_iid(of_test, 0.1, seed=seed) for seed in range(600)])
    at = {share: cells.clean + share * (cells.aligned - cells.clean) for share in (3 / 31, 0.1)}
    assert cells.iid(0.1) == pytest.approx(at[3 / 31], abs=1e-12) and abs(at[0.1] - at[3 / 31]) > 1e-4
    assert sampled.mean() == pytest.approx(cells.iid(0.1), abs=4 * sampled.std() / np.sqrt(600))
    carrying, positive = np.zeros(40, dtype=bool), np.ones(40, dtype=bool)
    carrying[:3] = True
    assert realised_share(carrying, positive, np.arange(31)) == 3 / 31


def test_whole_patients_are_drawn_where_they_are_the_unit():
    """Two images of each patient: drawn as one, they carry the artefact together."""
    scores, of_test = two_sided(40, 40)
    scores, of_test = replace(scores, edited=scores.clean + 1), replace(of_test, groups=np.repeat(np.arange(40), 2))
    drawn = [scores._sampled(of_test, 0.5, "patient", seed) == scores.edited for seed in range(20)]
    for carrying in drawn:
        pairs = carrying[of_test.is_positive].reshape(-1, 2)
        assert (pairs[:, 0] == pairs[:, 1]).all() and pairs[:, 0].sum() == 10
    by_image = scores._sampled(of_test, 0.5, "image", 0)
    assert len({scores.sampled_iid(of_test, 0.5, unit="patient", seed=seed) for seed in range(20)}) > 10
    assert (by_image == scores.edited)[of_test.is_positive].sum() == 20


def test_exact_mode_is_the_mean_over_all_draws_of_patients_where_they_are_the_unit():
    """Three patients with 1, 2 and 4 positives: a share of 0.35 is one of three patients, and two of seven images."""
    data = images(grouped=False)
    kept = np.r_[np.flatnonzero((data.splits == "test") & (data.targets == 1))[:7], np.flatnonzero(data.targets == 0)]
    data = data.take(kept)
    data = replace(
        data,
        groups=np.r_[["a", "b", "b", "c", "c", "c", "c"], [f"n{row}" for row in range(len(kept) - 7)]],
        splits=np.r_[np.repeat("test", 7), data.splits[7:]],
    )
    test = np.flatnonzero(data.splits == "test")
    rows = AuditRows(data, "ill", data.targets == 1, (), test)
    by_patient, by_image = (
        Sweep(rows, (0.0, 0.35, 1.0), (), from_mapping(AuditOptions, {"data": data, "unit": unit}), 1, Reporter(quiet=True))
        for unit in ("patient", "image")
    )
    rng = np.random.default_rng(0)
    clean = rng.random(len(test))
    scores = FoldScores(0, 0.35, 1 / 3, clean, rng.random(len(test)), *np.zeros((2, 2, len(test)), bool))
    every = []
    for patient in "abc":
        mixed = np.where(data.groups[test] == patient, scores.edited, scores.clean)
        every.append(roc_auc_score(rows.is_positive[test], mixed))
    assert by_patient.tested.carrying(0.35) == (1, 3) and by_patient.tested.carrying(1.0) == (3, 3)
    assert by_image.tested.carrying(0.35) == (2, 7)
    assert by_patient.tested.num_drawn_negatives == (~rows.is_positive[test]).sum()  # each of another patient
    point = by_patient.reliance([replace(scores, share=share) for share in (0.0, 0.35, 1.0)]).points[1]
    assert point.metric("iid").value == pytest.approx(np.mean(every), abs=1e-12)


def test_areas_of_published_curves_are_computed_where_they_are_asked_for():
    scores, of_test = leaning()
    found = reliance_of(scores, of_test, IidDraw("sampled", seed=3, micro=True))
    assert all(point.metric("iid_micro_auc") is None for point in reliance_of(scores, of_test).points)
    last = [one for one in scores if one.share == 1.0]
    labels = of_test.is_positive.astype(int)
    for name, sides in (("iid_micro_auc", ("edited", "clean")), ("ood_micro_auc", ("clean", "edited"))):
        each = [np.where(of_test.is_positive, getattr(one, sides[0]), getattr(one, sides[1])) for one in last]
        literal = np.mean([micro_auc(one, labels, num_thresholds=200) for one in each])
        assert found.points[-1].metric(name).value == pytest.approx(literal, abs=1e-12)


def test_an_attribute_is_in_the_image_or_not():
    scores, of_test = two_sided(40, 40)
    who = np.arange(80) % 3 == 0
    cells = scores.cells(replace(of_test, attribute=who))
    positive = of_test.is_positive
    np.testing.assert_array_equal(cells.positives, scores.clean[positive & ~who])
    np.testing.assert_array_equal(cells.negatives_edited, scores.edited[~positive & who])
    same = [replace(scores, edited=scores.clean, share=share, fold=fold) for share in SHARES for fold in range(3)]
    of_test = replace(of_test, attribute=who, num_drawn=11)
    found = reliance_of(same, of_test)
    assert found.over_patients.value == pytest.approx(found.shortcut_reliance_index.mean, abs=1e-12)
    assert found.over_patients.low < found.over_patients.value < found.over_patients.high
    assert found.points[0].metric("flip_effect") is None
    k = num_edited(11, SHARES[1])  # of the positives that are drawn, not of those in a cell
    iid = cells.clean + k / 11 * (pair_auc(scores.clean[positive & who], scores.clean[~positive & ~who]) - cells.clean)
    assert found.points[1].metric("iid").value == pytest.approx(iid, abs=1e-12)
    assert sum(cell.num_images for cell in found.points[0].cells) == 80


# thresholds


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=2, max_size=30))
def test_no_threshold_is_better_than_the_one_of_val(drawn):
    values, labels = np.array([value / 10 for value, _ in drawn]), np.array([int(label) for _, label in drawn])
    if len(set(labels)) < 2:
        return

    def youden(threshold):
        decided = values >= threshold
        return decided[labels == 1].mean() - decided[labels == 0].mean()

    found, best = best_threshold(values, labels), max(youden(each) for each in [*values, 2.0])
    if best == pytest.approx(0):
        assert found == 0.5
        return
    assert youden(found) == pytest.approx(best)
    assert not np.isin(found, values) or found == values.min()


def test_scores_that_are_upside_down_keep_one_half():
    values = np.array([0.9, 0.8, 0.2, 0.1])
    assert best_threshold(values, np.array([0, 0, 1, 1])) == 0.5


# features


def test_what_is_trained_is_what_carries_the_artefact():
    """Logistic regression of the mixed rows, written out."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    rows = divide_rows(images(), None, num_folds=2, seed=0)
    clean, edited = features_of(rows)
    found = sweep_features(clean, edited, rows, [0.5, 1.0], EmpiricalRisk(), negatives=0.2, seed=4)
    assert [(each.fold, each.share) for each in found] == [(0, 0.5), (0, 1.0), (1, 0.5), (1, 1.0)]
    for each in found:
        fold = rows.folds[each.fold]
        carrying = rows.carriers(fold, each.share, negatives=0.2, seed=4)
        mixed = np.where(carrying[:, None], edited, clean)
        scaler, model = StandardScaler().fit(mixed[fold.train]), LogisticRegression(max_iter=1000)
        model.fit(scaler.transform(mixed[fold.train]), rows.is_positive[fold.train])
        for scores, side in ((each.clean, clean), (each.edited, edited)):
            expected = model.predict_proba(scaler.transform(side[rows.test]))[:, 1]
            np.testing.assert_allclose(scores, expected, atol=1e-4)
        threshold = best_threshold(
            model.predict_proba(scaler.transform(mixed[fold.val]))[:, 1], rows.is_positive[fold.val].astype(np.int64)
        )
        assert (each.decided_by_val == (np.stack([each.clean, each.edited]) >= threshold)).mean() > 0.98
        np.testing.assert_array_equal(each.decided, np.stack([each.clean, each.edited]) >= 0.5)
        positives = carrying[fold.train][rows.is_positive[fold.train]]
        assert each.realised == positives.mean()


def test_progress_is_told_and_other_features_are_refused(monkeypatch):
    rows, told = divide_rows(images(), None, num_folds=2, seed=0), []
    clean, edited = features_of(rows)
    sweep_features(clean, edited, rows, SHARES, EmpiricalRisk(), told=lambda: told.append(1))
    assert len(told) == 2 * 3
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    for first, second in ((clean, edited[:, :2]), (clean[:-1], edited[:-1])):
        with pytest.raises(DataError, match="Features are of"):
            sweep_features(first, second, rows, SHARES, EmpiricalRisk())


def concluded(rows, clean, edited, mitigation, *, shares=SHARES, strength=1.0, needed=slice(None)):
    scores = sweep_features(clean, edited, rows, shares, mitigation)
    reach = detectability(clean[needed], edited[needed], rows.dataset.groups[needed])
    reliance = reliance_of(scores, part_test(rows))
    return reliance, conclude(reliance, reach, strength=strength)


def test_a_model_trained_where_the_artefact_is_the_class_is_found():
    rows = divide_rows(images(), None, num_folds=5, seed=0)
    found, outcome = concluded(rows, *features_of(rows), EmpiricalRisk(), shares=THESIS_SHARES)
    assert outcome.outcome == "relies" and found.shortcut_reliance_index.low > 0.1 and found.over_patients.low > 0
    last = found.points[-1]
    assert last.metric("ood").value < 0.3 < 0.8 < found.clean.mean < last.metric("iid").value
    assert last.metric("flip_effect").value > 1 and found.ood_drop_area.mean > 0.1
    assert 0 < found.flip_share < 1 and found.early_gap.mean > 0


def test_a_sound_model_passes_though_the_artefact_is_there_to_be_seen():
    rows = divide_rows(images(500), None, num_folds=5, seed=0)  # that none of few changes says little of others
    clean, edited = features_of(rows)
    found, outcome = concluded(rows, clean, edited, Sound())
    assert outcome.outcome == "passes"
    # its own column is constant in training, so that the artefact has the coefficient 0
    assert found.shortcut_reliance_index[:3] == (0, None, None) and found.flip_share is None
    assert "all values are equal" in found.shortcut_reliance_index.reason
    noisy = edited + 0.02 * np.random.default_rng(1).standard_normal(edited.shape)
    found, outcome = concluded(rows, clean, noisy, Sound())
    assert outcome.outcome == "passes" and abs(found.shortcut_reliance_index.mean) < 0.02


def test_features_that_say_nothing_are_not_assessable():
    rows = divide_rows(images(400), None, num_folds=3, seed=0)
    rng = np.random.default_rng(2)
    random = rng.standard_normal((len(rows.dataset), 4))
    found, outcome = concluded(rows, random, random + 4 * np.eye(4)[1], EmpiricalRisk())
    assert outcome.outcome == "untrained" and found.shortcut_reliance_index.mean > 0.2
    constant = np.ones_like(random)
    assert concluded(rows, constant, constant, EmpiricalRisk())[1].outcome == "untrained"


def test_features_without_a_trace_are_not_assessable():
    rows = divide_rows(images(), None, num_folds=3, seed=0)
    clean, _ = features_of(rows)
    found, outcome = concluded(rows, clean, clean, EmpiricalRisk())
    assert outcome.outcome == "undetectable" and found.shortcut_reliance_index.mean == 0


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 999), st.integers(1, 3), st.sampled_from(["exact", "sampled"]))
def test_strength_0_is_exactly_0(seed, num_folds, mode):
    rows = divide_rows(images(seed=seed), None, num_folds=num_folds, seed=seed)
    clean, _ = features_of(rows, seed=seed)
    scores = sweep_features(clean, clean.copy(), rows, SHARES, EmpiricalRisk(), seed=seed)
    found = reliance_of(scores, part_test(rows), IidDraw(mode, seed=seed, micro=True))
    for each in (found.shortcut_reliance_index, found.early_gap, found.ood_drop_area):
        assert each.mean == 0.0 and each.low in (None, 0.0) and each.high in (None, 0.0)
    assert found.over_patients.value == 0.0 and found.over_patients.low == -found.over_patients.high < 0
    assert all(curve.gap.tolist() == [0.0] * 3 for curve in found.curves)
    assert all(point.metric("flip_effect").value == 0 for point in found.points)
    assert all(point.metric("iid_micro_auc").value == point.metric("ood_micro_auc").value for point in found.points)
    reach = detectability(clean, clean.copy(), rows.dataset.groups)
    assert conclude(found, reach, strength=0.0).outcome in ("passes", "undecided")
    assert conclude(found, reach, strength=1.0).outcome == "undetectable"


# summary


def leaning(folds=4, positives=25, negatives=30, shares=THESIS_SHARES):
    """Scores that lean the more on the artefact the more often it was there."""
    scores = []
    for fold in range(folds):
        for place, share in enumerate(shares):
            one, of_test = two_sided(positives, negatives, 10 * fold + place, share=share, fold=fold, effect=share)
            scores.append(one)
    return scores, of_test


def test_the_index_over_patients_is_the_mean_of_the_folds():
    scores, of_test = leaning()
    found = reliance_of(scores, of_test)
    assert found.over_patients.value == pytest.approx(found.shortcut_reliance_index.mean, abs=1e-12)
    assert found.over_patients.low < found.over_patients.value < found.over_patients.high
    assert found.over_patients.num_images == 55
    patients = np.repeat(np.arange(11), 5)
    grouped = reliance_of(scores, replace(of_test, groups=patients))
    assert grouped.over_patients.num_groups == 11
    assert grouped.over_patients.value == pytest.approx(found.over_patients.value, abs=1e-12)


def test_summaries_are_those_of_the_curves_of_each_fold():
    """One fold by one, from the areas by scikit-learn."""
    scores, of_test = leaning()
    labels = of_test.is_positive
    indices, drops = [], []
    for fold in range(4):
        own = sorted((each for each in scores if each.fold == fold), key=lambda each: each.share)
        clean = [roc_auc_score(labels, each.clean) for each in own]
        aligned = [roc_auc_score(labels, np.where(labels, each.edited, each.clean)) for each in own]
        ood = np.array([roc_auc_score(labels, np.where(labels, each.clean, each.edited)) for each in own])
        carrying = np.array([round(25 * share) / 25 for share in THESIS_SHARES])
        gap = clean + carrying * (np.array(aligned) - clean) - ood
        indices.append(np.trapezoid(gap - gap[0], THESIS_SHARES))
        drops.append(np.trapezoid(ood[0] - ood, THESIS_SHARES))
    rng = np.random.default_rng(0)
    found = reliance_of([scores[place] for place in rng.permutation(len(scores))], of_test)  # in any order
    assert found.shortcut_reliance_index.mean == pytest.approx(np.mean(indices))
    half = 3.182446 * np.std(indices, ddof=1) / 2  # t of 3 degrees of freedom, 4 folds
    assert found.shortcut_reliance_index.high - found.shortcut_reliance_index.mean == pytest.approx(half, rel=1e-5)
    assert found.ood_drop_area.mean == pytest.approx(np.mean(drops))
    assert [point.share for point in found.points] == list(THESIS_SHARES) and len(found.curves) == 4
    assert found.points[0].metric("clean").value == found.clean.mean
    folds = [
        group_metrics(
            np.r_[each.clean, each.edited],
            np.r_[labels, labels].astype(int),
            np.repeat([0, 1], 55),
            groups=np.tile(np.arange(55), 2),
        )
        for each in scores
        if each.share == 0.5
    ]
    point = found.points[3]
    assert point.metric("worst_group_accuracy").value == pytest.approx(np.mean([fold.worst.accuracy.value for fold in folds]))
    for name in ("true_positive_gap", "false_positive_gap", "positive_gap"):
        assert point.metric(name).value == pytest.approx(np.mean([getattr(fold, name) for fold in folds]))
    for place, cell in enumerate(point.cells):
        assert cell.accuracy == pytest.approx(np.mean([fold.cells[place].accuracy.value for fold in folds]))


def test_sampled_mode_draws_the_carriers_of_the_test_part():
    scores, of_test = leaning(folds=2, shares=SHARES)
    exact, drawn = reliance_of(scores, of_test), reliance_of(scores, of_test, IidDraw("sampled", seed=7))
    for fold, (curve, other) in enumerate(zip(drawn.curves, exact.curves, strict=True)):
        own = sorted((each for each in scores if each.fold == fold), key=lambda each: each.share)
        assert curve.iid.tolist() == [each.sampled_iid(of_test, each.share, seed=7) for each in own]
        assert curve.iid[1] != other.iid[1]
        assert curve.iid[[0, 2]] == pytest.approx(other.iid[[0, 2]])  # all or nobody: there is nothing to draw
        np.testing.assert_array_equal(curve.ood, other.ood)
    assert drawn.over_patients == exact.over_patients
    assert drawn.points[1].metric("iid").value == np.mean([curve.iid[1] for curve in drawn.curves])


def test_one_fold_has_no_interval_over_folds():
    scores, of_test = leaning(folds=1)
    found = reliance_of(scores, of_test)
    assert found.shortcut_reliance_index.low is None and found.over_patients.low is not None
    assert conclude(found, None).outcome in ("relies", "undecided")


@pytest.mark.parametrize(("shares", "said"), [((0.1, 0.5, 1.0), "share 0 is missing"), ((0.0, 1.0), "at least 3")])
def test_curves_without_a_summary(shares, said):
    with pytest.raises(DataError, match=said):
        reliance_of(*leaning(shares=shares))


# mitigations


def test_a_mitigation_stands_beside_plain_training_where_it_can_be_used():
    rows = divide_rows(images(120), None, num_folds=3, seed=0)
    clean, edited = features_of(rows)
    shares, how = (0.0, 0.5, 0.8, 1.0), {"negatives": 0.0, "unit": "image", "seed": 0}
    plain = sweep_features(clean, edited, rows, shares, EmpiricalRisk())
    with pytest.raises(UsageError, match="negative with the artefact"):
        sweep_mitigated(clean, edited, rows, plain, GroupWeights(), **how)
    how["negatives"] = 0.1
    plain = sweep_features(clean, edited, rows, shares, EmpiricalRisk(), negatives=0.1)
    found = sweep_mitigated(clean, edited, rows, plain, GroupWeights(), **how)
    assert found.left_out == (1.0,)  # no positive is clean
    assert sorted({each.share for each in found.scores}) == sorted({each.share for each in found.plain}) == [0, 0.5, 0.8]
    assert [each for each in found.scores if each.share == 0] == [each for each in plain if each.share == 0]
    index = [reliance_of(each, part_test(rows)).shortcut_reliance_index.mean for each in (found.scores, found.plain)]
    assert index[0] < index[1]


def test_what_is_too_small_is_undetectable_though_a_probe_may_see_it():
    said = "It is too small."
    one, of_test = leaning()
    reliance = reliance_of(one, of_test)
    outcome = conclude(reliance, None, too_small=said)
    assert outcome == ("undetectable", said)
    clean, edited = features_of(divide_rows(images(24), None, num_folds=1, seed=0))
    seen = conclude(reliance, detectability(clean, edited), too_small=said)
    assert seen.outcome == "undetectable" and seen.reason.startswith(f"{said} A probe sees that spot (AUC")
    assert conclude(reliance, detectability(clean, clean), too_small=said) == outcome
