"""The estimate before the start."""

import pytest

from crossgraft.features.extract import CostEstimate, estimate_cost, seconds_a_row
from crossgraft.features.passes import BatchLoader
from crossgraft.progress import Reporter, TypicalClock
from crossgraft.progress.reporter import ThreadTimes

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


def test_it_looks_at_few_images():
    net = Net()
    backbone = make_backbone(net)
    loader = BatchLoader(Images(8), backbone.preprocessing, [range(8)], batch_size=8, reporter=Reporter())
    found = estimate_cost(backbone, loader, num_left=5, num_samples=5)
    assert net.calls[:2] == [1, 1] and max(net.calls) <= 8 and len(net.calls) <= 13
    assert found.num_bytes == 5 * (5 + 3) * 4
    assert found.seconds > 0


class Looks:
    """Moves its own clock: some seconds a call, some a row, and some the first time that a size is seen."""

    def __init__(self, *, a_call=0.0, a_row=0.0, first=0.0, disturbed=()):
        self.a_call, self.a_row, self.first, self.disturbed = a_call, a_row, first, disturbed
        self.now, self.sizes, self.times = 0.0, [], None

    def __call__(self, number):
        self.now += self.a_call + self.a_row * number + (0 if number in self.sizes else self.first)
        self.now += 100 if len(self.sizes) in self.disturbed else 0
        self.sizes.append(number)

    def measure(self, *, most, num_rows):
        return seconds_a_row(
            self, most=most, num_rows=num_rows, clock=TypicalClock(clock=lambda: self.now, times=lambda: self.times)
        )


def test_batches_grow_to_those_of_the_real_work_and_their_first_look_does_not_count():
    looks = Looks(a_call=0.01, a_row=0.0001, first=0.02)
    assert looks.measure(most=64, num_rows=100_000) == pytest.approx(0.01 / 64 + 0.0001)
    assert list(dict.fromkeys(looks.sizes)) == [1, 4, 16, 64]


def test_one_disturbed_try_does_not_count():
    assert Looks(a_row=0.01, disturbed={4}).measure(most=1, num_rows=10_000) == pytest.approx(0.01)


@pytest.mark.parametrize("disturbed", [1, 2])
def test_a_disturbed_look_at_one_row_keeps_no_batch_from_growing(disturbed):
    looks = Looks(a_call=0.01, a_row=0.0001, disturbed={disturbed})
    assert looks.measure(most=64, num_rows=100_000_000) == pytest.approx(0.01 / 64 + 0.0001)


@pytest.mark.parametrize("num_rows", [20, 600, 100_000])
@pytest.mark.parametrize("a_row", [0.001, 0.1, 10])
def test_timing_costs_little_of_the_work_once_that_is_long(a_row, num_rows):
    looks = Looks(a_row=a_row)
    looks.measure(most=64, num_rows=num_rows)
    assert looks.now <= max(4 * a_row, 0.45, 0.13 * a_row * num_rows)
    assert looks.now <= max(4 * a_row, 3)


def test_timing_takes_no_longer_than_half_of_a_short_work():
    looks = Looks(a_row=0.003)
    assert looks.measure(most=32, num_rows=40) == pytest.approx(0.003)
    assert looks.now <= 0.003 + 40 * 0.003 / 2  # one first look is not counted


def test_on_a_busy_machine_as_much_is_looked_at_and_usual_waiting_counts():
    idle, busy = (Looks(a_call=0.01, a_row=0.001 * slowdown) for slowdown in (1, 10))
    busy.times = ThreadTimes(1.0, 9.0)
    busy.a_call *= 10
    assert busy.measure(most=64, num_rows=600) == pytest.approx(10 * idle.measure(most=64, num_rows=600))
    assert busy.sizes == idle.sizes
