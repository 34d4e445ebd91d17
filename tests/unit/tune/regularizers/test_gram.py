"""The distance between inner products of images, against a double loop over images."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.tune.regularizers import RepSim
from crossgraft.tune.regularizers._gram import gram_distance
from support.regularizing import context_of, moved
from support.small_classifiers import small_classifier

WIDE, TALL = (5, 9), (14, 6)  # fewer and more images than features


def features(shape, seed, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def literal(ours, reference):
    """Image by image: how the inner products of centred features differ, over how large those of the reference are."""
    mine, theirs = ours - ours.mean(0), reference - reference.mean(0)
    difference = size = torch.zeros((), dtype=ours.dtype)
    for one in range(len(ours)):
        for other in range(len(ours)):
            now, before = (mine[one] * mine[other]).sum(), (theirs[one] * theirs[other]).sum()
            difference = difference + (now - before) ** 2
            size = size + before**2
    return difference / size


@pytest.mark.parametrize("shape", [WIDE, TALL, (2, 1)])
def test_value_and_gradient_are_those_of_the_double_loop(shape):
    ours, reference = features(shape, 0).requires_grad_(True), features(shape, 1).requires_grad_(True)
    found, expected = gram_distance(ours, reference), literal(ours, reference.detach())
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)
    (of_literal,) = torch.autograd.grad(expected, [ours])
    of_ours, of_reference = torch.autograd.grad(found, [ours, reference], allow_unused=True)
    torch.testing.assert_close(of_ours, of_literal, rtol=1e-11, atol=1e-12)
    assert of_reference is None


@pytest.mark.parametrize("shape", [WIDE, TALL])
def test_its_gradient_is_that_of_finite_differences(shape):
    reference = features(shape, 1)
    ours = features(shape, 0).requires_grad_(True)
    assert torch.autograd.gradcheck(lambda rows: gram_distance(rows, reference), [ours])


@settings(max_examples=25, deadline=None)
@given(
    num_images=st.integers(2, 9), num_features=st.integers(1, 9), scale=st.floats(0.1, 3.0), seed=st.integers(0, 2**20)
)
def test_rotations_and_shifts_are_free_and_scale_is_not(num_images, num_features, scale, seed):
    ours, reference = (features((num_images, num_features), seed + k) for k in (0, 1))
    turn = torch.linalg.qr(features((num_features, num_features), seed + 2)).Q
    expected = literal(ours, reference).item()
    for same in (ours @ turn, ours + features((num_features,), seed + 3)):
        assert gram_distance(same, reference).item() == pytest.approx(expected, rel=1e-9, abs=1e-11)
        assert gram_distance(ours, same.detach()).item() == pytest.approx(0, abs=1e-20)
    # Features that are s times as long have inner products s² times as large.
    found = gram_distance(scale * reference @ turn, reference).item()
    assert found == pytest.approx((scale**2 - 1) ** 2, rel=1e-9, abs=1e-18)


def test_features_that_were_dealt_to_other_images_are_far():
    reference = features(TALL, 0)
    assert gram_distance(reference.roll(1, 0), reference).item() > 0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [WIDE, TALL, (3, 1), (7, 4)])
@pytest.mark.parametrize("size", [0, 1, 0.1, 7.7])  # 0.1 + 0.1 + 0.1 is not 0.3: the mean is rounded
def test_a_reference_that_does_not_vary_is_divided_by_nothing(shape, dtype, size):
    ours, equal = features(shape, 1, dtype), torch.full(shape, size, dtype=dtype)
    centred = ours.double() - ours.double().mean(0)
    expected = (centred @ centred.T).square().sum().item()
    assert gram_distance(ours, equal).item() == pytest.approx(expected, rel=1e-5)
    flat = equal.clone().requires_grad_(True)
    found = gram_distance(flat, ours)
    (gradient,) = torch.autograd.grad(found, [flat])
    assert found.item() == 1 and not gradient.any()


def test_what_is_no_number_is_told():
    ours = features(TALL, 0).clone()
    ours[3, 2] = float("nan")
    assert gram_distance(ours, features(TALL, 1)).isnan()


@pytest.mark.parametrize("name", ["cnn", "vit"])
def test_the_term_of_repsim_is_that_of_the_start_and_0_there(name):
    """In eval mode; the network that training starts from has the very same inner products."""
    classifier = small_classifier(name).double().eval()
    start = small_classifier(name).double().eval()
    regularizer = RepSim(2.5, mode="gram")
    regularizer.attach(classifier)
    assert regularizer.modules() == regularizer.parameter_groups() == [] and regularizer.state_dict() == {}
    assert regularizer.loss(context_of(classifier))["gram"].item() == 0
    context = context_of(moved(classifier))
    expected = 2.5 * literal(context.features, start.features(context.images))
    found = regularizer.loss(context)
    assert found.keys() == {"gram"}
    assert found["gram"].item() == pytest.approx(expected.item(), rel=1e-10)
    assert found["gram"].item() > 1e-4


def test_one_image_has_no_term():
    classifier = small_classifier("cnn")
    regularizer = RepSim(mode="gram")
    regularizer.attach(classifier)
    (gradient,) = torch.autograd.grad(
        regularizer.loss(context_of(classifier, torch.rand(1, 3, 32, 32)))["gram"], [classifier.body.stem.weight]
    )
    assert not gradient.any()
