from __future__ import annotations

import math

import numpy as np
import pytest

from crossgraft.errors import UsageError
from crossgraft.scores import logme, nleep, ped, sfda

from .conftest import make_problem


def literal(features, labels, source, *, radius=0.6, time_step=0.1, stiffness=1.0):
    """Every image of every class is moved, pair of classes by pair."""
    mean, deviation = source.mean(axis=0), np.maximum(source.std(axis=0), 1e-3)
    points = (features - mean) / deviation
    names = np.unique(labels)
    first = None
    for _ in range(6):
        centres = [points[labels == name].mean(axis=0) for name in names]
        sizes = [math.sqrt(points[labels == name].var(axis=0).sum()) for name in names]
        movement = np.zeros_like(points)
        for i in range(len(names)):
            for j in range(len(names)):
                if i != j:
                    along = centres[i] - centres[j]
                    distance = np.linalg.norm(along)
                    force = max(radius * (sizes[i] + sizes[j]) - distance, 0.0)
                    step = min(0.5 * time_step**2 * stiffness * force, force)
                    movement[labels == names[i]] += step * along / distance
        total = np.abs(movement).sum()
        if total == 0:
            break
        first = first or total
        if total / first <= 0.5:
            break
        points = points + movement
    return points * deviation + mean


@pytest.mark.parametrize("settings", [{}, {"radius": 0.4, "time_step": 0.6}, {"time_step": 3.0}])
def test_equals_moving_every_image(problem, settings):
    features, labels = problem
    source = np.random.default_rng(5).standard_normal((30, features.shape[1])) + 3
    expected = sfda(features=literal(features, labels, source, **settings), labels=labels)
    value = ped(features=features, labels=labels, source_features=source, **settings)
    assert value == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("head", "plain"), [("logme", logme), ("nleep", nleep)])
def test_other_heads(head, plain):
    features, labels = make_problem()
    expected = plain(features=literal(features, labels, features), labels=labels)
    assert ped(features=features, labels=labels, head=head) == pytest.approx(expected, rel=1e-6)


def test_classes_far_apart_are_not_moved():
    features, labels = make_problem(separation=30.0)
    value = ped(features=features, labels=labels, source_features=features)
    assert value.parts["steps"] == 0 and value.parts["movement"] == 0
    assert value == pytest.approx(float(sfda(features=features, labels=labels)))


def test_coincident_classes_stay_where_they_are():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((20, 4))
    value = ped(features=np.vstack([half, half]), labels=np.repeat([0, 1], 20))
    assert np.isfinite(value)


def test_without_source_images_a_warning_says_whose_units_are_used(problem):
    features, labels = problem
    assert "units are those of the target" in ped(features=features, labels=labels).warnings[0]
    given = ped(features=features, labels=labels, source_features=features)
    assert not any("units" in warning for warning in given.warnings)


@pytest.mark.parametrize("setting", ["radius", "time_step", "stiffness"])
def test_settings_must_be_positive(problem, setting):
    features, labels = problem
    with pytest.raises(UsageError, match="must be positive"):
        ped(features=features, labels=labels, **{setting: 0.0})


def test_an_unknown_head_is_refused(problem):
    features, labels = problem
    with pytest.raises(UsageError, match="has no head 'leep'"):
        ped(features=features, labels=labels, head="leep")
