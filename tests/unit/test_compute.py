import sys
import tracemalloc
from types import ModuleType

import numpy as np
import pytest
import threadpoolctl
import torch

from crossgraft import compute
from crossgraft.compute import (
    available_cores,
    available_memory,
    limit_threads,
    measure_cost,
    require_memory,
    resolve_device,
    reuse_freed_memory,
)
from crossgraft.errors import MissingExtraError, OutOfMemoryError, UsageError
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


def test_products_may_have_fewer_threads_than_networks():
    np.ones((2, 2)) @ np.ones((2, 2))
    with limit_threads(2, blas=1):
        assert torch.get_num_threads() == 2
        assert {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"} == {1}


def test_libraries_are_looked_for_again_when_a_module_has_been_imported(monkeypatch):
    looks = []
    genuine = threadpoolctl.ThreadpoolController

    class Counting(genuine):
        def __init__(self):
            looks.append(len(sys.modules))
            super().__init__()

    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", Counting)
    with limit_threads(1):
        looks.clear()
    with limit_threads(1):
        assert looks == []
    monkeypatch.setitem(sys.modules, "brings_a_library", ModuleType("brings_a_library"))
    with limit_threads(1):
        assert len(looks) == 1
        assert all(pool["num_threads"] == 1 for pool in threadpoolctl.threadpool_info())


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


@pytest.fixture
def control_groups(tmp_path, monkeypatch):
    """Writes the files of the kernel: what this process is in, and the numbers of each group."""
    monkeypatch.setattr(compute, "_CONTROL_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(compute, "_OWN_CONTROL_GROUPS", tmp_path / "own")

    def write(own, files):
        (tmp_path / "own").write_text(own)
        for name, content in files.items():
            path = tmp_path / "cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    return write


def test_what_does_not_fit_into_memory_is_refused_with_both_numbers(control_groups):
    control_groups("0::/job\n", {"job/memory.max": "3000000\n", "job/memory.current": "1000000\n"})
    require_memory(2_000_000, what="It", advice="Do that.")
    with pytest.raises(OutOfMemoryError, match=r"^It needs 40\.0 GB of memory, but only 2 MB is available\. Do that\.$"):
        require_memory(40 * 10**9, what="It", advice="Do that.")


def test_the_narrowest_control_group_limits_the_memory(control_groups):
    stat = "cache 5\ntotal_inactive_file 700\ninactive_file 70\n"
    control_groups("0::/a/b\n", {"a/memory.max": "5000", "a/memory.current": "100", "a/memory.stat": stat})
    assert available_memory() == 4970
    control_groups("0::/a/b\n", {"a/b/memory.max": "max", "a/b/memory.current": "90"})
    assert available_memory() == 4970
    control_groups("0::/a/b\n", {"memory.max": "200", "memory.current": "500"})
    assert available_memory() == 0
    version_1 = {"limit": "memory/x/memory.limit_in_bytes", "usage": "memory/x/memory.usage_in_bytes"}
    control_groups("4:cpu,memory:/x\n1:name=systemd:/\n", {version_1["limit"]: "9000", version_1["usage"]: "1000"})
    control_groups("4:cpu,memory:/x\n1:name=systemd:/\n", {"memory/x/memory.stat": stat})
    assert available_memory() == 8700


def test_a_limit_of_address_space_counts_and_without_limits_the_machine_does(control_groups, monkeypatch):
    psutil, resource = pytest.importorskip("psutil"), pytest.importorskip("resource")
    control_groups("0::/nowhere\n", {})
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert 0 < available_memory() <= psutil.virtual_memory().total
    held = psutil.Process().memory_info().vms
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (held + 50_000_000, resource.RLIM_INFINITY))
    assert available_memory() <= 60_000_000


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
