import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.errors import DataError, NotApplicable
from crossgraft.similarity import StreamingCka, linear_cka


def pair(n=90, widths=(7, 5), seed=0, offset=0.0, scale=1.0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, widths[0])) * np.arange(1, widths[0] + 1) ** -0.5
    return (x + offset) * scale, np.tanh(x[:, :1]) + rng.standard_normal((n, widths[1])) - offset


def streamed(x, y, sizes):
    stream = StreamingCka()
    for rows in np.split(np.arange(len(x)), np.cumsum(sizes)):
        stream.update(x[rows], y[rows])
    return stream


def both(stream):
    return [stream.compute(), stream.compute(debiased=True)]


def expected(x, y):
    return pytest.approx([linear_cka(x, y), linear_cka(x, y, debiased=True)], rel=1e-10, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 2, 17]), max_size=12),
    offset=st.sampled_from([0.0, 1e4, -7.0]),
    exponent=st.sampled_from([-200, -12, 0, 12, 150]),
    seed=st.integers(0, 99),
)
def test_any_batches_give_the_number_of_all_images(sizes, offset, exponent, seed):
    x, y = pair(seed=seed, offset=offset, scale=10.0**exponent)
    assert both(streamed(x, y, sizes)) == expected(x, y)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=90, max_size=90), st.sampled_from([0.0, 1e4]), st.booleans())
def test_streams_of_any_parts_merge_exactly(parts, offset, drifts):
    """Also parts whose means, and so their shifts, are far apart, and an empty one."""
    x, y = pair(offset=offset)
    parts = np.array(parts)
    x = x + 50.0 * parts[:, None] * drifts
    streams = [StreamingCka().update(x[parts == part], y[parts == part]) for part in range(5)]
    before = [stream.n for stream in streams]
    total = StreamingCka()
    for stream in streams:
        assert total.merge(stream) is total
    assert total.n == 90
    assert [stream.n for stream in streams] == before
    assert both(total) == expected(x, y)
    first = streams[3].merge(streams[0]).merge(streams[1]).merge(streams[2])
    assert both(first) == expected(x, y)


@pytest.mark.parametrize("reach", [30, 120])
def test_scales_that_grow_by_orders_of_magnitude(reach):
    """Fourth powers of 10¹²⁰ are more than a float64 holds."""
    x, y = pair()
    x = x * np.logspace(-reach, reach, 90)[:, None]
    half = StreamingCka().update(x[:45], y[:45])
    assert both(half.merge(StreamingCka().update(x[45:], y[45:]))) == expected(x, y)
    asked = StreamingCka().update(x[:45], y[:45])
    asked.compute()  # multiplies what waits, so that the scale of the sums has to grow
    assert both(asked.update(x[45:], y[45:])) == expected(x, y)


def test_more_images_than_a_block_and_a_sum_of_blocks():
    x, y = pair(n=9000, widths=(3, 4), offset=5.0)
    assert both(StreamingCka().update(x, y)) == expected(x, y)
    assert both(streamed(x, y, [700, 1, 2000])) == expected(x, y)


def test_asking_in_between_changes_nothing():
    x, y = pair()
    stream = StreamingCka().update(x[:50], y[:50])
    assert both(stream) == expected(x[:50], y[:50])
    assert both(stream.update(x[50:], y[50:])) == expected(x, y)
    assert stream.n == 90


@pytest.mark.parametrize("offset", [0, 100])
def test_single_precision_is_near(offset):
    x, y = (part.astype(np.float32) for part in pair(n=2000, widths=(40, 30), offset=offset))
    found = [StreamingCka().update(x, y), StreamingCka().update(torch.from_numpy(x), torch.from_numpy(y))]
    for stream in found:
        assert stream.compute() == pytest.approx(linear_cka(x, y), abs=3e-7)
        assert stream.compute(debiased=True) == pytest.approx(linear_cka(x, y, debiased=True), abs=3e-7)
    huge = StreamingCka().update(x[:, :5] * np.float32(1e25), y)
    assert huge.compute() == pytest.approx(linear_cka(x[:, :5], y), abs=1e-6)


def test_single_precision_is_not_summed_in_single():
    """Of whole numbers around 0 products of some blocks are exact in float32, in any order; sums of all images are not."""
    x, y = (np.random.default_rng(seed).integers(-40, 41, (60_000, 3)).astype(np.float32) for seed in (0, 1))
    y += x[:, :1] // 2
    x[0] = y[0] = 0
    stream = StreamingCka().update(x[:1], y[:1]).update(x[1:], y[1:])  # of one row 0 the shift is 0
    assert stream.compute() == pytest.approx(linear_cka(x, y), rel=1e-12)


def test_single_precision_becomes_double_when_double_comes():
    x, y = pair(offset=0.1)
    single = x[:30].astype(np.float32), y[:30].astype(np.float32)
    stream = StreamingCka().update(*single).update(x[30:], y[30:])
    x[:30], y[:30] = single
    assert stream.compute() == pytest.approx(linear_cka(x, y), abs=1e-7)
    late = StreamingCka.from_state_dict(StreamingCka().update(x[30:], y[30:]).state_dict())  # its shift is no float32
    assert both(late.update(*single)) == expected(x, y)


def test_a_stream_goes_on_after_it_was_sent():
    x, y = pair(offset=3.0)
    stream = StreamingCka().update(x[:40], y[:40])
    state = {name: torch.as_tensor(value) for name, value in stream.state_dict().items()}
    for sent in (
        pickle.loads(pickle.dumps(stream)),
        copy.deepcopy(stream),
        StreamingCka.from_state_dict(stream.state_dict()),
        StreamingCka.from_state_dict(state),
    ):
        assert both(sent.update(x[40:], y[40:])) == expected(x, y)
    assert stream.n == 40
    assert StreamingCka.from_state_dict(StreamingCka().state_dict()).update(x, y).n == 90
    with pytest.raises(DataError, match=r"xy\.matrix is missing"):
        StreamingCka.from_state_dict({name: value for name, value in state.items() if name != "xy.matrix"})


def test_a_batch_that_is_refused_leaves_the_stream_as_it_was():
    x, y = pair()
    stream = StreamingCka()
    for first in (x[:20] * np.nan, x[:20] + np.where(np.arange(20) == 7, np.inf, 0)[:, None]):
        with pytest.raises(DataError, match="some of x are NaN or infinite"):
            stream.update(first, y[:20])
    stream.update(x, y)
    with pytest.raises(DataError, match="some of y are NaN or infinite"):
        stream.update(x[:3], y[:3] * np.array([[1], [np.nan], [1]]))
    with pytest.raises(DataError, match="7 and 5 wide so far, and are 6 and 5 now"):
        stream.update(x[:, :6], y)
    with pytest.raises(DataError, match="same images"):
        stream.update(x[:4], y[:5])
    with pytest.raises(DataError, match="cannot be merged"):
        stream.merge(StreamingCka().update(y, x))
    assert both(stream) == expected(x, y)


def test_what_has_no_meaning_is_named():
    x, y = pair()
    with pytest.raises(NotApplicable, match="at least 2 images, found 0"):
        StreamingCka().compute()
    with pytest.raises(NotApplicable, match="Debiased CKA needs at least 4 images, found 3"):
        StreamingCka().update(x[:3], y[:3]).compute(debiased=True)
    constant = np.full((90, 4), 0.1)
    for debiased in (False, True):
        with pytest.raises(NotApplicable, match="same features in y"):
            streamed(x, constant, [1, 40]).compute(debiased=debiased)
