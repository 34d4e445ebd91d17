"""Linear CKA, at once and in one pass, against the numbers of other implementations (see linear_cka.json)."""

import json
from pathlib import Path

import numpy as np
import pytest

from crossgraft.similarity import StreamingCka, linear_cka

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "linear_cka.json").read_text(encoding="utf-8"))["values"]


@pytest.fixture(scope="module")
def arrays():
    with np.load(HERE / "linear_cka.npz", allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


@pytest.mark.parametrize(
    ("key", "names", "debiased"),
    [
        ("cka_linear.anatome", "X Y", False),
        ("cka_linear.resi", "X Y", False),
        ("cka_debiased.anatome", "X Y", True),
        ("cka_unbiased.ref", "X Y", True),
        ("cka_linear_wide.anatome", "Xw Yw", False),
        ("cka_linear_wide.resi", "Xw Yw", False),
        ("cka_debiased_wide.anatome", "Xw Yw", True),
        ("cka_unbiased_wide.ref", "Xw Yw", True),
    ],
)
def test_at_once(arrays, key, names, debiased):
    x, y = (arrays[name] for name in names.split())
    assert linear_cka(x, y, debiased=debiased) == pytest.approx(GOLDEN[key], rel=1e-13)
    assert StreamingCka().update(x, y).compute(debiased=debiased) == pytest.approx(GOLDEN[key], rel=1e-13)


@pytest.mark.parametrize(("suffix", "shifts"), [("", (0, 0)), ("_shifted", (100, -50))])
def test_in_one_pass(arrays, suffix, shifts):
    stream = StreamingCka()
    for rows in np.array_split(np.arange(512), [1, 60, 61, 300]):
        stream.update(arrays["X"][rows] + shifts[0], arrays["Y"][rows] + shifts[1])
    assert stream.compute() == pytest.approx(GOLDEN[f"cka_linear_stream{suffix}.ref"], rel=1e-12)
    assert stream.compute(debiased=True) == pytest.approx(GOLDEN[f"cka_debiased_stream{suffix}.ref"], rel=1e-12)


def test_a_stream_is_no_mean_over_batches(arrays):
    stream = StreamingCka()
    for rows in np.array_split(np.arange(512), 8):
        stream.update(arrays["X"][rows], arrays["Y"][rows])
    assert abs(stream.compute(debiased=True) - GOLDEN["cka_minibatch_b64.torch_cka_f64"]) > 1e-4
