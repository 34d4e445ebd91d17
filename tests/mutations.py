"""Break one line of the source at a time: the tests that are named beside it must notice.

    python tests/mutations.py            all of them, some minutes
    python tests/mutations.py scores/    those of source and test files with this in their path

What is changed is a copy of the repository. A text that is not in its file exactly once is an error: update its table
in ``tests/broken_lines``.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import runpy
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
CAUGHT, PASSED = 1, 0  # exit codes of pytest; every other one means that no test was run
FAST, SLOW = "not slow and not browser and not real_data", "slow and not browser and not real_data"
"""Which tests are run; slow ones where those that are fast notice nothing."""
NO_TEST = 5
SECONDS = 300
"""A mutation may make a loop without an end."""
MEMORY_BYTES = 6 * 2**30
"""A mutation may ask for all there is."""
TABLES = Path(__file__).with_name("broken_lines")
"""In each, files in ``tests``, of which one must fail → file in ``src/crossgraft``, a text that it has once, another for it."""


def main() -> int:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = [
        (tests.split(), *each)
        for table in sorted(TABLES.glob("*.py"))
        for tests, mutations in runpy.run_path(str(table))["MUTATIONS"].items()
        for each in mutations
        if wanted in each[0] or wanted in tests
    ]
    if not chosen:
        print(f"No mutation of a source or test file with {wanted!r} in its path.")
        return 2
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each run compiles one file anew, not all of them
    # What takes longest to import is imported once, in a process that others are forked from.
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["torch", "timm", "pandas", "sklearn.linear_model", "pydantic", "pytest"])
    bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "crossgraft"
        left_out = shutil.ignore_patterns(".git", ".venv", "__pycache__", "*.egg-info", ".pytest_cache")
        shutil.copytree(REPOSITORY, copy, ignore=left_out)
        everything = sorted({test for tests, *_ in chosen for test in tests})
        if outcome(processes, copy, everything, FAST) != PASSED:
            print("The tests fail without any mutation:\n" + (copy / "log").read_text(encoding="utf-8")[-3000:])
            return 2
        for number, (tests, file, old, new) in enumerate(chosen, start=1):
            start = time.perf_counter()
            verdict = verdict_of(processes, copy, tests, file, old, new)
            bad += verdict != "caught"
            shown = f"{file}: {old.strip()!r} → {new.strip()!r}"
            print(f"{number:3} {verdict:14} {time.perf_counter() - start:5.1f} s  {shown}", flush=True)
    print(f"{len(chosen) - bad} of {len(chosen)} mutations were caught.")
    return 1 if bad else 0


def verdict_of(processes, copy: Path, tests: list[str], name: str, old: str, new: str) -> str:
    """Mutate one file, run the tests, put it back."""
    file = copy / "src" / "crossgraft" / name
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    if text.count(old) != 1:
        return "text not found"
    marked = FAST
    file.write_text(text.replace(old, new), encoding="utf-8")
    try:
        code = outcome(processes, copy, tests, marked)
        if code in (PASSED, NO_TEST):
            marked = SLOW
            code = outcome(processes, copy, tests, marked)
    finally:
        file.write_text(text, encoding="utf-8")
    if code in (PASSED, NO_TEST):
        return "NOT CAUGHT"
    if marked == SLOW and outcome(processes, copy, tests, marked) != PASSED:
        return "fails anyway"
    # a signal: out of time or memory, which it was not without the mutation
    return "caught" if code == CAUGHT or code < 0 else f"no test ({code})"


def outcome(processes, copy: Path, tests: list[str], marked: str) -> int:
    """The exit code of pytest on these files of ``tests`` in the copy; minus the signal where one ended it."""
    process = processes.Process(target=run_tests, args=(copy, tests, marked))
    process.start()
    process.join(SECONDS)
    process.kill()
    process.join()
    return process.exitcode


def run_tests(copy: Path, tests: list[str], marked: str) -> None:
    """In a process of its own: what the tests print goes to a file."""
    import pytest

    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    log = os.open(copy / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(copy)
    sys.path.insert(0, str(copy / "src"))
    os.environ["PYTHONPATH"] = str(copy / "src")
    flags = ["-qx", "--no-header", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", marked]
    flags += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # a plug-in is imported already
    code = -1  # an error of pytest itself is no failing test
    try:
        code = int(pytest.main([*flags, *(f"tests/{test}" for test in tests)]))
    except BaseException:
        traceback.print_exc()
    os._exit(code % 256)


if __name__ == "__main__":
    sys.exit(main())
