"""The gap, set: as it is where nothing is moved, closed where it should be, and the maps of CoPA put together."""

import numpy as np
import pytest
import torch

from crossgraft.fewshot import CopaHead, NccHead, NWayKShot, UrlHead, evaluate
from crossgraft.fewshot.episodes import Episode
from crossgraft.fewshot.look import SHARES, SHIFTS, gap, gap_points, sets_gaps
from crossgraft.fewshot.result import describe_gaps

SAMPLER = NWayKShot(ways=3, shots=4, queries=5)


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(3)
    labels = np.repeat(["a", "b", "c"], 20)
    centres = np.abs(random.standard_normal((3, 10)))
    return np.abs(centres[np.repeat([0, 1, 2], 20)] + 0.9 * random.standard_normal((60, 10))), labels


UNEVEN = Episode(np.r_[0:9, 20:24, 40:42], np.r_[10:20, 30:40, 50:60])


def points_of(head, data, episode=UNEVEN):
    features, labels = data
    fitted = head.fit(features[episode.support], labels[episode.support])
    found = list(gap_points("head", fitted, features, labels, episode))
    right = float(np.mean(fitted.predict(features[episode.query]) == labels[episode.query]))
    return {(each.moved, each.at): each for each in found}, fitted, right


@pytest.mark.parametrize("head", [NccHead(), UrlHead(), CopaHead(), CopaHead(shared=True)], ids=lambda head: repr(head)[:20])
def test_a_head_that_is_not_moved_is_as_it_is(head, data):
    found, fitted, right = points_of(head, data)
    features, labels = data
    images, prototypes = fitted.clouds(features[UNEVEN.support])
    numbers = np.unique(labels[UNEVEN.support], return_inverse=True)[1]
    assert found["features", 0].accuracy == right
    assert found["features", 0].gap == pytest.approx(gap(images, prototypes, numbers))
    assert [at for moved, at in found if moved == "features"] == list(SHIFTS)
    assert found["features", -1].gap < found["features", 0].gap < found["features", 4].gap
    last = [each for (moved, _), each in found.items() if moved in ("maps", "training")]
    if last:
        usual = found["maps", 1.0] if ("maps", 1.0) in found else last[-1]
        assert (usual.accuracy, usual.gap) == (right, pytest.approx(found["features", 0].gap))


def test_features_are_moved_along_the_gap_and_prototypes_against_it(data):
    found, _, _ = points_of(NccHead(), data)
    features, labels = data
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    names = np.unique(labels)
    support = labels[UNEVEN.support]
    means = np.stack([features[UNEVEN.support][support == name].mean(axis=0) for name in names])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    delta = unit[UNEVEN.support].mean(axis=0) - means[np.searchsorted(names, support)].mean(axis=0)
    queries, prototypes = unit[UNEVEN.query] + 2 * delta, means - 2 * delta  # four gaps, half on each side
    cosines = queries @ prototypes.T / np.linalg.norm(queries, axis=1)[:, None] / np.linalg.norm(prototypes, axis=1)
    assert found["features", 4].accuracy == np.mean(names[cosines.argmax(axis=1)] == labels[UNEVEN.query])


def test_maps_of_copa_go_from_their_mean_to_twice_their_difference(data):
    found, fitted, _ = points_of(CopaHead(steps=20, learning_rate=0.02), data)
    features, labels = data
    assert [at for moved, at in found if moved == "maps"] == list(SHARES)
    shared = (fitted.instance_weights_ + fitted.prototype_weights_) / 2
    numbers = np.unique(labels[UNEVEN.support], return_inverse=True)[1]
    expected = gap(features[UNEVEN.support] @ shared.T, fitted.prototypes_ @ shared.T, numbers)
    assert found["maps", 0].gap == pytest.approx(expected)


