"""Threads, child processes, device, seconds and memory."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import multiprocessing.connection
import os
import sys
import threading
import time
import tracemalloc
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from crossgraft.errors import OutOfMemoryError, UsageError
from crossgraft.repeatable import repeatable_convolutions

if TYPE_CHECKING:
    import torch
    from threadpoolctl import ThreadpoolController
    from torch import Tensor


def available_cores() -> int:
    """Cores that this process may use (a container or job scheduler may grant fewer than the machine has)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def without_cycle_collection() -> Generator[None]:
    """Keep Python from looking for cycles: among 100 000 records, and while torch is imported, that takes a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def nothing_imported_unasked() -> Generator[None]:
    """Child processes that start inside import neither modules of the current folder nor the user's script.

    Python starts them with ``-c``, which looks for modules in the current folder first: a ``socket.py`` among somebody's
    images would run. They need nothing from the script either. Importing it would run it again if it has no
    ``if __name__ == "__main__":``, and would fail if it came from stdin.
    """
    script, safe_path = sys.modules["__main__"], os.environ.get(_SAFE_PATH)
    sys.modules["__main__"] = ModuleType("__main__")
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        sys.modules["__main__"] = script
        if safe_path is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = safe_path


_SAFE_PATH = "PYTHONSAFEPATH"


def end_with_parent() -> None:
    """In a child process: end when the parent is gone. A parent that is killed cannot end its children.

    Without it they would wait for work, or compute for nobody.
    """
    threading.Thread(target=_wait_for_the_end_of_the_parent, daemon=True).start()


def _wait_for_the_end_of_the_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


@contextmanager
def limit_threads(num_threads: int, *, blas: int | None = None) -> Generator[None]:
    """Limit BLAS, OpenMP and torch to ``num_threads`` inside the block, then restore what was there.

    Without a limit, two libraries that each start one thread a core slow each other down by orders of magnitude on a
    loaded machine. On a GPU, ``repeatable_convolutions`` holds, too: every command and every pass over images is in here.

    Args:
        num_threads: At least 1.
        blas: Another number for products and decompositions of numpy and scipy. Their threads wait for each other without
            giving up the core: beside any other work, a decomposition by two takes up to ten times as long as by one.
    """
    import torch

    before = torch.get_num_threads()
    limits = {"blas": num_threads if blas is None else blas, "openmp": num_threads}
    with _thread_pools(frozenset(sys.modules)).limit(limits=limits), repeatable_convolutions():
        torch.set_num_threads(num_threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


@lru_cache(maxsize=1)
def _thread_pools(_modules: frozenset[str]) -> ThreadpoolController:
    """Those of all loaded libraries. Looking for these takes milliseconds; only an import brings more of them."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # numbers of glibc's malloc.h
_OF_A_BLOCK = {_TRIM_THRESHOLD: 2**31 - 1, _TOP_PAD: 2**26, _MMAP_THRESHOLD: 2**30}
_AFTERWARDS = {_TRIM_THRESHOLD: 2**26, _TOP_PAD: 2**17, _MMAP_THRESHOLD: 2**25}  # where glibc's own adaptation ends
_blocks_open = 0
_counting = threading.Lock()


@contextmanager
def reuse_freed_memory() -> Generator[bool]:
    """Keep freed memory for the next layer inside the block, instead of giving it back to the system; True if that works here.

    A forward pass allocates and frees the output of each layer. With glibc's defaults large blocks go back to the system each
    time, and the kernel clears every page again: 4 to 58 % of the CPU seconds in ``benchmarks/memory_reuse.py``. The block raises
    malloc's thresholds, which hold for the whole process; at the end of the outermost block they are lowered and what is free is
    given back. Elsewhere (macOS, Windows, musl) nothing happens.

    Cost: microseconds; the process stays as large as its largest moment inside, which was up to a quarter larger than without,
    because free memory has gaps.

    Source: mallopt(3) of the Linux manual.
    """
    global _blocks_open
    libc = _glibc()
    if libc is None:
        yield False
        return
    with _counting:
        if _blocks_open == 0:
            _set_thresholds(libc, _OF_A_BLOCK)
        _blocks_open += 1
    try:
        yield True
    finally:
        with _counting:
            _blocks_open -= 1
            if _blocks_open == 0:
                _set_thresholds(libc, _AFTERWARDS)
                libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    """The C library of this process, if it is glibc."""
    if os.name != "posix":
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "gnu_get_libc_version") and hasattr(libc, "mallopt") else None


def _set_thresholds(libc: ctypes.CDLL, thresholds: dict[int, int]) -> None:
    for number, size in thresholds.items():
        libc.mallopt(number, size)


def require_memory(num_bytes: int, *, what: str, advice: str) -> None:
    """Refuse what announces more memory than there is, before any of it is taken.

    Args:
        num_bytes: As the header of a file announces it; may be any number, however large.
        what: What needs the memory, as the subject of the message.
        advice: What to do, one sentence or more.

    Raises:
        OutOfMemoryError: It does not fit; the message has both numbers.
    """
    available = available_memory()
    if num_bytes > available:
        raise OutOfMemoryError(
            f"{what} needs {rounded_size(num_bytes)} of memory, but only {rounded_size(available)} is available. {advice}"
        )


_WORTH_ASKING = 2**27
"""Bytes from which on memory is asked for; a pool of eight threads takes at most a gigabyte without."""

_one_large_image = threading.Lock()


