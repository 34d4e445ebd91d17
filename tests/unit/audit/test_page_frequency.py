"""Frequencies on the page of an audit: the numbers of the record, what they are of, and why some are missing."""

import pytest

from crossgraft.audit.page_frequency import frequency_section
from crossgraft.audit.record import AuditRecord
from crossgraft.report.blocks import Figure, Items
from crossgraft.report.kinds import KINDS
from crossgraft.report.source import Source
from crossgraft.report.tables import Table
from support.audit_records import audit_record
from support.frequency_records import (
    artefact,
    audit_frequencies,
    model_frequencies,
    priority,
    risk_rank_record,
    tuned_frequencies,
)


@pytest.fixture
def blocks_of(examples):
    ranking = examples.ranking_record()

    def blocks(frequency):
        section = frequency_section(Source(audit_record(ranking.dataset, ranking.models[0], frequency=frequency)))
        return None if section is None else section.blocks

    return blocks


def tables(blocks):
    return [block for block in blocks if isinstance(block, Table)]


def captions(blocks):
    return [block.caption for block in blocks if isinstance(block, Figure)]


def items(blocks):
    return [item for block in blocks if isinstance(block, Items) for item in block.items]


def texts(row):
    return [cell.text for cell in row]


def titles(table):
    return [column.title for column in table.columns]


def test_what_was_not_asked_for_has_no_section_and_old_records_open(blocks_of, examples):
    assert blocks_of(None) is None
    ranking = examples.ranking_record()
    old = audit_record(ranking.dataset, ranking.models[0]).model_dump(exclude={"frequency"})
    assert AuditRecord.model_validate(old).frequency is None


def test_overlaps_are_those_of_the_record_and_the_objective_is_said(blocks_of):
    blocks = blocks_of(audit_frequencies())
    (table,) = tables(blocks)
    assert texts(table.rows[0]) == ["mobilenetv2_100", "low_pass:0.244", "0.625", "0.875", "0.125"]
    assert "Before" not in titles(table)
    (caption,) = captions(blocks)
    assert "½‖features‖², because a pretrained head knows other classes" in caption


def test_before_and_after_stand_beside_each_other_with_the_same_objective(blocks_of):
    blocks = blocks_of(audit_frequencies(tuned_frequencies()))
    overlaps, bands = tables(blocks)
    assert texts(overlaps.rows[0])[2:5] == ["0.625", "0.375", "0.812"]
    assert "the only one that both networks have" in captions(blocks)[0]
    (drawing,) = blocks[0].drawings
    assert "learning priority before, learning priority after" in drawing
    assert texts(bands.rows[0]) == ["0.125", "0.500", "[0.375, 0.625]", "0.875", "[0.750, 1.000]"]


def test_without_the_pretrained_network_its_own_loss_is_drawn(blocks_of):
    alone = tuned_frequencies(priorities=[priority("tuned", "true labels")], artefacts=[artefact()])
    blocks = blocks_of(audit_frequencies(alone))
    assert "that of the loss with true labels." in captions(blocks)[0]
    assert "before" not in blocks[0].drawings[0]


def test_a_reason_is_said_once_for_all_models(blocks_of):
    local = artefact("tag", is_informative=False, reason="it touches a part of the image")
    models = [model_frequencies(name, artefacts=[local]) for name in ("one", "two")]
    blocks = blocks_of(audit_frequencies(*models))
    assert items(blocks) == ["tag: it touches a part of the image."]
    assert len(tables(blocks)[0].rows) == 2


def test_what_can_only_be_asked_has_bands_alone_and_says_why(blocks_of):
    asked = tuned_frequencies(frequencies=[], images=[], priorities=[], artefacts=[], notes=["function can only be asked."])
    blocks = blocks_of(audit_frequencies(asked))
    assert [table.caption for table in tables(blocks)] == ["AUC without some frequencies"]
    assert items(blocks) == ["function can only be asked."]
    assert len(captions(blocks)) == 1


def test_five_models_have_a_rank_and_a_figure_in_which_each_has_a_number(blocks_of):
    blocks = blocks_of(audit_frequencies(ranks=[risk_rank_record()]))
    assert texts(tables(blocks)[1].rows[0]) == ["low_pass:0.244", "5", "0.938", "0.062"]
    assert "1 net 0; 2 net 1; 3 net 2; 4 net 3; 5 net 4." in captions(blocks)[1]


def test_fewer_models_have_the_reason_and_no_figure(blocks_of):
    why = "Ranks of 2 models say nothing; 5 are needed."
    few = risk_rank_record(2, spearman=None, p_value=None, reason=why)
    blocks = blocks_of(audit_frequencies(ranks=[few]))
    assert items(blocks) == [f"low_pass:0.244: {why}"]
    assert len(captions(blocks)) == 1


def test_only_so_many_models_and_artefacts_are_drawn(blocks_of):
    many = [artefact(f"edit {number}") for number in range(8)]
    blocks = blocks_of(audit_frequencies(*(model_frequencies(f"net {number}", artefacts=many) for number in range(8))))
    (figure,) = [block for block in blocks if isinstance(block, Figure)]
    assert len(figure.drawings) == 6
    assert figure.caption.endswith("2 more are in frequency.csv. The first 5 artefacts are drawn.")
    assert "edit 4" in figure.drawings[0] and "edit 5" not in figure.drawings[0]


def test_a_spectrum_that_is_not_there_is_not_drawn(blocks_of):
    gone = artefact(psd=None, overlap=None, flat=None, is_informative=False, reason="nothing of it is left")
    silent = model_frequencies(priorities=[priority().model_copy(update={"psd": None})], artefacts=[gone])
    (figure,) = [block for block in blocks_of(audit_frequencies(silent)) if isinstance(block, Figure)]
    assert "spectra by frequency: images." in figure.drawings[0]


def test_the_page_and_the_terminal_have_it():
    kind = KINDS.get("audit")
    assert frequency_section in kind.builders and frequency_section in kind.terminal
