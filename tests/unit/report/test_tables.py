"""Cells keep the exact values behind what they show."""

from __future__ import annotations

import csv
import io
import math
from urllib.parse import unquote

from crossgraft.report.tables import Cell, Column, Table, interval, number, whole, words, yes_or_no
from crossgraft.words.formatting import NumberFormat


def read_csv(table: Table) -> list[list[str]]:
    head, _, body = table.csv_uri.partition(",")
    assert head == "data:text/csv;charset=utf-8"
    return list(csv.reader(io.StringIO(unquote(body))))


def table_of(*cells: Cell, columns=None) -> Table:
    return Table(caption="c", columns=columns or [Column("x")] * len(cells), rows=[cells], file_name="f")


def test_csv_has_every_digit_and_both_ends_of_an_interval():
    value = 0.1 + 0.2
    columns = [Column("Model"), Column("Value", numeric=True), Column("95 %", numeric=True, csv_titles=("low", "high"))]
    as_text = NumberFormat(decimals=2)
    table = table_of(words("a, b"), number(value, as_text), interval(value - 1, None, as_text), columns=columns)
    header, row = read_csv(table)
    assert header == ["Model", "Value", "low", "high"]
    assert row[0] == "a, b"
    assert float(row[1]) == value
    assert float(row[2]) == value - 1
    assert row[3] == ""


def test_csv_disarms_formulas_but_not_negative_numbers():
    _, row = read_csv(table_of(words("=HYPERLINK(1)"), words("-1"), words("@x"), number(-1.5, NumberFormat(1))))
    assert row == ["'=HYPERLINK(1)", "'-1", "'@x", "-1.5"]


def test_csv_uri_has_no_character_that_ends_an_attribute():
    uri = table_of(words('"><script>alert(1)</script>')).csv_uri
    assert not set("\"<>'&") & set(uri)


def test_sort_keys_are_numbers_or_missing():
    as_text = NumberFormat(decimals=1)
    assert number(2.25, as_text).sort_key == 2.25
    assert whole(1500, "1 500").sort_key == 1500
    assert interval(0.5, 0.7, as_text).sort_key == 0.5
    for cell in (number(None, as_text), number(math.nan, as_text), whole(None), words("a")):
        assert cell.sort_key is None


def test_answers():
    assert [yes_or_no(value).text for value in (True, False, None)] == ["yes", "no", "—"]
