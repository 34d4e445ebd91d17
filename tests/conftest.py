"""What every test may use: the tiny zoo, small images, the folder of real data."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """No test reads or fills the cache of the person who runs it."""
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real images and weights; tests that use it carry the marker `real_data`."""
    folder = Path(os.environ.get("CROSSGRAFT_DATA", REPOSITORY.parent / "shared" / "data"))
    if not (folder / "README.md").is_file():
        pytest.skip(f"no real data at {folder}; set CROSSGRAFT_DATA")
    return folder
