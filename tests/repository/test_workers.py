"""Tests are shared out as tests/conftest.py says: fixtures of a file are made by one worker."""

import pytest


def test_files_are_shared_out_whole(request):
    """Versions of pytest and pytest-xdist that do not belong together scatter them, in silence and at twice the time."""
    if not getattr(request.config.option, "loadgroup", False):  # which workers have
        pytest.skip("nothing is shared out by --dist loadgroup")
    assert request.node.nodeid.endswith(f"@{request.path.stem}")
