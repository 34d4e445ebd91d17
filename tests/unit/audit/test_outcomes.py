"""What an audit concludes, records and fails on: one of six outcomes, never silence."""

from dataclasses import replace

import numpy as np
import pytest

from crossgraft.audit.confounded import Confounded
from crossgraft.audit.detectability import Detectability
from crossgraft.audit.fold_scores import AuditedImages, FoldScores
from crossgraft.audit.outcomes import (
    LARGEST_RELIANCE,
    METRICS,
    OPERATORS,
    Concluded,
    Gate,
    conclude,
    conclude_trained,
    judge,
    read_gates,
)
from crossgraft.audit.reach import Reach
from crossgraft.audit.record import AuditEntry, AuditMetric, ConfounderRecord
from crossgraft.audit.result import reliance_of
from crossgraft.audit.subjects import subject_of
from crossgraft.audit.sweep import sweep_entry
from crossgraft.audit.trained import audit_trained
from crossgraft.audit.trained_work import trained_entry
from crossgraft.data import dataset_from_arrays
from crossgraft.edit.confounders import Tag
from crossgraft.edit.edits import Editing
from crossgraft.edit.record import EditRow
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.metrics import MetricValue
from crossgraft.statistics import MeanInterval

SMALL = "Letters are 1.8 pixels high."


def interval(low, high):
    return MeanInterval(0.05, low, high)


def over_patients(low, high):
    return MetricValue(0.05, low, high, 80, 40)


def reach(value):
    return Detectability(MetricValue(value, value - 0.1, min(value + 0.1, 1.0), 80, 40), value >= 0.6)


def scores(folds=3, effect=0.3, *, epoch=None, seed=0):
    """A model of which the artefact moves probabilities by ``effect`` times the share."""
    labels = np.arange(60) % 2 == 0
    found = []
    for fold in range(folds):
        for share in (0.0, 0.5, 1.0):
            clean = np.clip(np.random.default_rng(seed + fold).random(60) * 0.5 + 0.3 * labels, 0, 1)
            edited = np.clip(clean + effect * share, 0, 1)
            decided = np.stack([clean, edited])
            found.append(FoldScores(fold, share, share, clean, edited, decided >= 0.5, decided >= 0.4, epoch))
    return found, AuditedImages(labels, np.repeat(np.arange(30), 2), [f"image {row}" for row in range(60)])


@pytest.fixture(scope="module")
def reliance():
    return reliance_of(*scores())


@pytest.mark.parametrize(
    ("folds", "patients", "outcome"),
    [
        ((0.1, 2.0), (0.2, 3.0), "relies"),
        ((0.1, 2.0), (0.2, 0.9), "relies"),
        ((0.1, 2.0), (-0.2, 3.0), "undecided"),
        ((-0.1, 2.0), (0.2, 3.0), "undecided"),
        ((-0.1, 0.9), (-0.5, 0.8), "passes"),
        ((0.1, 0.9), (0.5, 0.8), "passes"),
        ((-0.1, 0.9), (-0.5, 1.0), "undecided"),
        ((-0.1, 1.0), (-0.5, 0.5), "undecided"),
        ((0.0, 0.0), (0.0, 0.0), "passes"),
        ((0.0, 2.0), (0.0, 2.0), "undecided"),
        ((-4.0, -2.0), (-5.0, -1.0), "passes"),
        ((None, None), (0.2, 3.0), "relies"),
        ((None, None), (-0.2, 0.5), "passes"),
        ((0.2, 1.5), (None, None), "relies"),
        ((None, None), (None, None), "undecided"),
    ],
)
def test_both_intervals_must_agree(reliance, folds, patients, outcome):
    """Ends in multiples of the largest reliance that passes."""
    folds, patients = ([None if end is None else end * LARGEST_RELIANCE for end in ends] for ends in (folds, patients))
    known = reliance._replace(shortcut_reliance_index=interval(*folds), over_patients=over_patients(*patients))
    found = conclude(known, reach(0.9))
    assert found.outcome == outcome and found.reason.endswith(".")
    both_above = all(low is not None and low > 0 for low, _ in (folds, patients))
    assert ("above 0, but small" in found.reason) == (outcome == "passes" and both_above)
    assert ("too few" in found.reason) == (folds == patients == [None, None])


