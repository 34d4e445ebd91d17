"""What a notebook shows, and what a stopped cell leaves behind."""

import threading

import numpy as np
import pytest

from crossgraft.data import dataset_from_arrays, make_split
from crossgraft.data.inspection import inspect_images


def test_a_dataset_is_a_short_escaped_table():
    images = np.zeros((24, 4, 4), np.uint8)
    groups = [f"p{i // 2}" for i in range(24)]
    dataset = dataset_from_arrays(images, [f"<{i % 12:02d}>" for i in range(24)], groups=groups, name="<script>x")
    html = dataset._repr_html_()
    assert "<script" not in html
    assert "&lt;00&gt; (2)" in html
    assert "and 2 more" in html
    assert "<tr><th>groups</th><td>12 (groups)</td></tr>" in html
    assert "24 × 4×4 grey 8-bit" in html
    assert html.count("<tr>") == 5


def test_a_split_is_a_short_table():
    split = make_split(np.arange(20) % 2, None, fractions={"train": 0.8, "test": 0.2}, seed=3)
    html = split._repr_html_()
    assert "<table><caption>Split of 20 images</caption><tr><th>train</th><td>16</td></tr>" in html
    assert "<th>val</th>" not in html
    assert "<th>seed</th><td>3</td>" in html


def test_a_stopped_cell_leaves_no_threads_even_while_its_error_is_kept():
    def decode(row):
        if row == 300:
            raise KeyboardInterrupt
        return np.full((2, 2, 1), row % 256, np.uint8)

    with pytest.raises(KeyboardInterrupt) as kept:
        inspect_images([str(i) for i in range(600)], decode, num_threads=2)
    assert kept.value is not None
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("decode")] == []
