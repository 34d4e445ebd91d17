"""What the page of several fine-tunings shows, and what it claims."""

import pytest

from crossgraft.report.blocks import Figure, Folded, Items
from crossgraft.report.kinds import KINDS
from crossgraft.report.tables import Table
from crossgraft.report.terminal import record_as_text
from crossgraft.variants.page import (
    compared_trainings_section,
    comparison_verdict_section,
    differences_section,
    mixed_weights_section,
    variants_section,
)
from crossgraft.variants.record import FineTuningComparisonRecord
from crossgraft.variants.words import answer_in_words, best_in_words, curve_in_words
from support.comparison_records import EVIL, comparison_record, difference, normed_comparison_record, variant


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


def test_where_all_start_from_an_adapted_network_that_is_what_is_kept():
    record = normed_comparison_record(hcs="adapt", full="adapt", linear="adapt")
    assert "(debiased CKA to the adapted network 0.750 against 0.450 of full" in plain(answer_in_words(record))


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
        update={"not_separable_from": [], "difference": difference(-0.05).model_copy(update={"low": None, "high": None})}
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
    worse = [variant("full", 0.4, 0.5, is_full=True)]
    assert "all of the interval is below it: the model is worse" in answer_in_words(comparison_record(variants=worse))
    assert answer_in_words(comparison_record(variants=[variant("full", None, None)])).startswith("No variant has a value")


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


def test_what_started_from_an_adapted_network_is_drawn_at_its_similarity_to_that(source_of):
    def figures(**modes):
        record = normed_comparison_record(**modes)
        for point in record.interpolation[0].points:
            point.similarity.update({"cka_adapted": 0.9, "cka_debiased_adapted": 0.9})
        return blocks_of(comparison_verdict_section(source_of(record)), Figure)

    others = {"hcs": "adapt", "linear": "adapt", EVIL: "adapt"}
    biased, debiased = figures(full="adapt", **others)
    for drawing in (biased, debiased):
        assert "to the adapted features" in drawing.drawings[0]
    assert "statistics of the training images, where a variant started" in biased.caption
    mixed = figures(full="train", **others)
    assert ["to the adapted features" in figure.drawings[0] for figure in mixed] == [True, True, False]
    plain = figures(full="train", hcs="frozen")
    assert len(plain) == 2 and not any("adapted" in figure.drawings[0] + figure.caption for figure in plain)


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


def test_variants_of_a_network_with_batch_norm_stand_beside_untouched_weights(source_of):
    record = normed_comparison_record(hcs="frozen")
    table = blocks_of(variants_section(source_of(record)), Table)[0]
    titles = [column.title for column in table.columns]
    assert titles[4:9] == ["CKA", "CKA, debiased", "CKA, debiased, adapted", "BatchNorm", "Time / full"]
    assert [[cell.text for cell in row[5:8]] for row in table.rows] == [
        ["0.700", "0.750", "frozen"], ["0.400", "0.450", "train"], ["0.600", "0.650", "frozen"], ["0.900", "0.950", "train"],
        ["—", "—", "—"],
    ]  # fmt: skip
    assert plain(table.notes[0]) == (
        "BatchNorm statistics of the training images alone, with no weight changed, give a debiased CKA of 0.420."
    )
    trainings = blocks_of(compared_trainings_section(source_of(record)), Table)[0]
    assert {"CKA, debiased, adapted", "CKA, adapted"} <= {column.title for column in trainings.columns}


def test_without_batch_norm_there_is_no_column_and_no_note_of_it(source_of):
    for section in (variants_section, compared_trainings_section):
        table = blocks_of(section(source_of(comparison_record())), Table)[0]
        assert not any("adapted" in column.title or "BatchNorm" in column.title for column in table.columns)
        assert not any("BatchNorm" in note for note in table.notes)


def test_how_many_are_done_is_shown_where_it_says_something(source_of):
    def titles(record):
        return [column.title for column in blocks_of(variants_section(source_of(record)), Table)[0].columns]

    sound = [row for row in comparison_record().variants if not row.num_failed]
    assert "Done" in titles(comparison_record())
    assert "Done" in titles(comparison_record(variants=sound, seeds=[0, 1]))
    assert "Done" not in titles(comparison_record(variants=sound))


def test_different_batch_norms_are_a_caveat_of_comparing_similarity(source_of):
    def caveats(record):
        section = comparison_verdict_section(source_of(record))
        return " ".join(item for block in blocks_of(section, Items) for item in block.items)

    said = caveats(normed_comparison_record(hcs="frozen"))
    assert "BatchNorm differs (hcs:0.6 and hcs:0.8: frozen; full and linear: train), so a difference in CKA" in said
    assert "give a debiased CKA of 0.420. The same --batch-norm for all makes them comparable." in said
    assert "BatchNorm differs" not in caveats(normed_comparison_record())
    assert "BatchNorm differs" not in caveats(comparison_record())


def test_what_keeps_most_says_where_full_has_moved_statistics_too():
    assert "0.400 of full, whose BatchNorm statistics moved, too)" in answer_in_words(normed_comparison_record(hcs="frozen"))
    for record in (normed_comparison_record(), normed_comparison_record(hcs="frozen", full="frozen"), comparison_record()):
        assert "against 0.400 of full)" in answer_in_words(record)


def test_a_regulariser_of_several_forms_is_named_with_its_form_wherever_it_stands(source_of):
    of_cka = variant("repsim", 0.9, 0.9, difference=difference(0.01), form="CKA form")
    of_paper = variant("partial:3+repsim:preset=paper", 0.6, 0.5, difference=difference(-0.1), form="eq. 13–14")
    full = variant("full", 0.8, 0.4, is_full=True, not_separable_from=["repsim"])
    record = comparison_record(variants=[of_cka, full, of_paper])
    assert record.variants[1].named == "full" and "form" not in full.model_dump()
    assert FineTuningComparisonRecord.model_validate_json(record.model_dump_json()) == record
    assert plain(answer_in_words(record)).startswith("The best balanced accuracy on test is that of repsim (CKA form):")
    for show in (variants_section, differences_section):
        names = [row[0].text for row in blocks_of(show(source_of(record)), Table)[0].rows]
        assert {"repsim (CKA form)", "partial:3+repsim:preset=paper (eq. 13–14)"} <= set(names)
