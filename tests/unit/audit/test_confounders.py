"""What every confounder keeps: shape, type and range, the same edit for the same random numbers, nothing at strength 0."""

import numpy as np
import pytest

from crossgraft.choice import choose, option_fields, spell
from crossgraft.edit.confounders import CONFOUNDERS
from crossgraft.edit.confounders._confounder import Confounder
from crossgraft.errors import DataError, UsageError

SHAPES = [(40, 48), (48, 40, 1), (40, 48, 3), (3, 40, 48)]
DTYPES = [np.uint8, np.uint16, np.float32, np.float64]
EVERY = [name for name, _ in CONFOUNDERS]


def picture(shape, dtype, seed=0):
    """Smooth shapes and some noise, not near the ends of the range."""
    rng = np.random.default_rng(seed)
    side = np.hypot(*np.meshgrid(np.linspace(-1, 1, 48), np.linspace(-1, 1, 48)))
    values = 0.25 + 0.4 * np.exp(-3 * np.resize(side, shape) ** 2) + 0.05 * rng.random(shape)
    return (values * np.iinfo(dtype).max).astype(dtype) if np.issubdtype(dtype, np.integer) else values.astype(dtype)


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_edit_keeps_shape_type_and_range(name, shape, dtype):
    confounder, image = CONFOUNDERS.get(name)(), picture(shape, dtype)
    before = image.copy()
    edited, info = confounder(image, rng())
    assert edited.shape == image.shape and edited.dtype == image.dtype
    top = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else 1
    assert edited.min() >= 0 and edited.max() <= top
    np.testing.assert_array_equal(image, before)
    np.testing.assert_allclose(info.residual, edited.astype(float) - image.astype(float))
    assert info.rms == pytest.approx(np.sqrt(np.mean(info.residual**2)))
    assert info.params["strength"] == 1.0
    if info.mask is not None:
        height, width = (n for n in shape if n not in (1, 3))
        assert info.mask.shape == (height, width)
        touched = info.residual if info.residual.ndim == 2 else info.residual.reshape(shape)
        by_pixel = touched if touched.ndim == 2 else np.abs(touched).sum(axis=0 if shape[0] == 3 else 2)
        assert not by_pixel[~info.mask].any()
    assert (CONFOUNDERS.get(name).scope == "local") == (info.mask is not None)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_strength_0_leaves_every_bit(name, dtype):
    image = picture((40, 48, 3), dtype)
    edited, info = CONFOUNDERS.get(name)()(image, rng(), strength=0.0)
    np.testing.assert_array_equal(edited, image)
    assert info.rms == 0 and info.share_changed == 0


@pytest.mark.parametrize("strength", [1e308, 2e6, float("inf"), float("nan"), -1.0])
def test_a_strength_that_no_image_can_show_is_refused(strength):
    with pytest.raises(UsageError, match="must be at least 0 and at most 1,000,000"):
        CONFOUNDERS.get("tag")()(picture((40, 48), np.float64), rng(), strength=strength)


@pytest.mark.parametrize("name", EVERY)
def test_the_same_random_numbers_give_the_same_edit(name):
    confounder, image = CONFOUNDERS.get(name)(), picture((40, 48), np.float64)
    first, again, other = (confounder(image, rng(seed))[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert confounder.is_stochastic == bool((first != other).any())
    if confounder.is_stochastic:
        with pytest.raises(UsageError, match="Give it a generator"):
            confounder(image)


@pytest.mark.parametrize("name", EVERY)
def test_it_changes_a_picture_that_has_detail(name):
    _, info = CONFOUNDERS.get(name)()(picture((40, 48), np.float64), rng())
    assert info.share_changed > 0


@pytest.mark.parametrize("name", EVERY)
def test_what_is_known_of_it(name):
    kind = CONFOUNDERS.get(name)
    assert issubclass(kind, Confounder) and kind.__doc__.strip()
    assert kind.title and kind.reference and kind.leaf in ("demographic", "anatomical", "external", "imaging")
    assert kind.name == name and choose(CONFOUNDERS, name) == kind() and spell(kind()) == name
    for each in option_fields(kind):
        assert each.metadata.get("unit"), f"{each.name} of {name} has no unit"
        assert f"{each.name}:" in kind.__doc__, f"{each.name} of {name} is not documented"


def test_bad_images():
    confounder = CONFOUNDERS.get("low_pass")()
    for image, said in (
        (np.zeros((10, 10, 2)), "must be"),
        (np.zeros(10), "must be"),
        (np.zeros((4, 40)), "too small"),
        (np.full((10, 10), np.nan), "NaN"),
        (np.full((10, 10), 7.0), "out of its range"),
        (np.zeros((10, 10), np.int64), "has no range that is known"),
    ):
        with pytest.raises(DataError, match=said):
            confounder(image)
    with pytest.raises(UsageError, match="strength"):
        confounder(np.zeros((10, 10)), strength=-1.0)
    edited, _ = confounder(np.full((10, 10), 1000, np.int16), value_range=(-1024, 3071))
    assert edited.dtype == np.int16 and (edited == 1000).all()


def test_several_numbers_are_written_as_a_list():
    tag = choose(CONFOUNDERS, "tag:0.1,xy=[0.3,0.4],text=L")
    assert (tag.size, tag.xy, tag.text) == (0.1, (0.3, 0.4), "L")
    assert spell(tag) == "tag:size=0.1,xy=[0.3,0.4],text=L" and choose(CONFOUNDERS, spell(tag)) == tag
