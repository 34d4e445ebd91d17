import tracemalloc

import numpy as np
import pytest
import torch

from crossgraft.compute import available_cores, limit_threads, measure_cost, resolve_device, reuse_freed_memory
from crossgraft.errors import MissingExtraError, UsageError
from crossgraft.optional import require


def test_threads_are_limited_inside_and_restored_after():
    before = torch.get_num_threads()
    with limit_threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
    with pytest.raises(ValueError, match="inside"), limit_threads(1):
        raise ValueError("inside")
    assert torch.get_num_threads() == before
    assert available_cores() >= 1


def page_faults_of_large_arrays():
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(2**23)  # 64 MiB, above every threshold that glibc chooses by itself
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_freed_memory_is_used_again_inside_and_given_back_after():
    psutil = pytest.importorskip("psutil")
    with reuse_freed_memory() as works:
        if not works:
            pytest.skip("not glibc")
        np.ones(2**23)
        with reuse_freed_memory():
            inside = page_faults_of_large_arrays()
        after_inner_block = page_faults_of_large_arrays()
        held = psutil.Process().memory_info().rss
    given_back = held - psutil.Process().memory_info().rss
    outside = page_faults_of_large_arrays()
    assert max(inside, after_inner_block) < outside / 10
    assert given_back > 2**25


def test_devices_are_never_replaced_silently(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert resolve_device("auto") == resolve_device("cpu") == "cpu"
    with pytest.raises(UsageError, match="cuda:1 is not available"):
        resolve_device("cuda:1")
    with pytest.raises(UsageError, match="Unknown device: gpu"):
        resolve_device("gpu")


def test_cost_counts_the_arrays_made_inside():
    with measure_cost() as cost:
        np.ones(1_000_000)
    assert 8_000_000 <= cost.peak_bytes < 9_000_000
    assert cost.seconds > 0
    with measure_cost() as outer, measure_cost() as inner:
        np.ones(1_000_000)
    assert inner.peak_bytes >= 8_000_000
    assert outer.seconds >= inner.seconds


def test_a_missing_package_names_the_extra():
    assert require("json", extra="none", needed_for="Nothing").__name__ == "json"
    with pytest.raises(MissingExtraError, match=r"DICOM needs the package no_such_module.*crossgraft\[medical\]"):
        require("no_such_module", extra="medical", needed_for="DICOM")


def test_memory_that_was_taken_before_is_not_counted():
    tracemalloc.start()
    try:
        before = np.ones(1_000_000)
        with measure_cost() as cost:
            np.ones(1000)
        assert len(before) == 1_000_000
        assert 8_000 <= cost.peak_bytes < 1_000_000
    finally:
        tracemalloc.stop()
