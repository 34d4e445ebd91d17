"""Every page says by which name its split is known, so that two pages of one split are seen to be that."""

import pytest

from crossgraft.report.blocks import Facts, Folded
from crossgraft.report.kinds import KINDS
from crossgraft.report.source import Source
from crossgraft.report.terminal import record_as_text
from support.comparison_records import comparison_record
from support.tuning_records import tuning_record

SPLIT = {"split_fingerprint": "50ac68173c71", "split_method": "drawn at random"}


@pytest.fixture(params=["ranking", "tuning", "tuning-comparison", "interpolation", "data_check"])
def record(request, examples):
    if request.param == "interpolation":
        images = tuning_record().dataset.model_copy(update=SPLIT)
        return comparison_record().interpolation[0].model_copy(update={"images": images})
    made = {
        "ranking": examples.ranking_record,
        "tuning": tuning_record,
        "tuning-comparison": comparison_record,
        "data_check": examples.data_check_record,
    }[request.param]()
    return made.model_copy(update={"dataset": made.dataset.model_copy(update=SPLIT)})


def facts_of(record):
    for builder in KINDS.get(record.kind).builders:
        section = builder(Source(record))
        for block in [] if section is None else section.blocks:
            for inner in block.blocks if isinstance(block, Folded) else [block]:
                yield from inner.rows if isinstance(inner, Facts) else []


def test_the_page_names_the_split_and_how_it_came_about(record):
    assert ("Split", "50ac68173c71 – drawn at random") in [*facts_of(record)]


def test_the_terminal_names_it_in_a_few_words(record):
    assert record_as_text(record).lower().count("50ac68173c71") == 1
    if record.kind != "data_check":
        assert " · split 50ac68173c71 · " in KINDS.get(record.kind).heading(Source(record)).summary


def test_rows_without_parts_have_no_name_of_a_split():
    folds = tuning_record(num_folds=2)
    folds = folds.model_copy(update={"dataset": folds.dataset.model_copy(update={"split_fingerprint": None})})
    assert "split " not in KINDS.get("tuning").heading(Source(folds)).summary