def test_what_cannot_be_assessed_does_not_pass(reliance):
    good = reliance._replace(shortcut_reliance_index=interval(0.0, 0.0), over_patients=over_patients(0.0, 0.0))
    assert conclude(good, reach(0.6)).outcome == "passes"
    hardly = conclude(good, reach(0.59))
    assert hardly.outcome == "undetectable" and "0.59, below 0.6" in hardly.reason and "--mode full" in hardly.reason
    assert conclude(good, reach(0.59), larger=128).reason.endswith("More of it reaches inputs of 128 pixels: --image-size 128.")
    assert conclude(good, reach(0.5), too_small=SMALL) == ("undetectable", SMALL)
    spot = f"{SMALL} A probe sees that spot (AUC 0.99), which may be relied on: draw the letters larger."
    assert conclude(good, reach(0.99), too_small=SMALL) == ("undetectable", spot)
    for how in ({"reach": reach(0.5)}, {"reach": None, "too_small": SMALL}):
        assert conclude(good, **how, strength=0.0).outcome == "passes"  # there is nothing to detect
    learned = [good._replace(clean=MeanInterval(auc, None, None)) for auc in (0.549, 0.55)]
    assert [conclude(each, None).outcome for each in learned] == ["untrained", "passes"]
    found = conclude(learned[0], reach(0.5), too_small=SMALL)
    assert found.outcome == "untrained" and "0.55" in found.reason and "looks robust" in found.reason
    assert conclude(learned[0], None, strength=0.0).outcome == "untrained"


def test_full_mode_finds_what_a_probe_does_not_see_and_passes_nothing_for_that(reliance):
    """Networks that are trained may see more than the frozen ones: reliance is evidence, its absence is none."""

    def concluded(low, high, seen, **how):
        each = reliance._replace(shortcut_reliance_index=interval(low, high), over_patients=over_patients(low, high))
        return conclude(each, reach(seen), mode="full", **how)

    assert concluded(0.1, 0.3, 0.5).outcome == "relies"
    hidden = [concluded(low, high, 0.5) for low, high in ((0.0, 0.0), (0.01, 0.02), (-0.1, 0.2), (None, None))]
    assert {each.outcome for each in hidden} == {"undetectable"}
    assert "0.50, below 0.6" in hidden[0].reason and "--mode full" not in hidden[0].reason
    assert concluded(0.0, 0.0, 0.7).outcome == "passes"
    assert concluded(0.1, 0.3, 0.5, too_small=SMALL) == ("undetectable", SMALL)
    assert concluded(0.1, 0.3, 0.7, too_small=SMALL).outcome == "undetectable"
    assert concluded(0.0, 0.0, 0.5, strength=0.0).outcome == "passes"


