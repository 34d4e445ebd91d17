import numpy as np
import pytest
import torch
from torch.nn import functional

from crossgraft.choice import choose, spell
from crossgraft.errors import DataError, UsageError
from crossgraft.losses import LOSSES, CrossEntropy, Focal, Loss, MultiLabel, SquaredError

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(scale=3, size=(7, 4))
ONE_HOT = np.eye(4)[RNG.integers(0, 4, 7)]
SOFT = RNG.dirichlet(np.ones(4), 7)
SEVERAL = (RNG.random((7, 4)) < 0.4).astype(float)
PARTLY = RNG.random((7, 4))
WEIGHTS = np.array([0.5, 1.0, 2.0, 3.5])


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def sigmoid(logits):
    return 1 / (1 + np.exp(-logits))


def value(loss, targets):
    return loss(torch.tensor(LOGITS), torch.tensor(targets)).numpy()


@pytest.mark.parametrize("targets", [ONE_HOT, SOFT], ids=["hard", "soft"])
def test_cross_entropy_is_its_formula(targets):
    found = value(CrossEntropy(class_weights=tuple(WEIGHTS)), targets)
    np.testing.assert_allclose(found, -(WEIGHTS * targets * np.log(softmax(LOGITS))).sum(axis=1), rtol=1e-12)


def test_cross_entropy_of_whole_classes_is_torchs_with_class_numbers():
    numbers = torch.tensor(ONE_HOT.argmax(axis=1))
    expected = functional.cross_entropy(torch.tensor(LOGITS), numbers, torch.tensor(WEIGHTS), reduction="none")
    np.testing.assert_allclose(value(CrossEntropy(class_weights=tuple(WEIGHTS)), ONE_HOT), expected, rtol=1e-12)


@pytest.mark.parametrize("targets", [SEVERAL, PARTLY], ids=["hard", "soft"])
def test_multi_label_is_its_formula(targets):
    p = sigmoid(LOGITS)
    expected = -(WEIGHTS * targets * np.log(p) + (1 - targets) * np.log(1 - p)).sum(axis=1)
    np.testing.assert_allclose(value(MultiLabel(positive_weights=tuple(WEIGHTS)), targets), expected, rtol=1e-12)


@pytest.mark.parametrize("gamma", [0.5, 2.0, 3.0])
def test_focal_of_classes_is_its_formula(gamma):
    p = softmax(LOGITS)
    expected = -(WEIGHTS * SOFT * (1 - p) ** gamma * np.log(p)).sum(axis=1)
    np.testing.assert_allclose(value(Focal(gamma, tuple(WEIGHTS)), SOFT), expected, rtol=1e-11)


@pytest.mark.parametrize("gamma", [0.5, 2.0, 3.0])
def test_focal_of_labels_is_its_formula(gamma):
    p = sigmoid(LOGITS)
    with_label = WEIGHTS * PARTLY * (1 - p) ** gamma * np.log(p)
    without_label = (1 - PARTLY) * p**gamma * np.log(1 - p)
    found = value(Focal(gamma, tuple(WEIGHTS), multi_label=True), PARTLY)
    np.testing.assert_allclose(found, -(with_label + without_label).sum(axis=1), rtol=1e-12)


def test_focal_of_labels_is_torchvisions():
    from torchvision.ops import sigmoid_focal_loss

    expected = sigmoid_focal_loss(torch.tensor(LOGITS), torch.tensor(SEVERAL), alpha=-1, gamma=2.0).sum(dim=1)
    np.testing.assert_allclose(value(Focal(multi_label=True), SEVERAL), expected, rtol=1e-12)


def test_focal_without_focus_is_cross_entropy():
    np.testing.assert_allclose(value(Focal(0.0), SOFT), value(CrossEntropy(), SOFT), rtol=1e-12)
    np.testing.assert_allclose(value(Focal(0.0, multi_label=True), PARTLY), value(MultiLabel(), PARTLY), rtol=1e-12)


