"""Drawn confounders: what is touched is what the mask says, the drawing is where its options put it, at any size."""

from itertools import pairwise

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import binary_opening, label

from crossgraft.choice import choose, option_fields, spell
from crossgraft.edit.confounders._drawing import curve, distance_to, stroke_coverage
from crossgraft.edit.confounders.chest_tube import ChestTube
from crossgraft.edit.confounders.collimation import Collimation, margins
from crossgraft.edit.confounders.ecg_lead import EcgLead
from crossgraft.edit.confounders.pen_mark import PenMark
from crossgraft.edit.confounders.ruler import Ruler
from crossgraft.edit.confounders.tag import Tag
from crossgraft.edit.confounders.text_annotation import TextAnnotation
from crossgraft.errors import UsageError
from crossgraft.registry import Registry

DRAWN = (Tag, TextAnnotation, PenMark, Ruler, ChestTube, EcgLead, Collimation)
DRAWN_ANEW = (PenMark, ChestTube, EcgLead, Collimation)
each_kind = pytest.mark.parametrize("kind", DRAWN, ids=lambda kind: kind.name)


def rng(seed=0):
    return np.random.default_rng(seed)


def flat(*shape, value=0.25):
    return np.full(shape, value)


def box(mask):
    """First row, row after the last, first column, column after the last."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return rows[0], rows[-1] + 1, columns[0], columns[-1] + 1


@each_kind
@settings(max_examples=15, deadline=None)
@given(st.integers(8, 90), st.integers(8, 90), st.sampled_from([1, 3]), st.booleans(), st.integers(0, 99))
def test_only_what_the_mask_says_is_touched(kind, height, width, channels, is_uint8, seed):
    image = 0.1 + 0.8 * rng(seed).random((height, width, channels))
    image = np.rint(image * 255).astype(np.uint8) if is_uint8 else image
    confounder = kind()
    edited, info = confounder(image, rng(seed))
    changed = (info.residual != 0).any(axis=2)
    assert edited.dtype == image.dtype and edited.shape == image.shape
    assert info.mask.dtype == bool and info.mask.shape == (height, width) and info.mask.any()
    assert not changed[~info.mask].any() and changed.any()
    painted = confounder.edit(image / 255 if is_uint8 else image, rng(seed))
    assert np.isfinite(painted.pixels).all()
    again, _ = confounder(image, rng(seed))
    np.testing.assert_array_equal(again, edited)


@each_kind
@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 3), (8, 200), (200, 8), (1024, 1024), (3, 64, 1000)], ids=str)
def test_it_draws_at_every_size(kind, shape):
    _, info = kind()(flat(*shape), rng())
    height, width = (n for n in shape if n != 3)
    assert info.mask.shape == (height, width) and 0 < info.mask.mean() < 0.9
    assert np.abs(info.residual).max() > 0.02


@each_kind
def test_strength_0_leaves_every_bit(kind):
    image = rng().integers(0, 256, (20, 30, 3), dtype=np.uint8)
    edited, info = kind()(image, rng(), strength=0.0)
    np.testing.assert_array_equal(edited, image)
    assert info.rms == 0


@each_kind
def test_it_does_not_write_to_what_it_is_given(kind):
    image = flat(40, 50, 3)
    image.flags.writeable = False
    assert kind().edit(image, rng()).pixels is not image


@each_kind
def test_stochastic_ones_differ_and_the_others_do_not(kind):
    masks = [kind()(flat(64, 80), rng(seed))[1].mask for seed in range(5)]
    for first, second in pairwise(masks):
        assert kind.is_stochastic == bool((first != second).any())
    assert kind.is_stochastic == (kind in DRAWN_ANEW)
    if kind.is_stochastic:
        with pytest.raises(UsageError, match="Give it a generator"):
            kind()(flat(64, 80))


@pytest.mark.parametrize("kind", DRAWN_ANEW, ids=lambda kind: kind.name)
def test_the_drawing_does_not_depend_on_the_size(kind):
    """The same random numbers give the same place as shares of the image."""
    small, large = (np.asarray(box(kind()(flat(n, n), rng(7))[1].mask)) / n for n in (128, 512))
    np.testing.assert_allclose(small, large, atol=0.05)


@each_kind
def test_what_is_known_of_it(kind):
    assert (
        kind.leaf == ("imaging" if kind is Collimation else "external")
        and kind.scope == "local"
        and kind.level == "environment"
        and kind.reference
    )
    registry = Registry("confounder", group="crossgraft.confounders", plugin_type=type)
    registry.add(kind.name, kind)
    assert choose(registry, kind.name) == kind() and spell(kind()) == kind.name
    for each in option_fields(kind):
        assert each.metadata["unit"] and f"{each.name}:" in kind.__doc__
        if isinstance(each.default, float):
            assert each.metadata["low"] == 0 and each.metadata["high"] is not None
            with pytest.raises(UsageError, match=f"{each.name} of {kind.name} must be in"):
                kind(**{each.name: -0.1})


def test_the_first_option_needs_no_name():
    registry = Registry("confounder", group="crossgraft.confounders", plugin_type=type)
    for kind in DRAWN:
        registry.add(kind.name, kind)
    assert choose(registry, "tag:0.1") == Tag(size=0.1)
    assert choose(registry, "text_annotation:AP") == TextAnnotation(text="AP")
    assert choose(registry, "pen_mark:3") == PenMark(n=3)
    assert choose(registry, "ruler:top,tick=0.1") == Ruler(edge="top", tick=0.1)
    assert choose(registry, {"name": "tag", "xy": [0.5, 0.25]}) == Tag(xy=(0.5, 0.25))


# pen mark


def test_the_pen_is_purple_on_colour_and_white_on_gray():
    image = flat(128, 128, 3, value=0.8)
    edited, info = PenMark(alpha=1.0, width=0.05)(image, rng())
    covered = edited[(np.abs(info.residual).sum(axis=2) > 0.99 * np.abs(info.residual).sum(axis=2).max())]
    np.testing.assert_allclose(covered, np.broadcast_to([128 / 255, 0, 128 / 255], covered.shape), atol=0.01)
    gray, _ = PenMark(width=0.05)(flat(128, 128, 1, value=0.2), rng())
    assert gray.max() == pytest.approx(0.2 + 0.7 * 0.8)
    green, _ = PenMark(color="lime", width=0.05)(image, rng())
    assert (green[:, :, 1] >= green[:, :, 0]).all() and green[:, :, 1].max() > 0.9
    with pytest.raises(UsageError, match="color of pen_mark must be the name of a colour"):
        PenMark(color="no colour")


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(64, 200), st.integers(64, 200), st.integers(1, 4))
def test_arcs_lie_around_the_centre(seed, height, width, n):
    """Inside the frame, and no more ink than that of n half circles of the largest radius."""
    _, info = PenMark(n=n)(flat(height, width), rng(seed))
    side, pen = min(height, width), max(0.008 * min(height, width), 1)
    rows, columns = np.nonzero(info.mask)
    distance = np.hypot(rows + 0.5 - height / 2, columns + 0.5 - width / 2)
    assert distance.max() <= (0.35 + 0.08 * np.sqrt(2)) * side + pen
    assert not info.mask[[0, -1]].any() and not info.mask[:, [0, -1]].any()
    ink = info.residual.sum() / (0.7 * 0.75)
    assert 0.8 * np.pi / 3 * 0.2 * side * pen < ink < 1.2 * n * np.pi * 0.35 * side * pen


# ruler


@pytest.mark.parametrize("edge", ["left", "right", "top", "bottom"])
@pytest.mark.parametrize("shape", [(300, 200), (200, 300), (1024, 512)], ids=str)
def test_a_ruler_on_each_edge(edge, shape):
    _, info = Ruler(edge=edge)(flat(*shape))
    turned = {"left": info.mask, "right": info.mask[:, ::-1], "top": info.mask.T, "bottom": info.mask[::-1].T}[edge]
    length = len(turned)
    thick, reach = max(round(0.002 * min(shape)), 1), round(0.04 * min(shape))
    assert turned[:, :thick].all() and not turned[:, reach:].any(), "the line along the edge, and nothing beyond the ticks"
    starts = np.flatnonzero(np.diff(turned[:, thick].astype(int), prepend=0) == 1)
    assert len(starts) == 50
    np.testing.assert_allclose(starts, 0.02 * length * (np.arange(50) + 0.5), atol=1)
    long = np.flatnonzero(np.diff(turned[:, reach - 1].astype(int), prepend=0) == 1)
    np.testing.assert_array_equal(long, starts[::5])
    assert turned[:, thick].sum() == 50 * thick


@pytest.mark.parametrize("side", [8, 28, 64, 99])
def test_ticks_stay_apart_in_a_small_image(side):
    edited, info = Ruler()(flat(side, side))
    runs = np.diff(np.flatnonzero(np.diff(info.mask[:, 1].astype(int), prepend=0, append=0)))
    assert set(runs[::2]) == {1} and runs[1::2].min() >= 1
    assert info.mask[:, 2].any() and set(np.unique(edited)) == {0.25, 1.0}


def test_a_ruler_needs_an_edge(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(UsageError, match="edge of ruler must be left, right, top, bottom"):
        Ruler(edge="middle")


# chest tube


def test_the_tube_enters_from_a_lateral_edge():
    sides = []
    for seed in range(12):
        mask = ChestTube()(flat(128, 160), rng(seed))[1].mask
        assert label(mask)[1] == 1 and not mask[[0, -1]].any()
        assert mask[:, 0].any() != mask[:, -1].any()
        sides.append(bool(mask[:, 0].any()))
    assert len(set(sides)) == 2


@pytest.mark.parametrize("seed", range(4))
def test_the_tube_has_two_bright_rims_and_a_darker_core(seed):
    """Rows through the middle part of the tube, which runs upwards there."""
    confounder = ChestTube(radius=0.02)
    added = confounder.edit(flat(512, 512, 1), rng(seed)).pixels[:, :, 0] - 0.25
    for row in added[200:260:10]:
        left, right = np.flatnonzero(row > 0.05)[[0, -1]]
        middle = (left + right) // 2
        core = row[middle]
        rims = row[left:middle].max(), row[middle : right + 1].max()
        assert core > 0.02 and min(rims) > 1.5 * core
        assert rims[0] == pytest.approx(rims[1], rel=0.15)
        assert 2 * 0.02 * 512 - 3 < right - left < 2 * 0.02 * 512 * 1.5 + 4
    assert 0.15 < added.max() <= 0.25


def test_amplitude_and_blur_of_the_tube():
    def largest(**options):
        return ChestTube(**options).edit(flat(256, 256, 3), rng(1)).pixels.max() - 0.25

    assert largest(amplitude=0.5) == pytest.approx(2 * largest())
    assert largest(blur=4.0) < largest() < largest(blur=0.0) <= 0.25
    sharp, soft = (ChestTube(blur=blur)(flat(256, 256), rng(1))[1].mask for blur in (0.0, 2.0))
    assert soft[sharp].all() and soft.sum() > sharp.sum()


# ECG leads


@pytest.mark.parametrize("shape", [(300, 300), (200, 400), (400, 200)], ids=str)
@pytest.mark.parametrize("n", [1, 3, 6])
def test_there_are_n_discs_and_each_has_a_wire_to_an_edge(shape, n):
    for seed in range(4):
        mask = EcgLead(n=n, radius=0.04)(flat(*shape), rng(seed))[1].mask
        discs, count = label(binary_opening(mask, np.ones((9, 9))))  # no crossing of wires holds such a square
        assert count == n
        for disc in range(1, n + 1):
            first, last, left, right = box(discs == disc)
            assert last - first == pytest.approx(0.08 * min(shape), abs=3) == right - left
        connected, parts = label(mask, np.ones((3, 3)))
        at_border = {*connected[[0, -1]].ravel(), *connected[:, [0, -1]].ravel()} - {0}
        assert at_border == set(range(1, parts + 1)), "no disc lies alone"


def test_brightness_of_the_leads():
    assert EcgLead()(flat(200, 200), rng())[0].max() == pytest.approx(0.25 + 0.7 * 0.75)
    assert EcgLead(value=0.0, alpha=1.0)(flat(200, 200), rng())[0].min() == 0


# lines


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.5, 6))
def test_distance_is_that_of_the_nearest_piece(seed, reach):
    corners = rng(seed).uniform(-5, 25, (4, 2))
    found = distance_to((16, 20), [corners], reach)
    for row in range(16):
        for column in range(20):
            point, nearest = np.array([row + 0.5, column + 0.5]), np.inf
            for start, stop in pairwise(corners):
                share = np.clip((point - start) @ (stop - start) / ((stop - start) @ (stop - start)), 0, 1)
                nearest = min(nearest, np.linalg.norm(point - start - share * (stop - start)))
            if nearest <= reach:
                assert found[row, column] == pytest.approx(nearest)
            else:
                assert found[row, column] > reach


def test_a_stroke_has_the_ink_of_its_length_and_width():
    line = np.array([[10.3, 10.7], [40.2, 80.1]])
    for width in (1.0, 2.5, 7.0):
        ink = stroke_coverage((60, 100), [line], width).sum()
        assert ink == pytest.approx(np.linalg.norm(line[1] - line[0]) * width + np.pi * width**2 / 4, rel=0.03)
    thin, one = (stroke_coverage((60, 100), [line], width) for width in (0.01, 1.0))
    np.testing.assert_array_equal(thin, one)


def test_a_curve_passes_its_points():
    points = np.array([[0.0, 1.0], [3.0, 2.0], [5.0, 8.0], [9.0, 4.0], [7.0, 1.0]])
    np.testing.assert_allclose(curve(points, 128)[::32], points, atol=1e-12)


def test_blades_are_half_planes():
    """Straight blades cover whole rows and columns; a turned one ends on its line; a broken pixel is covered in part."""
    straight = margins((40, 60), np.array([0.1, 0.2, 0.05, 0.0]), np.zeros(4), 1.0)
    expected = np.zeros((40, 60))
    expected[:4], expected[-8:], expected[:, :3] = 1, 1, 1
    np.testing.assert_allclose(straight, expected, atol=1e-12)
    assert margins((10, 10), np.array([0.25, 0, 0, 0]), np.zeros(4), 1.0)[:4, 0].tolist() == [1, 1, 0.5, 0]
    soft = margins((40, 40), np.array([0.5, 0, 0, 0]), np.zeros(4), 8.0)[:, 0]
    assert soft[20 - 4] == pytest.approx(1 - 0.5 / 8) and soft[15] == 1 and soft[24] == 0
    turn = np.deg2rad(10.0)
    turned = margins((100, 100), np.array([0.0, 0.0, 0.3, 0.0]), np.array([0, 0, turn, 0]), 1.0)
    for row in (5, 50, 95):  # covered pixels of a row end where the line through the middle of the edge does
        assert turned[row].sum() == pytest.approx(30 + (row + 0.5 - 50) * np.tan(turn), abs=0.02)


def test_margins_are_as_deep_as_was_asked_for():
    for seed in range(20):
        image = flat(200, 100)
        edited, info = Collimation(depth=0.2, tilt=0.0)(image, rng(seed))
        dark = edited == 0
        for line, length in ((dark[:, 50], 200), (dark[100], 100)):
            for side in (line, line[::-1]):
                assert 0.1 * length - 1 <= np.argmin(side) <= 0.2 * length
        assert set(np.unique(edited[~info.mask])) == {0.25}
