"""The replay that a how-to prints is what its table gives."""

import re
from pathlib import Path

import crossgraft
from crossgraft.select.replay.page import METHOD_TITLES, ORDER_TITLES, estimate, regret_in_words
from crossgraft.words.formatting import NumberFormat

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "which-model-in-one-hour.md"


def test_the_printed_replay_is_that_of_the_printed_table(tmp_path):
    page = PAGE.read_text(encoding="utf-8")
    table = tmp_path / "my_results.csv"
    table.write_text(re.search(r"```csv\n(.*?)```", page, re.DOTALL)[1], encoding="utf-8")
    record = crossgraft.replay_selection(table, budget="50%").record
    printed = re.search(r"--replay my_results.csv --budget 50%\n```\n\n```text\n(.*?)```", page, re.DOTALL)[1]
    printed = printed.replace("\norder\n", "\n").replace("random   ", "random order ")  # a title that was broken in two
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    for row in record.rows:
        beyond = "—" if row.beyond_select is None else estimate(row.beyond_select)
        worst = f"{row.worst_regret:.4f} {row.num_targets}"
        assert f"{METHOD_TITLES[row.method]} {regret_in_words(row)} {beyond} {worst}" in lines
    for row in record.orders:
        mean, two = row.weighted_kendall, NumberFormat(decimals=2)
        assert any(line.startswith(f"{ORDER_TITLES[row.order]} {two(mean.value)}") for line in lines)
    assert record.conclusion in lines