EVERY_LOSS = [
    *(loss() for _, loss in LOSSES),
    *(Focal(gamma, multi_label=several) for gamma in (0.0, 0.5) for several in (False, True)),
    Focal(multi_label=True),
]


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_gradients_are_those_of_the_formula(loss):
    targets = torch.tensor(PARTLY if getattr(loss, "multi_label", isinstance(loss, MultiLabel)) else SOFT)
    logits = torch.tensor(LOGITS, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: loss(z, targets), logits)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_logits_give_finite_values_and_gradients(loss, dtype):
    logits = torch.tensor([[300.0, -300.0], [-300.0, 300.0], [0.0, 0.0]], dtype=dtype, requires_grad=True)
    values = loss(logits, torch.tensor([[1.0, 0.0]] * 3))
    values.sum().backward()
    assert values.dtype == dtype and values.shape == (3,)
    assert torch.isfinite(values).all() and torch.isfinite(logits.grad).all()
    assert isinstance(loss, SquaredError) or values[0].item() == pytest.approx(0, abs=1e-6)  # whose best output is the label
    assert values[1].item() >= 300


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_each_image_has_its_own_loss_whatever_the_rest_of_the_batch(loss):
    logits, targets = torch.tensor(LOGITS), torch.tensor(SOFT)
    resolved = loss.resolve(torch.tensor(ONE_HOT), task=loss.tasks[-1])
    alone = torch.cat([resolved(logits[row : row + 1], targets[row : row + 1]) for row in range(7)])
    torch.testing.assert_close(resolved(logits, targets), alone, rtol=1e-12, atol=0)


def test_balanced_class_weights_are_those_of_scikit_learn():
    from sklearn.utils.class_weight import compute_class_weight

    labels = np.repeat([0, 1, 2], [5, 30, 10])
    targets = torch.tensor(np.eye(3)[labels])
    expected = compute_class_weight("balanced", classes=np.arange(3), y=labels)
    for loss in (CrossEntropy("balanced"), Focal(class_weights="balanced")):
        np.testing.assert_allclose(loss.resolve(targets, task="multi-class").class_weights, expected, rtol=1e-12)
    assert np.mean(expected[labels]) == pytest.approx(1)


def test_balanced_positive_weights_count_both_sides():
    targets = torch.tensor([[1.0, 0], [0, 1], [0, 1], [0, 1]])
    assert MultiLabel("balanced").resolve(targets, task="multi-label").positive_weights == (3.0, pytest.approx(1 / 3))
    focal = Focal(class_weights="balanced").resolve(targets, task="multi-label")
    assert focal.class_weights == (3.0, pytest.approx(1 / 3)) and focal.multi_label


def test_the_command_line_spells_every_loss():
    assert choose(LOSSES, "focal:3") == Focal(gamma=3.0)
    assert choose(LOSSES, "cross_entropy:balanced") == CrossEntropy("balanced")
    assert choose(LOSSES, "cross_entropy:1 2.5 1").class_weights == (1.0, 2.5, 1.0)
    assert choose(LOSSES, {"name": "multi_label", "positive_weights": [1, 4]}).positive_weights == (1.0, 4.0)
    for text in ("cross_entropy", "focal:gamma=3.0,class_weights=balanced", "multi_label:positive_weights=balanced"):
        assert spell(choose(LOSSES, text)) == text
    for name, loss in LOSSES:
        assert isinstance(loss(), Loss) and loss.name == name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CrossEntropy("even"), "write balanced, or one positive number per class"),
        (lambda: CrossEntropy((1.0, 0.0)), "must be positive and finite"),
        (lambda: MultiLabel((float("nan"),)), "must be positive and finite"),
        (lambda: Focal(-1.0), "gamma of the focal loss is -1"),
        (lambda: CrossEntropy().resolve(torch.ones(2, 2), task="multi-label"), "Use multi_label or focal"),
        (lambda: MultiLabel().resolve(torch.ones(2, 2), task="binary"), "Use cross_entropy or focal"),
        (lambda: CrossEntropy((1.0, 2.0)).resolve(torch.eye(3), task="multi-class"), "2 weights for 3 classes"),
        (lambda: CrossEntropy((1.0, 2.0))(torch.eye(3), torch.eye(3)), "2 weights for 3 classes"),
        (lambda: CrossEntropy("balanced")(torch.eye(3), torch.eye(3)), "call resolve"),
    ],
)
def test_bad_options_are_named(make, message):
    with pytest.raises(UsageError, match=message):
        make()


def test_a_class_without_images_cannot_be_balanced():
    with pytest.raises(DataError, match="column 1 of the targets"):
        CrossEntropy("balanced").resolve(torch.tensor([[1.0, 0, 0], [0, 0, 1]]), task="multi-class")
    with pytest.raises(DataError, match="column 0 of the targets"):
        MultiLabel("balanced").resolve(torch.tensor([[1.0, 0], [1, 1]]), task="multi-label")
