"""The demo as it was run for the README, and what another run of it needs in a test."""

import sys
from pathlib import Path

from crossgraft.demo import story
from crossgraft.demo.story_record import StoryRecord

SHOWN = Path(__file__).parents[2] / "docs" / "images" / "demo"


def story_record():
    """The record behind the picture of the README."""
    return StoryRecord.model_validate_json((SHOWN / "report.json").read_bytes())


def find_networks(monkeypatch):
    """Let the networks of the package index be found, which other tests do not see."""
    for network in story.NETWORKS:
        monkeypatch.delitem(sys.modules, story._package(network), raising=False)