@pytest.fixture(scope="module")
def trained():
    """A function that looks at brightness, which a tag changes."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 120)
    pixels = rng.integers(60, 110, (120, 32, 32, 1)) + (6 * labels)[:, None, None, None]
    images = dataset_from_arrays(pixels.astype(np.uint8), np.array(["healthy", "ill"])[labels], name="some")

    def brightness(rows):
        return np.array([1 / (1 + np.exp(-(row.mean() - 88) / 2)) for row in rows])

    subject = subject_of(brightness, class_names=["healthy", "ill"])
    return audit_trained(subject, images, Tag(size=0.6, xy=(0.05, 0.05)))


def test_a_trained_model_keeps_its_outcome_with_a_reason(trained):
    outcomes = ("relies", "sensitive", "passes", "undecided", "undetectable", "untrained")
    assert trained.outcome == "sensitive" and trained.reverse_drop.value <= 0
    found = [conclude_trained(replace(trained, outcome=outcome), positive="ill") for outcome in outcomes]
    assert [each.outcome for each in found] == list(outcomes) and len({each.reason for each in found}) == len(outcomes)
    assert all(each.reason.endswith(".") for each in found)
    small = [conclude_trained(replace(trained, outcome=each), positive="ill", too_small=SMALL) for each in outcomes]
    assert small[:5] == [("undetectable", SMALL)] * 5 and small[5].outcome == "untrained"
    unchanged = conclude_trained(trained, positive="ill", too_small=SMALL, strength=0.0)
    assert unchanged.outcome == trained.outcome


def test_sensitive_says_how_far_for_whom_and_at_what_cost(trained):
    said = conclude_trained(trained, positive="ill").reason
    pull, (positives, negatives) = trained.pull, trained.decided_otherwise
    assert f"towards ill by {pull.of_model.value:.2f} standard deviations" in said
    assert f"positives {pull.of_positives:+.2f}, negatives {pull.of_negatives:+.2f}" in said
    assert f"{positives:.0%} of the positives and {negatives:.0%} of the negatives" in said
    assert f"The AUC is {trained.drop.value:.2f} lower where images without ill alone carry it." in said
    assert "cannot be told" in said and "--start" in said  # a function: nobody knows what it started from
    other_way = replace(trained, reverse_drop=trained.drop, drop=trained.reverse_drop)
    assert "where images of ill alone carry it" in conclude_trained(other_way, positive="ill").reason


def test_what_it_was_compared_with_is_said(trained):
    def reason(start, shams, outcome="sensitive"):
        numbers = [None if each is None else MetricValue(each, each - 0.1, each + 0.1, 120, None) for each in (start, shams)]
        pull = trained.pull._replace(over_start=numbers[0], over_shams=numbers[1])
        found = replace(trained, outcome=outcome, pull=pull, shams="tag has no sham: so it is.")
        return conclude_trained(found, positive="ill").reason

    assert "and beyond shams (+0.40 [+0.30, +0.50])" in reason(0.5, 0.4, "relies")
    assert "started from do so, too (difference +0.05 [-0.05, +0.15])" in reason(0.05, None)
    assert "but shams do so, too (difference +0.05" in reason(0.5, 0.05)
    assert "cannot be told. tag has no sham" in reason(0.5, None)
    assert "Beyond shams it is +0.40" in reason(None, 0.4)


def test_an_undecided_verdict_says_how_many_images_it_needs(trained):
    half = trained.drop._replace(value=0.01, low=-0.07, high=0.09)  # half-width 0.08, and 0.04 are needed: 4 times
    found = replace(trained, outcome="undecided", drop=half, reverse_drop=half._replace(value=-0.01), fewest=20)
    assert (
        "About 80 patients, or images, of each class are needed; there are 20." in conclude_trained(found, positive="ill").reason
    )


# gates


@pytest.mark.parametrize(
    ("text", "gates"),
    [
        ("shortcut_reliance_index>0.1", [("shortcut_reliance_index", ">", 0.1)]),
        (" auc_drop >= 5e-2 ", [("auc_drop", ">=", 0.05)]),
        ("ood_auc<=.5,early_gap>-1", [("ood_auc", "<=", 0.5), ("early_gap", ">", -1.0)]),
        (["flip_share<0.5", "clean_auc<0.6, worst_group_accuracy<0.5"],
         [("flip_share", "<", 0.5), ("clean_auc", "<", 0.6), ("worst_group_accuracy", "<", 0.5)]),
        ("relies, sensitive", [("relies",), ("sensitive",)]),
        ("sensitive:auc_drop>0.1", [("auc_drop", ">", 0.1, True)]),
        ("", []),
        ((), []),
    ],
)  # fmt: skip
def test_conditions_are_read(text, gates):
    found = read_gates(text)
    assert found == [Gate(*each) for each in gates]
    assert read_gates([str(each) for each in found]) == found


@pytest.mark.parametrize(
    "text",
    ["auc_drop", "auc_drop>", "relies:auc_drop>0.1", "sensitive:", "relies>0.1 0",
     ">0.1", "auc_drop=0.1", "auc_drop==0.1", "auc_drop>>0.1", "auc_drop>x", "auc_drop>nan",
     "auc_drop>inf", "auc_drop>0.1<0.2", "auc drop>0.1", "0.1<auc_drop", "auc_drop=>0.1", "auc_drop>0.1 0.2"],
)  # fmt: skip
def test_what_is_no_condition(text):
    with pytest.raises(UsageError, match="is no condition") as error:
        read_gates(f"clean_auc<0.6,{text}")
    assert repr(text) in str(error.value) and "METRIC>NUMBER" in str(error.value)


def test_an_unknown_metric_has_near_names():
    with pytest.raises(UnknownNameError, match="auc_drop"):
        read_gates("auc_drp>0.1")


def entry(value, *, outcome="relies", model="a", metric="auc_drop", mitigation="erm", confounder="tag"):
    metrics = [AuditMetric(name=metric, value=value)]
    return AuditEntry(
        model=model, confounder=confounder, mitigation=mitigation, mode="quick", outcome=outcome, reason="", metrics=metrics
    )


def state(text, entries):
    (found,) = judge(read_gates(text), entries)
    return found.state


@pytest.mark.parametrize(
    ("comparison", "states"),
    [
        (">", ["passed", "passed", "failed"]),
        (">=", ["passed", "failed", "failed"]),
        ("<", ["failed", "passed", "passed"]),
        ("<=", ["failed", "failed", "passed"]),
    ],
)
def test_a_condition_that_holds_fails(comparison, states):
    assert comparison in OPERATORS
    assert [state(f"auc_drop{comparison}0.1", [entry(value)]) for value in (0.05, 0.1, 0.2)] == states


@pytest.mark.parametrize("outcome", ["undetectable", "untrained", "impossible"])
def test_what_could_not_be_assessed_neither_passes_nor_fails(outcome):
    silent = [entry(value, outcome=outcome) for value in (0.0, 0.9)]
    (found,) = judge(read_gates("auc_drop>0.1"), silent)
    assert (found.state, found.condition) == ("not assessable", "auc_drop>0.1")
    assert "nothing could be assessed" in found.said
    (found,) = judge(read_gates("auc_drop>0.1"), [*silent, entry(0.0, outcome="passes")])
    assert found.state == "passed" and "2 of 3 could not be assessed" in found.said
    (found,) = judge(read_gates("auc_drop>0.1"), [*silent, entry(0.25, model="net", outcome="undecided")])
    assert found.state == "failed" and "net with tag (0.250)" in found.said and "2 of 3" in found.said
    assert "0.900" not in found.said


def test_a_model_that_is_only_sensitive_fails_no_condition_unless_that_was_asked_for():
    sensitive, relies = entry(0.3, outcome="sensitive"), entry(0.3, outcome="relies", model="b")
    assert [state(text, [sensitive]) for text in ("relies", "auc_drop>0.1")] == ["passed", "passed"]
    assert [state(text, [sensitive]) for text in ("sensitive", "sensitive:auc_drop>0.1")] == ["failed", "failed"]
    assert [state(text, [sensitive, relies]) for text in ("relies", "auc_drop>0.1", "sensitive")] == ["failed"] * 3
    assert state("sensitive:auc_drop>0.4", [sensitive]) == "passed"
    assert state("clean_auc>0.1", [entry(0.3, outcome="sensitive", metric="clean_auc")]) == "failed"  # no matter of the tag
    (found,) = judge(read_gates("auc_drop>0.1"), [sensitive])
    assert "1 of 1 only sensitive, which counts with sensitive:auc_drop>0.1" in found.said
    assert state("relies", [entry(0.3, outcome="undetectable")]) == "not assessable"


def test_all_that_fail_are_named_and_mitigations_are_not_judged():
    entries = [entry(0.3, model="a"), entry(0.02, model="b"), entry(0.4, model="c", confounder="gamma")]
    (found,) = judge(read_gates("auc_drop>0.1"), [*entries, entry(0.9, model="d", mitigation="dfr")])
    assert "a with tag (0.300); c with gamma (0.400)" in found.said
    assert "b with" not in found.said and "d with" not in found.said and "could not" not in found.said
    assert state("auc_drop>0.1", [entry(0.9, mitigation="dfr")]) == "not assessable"
    assert state("clean_auc>0.1", entries) == "not assessable"  # no such number in this mode
    assert state("auc_drop>0.1", []) == "not assessable"
    assert judge([], entries) == []


def test_every_metric_of_a_gate_is_one_that_is_recorded(reliance, trained):
    concluded = Concluded("relies", "")
    swept = sweep_entry("a", "tag", reliance, concluded, mode="quick")
    asked = trained_entry("a", "tag", trained, concluded)
    assert set(METRICS) <= {metric.name for each in (swept, asked) for metric in each.metrics}


# records


def test_a_sweep_is_recorded_with_all_its_numbers(reliance):
    concluded = Concluded("relies", "Because.")
    found = sweep_entry("net", "tag", reliance, concluded, mode="quick", reach=Reach(reach(0.8), 0.25))
    assert (found.model, found.confounder, found.mitigation, found.mode) == ("net", "tag", "erm", "quick")
    assert (found.outcome, found.reason, found.input_rms) == ("relies", "Because.", 0.25)
    index = found.metric("shortcut_reliance_index")
    assert (index.value, index.low, index.high) == tuple(reliance.shortcut_reliance_index[:3])
    assert (index.patients_low, index.patients_high) == tuple(reliance.over_patients[1:3])
    assert found.metric("ood_drop_area").value == reliance.ood_drop_area.mean
    assert found.metric("early_gap").value == reliance.early_gap.mean
    assert found.metric("flip_share").value == reliance.flip_share
    assert found.metric("clean_auc").value == reliance.points[0].metric("clean").value
    for name, last in (("iid_auc", "iid"), ("ood_auc", "ood"), ("flip_effect", "flip_effect")):
        assert found.metric(name).value == reliance.points[-1].metric(last).value
    assert found.detectability.value == 0.8 and found.metric("nothing") is None
    assert [point.share for point in found.points] == [0, 0.5, 1]
    for point in found.points:
        assert point.metric("best_epoch") is None
        assert [(cell.positive, cell.artefact) for cell in point.cells] == [
            (False, False), (False, True), (True, False), (True, True)
        ]  # fmt: skip
        assert all(cell.num_images == 30 and not cell.is_small for cell in point.cells)
    assert AuditEntry.model_validate_json(found.model_dump_json()) == found


def test_epochs_are_told_where_networks_were_trained():
    found = sweep_entry("net", "tag", reliance_of(*scores(epoch=4)), Concluded("relies", ""), mode="full")
    assert {point.metric("best_epoch").value for point in found.points} == {4.0}


def test_intervals_of_areas_end_at_0_and_1():
    """Student's t of three folds would reach beyond 1."""
    swept, of_test = scores(effect=0.3)
    apart = [replace(each, clean=np.where(of_test.is_positive, 0.9, 0.1 + 0.4 * each.fold)) for each in swept]
    raw = reliance_of(apart, of_test)
    found = sweep_entry("net", "tag", raw, Concluded("relies", ""), mode="quick")
    bounded = [found.metric(name) for name in ("clean_auc", "iid_auc", "ood_auc", "worst_group_accuracy")]
    bounded += [metric for point in found.points for metric in point.metrics if metric.name in ("iid", "ood", "clean")]
    known = [metric for metric in bounded if metric.low is not None]
    assert known and all(0 <= metric.low <= metric.value <= metric.high <= 1 for metric in known)
    assert all(metric.no_interval_reason for metric in bounded if metric.low is None)
    index = found.metric("shortcut_reliance_index")
    assert (index.low, index.high) == tuple(raw.shortcut_reliance_index[1:3])  # SRI may be negative


