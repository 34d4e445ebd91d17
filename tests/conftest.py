"""What every test may use: the tiny zoo, small images, the folder of real data."""

import os
from pathlib import Path

import jaxtyping
import pytest

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """No test reads or fills the cache of the person who runs it."""
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def checks_of_shapes(request):
    """Slow tests are whole runs, whose time the checks of shapes would double; all other tests make them."""
    marks = {mark.name for mark in request.node.iter_markers()}
    jaxtyping.config.update("jaxtyping_disable", "slow" in marks and "real_data" not in marks)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real images and weights; tests that use it carry the marker `real_data`."""
    folder = Path(os.environ.get("CROSSGRAFT_DATA", REPOSITORY.parent / "shared" / "data"))
    if not (folder / "README.md").is_file():
        pytest.skip(f"no real data at {folder}; set CROSSGRAFT_DATA")
    return folder
