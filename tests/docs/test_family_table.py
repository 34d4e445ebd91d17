"""The recipe behind docs/results/backbones.md runs, and the page shows every family of the installed timm."""

import json
import runpy
import sys
from pathlib import Path

import pytest
import timm

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # as where a person starts it
def test_the_recipe_runs_small_and_resumes(tmp_path, monkeypatch, capsys):
    recipe = REPOSITORY / "recipes" / "timm_families.py"
    monkeypatch.setattr(sys, "argv", [str(recipe), "--smoke", "--results", "kept", "--out", "page.md"])
    monkeypatch.syspath_prepend(str(recipe.parent))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.md").write_text("# By hand\n\n## Measured\nold\n")
    for printed in (4, 1):  # the second run reads what the first one kept
        runpy.run_path(str(recipe), run_name="__main__")
        out = capsys.readouterr().out
        assert len(out.splitlines()) == printed
        assert "3 of 3 families work" in out
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.startswith("# By hand\n\n## Measured\n") and "old" not in page and "| mambaout | test_mambaout |" in page


def test_every_family_of_timm_is_on_the_page_and_in_the_table_of_smallest_models():
    table = json.loads((REPOSITORY / "recipes" / "smallest_models.json").read_text(encoding="utf-8"))
    if table["versions"]["timm"] != timm.__version__:
        pytest.skip(f"the table was measured with timm {table['versions']['timm']}")
    families = {row["name"] for row in table["families"] if row["library"] == "timm"}
    assert families == set(timm.list_modules())
    page = (REPOSITORY / "docs" / "results" / "backbones.md").read_text(encoding="utf-8")
    assert [family for family in families if f"| {family} | " not in page] == []
    assert "**fails**" not in page
