"""The estimate before the start."""

import pytest

from crossgraft.features.batches import BatchLoader
from crossgraft.features.cost import CostEstimate, estimate_cost
from crossgraft.progress import Reporter

from .conftest import Images, Net, make_backbone


@pytest.mark.parametrize(
    ("seconds", "num_bytes", "words"),
    [
        (0.2, 10, "about 1 s, 1 kB"),
        (14.4, 640_000, "about 14 s, 640 kB"),
        (42.3, 12_400_000, "about 40 s, 12 MB"),
        (200.0, 3_000_000_000, "about 3 min 20 s, 3.0 GB"),
        (9000.0, 1, "about 2.5 h, 1 kB"),
    ],
)
def test_in_words(seconds, num_bytes, words):
    assert CostEstimate(seconds, num_bytes).describe() == words


@pytest.mark.parametrize(("number", "looked_at"), [(5, 1), (200, 3), (5000, 8)])
def test_it_looks_at_few_images(number, looked_at):
    net = Net()
    backbone = make_backbone(net)
    loader = BatchLoader(Images(8), backbone.preprocessing, [range(8)], batch_size=8, reporter=Reporter())
    found = estimate_cost(backbone, loader, num_left=number, num_samples=number)
    assert net.calls == [1, looked_at, looked_at]
    assert found.num_bytes == number * (5 + 3) * 4
    assert found.seconds > 0
