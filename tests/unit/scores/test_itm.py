from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from crossgraft import seeding
from crossgraft.errors import UsageError
from crossgraft.scores import adaptive_etas, itm, itm_dispersion
from crossgraft.scores._gradients import AdamW
from crossgraft.scores._inputs import split_four_to_one

from .conftest import make_problem

module = sys.modules["crossgraft.scores.itm"]  # the package exports the score under the name of its module


def literal_loss(points, labels, centres, psi, head, settings):
    """Eqs. 7 and 8 as printed, with the B×B kernel and torch's gradients."""
    embedded = functional.normalize(points @ psi[0] + psi[1], dim=1)
    kernel = (settings.eta / len(points) * embedded @ embedded.T).detach()
    evolved, targets = embedded, centres[labels]
    for _ in range(settings.recursions):
        evolved = (torch.eye(len(points)) - kernel) @ evolved + kernel @ targets
    logits = evolved @ head[0] + head[1]
    return functional.cross_entropy(logits, labels) + settings.lambda_pc * functional.mse_loss(evolved, targets)


@pytest.mark.parametrize("recursions", [1, 3])
@pytest.mark.parametrize("lambda_pc", [0.0, 0.7])
def test_gradient_is_that_of_the_printed_equations(recursions, lambda_pc):
    features, labels = make_problem(20, 6)
    settings = module._Settings(0.5, recursions, "paper", lambda_pc, 1, 20)
    rng = np.random.default_rng(0)
    points, centres = features.astype(np.float32), module._pseudo_centres("random", 3, rng)
    model = module._LinearMaps(6, centres, settings, rng)
    ours = model.gradients(points, labels)
    parameters = [torch.tensor(values, requires_grad=True) for values in (*model.psi, *model.head)]
    loss = literal_loss(
        torch.tensor(points), torch.tensor(labels), torch.tensor(centres), parameters[:2], parameters[2:], settings
    )
    theirs = torch.autograd.grad(loss, parameters)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other.numpy(), rtol=1e-4, atol=1e-6)


def test_optimizer_is_torchs_adamw():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((4, 3))
    theirs = torch.tensor(values.copy(), requires_grad=True)
    reference = torch.optim.AdamW([theirs], lr=5e-3, weight_decay=0.01)
    optimizer = AdamW([values], learning_rate=5e-3, weight_decay=0.01)
    for _ in range(20):
        gradient = rng.standard_normal((4, 3))
        theirs.grad = torch.tensor(gradient.copy())
        reference.step()
        optimizer.step([gradient])
    np.testing.assert_allclose(values, theirs.detach().numpy(), rtol=1e-9)


@pytest.mark.parametrize("with_diagonal", [True, False])
def test_kernel_is_never_formed_but_applied(with_diagonal):
    rng = np.random.default_rng(0)
    embedded, values = rng.standard_normal((7, 3)), rng.standard_normal((7, 3))
    kernel = 0.5 / 7 * embedded @ embedded.T
    if not with_diagonal:
        np.fill_diagonal(kernel, 0)
    ours = module._kernel_times(embedded, values, 0.5, with_diagonal=with_diagonal)
    np.testing.assert_allclose(ours, kernel @ values)


@pytest.mark.parametrize("kind", ["one-hot", "random", "pca", "laplacian"])
def test_pseudo_centres_lie_on_the_sphere(kind):
    centres = module._pseudo_centres(kind, 5, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(centres, axis=1), 1, rtol=1e-5)
    is_orthogonal = np.allclose(centres @ centres.T, np.eye(5), atol=1e-5)
    assert is_orthogonal == (kind != "random")


@pytest.mark.parametrize("val", ["paper", "loo", "none"])
@pytest.mark.parametrize("centres", ["one-hot", "random", "pca", "laplacian"])
def test_every_rule_tells_separable_classes_from_noise(val, centres):
    features, labels = make_problem(200, 10, separation=3.0)
    options = {"val": val, "centres": centres, "iterations": 200}
    assert itm(features=features, labels=labels, **options) > 0.9
    shuffled = np.random.default_rng(0).permutation(labels)
    assert itm(features=features, labels=shuffled, **options) < 0.6


def test_repeats_are_averaged_and_their_spread_is_told():
    features, labels = make_problem(80, 10, separation=0.3)
    value = itm(features=features, labels=labels, repeats=3, iterations=100)
    assert value.parts["spread"] > 0
    assert value.parts["dispersion"] == pytest.approx(itm_dispersion(features, labels))
    assert itm(features=features, labels=labels, iterations=100) != itm(features=features, labels=labels, iterations=100, seed=1)


