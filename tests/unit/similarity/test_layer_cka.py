"""All pairs of layers: exactly, and in minibatches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.errors import DataError, NotApplicable, UsageError
from crossgraft.similarity import LayerCka, MinibatchCka, linear_cka, minibatch_cka


def layers(n, widths, seed=0, offset=0.0):
    random = np.random.default_rng(seed)
    first = random.standard_normal((n, 3))
    return {
        f"layer{i}": first @ random.standard_normal((3, d)) + random.standard_normal((n, d)) + offset * i
        for i, d in enumerate(widths)
    }


def parts_of(side, rows):
    return {name: values[rows] for name, values in side.items()}


def literal_hsic(k, m):
    """HSIC₁ with sums over different images, written out."""
    n = len(k)
    k, m = (side - np.diag(np.diag(side)) for side in (k, m))
    one = np.ones(n, dtype=np.longdouble)
    last = one @ k @ one * (one @ m @ one) / ((n - 1) * (n - 2))
    return (np.trace(k @ m) + last - 2 / (n - 2) * (one @ k @ m @ one)) / (n * (n - 3))


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    seed=st.integers(0, 99),
    offset=st.sampled_from([0.0, 1e4]),
    exponent=st.sampled_from([-60, 0, 60]),
)
def test_any_batches_give_linear_cka_of_all_images(sizes, seed, offset, exponent):
    n = 12 + sum(sizes)
    a, b = layers(n, (3, 8), seed, offset), layers(n, (5, 1, 4), seed + 1)
    a["layer1"] = a["layer1"] * 10.0**exponent
    stream = LayerCka()
    for rows in np.split(np.arange(n), np.cumsum(sizes)):
        stream.update(parts_of(a, rows), parts_of(b, rows))
    for debiased in (False, True):
        found = stream.compute(debiased=debiased)
        expected = [[linear_cka(one, other, debiased=debiased) for other in b.values()] for one in a.values()]
        np.testing.assert_allclose(found.matrix, expected, rtol=1e-8, atol=1e-9)
        assert (found.rows, found.columns, found.n) == (tuple(a), tuple(b), n)


@settings(max_examples=20, deadline=None)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6), seed=st.integers(0, 99), by_images=st.booleans())
def test_minibatches_are_ratios_of_mean_hsic(sizes, seed, by_images):
    sizes = [6, *sizes]
    n = sum(sizes)
    a, b = layers(n, (3, 8), seed, 100.0), layers(n, (5, 2), seed + 1)
    means = MinibatchCka(weight="images" if by_images else "batches")
    sums = np.zeros((3, 2, 2))
    for rows in np.split(np.arange(n), np.cumsum(sizes)[:-1]):
        means.update(parts_of(a, rows), parts_of(b, rows))
        if len(rows) < 4:
            continue
        for i, one in enumerate(a.values()):
            for j, other in enumerate(b.values()):
                k, m = (side[rows].astype(np.longdouble) @ side[rows].T.astype(np.longdouble) for side in (one, other))
                weight = len(rows) if by_images else 1
                sums[:, i, j] += weight * np.array([literal_hsic(k, m), literal_hsic(k, k), literal_hsic(m, m)])
    found = means.compute()
    np.testing.assert_allclose(found.matrix, np.minimum(sums[0] / np.sqrt(sums[1] * sums[2]), 1), rtol=1e-7, atol=1e-9)
    left_out = sum(size for size in sizes if size < 4)
    assert found.n == n - left_out and bool(found.warnings) == bool(left_out)


@pytest.mark.parametrize("kind", [LayerCka, MinibatchCka])
def test_a_constant_layer_is_named_and_not_nan(kind):
    a, b = layers(9, (3, 2)), layers(9, (4, 2), 1)
    a["dead"], b["dead"] = np.full((9, 5), 0.1), np.zeros((9, 1))
    found = kind().update(a, b).compute()
    assert found.left_out_rows == found.left_out_columns == {"dead": "all images have the same features"}
    assert found.matrix.shape == (2, 2) and np.isfinite(found.to_frame().to_numpy()).all()
    revived = kind().update(a, b)
    for side in (a, b):
        side["dead"] = layers(9, (side["dead"].shape[1],), 7)["layer0"]
    assert revived.update(a, b).compute().matrix.shape == (3, 3)


@pytest.mark.parametrize("kind", [LayerCka, MinibatchCka])
def test_what_cannot_be_added_is_named(kind):
    a, b = layers(9, (3, 2)), layers(9, (4,), 1)
    with pytest.raises(NotApplicable, match="at least 4 images"):
        kind().compute()
    with pytest.raises(NotApplicable, match="at least 4 images"):
        kind().update(parts_of(a, slice(3)), parts_of(b, slice(3))).compute()
    with pytest.raises(DataError, match="at least one layer"):
        kind().update({}, b)
    with pytest.raises(DataError, match="CKA of layer1 compares features of the same images"):
        kind().update({**a, "layer1": a["layer1"][:8]}, b)
    with pytest.raises(DataError, match="some of layer0 are NaN or infinite"):
        kind().update(a, {"layer0": np.where(b["layer0"] > 1, np.inf, b["layer0"])})
    with pytest.raises(DataError, match="others than those of the batch before"):
        kind().update(a, b).update(b, b)
    with pytest.raises(UsageError, match="'batches' or 'images'"):
        MinibatchCka(weight="rows")


def test_memory_of_the_exact_form_is_known_before():
    assert LayerCka.needs_bytes([3, 4], [5]) == 8 * (7 * 5 + 9 + 16 + 25)


def test_minibatches_of_huge_features_do_not_overflow():
    x, y = layers(40, (6,))["layer0"].astype(np.float32), layers(40, (5,), 1)["layer0"].astype(np.float32)
    expected = minibatch_cka(x, y, batch_size=10)
    assert minibatch_cka(x * np.float32(1e20), y * np.float32(1e-20), batch_size=10) == pytest.approx(expected, rel=1e-4)
