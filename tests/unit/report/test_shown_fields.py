"""A field of a record shows itself: its title, its decimals and its digits stand once, beside it."""

from typing import Annotated

import pytest
from pydantic import Field

from crossgraft.records.base import Record, Share
from crossgraft.report.tables import Shown, columns_of, counts, table_of
from crossgraft.words.formatting import NumberFormat


class Row(Record):
    name: Annotated[str, Shown("Name")]
    accuracy: Annotated[Share | None, Shown("Accuracy", NumberFormat(decimals=2))] = Field(description="Of all images.")
    num_images: Annotated[int, Shown("Images", counts, page_only=True)]
    is_kept: Annotated[bool | None, Shown("Kept")] = None
    untold: str = ""


ROWS = [Row(name="a", accuracy=0.123, num_images=12345, is_kept=True), Row(name="b", accuracy=None, num_images=1)]


def test_columns_and_cells_follow_from_the_fields():
    table = table_of(ROWS, columns_of(Row, "name", "accuracy", "num_images", "is_kept"), caption="Rows", file_name="rows")
    assert [column.title for column in table.columns] == ["Name", "Accuracy", "Images", "Kept"]
    assert [column.numeric for column in table.columns] == [False, True, True, False]
    assert [column.page_only for column in table.columns] == [False, False, True, False]
    assert [[cell.text for cell in row] for row in table.rows] == [["a", "0.12", "12\u202f345", "yes"], ["b", "—", "1", "—"]]
    assert [row[1].values for row in table.rows] == [(0.123,), (None,)]


def test_the_schema_says_nothing_of_it():
    assert "Shown" not in str(Row.model_json_schema()) and Row.model_json_schema()["properties"]["name"]["type"] == "string"


def test_a_field_that_says_nothing_has_no_column():
    with pytest.raises(LookupError, match="untold"):
        columns_of(Row, "untold")
