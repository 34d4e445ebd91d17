"""What may be said with --window and --slices, and what is refused."""

import threading

import numpy as np
import pytest

from crossgraft.data.medical.display import HOUNSFIELD_WINDOWS, Window, parse_window
from crossgraft.data.medical.files import VolumeCache, parse_slices
from crossgraft.errors import UnreadableImageError, UsageError


@pytest.mark.parametrize(
    ("text", "num_slices", "chosen"),
    [
        (None, 9, [4]),
        ("middle", 8, [4]),
        ("Middle", 2, [1]),
        ("all", 3, [0, 1, 2]),
        ("1", 9, [4]),
        ("3", 9, [1, 4, 7]),
        ("4", 8, [1, 3, 5, 7]),
        ("20", 3, [0, 1, 2]),
        ("0.0", 11, [0]),
        ("0.3", 11, [3]),
        (".5", 11, [5]),
        ("1.0", 11, [10]),
        ("slice:1", 11, [0]),
        ("slice:11", 11, [10]),
        ("slice:12", 11, [11]),
        *[(text, 1, [0]) for text in ("middle", "all", "5", "0.9", "slice:7")],
    ],
)
def test_slices_are_chosen(text, num_slices, chosen):
    assert parse_slices(text).choose(num_slices) == chosen


@pytest.mark.parametrize("count", range(1, 40))
def test_a_count_spreads_without_repeating(count):
    chosen = parse_slices(str(count)).choose(37)
    assert len(chosen) == len(set(chosen)) == min(count, 37)
    assert np.ptp(np.diff(chosen)) <= 1 if len(chosen) > 1 else True
    assert chosen[0] + chosen[-1] in range(35, 39)  # as far from one end as from the other


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "nan", "most", "slice:0", "slice:", "slice:1.5", "3,4", "#12", "1e1"])
def test_other_slices_are_wrong_usage(text):
    with pytest.raises(UsageError, match="--slices is middle, all, a count"):
        parse_slices(text)


@pytest.mark.parametrize("name", HOUNSFIELD_WINDOWS)
def test_windows_have_names(name):
    policy = parse_window(name.upper())
    assert policy.window == Window(*HOUNSFIELD_WINDOWS[name]) and policy.is_hounsfield


@pytest.mark.parametrize(("text", "window"), [("40,400", Window(40.0, 400.0)), (" -600.5, 1e3", Window(-600.5, 1000.0))])
def test_windows_have_numbers(text, window):
    assert parse_window(text).window == window


@pytest.mark.parametrize("text", [None, "file", "FULL"])
def test_the_file_and_all_of_it(text):
    assert parse_window(text).kind == (text or "file").lower()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lungs", "Did you mean lung"),
        ("xyz", "Known names: lung, mediastinum"),
        ("40", "CENTER,WIDTH such as -600,1500; not 40"),
        ("1,2,3", "CENTER,WIDTH"),
        ("40,0", "must be above 0"),
        ("40,-5", "must be above 0"),
        ("nan,5", "finite"),
        ("1,inf", "finite"),
        ("", "CENTER,WIDTH"),
    ],
)
def test_other_windows_are_wrong_usage(text, message):
    with pytest.raises(UsageError, match=message):
        parse_window(text)


def test_a_volume_is_loaded_once_however_many_ask():
    cache, loads, seen = VolumeCache(), [], []
    together = threading.Barrier(6)

    def load():
        loads.append(1)
        return object()

    def ask():
        together.wait()
        seen.append(cache.get("volume", load))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1 and len(set(map(id, seen))) == 1


def test_only_the_last_volumes_are_kept():
    cache, loads = VolumeCache(2), []

    def load(key):
        return cache.get(key, lambda: loads.append(key) or key)

    for key in "aabbaccb":
        assert load(key) == key
    assert loads == list("abcb")


def test_a_damaged_volume_is_tried_once():
    cache, loads = VolumeCache(), []

    def load():
        loads.append(1)
        raise UnreadableImageError("x.nii", "it is damaged")

    for _ in range(3):
        with pytest.raises(UnreadableImageError, match=r"x\.nii: it is damaged"):
            cache.get("x", load)
    assert len(loads) == 1
