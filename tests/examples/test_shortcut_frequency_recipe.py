"""recipes/shortcut_frequency.py runs without data and does nothing twice; its ranks and its page are those of its rows."""

import csv

import numpy as np
import pytest
from scipy.stats import pearsonr, rankdata, spearmanr


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("shortcut_frequency")


@pytest.fixture
def page(load_recipe):
    return load_recipe("shortcut_frequency_page")


@pytest.fixture
def ranks(load_recipe):
    return load_recipe("shortcut_frequency_ranks")


FAMILIES = ["A"] * 4 + ["B"] * 3 + ["C"]
OVERLAPS = [0.1, 0.3, 0.2, 0.4, 0.9, 0.8, 0.7, 0.5]
SRI = [0.05, 0.1, 0.2, 0.3, 0.01, 0.03, 0.02, 0.5]
RMS = [8, 7, 6, 5, 4, 3, 2, 1]


def planted(overlaps=OVERLAPS, outcomes=("relies",) * 7 + ("undetectable",)):
    """Rows of overlaps and of reliance, of eight networks and one artefact."""
    both = {"confounder": "low_pass", "options": "0.244"}
    rows = [
        {
            **both,
            "network": f"net {place}",
            "family": family,
            "overlap": str(overlap),
            "overlap_probe": str(-overlap),
            "rms": str(rms),
        }
        for place, (family, overlap, rms) in enumerate(zip(FAMILIES, overlaps, RMS, strict=True))
    ]
    reliance = [
        {**both, "network": f"net {place}", "sri": str(sri), "outcome": outcome}
        for place, (sri, outcome) in enumerate(zip(SRI, outcomes, strict=True))
    ]
    return rows, reliance


def test_ranks_are_spearmans_over_all_over_assessable_and_by_rms(ranks):
    (found,) = ranks.rank_set("Set", *planted())
    assert (found.artefact, found.overlap.number) == ("low_pass:0.244", 8)
    assert found.overlap.rho == pytest.approx(spearmanr(OVERLAPS, SRI)[0])
    number, rho, _ = found.assessable
    assert number == 7 and rho == pytest.approx(spearmanr(OVERLAPS[:7], SRI[:7])[0])
    assert found.probe.rho == pytest.approx(-found.overlap.rho)
    assert found.rms.rho == pytest.approx(spearmanr(RMS, SRI)[0])


def test_within_families_ranks_are_centred_in_each(ranks):
    rows, reliance = planted()
    number, rho, p_value = ranks.within_families(ranks.joined(rows, reliance))
    sides = []
    for values in (OVERLAPS, SRI):
        parts = [rankdata(values[start:stop]) for start, stop in ((0, 4), (4, 7))]
        sides.append(np.concatenate([part - part.mean() for part in parts]))
    assert number == 7 and rho == pytest.approx(pearsonr(*sides)[0])
    assert 0 < p_value <= 1
    # families far apart from each other decide ρ over all networks, and not within them
    assert ranks.rank_set("Set", rows, reliance)[0].overlap.rho < 0 < rho


def test_a_perfect_order_within_families_has_a_small_p_and_its_reverse_a_large_one(ranks):
    ordered = [sri / 2 for sri in SRI]
    _, rho, p_value = ranks.within_families(ranks.joined(*planted(ordered)))
    assert rho == pytest.approx(1) and p_value < 0.05
    _, rho, p_value = ranks.within_families(ranks.joined(*planted([-value for value in ordered])))
    assert rho == pytest.approx(-1) and p_value > 0.95


def test_networks_without_an_sri_or_without_an_overlap_are_left_out(ranks):
    rows, reliance = planted()
    rows[0]["overlap"], reliance[1]["sri"] = "", ""
    assert {each.network for each in ranks.joined(rows, reliance[:-1])} == {f"net {place}" for place in range(2, 7)}
    assert ranks.rank_set("Set", rows, []) == []


def test_half_of_a_spectrum_lies_below(page):
    assert page.half_below([0, 0.1, 0.2, 0.3], [0, 0.25, 0.25, 0.5]) == pytest.approx(0.2)
    assert page.half_below([0, 0.1, 0.2], [0, 1, 1]) == pytest.approx(0.1)


def test_the_page_has_the_ranks_and_says_what_is_not_measured(page, tmp_path):
    rows, reliance = planted()
    spectra = [
        {"network": "net 0", "family": "A", "input_pixels": "4", "cycles_per_pixel": f"{ring / 4}", **values}
        for ring, values in enumerate(dict.fromkeys(page.CURVES, value) for value in ("0", "1"))
    ]
    sets = [("one", "One"), ("two", "Two"), ("three", "Three")]
    tables = {"one": rows, "one_spectra": spectra, "two": rows}
    page.write_page(tmp_path / "page.md", sets, tables, {"one": reliance})
    text = (tmp_path / "page.md").read_text()
    rho = spearmanr(OVERLAPS, SRI)[0]
    assert f"| low_pass:0.244 | 8 | {rho:+.2f} |".replace("-", "−") in text
    assert "## Two\n\nThe SRI of these networks is not measured yet." in text and "## Three" not in text
    assert "| net 0 | 4 | 0.125 | 0.125 | 0.125 | 0.10 |" in text
    assert "*All* networks: ρ is positive in 0 of 1" in text.replace("\n", " ") and "{" not in text


@pytest.mark.slow
def test_without_data_it_runs_and_does_nothing_twice(recipe, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path / "cache"))
    common = ["--smoke", "--rows", str(tmp_path / "rows"), "--reliance", str(tmp_path), "--out", str(tmp_path / "page.md")]
    recipe.main([*common, "--only", "noise", "ct"])
    told = capsys.readouterr().out
    assert "noise resnet20 · as built: 1 artefacts" in told and "ct is done" in told
    with (tmp_path / "rows" / "noise.csv").open() as opened:
        (row,) = csv.DictReader(opened)
    assert (row["confounder"], row["options"]) == ("gamma", "1.1") and 0 < float(row["overlap"]) <= 1
    recipe.main([*common, "--only", "noise", "ct", "tuned"])
    assert capsys.readouterr().out == "tuned is done\n"
    text = (tmp_path / "page.md").read_text()
    assert "| resnet20 · as built | 16 |" in text and "low-pass" in text and "| 0 | 20 | 4096 |" in text


@pytest.mark.slow
def test_only_artefacts_of_the_whole_image_are_compared(recipe):
    from crossgraft.edit.edits import choose_edits

    scopes = {name: choose_edits(f"{name}:{several[0]}")[0].scope for name, several in recipe.STRENGTHS.items()}
    assert sum(scope == "global" for scope in scopes.values()) == 11
