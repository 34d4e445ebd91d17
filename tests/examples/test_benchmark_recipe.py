"""recipes/benchmark.py runs with the package alone, and its page says what its rows say."""

import re
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "results" / "benchmark.md"


def test_one_small_table_is_replayed_and_its_page_can_be_written_again(load_recipe, tmp_path, capsys):
    recipe = load_recipe("benchmark")
    page = tmp_path / "benchmark.md"
    recipe.main(["--smoke", "--out", str(page)])
    text = page.read_text(encoding="utf-8")
    assert "dart: 3 targets" in capsys.readouterr().out
    assert re.search(r"\| Cold start \| 3 \| 3 \| ", text)
    assert "Noise ceiling: not known" in text
    lines = page.with_suffix(".csv").read_text(encoding="utf-8")
    recipe.main(["--page-only", "--out", str(page)])
    assert page.read_text(encoding="utf-8") == text
    assert page.with_suffix(".csv").read_text(encoding="utf-8") == lines


def test_orders_know_what_they_say(load_recipe):
    recipe = load_recipe("benchmark")
    found = recipe.replay_of("thesis-architectures")
    assert found.without == ["thesis, Table 6.4", "thesis, Table 6.5"]
    assert {row.origin for row in found.known_elsewhere()} == {"elsewhere"}
    methods = {line.method: line for line in recipe.measure(found)}
    own, elsewhere = recipe.known_rows(found.benchmark, found.names), found.known_elsewhere()
    orders = recipe.orders(found, found.names, 0, own, elsewhere)
    prior = recipe.held_out_prior(found.benchmark)[0]
    assert np.array_equal(np.argsort(orders["Order of select"]), np.argsort(prior))
    assert np.isnan(orders["Mean rank elsewhere"]).any() and np.isfinite(orders["Mean rank elsewhere"]).sum() > 2
    for part, whole in (("ImageNet top-1", "networks with ImageNet top-1"), ("Mean rank elsewhere", "networks known elsewhere")):
        same = orders[f"Cold start, {whole}"]
        assert np.array_equal(np.isnan(same), np.isnan(orders[part]))
        assert np.array_equal(same[~np.isnan(same)], orders["Cold start"][~np.isnan(same)])
    assert {"Static prior", "Aggregation", "LogME", *orders} <= methods.keys()
    with_itself = recipe.orders(found._replace(without=[]), found.names, 0, own, elsewhere)["Cold start"]
    assert not np.array_equal(with_itself, orders["Cold start"])  # the whole publication is left out


def test_differences_are_paired_by_target_and_intervals_leave_out_groups(load_recipe):
    recipe, page = load_recipe("benchmark"), load_recipe("benchmark_page")

    def lines(method, taus, groups):
        return [
            recipe.Line("t", str(i), group, method, tau, 0.0) for i, (tau, group) in enumerate(zip(taus, groups, strict=True))
        ]

    groups = ["a", "a", "b", "c"]
    some = lines("A", [0.1, 0.3, 0.5, 0.7], groups) + lines("B", [0.0, 0.1, 0.4, 0.8], groups)[1:]
    assert page._paired("A", "B", some) == [(0.3, 0.1, "a"), (0.5, 0.4, "b"), (0.7, 0.8, "c")]
    three = lines("A", [0.1, 0.3, 0.5, 0.7], groups) + lines("Static prior", [0.0, 0.0, 0.0, 0.0], groups)
    assert "| A | 4 | 3 | 0.400 [" in page._table(three, ["A"])
    two = lines("A", [0.1, 0.3, 0.5, 0.7], ["a", "a", "b", "b"]) + lines("Static prior", [0.0] * 4, ["a", "a", "b", "b"])
    assert "| A | 4 | 2 | 0.400 | +0.400 |" in page._table(two, ["A"])


def test_the_published_page_has_every_table_and_equals_its_rows(load_recipe):
    recipe = load_recipe("benchmark")
    lines = recipe.read_lines(PAGE.with_suffix(".csv"))
    assert {line.table for line in lines} == set(recipe.ALL)
    assert len({(line.table, line.target) for line in lines}) >= 40
    assert recipe.write_page(lines) == PAGE.read_text(encoding="utf-8")
    prior = [line.weighted_kendall for line in lines if (line.table, line.method) == ("sfda_cnn", "Static prior")]
    assert np.mean(prior) == pytest.approx(0.837, abs=0.001)
