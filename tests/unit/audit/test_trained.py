"""A trained model and an artefact: found where it is used, passed where it is not, not assessable where it cannot be told."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

import crossgraft
from crossgraft.audit import audit_trained, explained, subject_of
from crossgraft.audit.explained import Start, features_of
from crossgraft.audit.mitigation import GroupedRows
from crossgraft.audit.mitigation._mitigation import logistic_scorer
from crossgraft.audit.outcomes import conclude_trained
from crossgraft.audit.pull import NUM_SHAMS
from crossgraft.audit.trained_work import own_threshold
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.data.transforms import prepare_batch
from crossgraft.edit.confounders import LowPass, MotionBlur, Ruler, Tag
from crossgraft.errors import DataError
from crossgraft.metrics.record import ThresholdRecord
from crossgraft.models import ModelSpec, load_backbone
from crossgraft.progress import Reporter

TAG = Tag(size=0.4, xy=(0.05, 0.05))
RULER = Ruler(width=0.3)


@pytest.fixture(scope="module")
def data():
    """The disease is brightness of the lower half; two images a patient."""
    rng = np.random.default_rng(0)
    labels = np.repeat(rng.integers(0, 2, 200), 2)
    pixels = rng.integers(60, 110, (400, 32, 32, 1))
    pixels[:, 16:] += (25 * labels + rng.integers(-15, 15, 400))[:, None, None, None]
    names = np.array(["healthy", "ill"])[labels]
    groups = [f"p{number // 2}" for number in range(400)]
    return dataset_from_arrays(pixels.astype(np.uint8), names, groups=groups, name="some")


def logistic(values):
    return 1 / (1 + np.exp(-values))


def sound(images):
    """Looks at the disease alone."""
    return np.array([logistic((image[16:].mean() - 97) / 5) for image in images])


def leaning(images):
    """Looks at the corner of the tag, too."""
    return np.array([logistic((image[16:].mean() - 97) / 5 + (image[:16, :16].mean() - 85) / 3) for image in images])


def guessing(images):
    return np.array([image[3, 3, 0] / 255 for image in images])


def subject(function):
    return subject_of(function, class_names=["healthy", "ill"])


@pytest.fixture(scope="module")
def leant(data):
    """What is found of a model that leans on the artefact."""
    return audit_trained(subject(leaning), data, TAG)


@pytest.fixture
def few_shams(monkeypatch):
    """For what is not about them; they take most of the time of an audit."""
    monkeypatch.setattr(explained, "NUM_SHAMS", 2)


def test_a_model_that_uses_the_artefact_is_found(data, leant):
    found = leant
    assert found.outcome == "sensitive" and found.drop.low > 0.1
    assert "--start" in found.start and found.pull.over_start is None  # what it started from is not known
    assert found.ood.value < found.clean.value < found.aligned.value
    assert found.flip_effect_negatives > 1 and found.flip_effect_positives > 1
    assert found.groups.false_positive_gap > 0.3 and found.edit.rms > 5
    labels = data.targets
    edited = data.edited(lambda pixels, _: TAG(pixels)[0])
    before, after = (leaning([rows.read(row) for row in range(400)]) for rows in (data, edited))
    assert found.ood.value == pytest.approx(roc_auc_score(labels, np.where(labels == 1, before, after)))
    assert found.both.value == pytest.approx(roc_auc_score(labels, after))
    assert found.drop.num_groups == 200


def test_a_sound_model_passes(data):
    found = audit_trained(subject(sound), data, TAG)
    assert found.outcome == "passes" and found.drop.value == 0 and found.flip_effect_negatives == 0
    assert found.input_rms is None and found.detectability is None  # what can only be asked


def test_strength_0_changes_nothing(data):
    found = audit_trained(subject(leaning), data, TAG, strength=0.0)
    assert (found.drop.value, found.flip_effect_negatives, found.edit.rms) == (0, 0, 0)
    assert found.clean.value == found.ood.value == found.both.value and found.outcome == "passes"


def test_an_edit_that_changes_nothing_is_no_pass_of_what_can_only_be_asked(data):
    """Beyond the corner of the spectrum a low-pass leaves every image as it is, and no probe is there to say so."""
    found = audit_trained(subject(sound), data, LowPass(cutoff=0.72))
    assert (found.outcome, found.edit.rms, found.detectability) == ("undetectable", 0, None)
    assert conclude_trained(found, positive="ill").reason == "It changes nothing in these images."
    few = audit_trained(subject(sound), data.take(np.arange(60)), TAG)
    assert (few.drop.value, few.outcome) == (0, "undecided") and few.drop.low == -few.drop.high < 0
    assert "of each class are needed; there are 10." in conclude_trained(few, positive="ill").reason


def test_images_are_asked_about_once_where_it_is_known_what_they_are(data, leant):
    asked = []
    counting = subject(lambda images: (asked.append(len(images)), leaning(images))[1])
    before = counting.probabilities(data)
    found = audit_trained(counting, data, TAG, before=before)
    assert sum(asked) == (2 + NUM_SHAMS) * len(data) and found == leant


def test_a_model_that_learned_nothing_is_not_assessable(data):
    assert audit_trained(subject(guessing), data, TAG).outcome == "untrained"


def test_few_images_leave_it_undecided(data):
    one_of_each = np.r_[np.flatnonzero(data.targets == 0)[:2], np.flatnonzero(data.targets == 1)[:2]]
    found = audit_trained(subject(leaning), data.take(one_of_each), MotionBlur(length=0.05))
    assert found.outcome == "undecided" and found.drop.low is None  # a patient of each class has no interval
    few = [audit_trained(subject(leaning), data.take(np.arange(24)), TAG, strength=each) for each in (0.05, 0.1, 0.2)]
    assert any(each.outcome == "undecided" and each.drop.low < 0.05 < each.drop.high for each in few)
    unchanged = audit_trained(subject(sound), data.take(np.arange(60)), TAG)
    assert unchanged.drop.value == 0 and unchanged.outcome == "undecided"  # 3 of about 15 patients of a class are too many


@pytest.mark.usefixtures("few_shams")
def test_the_other_class_may_be_positive(data, leant):
    ill, healthy = leant, audit_trained(subject(leaning), data, TAG, positive="healthy")
    assert healthy.clean.value == pytest.approx(ill.clean.value)
    assert healthy.flip_effect_negatives == pytest.approx(-ill.flip_effect_positives)


@pytest.fixture(scope="module")
def tuned(data):
    spec = ModelSpec("small", "test_resnet", weights="random")
    common = {"workers": 1, "device": "cpu", "ledger": False, "store": False}
    return crossgraft.fine_tune(data, model=spec, epochs=3, image_size=32, **common)


@pytest.mark.usefixtures("few_shams")
def test_an_edit_that_does_not_reach_the_network_is_not_assessable(tuned, data):
    found = audit_trained(subject_of(tuned), data, LowPass(cutoff=0.7))
    assert found.outcome in ("undetectable", "untrained") and not found.detectability.is_detectable
    seen = audit_trained(subject_of(tuned), data, TAG)
    assert seen.detectability.is_detectable and seen.input_rms > 10 * found.input_rms
    assert seen.detectability.auc.num_groups == 200


@pytest.mark.usefixtures("few_shams")
@pytest.mark.parametrize(("positive", "expected"), [("ill", 0.25), ("healthy", np.nextafter(0.75, 1))])
def test_groups_are_decided_as_the_model_decides(tuned, data, positive, expected):
    """At its own threshold, and of the other of two classes at what is left of it: 0.75 itself is still ill."""
    row = ThresholdRecord(class_name="ill", threshold=0.25, rule="youden", fitted_on="rows")
    facts = subject_of(tuned).model.facts.model_copy(update={"thresholds": [row]})
    asked = subject_of(replace(subject_of(tuned).model, facts=facts))
    assert own_threshold(asked, positive) == expected
    assert own_threshold(subject(sound), positive) == 0.5
    found = audit_trained(asked, data, TAG, positive=positive, threshold=expected)
    scores = asked.probabilities(data)[:, asked.class_names.index(positive)]
    named = np.array(data.class_names)[data.targets] == positive
    right = (scores >= expected) == named
    (cell,) = [each for each in found.groups.cells if each.positive and not each.artefact]
    assert cell.accuracy.value == pytest.approx(right[named].mean())


@pytest.fixture(scope="module")
def start():
    return load_backbone(ModelSpec("small", "test_resnet", weights="random"), seed=0, device="cpu", image_size=32)


@pytest.mark.parametrize(("share", "outcome"), [(0, "sensitive"), (1, "relies")])
def test_a_planted_letter_is_relied_on_and_a_sound_head_is_sensitive_at_most(data, start, share, outcome):
    """Heads on the same network and the same 240 images; the letter moves the sound one, too, by standard deviations."""
    quiet, train, test = Reporter(quiet=True), data.take(np.arange(240)), data.take(np.arange(240, 400))
    ill = train.targets == 1
    planted = train.edited(lambda pixels, _: TAG(pixels)[0], ill) if share else train
    rows = GroupedRows(features_of(start, planted, quiet).astype(np.float64), train.targets, np.zeros(240, np.int64))
    head = logistic_scorer(rows)

    def answers(images):
        with torch.inference_mode():
            return head.probabilities(start(prepare_batch(images, start.preprocessing)).features.double().numpy())

    found = audit_trained(subject(answers), test, TAG, start=Start(start, "small", train, train.targets == 1))
    assert found.outcome == outcome and abs(found.pull.of_model.value) > 0.5
    assert max(found.drop.low, found.reverse_drop.low) > 0  # by which both were said to rely on it before
    assert found.pull.is_beyond_start == (share == 1)
    assert (found.shams == "") == (share == 0)  # eight passes that the verdict does not need
    across = audit_trained(subject(answers), test, TAG, start=Start(start, "small"))
    assert across.outcome != "relies" and "no images to fit heads on it to" in across.start


def test_images_that_carry_the_artefact_already_fit_no_head_and_say_nothing(data, start):
    """A ruler lies on whole pixels: drawn twice, it changes nothing. Letters have soft edges, which do change."""
    train, test = data.take(np.arange(240)), data.take(np.arange(240, 400))
    carrying = np.arange(240) < 50
    train = train.edited(lambda pixels, _: RULER(pixels)[0], carrying)
    tagged = test.edited(lambda pixels, _: RULER(pixels)[0], np.arange(160) < 30)
    found = audit_trained(subject(leaning), tagged, RULER, start=Start(start, "small", train, train.targets == 1))
    assert "190 training images, without 50 images that carry it already" in found.start
    assert found.pull.of_model.num_images == 130


def test_bad_input(data):
    several = dataset_from_arrays([data.read(row) for row in range(6)], np.eye(2, dtype=int)[[0, 1] * 3], name="x")
    for images, positive, said in (
        (several, None, "several labels"),
        (data.select_classes(["ill"]), None, "of other classes"),
        (data, "sick", "does not know the class sick"),
    ):
        with pytest.raises(DataError, match=said):
            audit_trained(subject(sound), images, TAG, positive=positive)
    with pytest.raises(DataError, match="does not know the class"):
        audit_trained(subject_of(sound, class_names=["a", "ill"]), data, TAG)
