"""Programs that begin at once: forks of a process that has imported what crossgraft builds upon, which takes seconds otherwise.

Tests that use them are one group of pytest-xdist, so that there is one such process. Without forks, programs start as usual.
That commands start as users start them is a matter of ``tests/cli``, ``test_signals.py`` and ``test_launch.py``.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

from crossgraft.compute import nothing_imported_unasked
from support.few_figures import leave_out_figures_for_good

GROUP = "forked"
ROOMS = ("rank", "tune", "variants", "select", "interpolate", "export")
PRELOADED = [
    *("crossgraft.cli.main", "crossgraft.report", "timm.models", "torch.distributed"),
    *(f"crossgraft.{name}.verb" for name in ROOMS),
]


def context():
    """Starts processes as ``multiprocessing`` does."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver

    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(PRELOADED)
    with patch.dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"), nothing_imported_unasked():
        forkserver.ensure_running()
    return found


def start(program, *arguments, environment, cwd, said=(os.devnull, os.devnull), figures=False, own_copy=False):
    """A process that runs the file ``program``, or the module of this name, as a script; what it says goes into two files.

    Figures of pages are left out unless they are asked for. With ``own_copy`` crossgraft is imported anew, from ``PYTHONPATH``,
    with the plug-ins that are there; what it builds upon is imported already.
    """
    words = [str(program), *arguments]
    process = context().Process(target=_become, args=(words, dict(environment), str(cwd), said, figures, own_copy))
    with nothing_imported_unasked():
        process.start()
    return process


def run(program, *arguments, environment, cwd, timeout, **asked):
    """The same to its end, as ``subprocess.run`` with the text of both streams."""
    with tempfile.TemporaryDirectory() as folder:
        said = [Path(folder, name) for name in ("stdout", "stderr")]
        process = start(program, *arguments, environment=environment, cwd=cwd, said=said, **asked)
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(str(program), timeout)
        out, err = (path.read_text(encoding="utf-8") for path in said)
    return subprocess.CompletedProcess(str(program), process.exitcode, out, err)


def _become(words, environment, cwd, said, figures, own_copy):
    for path, stream in zip(said, (sys.stdout, sys.stderr), strict=True):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream.fileno())
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.argv = words
    places = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [place for place in places if place and place not in sys.path]
    if own_copy:
        for name in [name for name in sys.modules if name.partition(".")[0] == "crossgraft"]:
            del sys.modules[name]
    if not figures:
        leave_out_figures_for_good()
    if words[0].endswith(".py"):
        runpy.run_path(words[0], run_name="__main__")
    else:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
