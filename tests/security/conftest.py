"""What tests of hostile input begin with."""

import logging

import pytest

from support.workspace import crossgraft as crossgraft
from support.workspace import run_once as run_once
from support.workspace import runs_made as runs_made
from support.workspace import workspace as workspace


class Listed(logging.Handler):
    """Keeps messages."""

    def __init__(self):
        super().__init__()
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


@pytest.fixture
def logged():
    """Messages of all loggers, as they come; pytest's own plug-in costs every other test more than this."""
    kept = Listed()
    known = [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    heard = [logging.root, *(logger for logger in known if not logger.propagate)]
    for logger in heard:
        logger.addHandler(kept)
    yield kept.messages
    for logger in heard:
        logger.removeHandler(kept)