def test_the_coefficient_bounds_the_squared_gap_and_has_no_value_where_classes_are_equal(data):
    found, _, _ = points_of(UrlHead(learning_rate="unseen"), data)
    trained = [each for (moved, _), each in found.items() if moved == "training"]
    assert [each.at for each in trained] == [0, 5, 10, 20, 40]
    assert trained[0].squared_ratio == pytest.approx(1) and trained[0].coefficient >= 1  # Θ is the identity
    assert all(each.squared_ratio <= each.coefficient * (1 + 1e-9) for each in trained)
    for rows in (np.r_[0:4, 20:24, 40:44], np.array([0, 20, 40])):  # 0 but for rounding, and 0
        even, _, _ = points_of(UrlHead(steps=8), data, Episode(rows, UNEVEN.query))
        assert {each.coefficient for (moved, _), each in even.items() if moved == "training"} == {None}


@pytest.mark.parametrize(("steps", "moments"), [(0, [0]), (1, [0, 1]), (3, [0, 1, 2, 3]), (4, [0, 1, 2, 4])])
def test_moments_of_a_short_training_that_fall_together_are_one(steps, moments, data):
    heads = {"url": UrlHead(steps=steps), "shared": CopaHead(steps=steps, shared=True)}
    table = evaluate(*data, heads, sampler=SAMPLER, num_episodes=3, gaps=True)
    found = describe_gaps(table.gaps)
    for name, accuracies in zip(heads, table.accuracies.T, strict=True):
        trained = [each for each in found if (each.head, each.moved) == (name, "training")]
        assert [each.at for each in trained] == moments
        assert (trained[-1].accuracy, trained[-1].difference) == (pytest.approx(accuracies.mean()), 0)


def test_one_map_under_the_loss_of_copa_is_trained_as_autograd_does(data):
    """A literal version: one parameter, the n × n matrix, Adam."""
    features, labels = data
    X, y = features[UNEVEN.support], np.unique(labels[UNEVEN.support], return_inverse=True)[1]
    rows = torch.from_numpy(X)
    means = torch.stack([rows[torch.from_numpy(y) == number].mean(dim=0) for number in range(3)])
    weights = torch.nn.Parameter(torch.eye(10, dtype=torch.float64))
    optimizer = torch.optim.Adam([weights], lr=1e-2, weight_decay=0.1)
    for _ in range(15):
        images = torch.nn.functional.normalize(rows @ weights.T)
        own = torch.nn.functional.normalize(means @ weights.T)[torch.from_numpy(y)]
        matrix, diagonal = np.exp(2) * images @ own.T, torch.arange(len(X))
        loss = 0.5 * sum(torch.nn.functional.cross_entropy(each, diagonal) for each in (matrix, matrix.T))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    head = CopaHead(steps=15, learning_rate=1e-2, shared=True).fit(X, y)
    np.testing.assert_allclose(head.weights_, weights.detach().numpy(), atol=1e-9)
    assert head.prototype_weights_ is head.instance_weights_ or np.array_equal(head.prototype_weights_, head.instance_weights_)


def test_means_over_episodes_are_paired_with_the_head_as_it_is(data):
    heads = {"ncc": NccHead(), "copa": CopaHead(steps=3)}
    table = evaluate(*data, heads, sampler=SAMPLER, num_episodes=4, gaps=True)
    assert not evaluate(*data, heads, sampler=SAMPLER, num_episodes=1).gaps
    found = {(each.head, each.moved, each.at): each for each in describe_gaps(table.gaps)}
    assert found["ncc", "features", 0.0].difference == 0
    accuracies = np.array(
        [[p.accuracy for p in points if (p.head, p.moved, p.at) == ("copa", "features", 4.0)] for points in table.gaps]
    )
    assert found["copa", "features", 4.0].accuracy == pytest.approx(accuracies.mean())
    gains = accuracies[:, 0] - table.accuracies[:, 1]
    assert found["copa", "features", 4.0].difference == pytest.approx(gains.mean())
    assert sets_gaps(NccHead()) and not sets_gaps(NccHead(distance="l2"))