@contextmanager
def room_for(num_bytes: int, what: str, *, copies: int = 4) -> Generator[None]:
    """Decode in this block. Large images come one at a time: the memory that was free when it was asked for still is then.

    Args:
        num_bytes: Size of the decoded samples according to the header; any number.
        what: Subject of the message, such as "a picture of 9×9 pixels".
        copies: Number of arrays of that size at a time. A decoder holds a picture of its own, the array that is
            made of it, and up to two conversions.

    Raises:
        OutOfMemoryError: There is less memory than that; the message has both numbers.
    """
    needed = copies * num_bytes
    if needed < _WORTH_ASKING:
        yield
        return
    with _one_large_image:
        require_memory(needed, what=what, advice="Cut or shrink it.")
        yield


def available_memory() -> int:
    """Bytes that this process can still take without swapping, within the limits of its container or job scheduler."""
    import psutil

    free = [psutil.virtual_memory().available, *_free_in_control_groups()]
    if os.name == "posix":
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            free.append(limit - psutil.Process().memory_info().vms)
    return max(0, min(free))


_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_OWN_CONTROL_GROUPS = Path("/proc/self/cgroup")


def _free_in_control_groups() -> list[int]:
    """What each control group (Linux, both versions) that this process is in leaves it; empty without a limit.

    Pages of files that were not used lately count as free: the kernel drops them first.

    Source: cgroups(7) of the Linux manual; Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst of the kernel.
    """
    free: list[int] = []
    for line in _lines_of(_OWN_CONTROL_GROUPS):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, limit, usage, droppable = _CONTROL_GROUPS, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            root, limit, usage = _CONTROL_GROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            droppable = "total_inactive_file"
        else:
            continue
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            limits, usages = _lines_of(folder / limit), _lines_of(folder / usage)
            if limits and usages and limits[0] != "max":
                stat = dict(entry.split(" ", 1) for entry in _lines_of(folder / "memory.stat"))
                free.append(int(limits[0]) - int(usages[0]) + int(stat.get(droppable, 0)))
            if folder == root:
                break
    return free


def _lines_of(path: Path) -> list[str]:
    """Lines of a file of the kernel; none where there is no such file, or it is not ours to read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def rounded_size(num_bytes: int) -> str:
    """Bytes in decimal units, for messages; any number, as headers of files announce what they like.

    >>> rounded_size(900), rounded_size(5_340_000), rounded_size(40 * 10**9), rounded_size(10**400)
    ('1 kB', '5 MB', '40.0 GB', 'over 1,000,000,000 GB')
    """
    if num_bytes < 10**6:
        return f"{max(1, round(num_bytes / 10**3))} kB"
    if num_bytes < 10**9:
        return f"{round(num_bytes / 10**6)} MB"
    return f"{num_bytes / 10**9:,.1f} GB" if num_bytes < 10**18 else "over 1,000,000,000 GB"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed. Python, accelerators and the CPU allocator of torch say so in different ways."""
    if isinstance(error, MemoryError) or any(kind.__name__ == "OutOfMemoryError" for kind in type(error).__mro__):
        return True
    text = str(error).lower()
    phrases = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, RuntimeError) and any(phrase in text for phrase in phrases)


def return_cached_memory() -> None:
    """Give a GPU back what torch keeps of its memory for later, after an allocation that failed."""
    import torch

    gc.collect()  # a traceback may have kept what did not fit alive
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()


def resolve_device(name: str) -> str:
    """Turn ``auto``, ``cpu``, ``cuda``, ``cuda:1`` or ``mps`` into a device that exists here.

    Raises:
        UsageError: The device is unknown or not available; never a silent fall back to the CPU.
    """
    import torch

    if name == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UsageError(f"Unknown device: {name}. Use auto, cpu, cuda, cuda:N or mps.") from error
    is_here = {
        "cpu": True,
        "cuda": torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not is_here.get(device.type, False):
        raise UsageError(f"The device {name} is not available on this machine. Use --device auto or --device cpu.")
    return str(device)


def free_device_memory(device: str | torch.device) -> int:
    """Bytes that are free on ``device``, whoever else uses it; main memory where it has none of its own."""
    import torch

    return torch.cuda.mem_get_info(device)[0] if str(device).startswith("cuda") else available_memory()


def sent(tensor: Tensor, device: str | torch.device) -> Tensor:
    """``tensor`` on ``device``. From main memory to a GPU it goes through pinned memory, and nobody waits for it to arrive.

    A copy that is asked for in the plain way waits until the GPU has done all that was asked for before.
    """
    kind = str(device).partition(":")[0]
    if kind in ("cpu", "mps"):  # Apple's GPUs read memory that may have changed by then
        return tensor.to(device)
    pinned = tensor.pin_memory() if kind == "cuda" and tensor.device.type == "cpu" else tensor
    return pinned.to(device, non_blocking=True)


@dataclass
class Cost:
    """What a block took; filled in when the block ends."""

    seconds: float = 0.0
    peak_bytes: int = 0


@contextmanager
def measure_cost() -> Generator[Cost]:
    """Measure wall seconds and the peak of memory allocated by Python and numpy inside the block."""
    cost = Cost()
    nested = tracemalloc.is_tracing()
    if not nested:
        tracemalloc.start()
    tracemalloc.reset_peak()
    base, _ = tracemalloc.get_traced_memory()
    start = time.perf_counter()
    try:
        yield cost
    finally:
        cost.seconds = time.perf_counter() - start
        cost.peak_bytes = max(0, tracemalloc.get_traced_memory()[1] - base)
        if not nested:
            tracemalloc.stop()
