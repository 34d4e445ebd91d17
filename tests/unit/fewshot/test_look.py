"""One episode, looked at: the theorems hold, the losses are those of pairs, and the gap closes where it should."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from crossgraft.fewshot import CopaHead, LogisticHead, NccHead, UrlHead
from crossgraft.fewshot.episodes import Episode
from crossgraft.fewshot.look import (
    first_of_each,
    gap,
    gap_shift_curve,
    look_at_episode,
    symmetric_cross_entropy,
    theorem_3_1,
    theorem_3_2,
    theorem_5_1,
)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@st.composite
def clouds(draw):
    """Images that share a direction, as penultimate features behind a ReLU do; prototypes of another map; classes."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(1, 6), min_size=2, max_size=5))
    classes = np.repeat(range(len(sizes)), sizes)
    images = np.abs(random.standard_normal((len(classes), draw(st.integers(2, 8)))))
    weights = random.standard_normal((images.shape[1], images.shape[1]))
    prototypes = np.stack([images[classes == number].mean(axis=0) for number in range(len(sizes))])
    return images, prototypes, classes, weights


@settings(max_examples=60, deadline=None)
@given(clouds())
def test_the_theorems_hold(drawn):
    images, prototypes, classes, weights = drawn
    assert theorem_3_1(images, classes).holds
    assert theorem_3_2(images, classes, weights).holds
    assert theorem_5_1(images @ weights.T, prototypes, classes).holds


@settings(max_examples=30, deadline=None)
@given(clouds())
def test_both_sides_are_those_of_the_paper(drawn):
    """Every sum written out."""
    images, prototypes, classes, weights = drawn
    z, c, n = unit(images), unit(prototypes), len(images)
    expanded = c[classes]
    pairs = z @ expanded.T
    rows = [logsumexp(pairs[i]) - pairs[i, i] for i in range(n)]
    columns = [logsumexp(pairs[:, i]) - pairs[i, i] for i in range(n)]
    assert symmetric_cross_entropy(z @ c.T, classes) == pytest.approx((sum(rows) + sum(columns)) / n)
    sizes = np.bincount(classes)
    lower = -2 / n * sum(z[i] @ expanded[i] for i in range(n))
    lower += 2 / n * sum(sizes[k] / n * z[i] @ c[k] for i in range(n) for k in range(len(c)))
    assert theorem_5_1(images, prototypes, classes).lower == pytest.approx(lower)
    alpha = 0.5 / (len(sizes) * sizes.max())
    means = np.stack([z[classes == k].mean(axis=0) for k in range(len(sizes))])
    lower = -sum(z[i] @ means[classes[i]] for i in range(n)) / n
    lower += alpha / n * sum(z[i] @ z[j] for i in range(n) for j in range(n))
    found = theorem_3_1(images, classes, share=0.5)
    assert found.lower == pytest.approx(lower)
    assert found.value == pytest.approx(np.mean([logsumexp(means @ z[i]) - z[i] @ means[classes[i]] for i in range(n)]))
    mapped = images @ weights.T
    middles = np.stack([mapped[classes == k].mean(axis=0) for k in range(len(sizes))])
    squared = ((mapped.mean(axis=0) - middles.mean(axis=0)) ** 2).sum()
    assert theorem_3_2(images, classes, weights).value == pytest.approx(squared, abs=1e-12)


def test_minus_one_closes_the_gap_before_lengths_are_one_again():
    random = np.random.default_rng(0)
    classes = np.repeat(range(3), 5)
    images, prototypes = random.standard_normal((15, 6)) + 2, random.standard_normal((3, 6)) - 2
    shifts, losses = gap_shift_curve(images, prototypes, classes)
    z, c = unit(images), unit(prototypes)
    vector = z.mean(axis=0) - c[classes].mean(axis=0)
    assert np.linalg.norm(vector) == pytest.approx(gap(images, prototypes, classes))
    moved, centres = z - vector / 2, c + vector / 2
    np.testing.assert_allclose(moved.mean(axis=0), centres[classes].mean(axis=0), atol=1e-12)
    closed = symmetric_cross_entropy(unit(moved) @ unit(centres).T, classes, scale=np.exp(2))
    assert losses[shifts.index(-1.0)] == pytest.approx(closed / 2)
    assert losses[shifts.index(0.0)] == pytest.approx(symmetric_cross_entropy(z @ c.T, classes, scale=np.exp(2)) / 2)


def test_where_nothing_moves_the_loss_is_that_of_copa():
    random = np.random.default_rng(0)
    classes = np.repeat(range(3), 4)
    features = random.standard_normal((12, 6)) + 2
    head = CopaHead(steps=1).fit(features, classes)
    start = CopaHead(steps=0).fit(features, classes)  # maps as they are when the first loss is computed
    shifts, losses = gap_shift_curve(*start.clouds(features), classes)
    assert losses[shifts.index(0.0)] == pytest.approx(head.loss_curve_[0])


def test_heads_with_prototypes_are_looked_at():
    random = np.random.default_rng(0)
    labels = np.repeat(["a", "b"], 30)
    features = random.standard_normal((60, 4)) + (labels == "a")[:, None]
    episode = Episode(random.permutation(60)[:40], np.arange(3))
    heads = {"copa": CopaHead(steps=3), "logistic": LogisticHead(), "url": UrlHead(steps=3), "ncc": NccHead()}
    look = look_at_episode(features, labels, heads, episode, number=7)
    assert [head.head for head in look.heads] == ["copa", "url", "ncc"] and look.number == 7
    assert look.class_names == ["a", "b"] and look.classes == sorted(look.classes)
    ncc = look.heads[2]
    assert len(ncc.images) == len(ncc.similarities) == len(look.classes) == 40 and len(ncc.prototypes) == 2
    assert [bound.name[:3] for bound in look.heads[1].bounds] == ["3.1", "3.2", "5.1"]
    support = features[episode.support]
    prototypes = np.stack([support[labels[episode.support] == name].mean(axis=0) for name in "ab"])
    own = labels[episode.support] == "a"
    first = unit(support[own])[0] @ unit(prototypes)[0]
    assert ncc.similarities[0][0] == pytest.approx(first, abs=1e-3)
    assert look_at_episode(features, labels, {"logistic": LogisticHead()}, episode, number=0) is None


def test_of_many_images_each_class_keeps_as_many():
    classes = np.array([0] * 90 + [1] * 5 + [2] * 90)
    places = first_of_each(classes, 60)
    assert np.bincount(classes[places]).tolist() == [20, 5, 20]