def test_a_trained_model_is_recorded(trained):
    found = trained_entry("net", "tag", trained, Concluded("relies", "Because."))
    assert found.mode == "trained" and found.input_rms is None and found.detectability is None
    drop = found.metric("auc_drop")
    assert (drop.value, drop.low, drop.high) == tuple(trained.drop[:3]) == (drop.value, drop.patients_low, drop.patients_high)
    for name, known in (("clean_auc", trained.clean), ("ood_auc", trained.ood), ("aligned_auc", trained.aligned)):
        assert found.metric(name).value == known.value
    assert found.metric("both_auc").value == trained.both.value
    assert found.metric("flip_effect_negatives").value == trained.flip_effect_negatives
    assert found.metric("worst_group_accuracy").value == trained.groups.worst.accuracy.value
    assert found.metric("false_positive_gap").value == trained.groups.false_positive_gap
    (point,) = found.points
    assert [cell.num_images for cell in point.cells] == [cell.num_images for cell in trained.groups.cells]


def test_what_is_impossible_has_a_reason_and_no_numbers():
    found = AuditEntry.impossible("net", "tag", "The text does not fit.", mode="full")
    assert (found.outcome, found.reason, found.metrics, found.points) == ("impossible", "The text does not fit.", [], [])
    assert not found.is_assessable and state("auc_drop>0", [found]) == "not assessable"


def test_an_edit_is_described_with_what_it_changed():
    tag = Tag()
    images = dataset_from_arrays(np.zeros((2, 8, 8, 1), np.uint8), ["a", "b"], name="some")
    facts = EditRow(edit="tag", title="Tag", leaf=None, num_images=2, rms=12.5, share_changed=0.1, psnr=26.2)
    found = Confounded("tag", tag, Editing([tag]), images, images, images, facts).record
    assert (found.confounder, found.title, found.leaf, found.scope) == ("tag", "Tag", "external", "local")
    assert found.said == "A letter, as a marker of the side leaves it on a radiograph."
    assert (found.rms, found.share_changed, found.psnr) == (12.5, 0.1, 26.2)
    assert (
        ConfounderRecord.of_edit("tag", tag, facts.model_copy(update={"rms": 0.0, "psnr": np.inf})).psnr is None
    )  # nothing changed
    nothing = ConfounderRecord.of_edit("tag", tag, None)
    assert (nothing.rms, nothing.share_changed, nothing.psnr) == (None, None, None) and nothing.title == "Tag"
    bare = ConfounderRecord.of_edit("sex", object(), None)
    assert (bare.title, bare.leaf, bare.scope) == ("sex", None, None)
