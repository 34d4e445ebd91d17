"""Means, the worst and gaps of domains against arithmetic that is written out."""

from dataclasses import replace

import numpy as np
import pytest

from crossgraft.data.domains import read_domains
from crossgraft.metrics import auc, balanced_accuracy, balanced_accuracy_combination
from crossgraft.tune.measuring.unseen_domains import DIFFERENCES, SHARES, DomainMeasure, not_in_gap
from crossgraft.tune.page_domains import unseen_in_words
from crossgraft.tune.parts import FoldRows
from crossgraft.tune.record import DomainMetricRecord, UnseenDomainsRecord
from support.domains import HOSPITALS, of_hospitals

HOSPITAL = np.repeat(HOSPITALS, [30, 24, 40, 26])
TARGETS = np.arange(120) % 3
GROUPS = np.arange(120) // 2
RNG = np.random.default_rng(1)


def recalls(decisions, targets):
    return np.mean([np.mean(decisions[targets == index] == index) for index in np.unique(targets)])


def measured(answers_of, *, metric="balanced_accuracy", groups=None, targets=TARGETS, seen=True):
    data = of_hospitals(HOSPITAL, targets, groups=groups, size=2)
    measure = DomainMeasure(data, read_domains(data, "hospital"), metric)
    set_apart = np.arange(120) % 5 == 0
    found = []
    for number, name in enumerate(HOSPITALS):
        test = np.flatnonzero(name == HOSPITAL)
        of_seen = np.flatnonzero((name != HOSPITAL) & set_apart) if seen else test[:0]
        fold = FoldRows(test[:0], test[:0], test, fold=number, seen=of_seen, domain=name)
        rows = np.r_[test, of_seen]
        found.append(measure.measure(fold, rows, answers_of[number][rows]))
    return measure, found, set_apart


def decisions(share=0.7):
    return [np.where(RNG.random(120) < share - 0.1 * model, TARGETS, RNG.integers(0, 3, 120)) for model in range(4)]


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_mean_worst_and_gap_are_those_of_the_arithmetic(groups):
    of_model = decisions()
    measure, found, set_apart = measured(of_model, groups=groups)
    unseen, seen = [], []
    for name, said in zip(HOSPITALS, of_model, strict=True):
        here, others = name == HOSPITAL, (name != HOSPITAL) & set_apart
        unseen.append(recalls(said[here], TARGETS[here]))
        seen.append(recalls(said[others], TARGETS[others]))
    mean = measure.record(measure.mean_of_unseen(found), limits=SHARES)
    gap = measure.record(measure.mean_of_gaps(found), limits=DIFFERENCES)
    of_seen = measure.record(measure.mean_of_seen(found), limits=SHARES)
    worst = measure.worst(found)
    assert mean.value == pytest.approx(np.mean(unseen))
    assert of_seen.value == pytest.approx(np.mean(seen))
    assert gap.value == pytest.approx(np.mean(np.subtract(seen, unseen)))
    assert (worst.domain, worst.value) == (HOSPITALS[int(np.argmin(unseen))], pytest.approx(min(unseen)))
    for record in (mean, gap, of_seen, worst):
        assert record.low < record.value < record.high
    assert mean.num_images == 120
    each = measure.record(found[2].gap, limits=DIFFERENCES)
    assert each.value == pytest.approx(seen[2] - unseen[2])


def test_the_interval_of_a_mean_is_that_of_domains_which_share_no_image():
    """Squared and added: of domains that are independent, each counts with 1 / K."""
    of_model = decisions()
    measure, found, _ = measured(of_model)
    mean = measure.total(measure.mean_of_unseen(found))
    alone = [measure.total([each.unseen]) for each in found]
    below = np.sqrt(sum(((one.value - one.low) / 4) ** 2 for one in alone))
    above = np.sqrt(sum(((one.high - one.value) / 4) ** 2 for one in alone))
    assert mean.value - mean.low == pytest.approx(below, rel=1e-6)
    assert mean.high - mean.value == pytest.approx(above, rel=1e-6)


def test_the_worst_has_the_lowest_ends_of_intervals_that_all_hold_at_once():
    of_model = decisions()
    measure, found, _ = measured(of_model)
    ends = []
    for name, said in zip(HOSPITALS, of_model, strict=True):
        here = name == HOSPITAL
        ends.append(balanced_accuracy(said[here], TARGETS[here], class_names=["0", "1", "2"], confidence=1 - 0.05 / 4))
    worst = measure.worst(found)
    assert worst.low == min(each.low for each in ends)
    assert worst.high == min(each.high for each in ends)
    assert measure.worst(found[:1]) is None


