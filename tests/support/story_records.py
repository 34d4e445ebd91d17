"""The demo as it was run for the README, and one that takes seconds."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from crossgraft.data.sources.digits import Digits
from crossgraft.demo import story
from crossgraft.demo.story_record import StoryRecord

SHOWN = Path(__file__).parents[2] / "docs" / "images" / "demo"
EVERY = 3


def story_record():
    """The record behind the picture of the README."""
    return StoryRecord.model_validate_json((SHOWN / "report.json").read_bytes())


def shorten_story(monkeypatch):
    """Some digits of every writer, hardly any training, and the networks of the package index, which other tests do not see."""
    for network in story.NETWORKS:
        monkeypatch.delitem(sys.modules, story._package(network), raising=False)
    whole = Digits.open

    def open_few(self, location, request):
        rows = whole(self, location, request)
        kept = np.arange(0, len(rows.labels), EVERY)
        return replace(
            rows,
            labels=rows.labels[kept],
            image_names=[rows.image_names[row] for row in kept],
            decode=lambda row: rows.decode(int(kept[row])),
            groups=rows.groups[kept],
        )

    monkeypatch.setattr(Digits, "open", open_few)
