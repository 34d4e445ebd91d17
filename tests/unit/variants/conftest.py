"""A tiny network of the user's own in the current folder, and images that it can nearly learn."""

import numpy as np
import pytest

from crossgraft.data import dataset_from_arrays
from crossgraft.variants import curves
from support.few_pages import leave_out_pages


@pytest.fixture
def squares():
    """Noise that is a little brighter from class to class; six images a group."""
    rng = np.random.default_rng(0)
    of_row = np.arange(90) % 2
    pixels = rng.integers(0, 200, (90, 16, 16, 3)) + 12 * of_row[:, None, None, None]
    return dataset_from_arrays(pixels.astype(np.uint8), of_row, groups=np.arange(90) // 6)


@pytest.fixture(autouse=True)
def few_pages(request, monkeypatch):
    """Pages of single trainings are tested elsewhere and take half the time; that of the comparison is written where asked."""
    leave_out_pages(monkeypatch, of_comparisons="page" not in request.fixturenames)
    monkeypatch.setattr(curves, "ALPHAS", (0.0, 0.5, 1.0))


@pytest.fixture
def page():
    """Asks for the page of the comparison."""
