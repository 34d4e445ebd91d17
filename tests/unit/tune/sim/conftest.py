"""Tests that pass what the annotations do not promise, as people do."""

import jaxtyping
import pytest


@pytest.fixture
def any_types():
    """Arguments are checked by the code alone."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