def literal_path(features, labels, settings, *, seed):
    """The same training by torch's AdamW on eqs. 7 and 8 as printed: what becomes of the validation images at each validation."""
    standard = (features - features.mean(axis=0)) / features.std(axis=0, ddof=1)
    points, targets = torch.tensor(standard, dtype=torch.float32), torch.tensor(labels)
    split_rng, training_rng = (seeding.generator(seed, "ITM", 0, name) for name in ("split", "training"))
    train, test, _ = split_four_to_one(labels, None, split_rng)
    classes = torch.eye(labels.max() + 1)
    maps = [module._Linear.drawn(*shape, training_rng) for shape in ((points.shape[1], len(classes)), (len(classes),) * 2)]
    psi, head = ([torch.tensor(values, requires_grad=True) for values in each] for each in maps)
    optimizer = torch.optim.AdamW([*psi, *head], lr=5e-3, weight_decay=0.01)

    def look():
        with torch.no_grad():
            embedded = functional.normalize(points[test] @ psi[0] + psi[1], dim=1)
            batches = []
            for batch, ideal in zip(
                embedded.split(settings.batch_size), classes[targets[test]].split(settings.batch_size), strict=True
            ):
                kernel = settings.eta / len(batch) * batch @ batch.T
                if settings.val == "loo":
                    kernel = kernel - torch.diag(torch.diag(kernel))
                evolved = batch
                for _ in range(0 if settings.val == "none" else settings.recursions):
                    evolved = (torch.eye(len(batch)) - kernel) @ evolved + kernel @ ideal
                batches.append(evolved)
            evolved = torch.cat(batches)
            hits = (evolved @ head[0] + head[1]).argmax(dim=1) == targets[test]
            return embedded.numpy(), evolved.numpy(), hits.double().mean().item()

    path = [look()]
    for _ in range(settings.iterations):
        optimizer.zero_grad()
        literal_loss(points[train], targets[train], classes, psi, head, settings).backward()
        optimizer.step()
    path.append(look())
    return test, classes[targets[test]].numpy(), [np.array(each) for each in zip(*path, strict=True)]


@pytest.mark.parametrize(("val", "recursions"), [("paper", 1), ("loo", 2), ("none", 1)])
def test_embeddings_are_those_of_the_printed_equations(val, recursions):
    features, labels = make_problem(300, 6, separation=1.0)
    settings = module._Settings(0.5, recursions, val, 0.3, 20, 240)  # all 240 training images are one batch
    options = settings._asdict() | {"seed": 3}
    value = itm(features=features, labels=labels, embeddings=True, **options)
    rows, centres, (embedded, evolved, accuracies) = literal_path(features, labels, settings, seed=3)
    arrays = value.arrays
    assert arrays["rows"].tolist() == rows.tolist()
    assert arrays["steps"].tolist() == [0, 20]
    assert arrays["embedded"].shape == arrays["evolved"].shape == (2, len(rows), 3)
    np.testing.assert_array_equal(arrays["centres"], centres)
    np.testing.assert_allclose(arrays["embedded"], embedded, atol=2e-4)
    np.testing.assert_allclose(arrays["evolved"], evolved, atol=2e-4)
    assert arrays["accuracy"] == pytest.approx(accuracies, abs=1.01 / len(rows))
    assert value == arrays["accuracy"][-1] == value.parts["last"]


def test_embeddings_are_kept_only_where_asked_for_and_change_nothing():
    features, labels = make_problem(80, 10, separation=0.3)
    options = {"iterations": 250, "repeats": 2}
    plain, told = (itm(features=features, labels=labels, embeddings=wanted, **options) for wanted in (False, True))
    assert plain == told
    assert plain.parts == told.parts
    assert plain.arrays == {}
    assert told.arrays["steps"].tolist() == [0, 100, 200, 250]


def test_without_validation_images_there_are_no_embeddings():
    features, _ = make_problem(3, 4)
    value = itm(features=features, labels=np.arange(3), embeddings=True)
    assert (float(value), value.arrays) == (0.0, {})
    assert value.warnings


def test_dispersion_is_the_equation():
    features, labels = make_problem()
    standard = (features - features.mean(axis=0)) / features.std(axis=0, ddof=1)
    means = np.array([standard[labels == c].mean(axis=0) for c in range(3)])
    expected = np.mean(np.linalg.norm(standard - means[labels], axis=1)) / np.sqrt(12)
    assert itm_dispersion(features, labels) == pytest.approx(expected, rel=1e-5)


def test_adaptive_etas_are_clipped_and_centred_on_the_median():
    assert adaptive_etas([0.7]) == [0.5]
    assert adaptive_etas([1.0, 100.0, 1.0, 0.01, 0.0]) == pytest.approx([0.5, 0.95, 0.5, 0.05, 0.05])
    assert adaptive_etas([0.0, 0.0]) == [0.5, 0.5]
    assert adaptive_etas([]) == []


@given(st.lists(st.floats(0.01, 1.5), min_size=1, max_size=9), st.floats(0.05, 0.95))
def test_a_more_dispersed_model_never_gets_a_smaller_eta(dispersions, base):
    etas = adaptive_etas(dispersions, base=base)
    assert all(0.05 <= eta <= 0.95 for eta in etas)
    by_dispersion = [eta for _, eta in sorted(zip(dispersions, etas, strict=True))]
    assert by_dispersion == sorted(by_dispersion)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 3), min_size=4, max_size=40), st.booleans(), st.integers(0, 99))
def test_split_keeps_groups_whole_and_every_class_in_training(labels, grouped, seed):
    targets = np.unique(labels, return_inverse=True)[1]
    groups = np.arange(len(targets)) // 2 if grouped else None
    train, test, warnings = split_four_to_one(targets, groups, np.random.default_rng(seed))
    assert sorted([*train, *test]) == list(range(len(targets)))
    assert set(targets[train]) == set(targets)
    assert bool(warnings) == (len(test) == 0)
    if grouped:
        assert not set(groups[train]) & set(groups[test])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eta": 2.0}, "`eta`"),
        ({"repeats": 0}, "`repeats`"),
        ({"lambda_pc": -1.0}, "`lambda_pc`"),
        ({"val": "all"}, "has no val 'all'"),
        ({"centres": "kmeans"}, "has no centres"),
    ],
)
def test_settings_out_of_range(options, message):
    with pytest.raises(UsageError, match=message):
        itm(*make_problem(), **options)
    with pytest.raises(UsageError, match="`base`"):
        adaptive_etas([1.0], base=1.0)
