"""BSS: the smallest squared singular values of a batch's features."""

import pytest
import torch

from crossgraft.choice import choose
from crossgraft.errors import DivergedError, UsageError
from crossgraft.tune.regularizers import BSS, REGULARIZERS
from crossgraft.tune.regularizers.bss import smallest_squares
from support.regularizing import context_of
from support.small_classifiers import small_classifier
from support.training import DoubleFeed, train_one


def drawn(rows, columns):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_it_is_chosen_with_its_strength_first():
    assert choose(REGULARIZERS, "bss:0.01,k=2") == BSS(weight=0.01, k=2)
    assert BSS().task_weight == 1 and not BSS.keeps_reference


@pytest.mark.parametrize("options", [{"weight": -1.0}, {"weight": float("nan")}, {"k": 0}])
def test_strength_and_count_are_checked(options):
    with pytest.raises(UsageError, match="of bss"):
        BSS(**options)


@pytest.mark.parametrize("shape", [(5, 9), (9, 5), (6, 6)])
@pytest.mark.parametrize("k", [1, 2, 50])
def test_it_is_what_the_singular_values_say(shape, k):
    features = (drawn(*shape) + 1).requires_grad_()
    expected = torch.linalg.svdvals(features).square().flip(0)[:k].sum()
    found = smallest_squares(features, k)
    assert found.item() == pytest.approx(expected.item(), rel=1e-9)
    torch.testing.assert_close(torch.autograd.grad(found, features), torch.autograd.grad(expected, features))


@pytest.mark.parametrize("shape", [(4, 7), (7, 4)])
def test_the_gradient_is_that_of_finite_differences(shape):
    assert torch.autograd.gradcheck(lambda x: smallest_squares(x, 2), [drawn(*shape).requires_grad_()])


@pytest.mark.parametrize("features", [torch.eye(5, 8), torch.zeros(5, 3), torch.ones(4, 6), drawn(1, 6)])
def test_repeated_singular_values_have_a_finite_gradient(features):
    features = features.clone().requires_grad_()
    value = smallest_squares(features, 2)
    value.backward()
    assert value.isfinite() and features.grad.isfinite().all()


def test_a_small_singular_value_survives_float32():
    left, _ = torch.linalg.qr(drawn(20, 4))
    right, _ = torch.linalg.qr(drawn(4, 4))
    features = (left @ torch.diag(torch.tensor([1e3, 30.0, 20.0, 0.1], dtype=torch.float64)) @ right).float()
    exact = torch.linalg.svdvals(features.double())[-1] ** 2
    assert smallest_squares(features, 1).item() == pytest.approx(exact.item(), rel=0.02)
    rounded = torch.linalg.eigvalsh(features.T @ features)[0].item()
    assert rounded != pytest.approx(exact.item(), rel=0.1)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_no_number_stops_the_training(bad):
    features = drawn(5, 8)
    features[2, 3] = bad
    assert smallest_squares(features, 1).isnan()
    feed = DoubleFeed()
    feed.images[3] = bad
    with pytest.raises(DivergedError, match="bss/weakest is nan"):
        train_one("plain", feed=feed, regularizers=[BSS()], precision="64-true")


def test_half_precision_is_computed_in_single():
    classifier = small_classifier("cnn")
    features = torch.rand(6, 8).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        term = BSS().loss(context_of(classifier, features=features))["weakest"]
    assert term.dtype == torch.float32
    assert torch.equal(term, BSS().loss(context_of(classifier, features=features.float()))["weakest"])


def test_training_with_it_weakens_the_weakest_direction():
    _, plain = train_one("plain", regularizers=[BSS(weight=0.0)], epochs=4)
    _, ours = train_one("plain", regularizers=[BSS(weight=10.0)], epochs=4)
    first, last = (row.terms["bss/weakest"] for row in (ours.history[0], ours.history[-1]))
    assert plain.history[-1].terms["bss/weakest"] == 0 and last < first
