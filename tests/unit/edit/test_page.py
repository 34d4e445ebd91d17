"""The page of an edited data set: what was done, how far it can be seen, what to type next."""

import pytest

from crossgraft.report.blocks import Folded, Table, Verdict
from crossgraft.report.kinds import KINDS
from crossgraft.report.source import Source
from support.editing_records import edit_record, edit_row

TYPED = "crossgraft edit breast tagged --with tag --share 0.5 --out tagged"


@pytest.fixture
def dataset(examples):
    return examples.ranking_record().dataset


def verdict_of(record, command_line=TYPED):
    section = KINDS.get("edit").builders[0](Source(record, command_line=command_line))
    (verdict,) = [block for block in section.blocks if isinstance(block, Verdict)]
    return verdict, [item for block in section.blocks if isinstance(block, Folded) for item in block.blocks[0].items]


def test_the_answer_and_what_a_person_sees(dataset):
    verdict, _ = verdict_of(edit_record(dataset))
    assert verdict.answer == f"12 of {dataset.num_images} images of {dataset.name} were edited with tag."
    every = edit_record(dataset).model_copy(update={"num_edited": dataset.num_images})
    assert verdict_of(every)[0].answer == f"All {dataset.num_images} images of {dataset.name} were edited with tag."
    assert verdict.caveat == "A person sees tag (PSNR below 40 dB)."
    assert verdict.following.startswith("crossgraft rank tagged/labels.csv --label-column")
    assert "--label-column label" in verdict.following


def test_what_rounding_hides_comes_first(dataset):
    rows = [edit_row("low_pass", rms=0.1, psnr=68.0), edit_row("tag")]
    verdict, others = verdict_of(edit_record(dataset, edits=rows))
    assert verdict.caveat.startswith("low_pass changes less than 0.3 grey levels")
    assert "A person sees tag (PSNR below 40 dB)." in others
    both = [edit_row(name, rms=0.1, psnr=68.0) for name in ("low_pass", "gamma")]
    assert "low_pass and gamma change less" in verdict_of(edit_record(dataset, edits=both))[0].caveat


def test_nothing_edited_and_patients(dataset):
    grouped = dataset.model_copy(update={"num_groups": 9, "group_column": "patient"})
    verdict, others = verdict_of(edit_record(grouped, num_edited=0, edits=[edit_row(num_images=0, rms=0.0)]))
    assert verdict.caveat.startswith("No image was edited") and others[-1].startswith("Groups are numbers")
    assert "--group-column group" in verdict.following


def test_the_tables_hold_the_numbers_of_the_record(dataset):
    section = KINDS.get("edit").builders[1](Source(edit_record(dataset), command_line=TYPED))
    edits, classes = [block for block in section.blocks if isinstance(block, Table)]
    assert "4.50" in str(edits.rows[0]) and "35.0" in str(edits.rows[0]) and len(classes.rows) == 2
    assert [column.title for column in classes.columns] == ["Class", "Images", "Edited"]


def test_a_small_change_is_not_called_none(dataset):
    record = edit_record(dataset, edits=[edit_row("tag", share_changed=0.00086)])
    section = KINDS.get("edit").builders[1](Source(record, command_line=TYPED))
    (table,) = [block for block in section.blocks if isinstance(block, Table) and block.caption == "Edits"]
    assert "0.086\N{NO-BREAK SPACE}%" in [cell.text for cell in table.rows[0]]
