"""An environment that has the command ``toil``, for this process and for others."""

import importlib
import os
import sys
from pathlib import Path

TOY = Path(__file__).parents[1] / "toy_jobs"


def install(site):
    """Put the package where Python finds it; the value of ``PYTHONPATH`` for other processes."""
    facts = site / "crossgraft_toy_jobs-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: crossgraft-toy-jobs\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text((TOY / "entry_points.txt").read_text())
    return os.pathsep.join([str(site), str(TOY), *filter(None, [os.environ.get("PYTHONPATH")])])


def registered(monkeypatch):
    """The same in this process, for one test."""
    from crossgraft.options.command import COMMANDS

    monkeypatch.syspath_prepend(str(TOY))
    module = importlib.import_module("crossgraft_toy_jobs")
    if "toil" not in COMMANDS:
        monkeypatch.setitem(COMMANDS._plugins, "toil", module.COMMAND)
        monkeypatch.setitem(COMMANDS._origins, "toil", "toy")
    return sys.modules["crossgraft_toy_jobs"]
