"""How often test images were looked at is a caveat: behind what is graver, and once."""

import pytest

from crossgraft.records.base import LooksRecord
from crossgraft.report.blocks import Folded, Paragraph, Verdict
from crossgraft.report.kinds import KINDS
from crossgraft.report.source import Source
from support.comparison_records import comparison_record
from support.tuning_records import metric, tuning_record

LOOKS = LooksRecord(number=3, by_command={"tune": 3}, optimism=0.02)
SAID = "This is the 3rd look at these test images (3 × tune)"


def caveats_of(record):
    """Of its verdict: the first and those folded below it."""
    section = KINDS.get(record.kind).builders[0](Source(record))
    (verdict,) = [block for block in section.blocks if isinstance(block, Verdict)]
    folded = [item for block in section.blocks if isinstance(block, Folded) for item in getattr(block.blocks[0], "items", [])]
    return [verdict.caveat, *folded]


@pytest.mark.parametrize("made", [tuning_record, comparison_record])
def test_a_later_look_is_a_caveat_and_the_first_is_none(made):
    assert sum(str(text).startswith(SAID) for text in caveats_of(made(looks=LOOKS))) == 1
    first = LooksRecord(number=1, by_command={"tune": 1}, optimism=0.0)
    for looks in (first, None):
        assert not any("look at these test images" in str(text) for text in caveats_of(made(looks=looks)))


def test_it_stands_behind_an_interval_that_says_nothing():
    guessing = [metric("balanced_accuracy", 0.53, half_width=0.1)]
    first, second, *_ = caveats_of(tuning_record(metrics=guessing, looks=LOOKS))
    assert "too few to tell" in first
    assert second.startswith(SAID)


def test_a_comparison_says_once_that_its_best_is_one_of_many():
    assert sum("The best of" in text for text in caveats_of(comparison_record())) == 1
    assert not any("The best of" in text for text in caveats_of(comparison_record(looks=LOOKS)))


def test_the_section_of_the_data_does_not_say_it_again():
    for builder in KINDS.get("tuning").builders[1:]:
        section = builder(Source(tuning_record(looks=LOOKS)))
        for block in [] if section is None else section.blocks:
            assert not (isinstance(block, Paragraph) and "look at these" in block.text)
