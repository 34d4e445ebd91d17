"""The recipe behind docs/results/backbones.md runs, and the page shows every family of the installed timm."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import timm

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_recipe_runs_small_and_resumes(tmp_path):
    recipe = REPOSITORY / "recipes" / "timm_families.py"
    command = [sys.executable, str(recipe), "--smoke", "--results", "kept", "--out", "page.md"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CROSSGRAFT_CACHE": str(tmp_path)}
    (tmp_path / "page.md").write_text("# By hand\n\n## Measured\nold\n")
    for printed in (4, 1):  # the second run reads what the first one kept
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(done.stdout.splitlines()) == printed
        assert "3 of 3 families work" in done.stdout
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert (
        page.startswith("# By hand\n\n## Measured\n") and "old" not in page and "| mambaout | test_mambaout |" in page
    )


def test_every_family_of_timm_is_on_the_page_and_in_the_table_of_smallest_models():
    table = json.loads((REPOSITORY / "recipes" / "smallest_models.json").read_text(encoding="utf-8"))
    if table["versions"]["timm"] != timm.__version__:
        pytest.skip(f"the table was measured with timm {table['versions']['timm']}")
    families = {row["name"] for row in table["families"] if row["library"] == "timm"}
    assert families == set(timm.list_modules())
    page = (REPOSITORY / "docs" / "results" / "backbones.md").read_text(encoding="utf-8")
    assert [family for family in families if f"| {family} | " not in page] == []
    assert "**fails**" not in page