def test_areas_are_taken_within_each_domain():
    targets = np.stack([np.arange(120) % 2, (np.arange(120) // 2) % 2], axis=1)
    of_model = [np.clip(targets * 0.3 + RNG.random((120, 2)), 0, 1.3) / 1.3 for _ in HOSPITALS]
    measure, found, set_apart = measured(of_model, metric="auc", targets=targets)
    unseen = [
        auc(said[name == HOSPITAL], targets[name == HOSPITAL]).value for name, said in zip(HOSPITALS, of_model, strict=True)
    ]
    seen = [
        auc(said[set_apart & (name != HOSPITAL)], targets[set_apart & (name != HOSPITAL)]).value
        for name, said in zip(HOSPITALS, of_model, strict=True)
    ]
    mean = measure.total(measure.mean_of_unseen(found))
    gap = measure.total(measure.mean_of_gaps(found))
    assert mean.value == pytest.approx(np.mean(unseen))
    assert gap.value == pytest.approx(np.mean(seen) - np.mean(unseen))
    assert mean.low < mean.value < mean.high


def test_a_domain_of_one_class_has_a_reason_and_no_part_in_the_mean():
    targets = np.where(HOSPITAL == "GENT", 1, TARGETS)
    of_model = [np.where(RNG.random(120) < 0.6, targets, 0) for _ in HOSPITALS]
    measure, found, _ = measured(of_model, targets=targets)
    record = measure.record_of(found[1].unseen, found[1].unseen_reason)
    assert record.value is None
    assert "needs images of at least two classes; all 24 are of 1" in record.reason
    others = [recalls(of_model[number][name == HOSPITAL], targets[name == HOSPITAL]) for number, name in enumerate(HOSPITALS)]
    del others[1]
    assert measure.total(measure.mean_of_unseen(found)).value == pytest.approx(np.mean(others))
    assert len(measure.mean_of_gaps(found)) == 6
    assert not measured(of_model, targets=targets, seen=False)[1][0].gap


def test_means_over_different_domains_are_not_said_to_differ_by_the_gap():
    measure, found, _ = measured(decisions())
    assert not_in_gap(found) is None
    some = [found[0], *(replace(each, seen=None, seen_reason="one class") for each in found[1:2]), *found[2:]]
    assert not_in_gap(some) == f"without {HOSPITALS[1]}, of which nothing is known on images that were seen"
    mean, seen = DomainMetricRecord(value=0.8), DomainMetricRecord(value=0.9)
    record = UnseenDomainsRecord(
        column="hospital",
        names=list(HOSPITALS),
        metric="auc",
        title="AUC",
        is_each=True,
        is_oracle=False,
        domains=[],
        mean=mean,
        seen=seen,
        gap=measure.record(measure.mean_of_gaps(some), limits=DIFFERENCES, note=not_in_gap(some)),
    )
    text = unseen_in_words(record, num_choices=2)
    assert " Over the domains that have both, it is " in text and "That is" not in text
    whole = record.model_copy(update={"gap": DomainMetricRecord(value=0.1)})
    assert " That is 0.100 less than the 0.900 on domains that were seen" in unseen_in_words(whole, num_choices=2)


def test_a_class_that_a_domain_lacks_is_named():
    targets = np.where((HOSPITAL == "GENT") & (TARGETS == 2), 1, TARGETS)
    measure, found, _ = measured([targets] * 4, targets=targets)
    assert measure.record_of(found[1].unseen, None).note == "without 2, of which there are no images"


def test_combinations_on_their_own_images_are_those_of_the_images_alone():
    said = decisions()[0]
    everyone = np.ones(120, dtype=bool)
    whole = balanced_accuracy_combination([(1.0, said)], TARGETS, GROUPS)
    assert balanced_accuracy_combination([(1.0, said)], TARGETS, GROUPS, among=[everyone]) == whole
    here = HOSPITAL == "LYON"
    part = balanced_accuracy_combination([(1.0, said)], TARGETS, GROUPS, among=[here])
    alone = balanced_accuracy_combination([(1.0, said[here])], TARGETS[here], GROUPS[here])
    assert part[:3] == pytest.approx(alone[:3])
    assert alone[:3] == pytest.approx(balanced_accuracy(said[here], TARGETS[here], GROUPS[here])[:3])
    minus = balanced_accuracy_combination([(-1.0, said)], TARGETS, GROUPS, among=[here])
    assert [-minus.value, -minus.high, -minus.low] == pytest.approx(alone[:3])


def test_intervals_of_mean_worst_and_gap_hold_the_truth():
    """Three domains of 40 images whose models are right with known chances; the promise is 95 %."""
    chances, rng, hits = np.array([0.9, 0.75, 0.6]), np.random.default_rng(0), np.zeros(2)
    hospitals, targets = np.repeat(HOSPITALS[:3], 40), np.arange(120) % 2
    data = of_hospitals(hospitals, targets, size=2)
    measure = DomainMeasure(data, read_domains(data, "hospital"), "balanced_accuracy")
    repeats = 300
    for _ in range(repeats):
        found = []
        for number, name in enumerate(HOSPITALS[:3]):
            test = np.flatnonzero(hospitals == name)
            said = np.where(rng.random(120) < chances[number], targets, 1 - targets)
            found.append(measure.measure(FoldRows(test[:0], test[:0], test, domain=name), test, said[test]))
        mean, worst = measure.total(measure.mean_of_unseen(found)), measure.worst(found)
        hits += [mean.low <= chances.mean() <= mean.high, worst.low <= chances.min() <= worst.high]
    assert (hits / repeats >= 0.93).all(), hits
