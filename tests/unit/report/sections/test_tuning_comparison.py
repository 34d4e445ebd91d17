"""What the page of several fine-tunings shows, and what it claims."""

import pytest

from crossgraft.records import FineTuningComparisonRecord
from crossgraft.report.blocks import Figure, Folded
from crossgraft.report.sections import KINDS
from crossgraft.report.sections.tuning_comparison import (
    comparison_verdict_section,
    differences_section,
    mixed_weights_section,
    variants_section,
)
from crossgraft.report.tables import Table
from crossgraft.report.terminal import record_as_text
from crossgraft.words.comparison_words import answer_in_words, best_in_words, curve_in_words
from support.comparison_records import EVIL, comparison_record, difference, variant


def blocks_of(section, kind):
    inner = [part for block in section.blocks for part in (block.blocks if isinstance(block, Folded) else [block])]
    return [block for block in inner if isinstance(block, kind)]


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_the_record_is_read_back_as_it_was():
    record = comparison_record()
    assert FineTuningComparisonRecord.model_validate_json(record.model_dump_json()) == record
    assert record.full.variant == "full"
    with pytest.raises(KeyError):
        record.variant("nix")


def test_the_answer_names_the_best_what_may_be_as_good_and_what_keeps_most():
    said = plain(answer_in_words(comparison_record(seeds=[0, 1])))
    assert said == (
        "The best balanced accuracy on test is that of hcs:0.6: 0.840 (95 % interval over test images 0.790 to 0.890). full is "
        "not separable from hcs:0.6: the difference may be chance. hcs:0.6 is better than hcs:0.8 and linear: the 95 % interval "
        "of each difference excludes 0. Of those that may be best, hcs:0.6 also keeps most of the pretrained features (debiased "
        "CKA 0.700 against 0.400 of full)."
    )
    assert "With this one seed hcs:0.6 is better than hcs:0.8 and linear" in answer_in_words(comparison_record())


def test_nothing_is_claimed_where_nothing_separates_or_is_known():
    equal = [
        variant("full", 0.6, 0.5, is_full=True, not_separable_from=["linear"]),
        variant("linear", 0.55, 1.0, difference=difference(-0.05, 0.2), not_separable_from=["full"]),
    ]
    said = plain(answer_in_words(comparison_record(variants=equal)))
    assert "is better than" not in said
    assert "linear keeps most" in said
    unknown = [equal[0].model_copy(update={"not_separable_from": []})]
    row = equal[1].model_copy(
        update={
            "not_separable_from": [],
            "difference": difference(-0.05).model_copy(update={"low": None, "high": None}),
        }
    )
    said = answer_in_words(comparison_record(variants=[*unknown, row]))
    assert "Nothing is known" in said
    assert "is better than" not in said
    third = variant("partial:1", 0.5, 0.9, difference=difference(-0.1, 0.02))
    said = answer_in_words(comparison_record(variants=[*unknown, row, third]))
    assert "better than partial:1" in said
    assert said.endswith("Nothing is known about linear.")
    best = row.model_copy(update={"metric": unknown[0].metric})  # of which no difference is known, to whatever
    assert "better than" not in answer_in_words(comparison_record(variants=[best, unknown[0], third]))
    guessing = [variant("full", 0.52, 0.5, is_full=True), variant("linear", 0.4, 1.0, difference=difference(-0.12))]
    assert "nothing shows yet" in answer_in_words(comparison_record(variants=guessing))
    assert answer_in_words(comparison_record(variants=[variant("full", None, None)])).startswith(
        "No variant has a value"
    )


def test_where_a_variant_lies_to_the_curve_is_said_with_its_doubt():
    record = comparison_record()
    assert [curve_in_words(row) for row in record.variants[:4]] == ["above", "—", "below, may be chance", "—"]
    off = difference(0).model_copy(update={"value": None, "low": None, "high": None})
    assert curve_in_words(record.variants[0].model_copy(update={"above_curve": off})) == "not measured there"


def test_the_figures_are_there_with_every_variant_and_the_curve(source_of):
    wide, debiased = blocks_of(comparison_verdict_section(source_of(comparison_record())), Figure)
    for drawing in (*wide.drawings, *wide.narrow, *debiased.drawings, *debiased.narrow):
        for name in ("hcs:0.6", "full", "linear", "weights between pretrained and full (free)"):
            assert name in drawing
        assert ">0.8<" in drawing  # of a sweep, all but the first say their strength alone
        assert "alert" not in drawing  # it failed
    assert "debiased" in debiased.drawings[0]
    assert "lines join" in wide.caption
    without_sweep = [row.model_copy(update={"sweep": None}) for row in comparison_record().variants]
    of_none = comparison_verdict_section(source_of(comparison_record(variants=without_sweep)))
    assert "lines join" not in blocks_of(of_none, Figure)[0].caption
    without = comparison_verdict_section(source_of(comparison_record(interpolation=[])))
    assert "weights between" not in blocks_of(without, Figure)[0].drawings[0]
    alone = comparison_record(variants=[variant("full", 0.5, 0.5, is_full=True)])
    assert blocks_of(comparison_verdict_section(source_of(alone)), Figure) == []


def test_tables_hold_every_number(source_of):
    source = source_of(comparison_record())
    (table,) = blocks_of(variants_section(source), Table)
    assert [row[0].text for row in table.rows] == ["hcs:0.6", "full", "hcs:0.8", "linear", EVIL]
    assert table.rows[0][1].values == (0.84,)
    assert table.rows[4][-1].text == "0 of 1"
    (table,) = blocks_of(differences_section(source), Table)
    assert [row[3].text for row in table.rows] == ["no, may be chance", "yes", "yes"]
    (table,) = blocks_of(mixed_weights_section(source), Table)
    assert [cell.values[0] for cell in table.rows[1]] == pytest.approx([0.5, 0.765, 0.75, 0.65])
    nothing = source_of(comparison_record(interpolation=[]))
    assert mixed_weights_section(nothing) is None


def test_every_section_is_made_of_records_that_lack_what_may_be_missing(source_of):
    bare = comparison_record(interpolation=[], interpolation_reason="full is not there", trainings=[], checks=[])
    for record in (comparison_record(), bare):
        kind = KINDS.get(record.kind)
        assert kind.heading(source_of(record)).title
        assert [builder(source_of(record)) for builder in kind.builders]


def test_the_terminal_has_100_columns_and_the_answer_last():
    record = comparison_record()
    text = record_as_text(record)
    assert max(map(len, text.splitlines())) <= 100
    assert " ".join(best_in_words(record).split()) in " ".join(text.split())
    assert text.splitlines()[-2:] == ["Next, to use hcs:0.6:", "  crossgraft predict RUN/trainings/hcs-0 NEW_IMAGES"]
    lines = [line for line in text.splitlines() if line.startswith(("hcs:0.6", "full ", "linear"))]
    assert lines[0].split()[1] == "0.840"
    assert "0 of 1" in text
    assert any(line.startswith("hcs:0.6") and line.endswith("above") for line in text.splitlines())
    without_full = [variant("linear", 0.7, 1.0), variant("partial:1", 0.6, 0.9)]
    of_two = record_as_text(comparison_record(variants=without_full, interpolation=[]))
    assert "Differences in balanced accuracy" in text
    assert "Differences in" not in of_two
    assert "—" not in of_two
