"""With several labels an image the page speaks of labels, and shows each by itself."""

import pytest

from crossgraft.data.page import data_section
from crossgraft.rank.page import labels_section, ranking_heading
from crossgraft.report.tables import Table
from crossgraft.report.terminal import record_as_text


@pytest.fixture
def several(ranking):
    """The example ranking as one of two labels, of which the second was not scored."""
    first, second = ranking.dataset.class_names
    dataset = ranking.dataset.model_copy(update={"task": "multi-label"})
    cells = [cell if cell.value is None else cell.model_copy(update={"per_label": {first: cell.value}}) for cell in ranking.cells]
    left_out = {second: "3 images with it, where at least 10 are needed."}
    return ranking.model_copy(update={"dataset": dataset, "cells": cells, "labels_left_out": left_out})


def test_each_label_has_a_row_with_the_models_in_the_order_of_the_ranking(several, source_of):
    section = labels_section(source_of(several))
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    ranked = [row.model for row in several.ranking(several.primary_score).rows]
    with_value = [model for model in ranked if several.cell(model, several.primary_score).value is not None]
    assert [column.title for column in table.columns] == ["Label", "Images with it", *with_value]
    (row,) = table.rows
    assert row[0].text == several.dataset.class_names[0]
    assert row[1].values == (several.dataset.class_counts[0],)
    assert row[2].values == (several.cell(with_value[0], several.primary_score).value,)
    assert table.notes == [f"Not scored: {several.dataset.class_names[1]}: 3 images with it, where at least 10 are needed."]


def test_one_class_an_image_has_no_such_section(ranking, source_of):
    assert labels_section(source_of(ranking)) is None


def test_headings_say_how_many_labels_were_scored(several, ranking, source_of):
    assert "2 labels (1 scored)" in ranking_heading(source_of(several)).summary
    assert "2 labels (1 scored)" in record_as_text(several)
    assert "2 classes" in ranking_heading(source_of(ranking)).summary
    complete = several.model_copy(update={"labels_left_out": {}})
    assert "2 labels ·" in ranking_heading(source_of(complete)).summary


def test_the_balance_counts_images_with_each_label(several, source_of):
    figure = next(block for block in data_section(source_of(several)).blocks if hasattr(block, "drawings"))
    assert figure.caption.startswith("Images with each label; 546 images have 546 labels in all.")
    assert "The largest label has" in figure.caption
