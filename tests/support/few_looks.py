"""Commands time looks at images, and steps, to say how long they will take; here they do that as rarely as they can."""

import importlib
import sys
from types import SimpleNamespace

FEWEST = {
    ("crossgraft.features.extract", "_LEAST_SECONDS"): 0.0,
    ("crossgraft.fewshot.parts", "_LEAST_SECONDS"): 0.0,
    ("crossgraft.tune.planning.step_cost", "_FEWEST_STEPS"): 1,
}
"""How long, or how often, something is timed however little work is announced."""


def leave_out_looks(monkeypatch):
    """Work that is announced is timed the fewest times, and with the fewest images, that still give a number."""
    for (module, name), value in FEWEST.items():
        if module in sys.modules:
            monkeypatch.setattr(sys.modules[module], name, value)


def leave_out_looks_for_good():
    """In a process of its own."""
    for module, _ in FEWEST:
        importlib.import_module(module)
    leave_out_looks(SimpleNamespace(setattr=setattr))
