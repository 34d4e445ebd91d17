"""How much the features kept, beside what BatchNorm statistics do with no weight changed."""

import pytest

from crossgraft.report.blocks import Facts, Figure, Folded, Paragraph
from crossgraft.report.tables import Table
from crossgraft.report.terminal import record_as_text
from crossgraft.tune.page import REPORT as TUNING
from crossgraft.tune.page import similarity_section
from crossgraft.tune.page_curves import curves_section
from crossgraft.tune.page_training import plan_section
from crossgraft.tune.record import BatchNormRecord
from support.tuning_records import SIMILARITY, kept_record, tuning_record


def blocks_of(section, kind):
    inner = [part for block in section.blocks for part in (block.blocks if isinstance(block, Folded) else [block])]
    return [block for block in inner if isinstance(block, kind)]


def of_alone(similarity):
    """Those of a network without BatchNorm."""
    return {name: similarity[name] for name in ("cka", "cka_debiased")}


def meaning(record, source_of):
    said = [block.text for block in similarity_section(source_of(record)).blocks if isinstance(block, Paragraph)]
    return said[0] if len(said) > 1 else None


def test_the_fine_tuned_network_stands_beside_untouched_weights(source_of):
    (table,) = blocks_of(similarity_section(source_of(kept_record())), Table)
    assert [column.title for column in table.columns] == [
        "Network", "CKA, debiased", "CKA, debiased, adapted", "CKA", "CKA, adapted"
    ]  # fmt: skip
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["Fine-tuned", "0.450", "0.710", "0.500", "0.750"],
        ["Weights untouched, statistics re-estimated", "0.420", "1.000", "0.480", "1.000"],
    ]
    assert table.muted_rows == {1}
    assert table.notes[0].startswith("Adapted: compared with the pretrained weights")


def test_a_network_without_batch_norm_has_one_row_and_nothing_empty(source_of):
    section = similarity_section(source_of(kept_record(similarity=of_alone(SIMILARITY))))
    (table,) = blocks_of(section, Table)
    assert [column.title for column in table.columns] == ["Network", "CKA, debiased", "CKA"]
    assert [[cell.text for cell in row] for row in table.rows] == [["Fine-tuned", "0.450", "0.500"]]
    assert (table.notes, table.muted_rows) == ([], frozenset())
    assert "BatchNorm" not in " ".join(block.text for block in blocks_of(section, Paragraph))


def test_what_was_not_measured_is_not_shown(source_of):
    assert similarity_section(source_of(tuning_record())) is None
    assert similarity_section in TUNING.builders
    assert similarity_section in TUNING.terminal


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "give a debiased CKA of 0.420; the fine-tuned network has 0.450. So moved statistics alone may explain the fall"),
        ({}, "What training changed is in the values marked as adapted (0.710)."),
        ({"similarity": {**SIMILARITY, "cka_debiased_untouched": 0.9}}, "moved statistics do not explain the fall"),
        ({"similarity": {**SIMILARITY, "cka_debiased": 0.96}}, "There is hardly a fall to explain."),
        ({"num_moving": 3}, "of which only some moved, may explain a part of the fall"),
        ({"mode": "frozen", "num_moving": 0}, "it is the training of its weights that changed the features (debiased CKA 0.450)"),
        ({"num_moving": 0}, "The BatchNorm statistics stayed those of the pretrained network"),
        ({"mode": "adapt"}, "give a debiased CKA of 0.420. Training started from there."),
    ],
)
def test_one_sentence_says_what_moved_the_features(changes, words, source_of):
    assert words in meaning(kept_record(**changes), source_of)


def test_nothing_is_said_of_causes_that_are_not_known(source_of):
    alone = "BatchNorm statistics of the training images alone, with no weight changed, give a debiased CKA of 0.420."
    assert meaning(kept_record(batch_norm=None), source_of) == alone
    scratch = kept_record(model=kept_record().model.model_copy(update={"from_scratch": True}))
    assert meaning(scratch, source_of) == alone


def test_what_was_made_says_batch_norm_with_its_reason_and_what_was_to_be_kept(source_of):
    record = kept_record(mode="frozen", reason="because repsim compares features", num_moving=0)
    (facts, *_) = blocks_of(plan_section(source_of(record)), Facts)
    assert dict(facts.rows)["BatchNorm"] == (
        "frozen (because repsim compares features): 19 layers kept the statistics of the pretrained network"
    )
    assert dict(facts.rows)["To keep"] == "debiased CKA of 0.8 on val asked for, 0.790 found; terms that keep features × 512"
    assert {"BatchNorm", "To keep"} <= set(facts.essential)
    nothing = BatchNormRecord(mode="train", num_layers=0)
    (facts, *_) = blocks_of(plan_section(source_of(tuning_record(batch_norm=nothing))), Facts)
    assert not {"BatchNorm", "To keep"} & set(dict(facts.rows))


def test_curves_and_table_of_epochs_have_both_networks(source_of):
    section = curves_section(source_of(kept_record()))
    similarity = blocks_of(section, Figure)[1]
    for (drawing,) in (similarity.drawings, similarity.narrow):
        assert "Similarity to the pretrained network (debiased CKA) by epoch: pretrained, adapted." in drawing
    assert "Adapted: compared with the pretrained weights" in similarity.caption
    assert "The dotted line is what was asked for (--keep 0.8)." in similarity.caption
    (table,) = blocks_of(section, Table)
    titles = [column.title for column in table.columns]
    assert titles[7:11] == ["CKA", "CKA, debiased", "CKA, adapted", "CKA, debiased, adapted"]
    assert [cell.text for cell in table.rows[0]][7:11] == ["1.000", "1.000", "1.000", "0.900"]


def test_runs_of_a_grid_are_compared_by_the_network_they_started_from(source_of):
    def drawn(mode):
        record = kept_record(mode=mode, grid=tuning_record(grid=True).grid)
        twice = [row.model_copy(update={"job": job.job}) for job in record.grid for row in record.history]
        section = curves_section(source_of(record.model_copy(update={"history": twice})))
        return str(blocks_of(section, Figure)[1].drawings[0])

    assert "(debiased CKA) by epoch: lr 0.0001." in drawn("train")
    assert drawn("train") == drawn("frozen") != drawn("adapt")


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_the_terminal_shows_it_in_any_width(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = record_as_text(kept_record())
    assert max(map(len, text.splitlines())) <= columns
    words = " ".join(text.split())
    assert "To keep debiased CKA of 0.8 on val asked for, 0.790 found" in words
    assert "Fine-tuned 0.450 0.710 Weights untouched" in words
