"""What measures docs/results/backbones.md runs, and the page shows every family of the installed timm."""

import importlib
from pathlib import Path

import pandas as pd
import pytest
import timm

REPOSITORY = Path(__file__).parents[2]
TABLE = REPOSITORY / "docs" / "results" / "backbones" / "families.csv"


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # as where a person starts it
def test_families_are_measured_once(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(REPOSITORY / "studies"))
    recipe = importlib.import_module("timm_families")
    rows = pd.read_csv(TABLE, dtype=str, keep_default_na=False)
    rows = rows[rows["family"].isin(["vision_transformer", "mambaout", "squeezenet"]) & ~rows["model"].str.endswith("vit_b_16")]
    table = tmp_path / "families.csv"
    rows.assign(versions="others", head="", scores="").to_csv(table, index=False, lineterminator="\n")
    for printed in (len(rows) + 1, 1):  # what was measured with these versions stays
        with pytest.raises(SystemExit) as ended:
            recipe.main(["--table", str(table)])
        out = capsys.readouterr().out
        assert (ended.value.code, len(out.splitlines())) == (0, printed)
        assert f"{len(rows)} of {len(rows)} families work" in out
    again = pd.read_csv(table, dtype=str, keep_default_na=False)
    same = ["library", "family", "model", "millions", "head", "num_features", "num_layers"]
    assert again[same].to_numpy().tolist() == rows[same].to_numpy().tolist()
    assert {*again["versions"]} == {recipe.VERSIONS}


def test_every_family_of_timm_is_on_the_page(monkeypatch, tmp_path):
    rows = pd.read_csv(TABLE, dtype=str, keep_default_na=False)
    if f"timm {timm.__version__}," not in rows["versions"].iloc[0]:
        pytest.skip(f"the table was measured with {rows['versions'].iloc[0]}")
    families = {*rows[rows["library"] == "timm"]["family"]}
    assert families == {*timm.list_modules()}
    page = (REPOSITORY / "docs" / "results" / "backbones.md").read_text(encoding="utf-8")
    assert [family for family in families if f"| {family} | " not in page] == []
    assert {*rows["failure"]} == {""}
    monkeypatch.syspath_prepend(str(REPOSITORY / "recipes"))
    assert importlib.import_module("pages").draw("backbones", tmp_path) == page
