"""What each section says, and that its numbers are those of the record."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from urllib.parse import unquote

import pytest

from crossgraft.data.page import data_section
from crossgraft.demo.page import best_model_section, demo_verdict_section, fine_tuned_section, limits_section, split_section
from crossgraft.rank.page import (
    answer_in_words,
    controls_section,
    models_section,
    ranking_heading,
    ranking_verdict_section,
    warnings_section,
)
from crossgraft.rank.page_scores import agreement_section, rankings_section, scores_section
from crossgraft.records.base import CheckRecord
from crossgraft.report.blocks import Checks, Code, Facts, Figure, Folded, Gallery, Items, Paragraph, Verdict
from crossgraft.report.kinds import KINDS
from crossgraft.report.tables import Table
from crossgraft.report.verdict import checks_section, provenance_section, references_section
from support.every_record import EXAMPLES, record_of

PARTS = ["verdict", "evidence", "checks", "how it was made", "references"]


def blocks_of(section, kind):
    """Blocks of one kind, those inside folded parts too."""
    found = []
    for block in section.blocks:
        inner = block.blocks if isinstance(block, Folded) else [block]
        found += [entry for entry in inner if isinstance(entry, kind)]
    return found


def csv_of(table: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(unquote(table.csv_uri.partition(",")[2]))))


@pytest.mark.parametrize("kind", EXAMPLES)
def test_sections_follow_the_order_of_the_page_and_have_names_of_their_own(kind, examples, source_of):
    record = record_of(kind, examples)
    sections = [section for builder in KINDS.get(kind).builders if (section := builder(source_of(record)))]
    positions = [PARTS.index(section.part) for section in sections]
    assert positions == sorted(positions)
    looks_at_no_image = kind in ("centre", "fewshot-averages")  # so that there is nothing to check
    assert {PARTS[place] for place in positions} == {*PARTS} - ({"checks"} if looks_at_no_image else set())
    assert len({section.name for section in sections}) == len(sections)


def test_the_verdict_is_the_advice_two_sentences_and_one_figure(ranking, source_of):
    section = ranking_verdict_section(source_of(ranking))
    verdict, others, why, figure = section.blocks
    assert verdict.answer == answer_in_words(ranking)
    assert verdict.caveat == "2 of 548 images could not be read and are left out."
    assert others.blocks[0].items == [
        "Patient leakage: No group column was given, so images of one patient may lie on both sides."
    ]
    assert why.text == "Ordered by LogME: the default, best single score on the published benchmarks."
    assert isinstance(figure, Figure)
    assert figure.caption.startswith("12 models on 546 images.")
    assert "3 controls" in figure.caption


def test_a_verdict_figure_says_which_models_have_no_value(ranking, source_of, examples):
    section = ranking_verdict_section(source_of(ranking.model_copy(update={"primary_score": "leep"})))
    assert f"Without a value: {examples.WITHOUT_HEAD}." in section.blocks[-1].caption


def test_the_heading_says_that_leakage_was_not_checked(ranking, source_of):
    assert ranking_heading(source_of(ranking)).summary == (
        "546 images, split train (546 of 780 rows) · 2 classes (147 / 399) · patient leakage not checked (no group column) · "
        "12 models, 3 controls · 6 scores"
    )
    grouped = ranking.dataset.model_copy(update={"group_column": "patient_id", "num_groups": 61})
    heading = ranking_heading(source_of(ranking.model_copy(update={"dataset": grouped})))
    assert "61 groups by patient_id" in heading.summary


def test_the_overview_holds_the_values_of_the_record(ranking, source_of):
    table, _ = blocks_of(scores_section(source_of(ranking)), Table)
    rows = csv_of(table)
    assert len(rows) == 15
    titles = {score.title: score.name for score in ranking.scores}
    for row in rows:
        for title, name in titles.items():
            value = ranking.cell(row["Model"], name).value
            assert row[title] == ("" if value is None else repr(value))
    assert "the model has no source head" in " ".join(table.notes)


def test_one_column_shows_one_number_of_decimals(ranking, source_of):
    table, _ = blocks_of(scores_section(source_of(ranking)), Table)
    for column in range(1, 7):
        shown = [row[column].text for row in table.rows if row[column].values[0] is not None]
        assert len({len(text.partition(".")[2]) for text in shown}) == 1


def test_best_is_bold_only_when_separable_from_all(ranking, source_of):
    def bold(record):
        table, _ = blocks_of(scores_section(source_of(record)), Table)
        return [row[0].text for row in table.rows if row[1].strong]

    assert bold(ranking) == []
    first, *rest = ranking.ranking("logme").rows
    alone = ranking.ranking("logme").model_copy(update={"rows": [first.model_copy(update={"not_separable_from": []}), *rest]})
    separable = ranking.model_copy(update={"rankings": [alone, *ranking.rankings[1:]]})
    assert bold(separable) == [first.model]


def test_what_each_score_costs_is_a_table_of_its_own(ranking, source_of):
    _, costs = blocks_of(scores_section(source_of(ranking)), Table)
    assert [row[0].text for row in costs.rows] == [score.title for score in ranking.scores]


def test_one_score_has_nothing_to_be_drawn_against(ranking, source_of):
    only = ranking.model_copy(update={"scores": ranking.scores[:1], "cells": ranking.cells[:15]})
    assert blocks_of(scores_section(source_of(only)), Figure) == []
    (figure,) = blocks_of(scores_section(source_of(ranking)), Figure)
    assert len(figure.drawings) == 5
    assert "14 to 15 dots" in figure.caption


def test_a_score_without_any_value_is_not_drawn(ranking, source_of):
    no_leep = [
        cell.model_copy(update={"value": None, "low": None, "high": None}) if cell.score == "leep" else cell
        for cell in ranking.cells
    ]
    (before,) = blocks_of(scores_section(source_of(ranking)), Figure)
    (after,) = blocks_of(scores_section(source_of(ranking.model_copy(update={"cells": no_leep}))), Figure)
    assert len(after.drawings) == len(before.drawings) - 1


def test_every_score_has_its_full_ranking(ranking, source_of):
    tables = blocks_of(rankings_section(source_of(ranking)), Table)
    assert [table.caption for table in tables] == [f"Ranking by {score.title}" for score in ranking.scores]
    for table, order in zip(tables, ranking.rankings, strict=True):
        rows = csv_of(table)
        assert [row["Model"] for row in rows] == [row.model for row in order.rows]
        for row, entry in zip(rows, order.rows, strict=True):
            cell = ranking.cell(entry.model, order.score)
            assert row["Rank"] == ("" if entry.rank is None else str(entry.rank))
            assert row["low"] == ("" if cell.low is None else repr(cell.low))
            assert row["high"] == ("" if cell.high is None else repr(cell.high))
            assert row["Seconds"] == repr(cell.seconds)
            assert row["Memory, MB"] == repr(cell.peak_bytes / 1e6)
            assert row["Above shuffled"] == {True: "yes", False: "no", None: ""}[cell.above_shuffled]
            if entry.rank:
                ranks = entry.not_separable_from
                assert row["not separable from ranks"] == (", ".join(map(str, ranks)) or "none: separable from all")


def test_a_single_model_is_neither_separable_nor_bold(ranking, source_of):
    order = ranking.ranking("logme")
    alone = order.rows[0].model_copy(update={"not_separable_from": []})
    others = [row.model_copy(update={"rank": None, "not_separable_from": []}) for row in order.rows[1:]]
    single = order.model_copy(update={"rows": [alone, *others]})
    rankings = [single if entry.score == "logme" else entry for entry in ranking.rankings]
    table = rankings_section(source_of(ranking.model_copy(update={"rankings": rankings}))).blocks[0]
    assert csv_of(table)[0]["not separable from ranks"] == "the only model"
    assert not any(cell.strong for cell in table.rows[0])


def test_missing_values_and_intervals_are_explained_once(ranking, source_of, examples):
    tables = {table.caption: table for table in blocks_of(rankings_section(source_of(ranking)), Table)}
    assert tables["Ranking by LEEP"].notes == [f"No value: the model has no source head ({examples.WITHOUT_HEAD})."]
    (note,) = tables["Ranking by Linear probe"].notes
    assert note.startswith("No interval: more than a minute for one evaluation (")
    assert tables["Ranking by LogME"].notes == []


def test_controls_stand_beside_the_best_model(ranking, source_of):
    (table,) = blocks_of(controls_section(source_of(ranking)), Table)
    row = csv_of(table)[0]
    values = {role: [] for role in ("candidate", "random weights")}
    for cell in ranking.cells:
        if cell.score == "logme":
            values[ranking.model(cell.model).role].append(cell.value)
    assert float(row["Best model"]) == max(values["candidate"])
    assert float(row["Best random weights"]) == max(values["random weights"])
    assert float(row["Best shuffled labels"]) == ranking.ranking("logme").best_shuffled
    assert row["Shuffled values"] == "75"


def test_models_not_above_their_shuffled_labels_are_named(ranking, source_of, examples):
    cells = [
        cell.model_copy(update={"above_shuffled": False}) if cell.model == examples.WITHOUT_HEAD else cell
        for cell in ranking.cells
    ]
    (table,) = blocks_of(controls_section(source_of(ranking.model_copy(update={"cells": cells}))), Table)
    assert csv_of(table)[0]["Not above their shuffled labels"] == examples.WITHOUT_HEAD


def test_agreement_only_with_fine_tuned_results(ranking, source_of):
    section = agreement_section(source_of(ranking))
    (table,) = blocks_of(section, Table)
    assert csv_of(table)[0]["Weighted Kendall"] == "0.61"
    assert table.notes == ["LogME, Vision transformer: fewer than 4 models of this family have a fine-tuned result."]
    by_name, others = blocks_of(section, Figure)
    assert by_name.caption.startswith("Results of 9 fine-tuned models (test_auc) against LogME")
    best = ranking.ranking("logme").rows[0].model
    assert others.caption.endswith(".") and f"1 {best}" in others.caption
    assert 0 < len(others.drawings) < len(ranking.scores)
    assert "resnet18" in blocks_of(section, Paragraph)[0].text
    bare = ranking.model_copy(update={"ground_truth": None, "agreement": []})
    assert agreement_section(source_of(bare)) is None


def test_checks_come_the_most_urgent_first(ranking, source_of, examples):
    (checks,) = blocks_of(checks_section(source_of(ranking)), Checks)
    assert [check.severity for check in checks.checks] == ["warning", "notice", "not assessed", "passed"]
    failed = examples.run_record().model_copy(update={"state": "interrupted"})
    (checks,) = blocks_of(checks_section(source_of(ranking, run=failed)), Checks)
    assert checks.checks[0].title == "Run not finished"
    assert all(isinstance(check, CheckRecord) for check in checks.checks)


def test_a_record_without_checks_or_warnings_says_so(ranking, source_of):
    cells = [cell.model_copy(update={"warnings": []}) for cell in ranking.cells]
    bare = source_of(ranking.model_copy(update={"checks": [], "cells": cells}))
    assert blocks_of(checks_section(bare), Paragraph)[0].text == "No checks were recorded."
    assert blocks_of(warnings_section(bare), Paragraph)[0].text == "No score gave a warning."


def test_a_warning_is_said_once_with_the_models_it_concerns(ranking, source_of):
    (items,) = blocks_of(warnings_section(source_of(ranking)), Items)
    text = "The covariance is singular; its pseudo-inverse was used."
    assert items.items == [f"Regularised H-score, every model: {text}"]
    cells = [cell.model_copy(update={"warnings": []}) for cell in ranking.cells[:-2]]
    cells += [cell.model_copy(update={"warnings": ["slow"]}) for cell in ranking.cells[-2:]]
    (items,) = blocks_of(warnings_section(source_of(ranking.model_copy(update={"cells": cells}))), Items)
    assert items.items == ["Linear probe, mobilenetv2_100 · random and vit_tiny_patch16_224 · random: slow"]


def test_data_say_what_was_left_out_and_whether_images_are_shown(ranking, source_of, examples):
    without = data_section(source_of(ranking))
    facts = dict(blocks_of(without, Facts)[0].rows)
    assert facts["Groups"] == "patient leakage not checked (no group column)"
    assert facts["Unreadable files left out"] == "2"
    assert facts["Kinds of images"] == "28 × 28, grey, 8 bit (540 images); 64 × 64, grey, 16 bit (6 images)"
    assert blocks_of(without, Items)[0].items == ranking.dataset.skipped_unreadable
    assert "--no-images" in blocks_of(without, Paragraph)[0].text
    shown = data_section(source_of(ranking, thumbnails=examples.thumbnails(["a", "b"])))
    (gallery,) = blocks_of(shown, Gallery)
    assert {name: len(images) for name, images in gallery.images.items()} == {"a": 4, "b": 4}
    assert blocks_of(shown, Paragraph) == []


def test_images_never_fill_the_page(ranking, source_of, examples, monkeypatch):
    images = examples.thumbnails(["a", "b", "c"])
    monkeypatch.setattr("crossgraft.data.page._MOST_IMAGE_CHARACTERS", 7 * len(images[0].png_base64))
    section = data_section(source_of(ranking, thumbnails=images))
    (gallery,) = blocks_of(section, Gallery)
    shown = [len(files) for files in gallery.images.values()]
    assert 5 <= sum(shown) < 12
    assert max(shown) - min(shown) <= 1  # every class keeps its share
    assert blocks_of(section, Paragraph)[0].text.startswith(f"{12 - sum(shown)} images more are not shown")


def test_models_say_what_was_used_and_how(ranking, source_of, examples):
    identity, use = blocks_of(models_section(source_of(ranking)), Table)
    rows = {row["Model"]: row for row in csv_of(identity)}
    assert rows[examples.WITHOUT_HEAD]["Source classes"] == ""
    assert rows["mobilenetv2_100 · birds"] | {} == {
        "Model": "mobilenetv2_100 · birds",
        "Family": "MobileNet v2",
        "Architecture": "mobilenetv2_100 (timm)",
        "Parameters": "2224872",
        "Features": "1280",
        "Source classes": "1000",
        "Licence": "not stated",
    }
    assert csv_of(use)[0]["Preprocessing"] == "224 × 224, centre crop of 87.5 %, bicubic"
    assert use.notes == ["Features of 5 of 15 models were kept from an earlier run."]
    assert identity.muted_rows == use.muted_rows == frozenset({12, 13, 14})


def test_how_it_was_made_holds_everything_but_the_way_home(ranking, source_of):
    section = provenance_section(source_of(ranking))
    assert all(isinstance(block, Folded) for block in section.blocks)
    command, configuration = blocks_of(section, Code)
    assert command.text == "crossgraft rank …/breastmnist.npz --models zoo.yaml --seed 7"
    assert "data: …/breastmnist.npz" in configuration.text
    facts = {name: value for block in blocks_of(section, Facts) for name, value in block.rows}
    assert facts["torch"] == "2.6.0"
    assert facts["Data"] == "9f2b61c0d4e8"
    assert facts["Seed"] == "7"
    (stages,) = blocks_of(section, Table)
    assert [float(row["Seconds"]) for row in csv_of(stages)] == [181.2, 16.04]
    assert section.blocks[-1].summary == "Time spent: 3 min 17 s"


def test_references_or_nothing(ranking, source_of):
    assert references_section(source_of(ranking)).blocks[0].references == ranking.references
    assert references_section(source_of(ranking.model_copy(update={"references": []}))) is None


def test_the_demo_shows_the_split_the_fine_tuning_and_its_limits(examples, source_of):
    source = source_of(examples.demo_record())
    split = split_section(source)
    assert split.blocks[0].text == source.record.split_comparison.explanation
    assert "Shuffled minus grouped: 0.048" in split.blocks[1].caption
    check = fine_tuned_section(source)
    (figure,) = blocks_of(check, Figure)
    assert len(figure.drawings) == 2
    assert "15 models on 412 test images" in figure.caption
    (table,) = blocks_of(check, Table)
    for row, entry in zip(csv_of(table), source.record.fine_tuned, strict=True):
        assert float(row["full accuracy"]) == entry.full_accuracy
        assert float(row["linear low"]) == entry.linear_low
    (limits,) = blocks_of(limits_section(source), Items)
    assert limits.items == source.record.limits
    (verdict,) = blocks_of(demo_verdict_section(source), Verdict)
    assert verdict.following == "crossgraft check DATA"


def test_a_demo_without_fine_tuning_still_tells_its_limits(examples, source_of):
    bare = examples.demo_record().model_copy(update={"fine_tuned": []})
    assert fine_tuned_section(source_of(bare)) is None
    assert blocks_of(limits_section(source_of(bare)), Items)


def test_the_best_model_of_a_demo_has_its_numbers_its_pages_and_its_commands(examples, source_of):
    source = source_of(examples.demo_record())
    section = best_model_section(source)
    result, how, right, _ = [block.text for block in blocks_of(section, Paragraph)]
    assert "Balanced accuracy 0.87 (95\N{NO-BREAK SPACE}% interval 0.80 to 0.92) on 412 images of 7 groups" in result
    assert "is first by LogME" in how
    assert "34 train (4 writers), 16 val (3 writers) and 412 test (7 writers)" in how
    assert "1 of 2 right" in right
    metrics, predictions, places = blocks_of(section, Table)
    assert float(csv_of(metrics)[0]["Value"]) == 0.873
    assert [cell.strong for row in predictions.rows for cell in row] == [False, False, False, False, True, False]
    assert [row[0].href for row in places.rows] == ["tune/report.html", "predict/report.html", "tune/model/MODEL_CARD.md"]
    (code,) = blocks_of(section, Code)
    assert code.text.splitlines() == [
        "crossgraft tune digits.npz --model best.yaml --group-column writer",
        "crossgraft predict tune unseen",
    ]
    assert blocks_of(section, Gallery) == []
    assert best_model_section(source_of(source.record.model_copy(update={"best_model": None}))) is None


def test_pictures_of_a_demo_stand_under_what_was_written_and_read(examples, source_of):
    record = examples.demo_record()
    pictured = [row.model_copy(update={"png_base64": row.target}) for row in record.best_model.predictions]
    best = record.best_model.model_copy(update={"predictions": pictured})
    section = best_model_section(source_of(record.model_copy(update={"best_model": best})))
    (gallery,) = blocks_of(section, Gallery)
    assert gallery.images == {"5, right": ["5"], "8, read as 9": ["8"]}


def test_a_page_elsewhere_links_to_none_of_the_folders(examples, source_of):
    source = replace(source_of(examples.demo_record()), is_at_home=False)
    *_, places = blocks_of(best_model_section(source), Table)
    assert [row[0].href for row in places.rows] == [None, None, None]
