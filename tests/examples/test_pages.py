"""Pages of docs/results are what is drawn from their committed tables, and studies behind them have the jobs that they say."""

import importlib
import re
from pathlib import Path

import pytest

from crossgraft import run_study
from crossgraft.bench.study import read_study
from unit.bench.test_rounds import Here

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "own_models"
PAGES = sorted(file.stem for file in (ROOT / "recipes" / "drawing").glob("*.md"))
STUDIES = (
    *("vit", "fine-tuning", "fine-tuning-folds", "adapters", "repsim", "repsim-weights", "repsim-ablations", "sim"),
    *("sim-regularisers", "sim-depth", "sim-sweeps", "sim-fine-tuning", "sim-dropout", "similarity", "selection"),
    *("domains-digits", "domains-handwriting", "domains-ham10000"),
)


@pytest.fixture
def recipes(monkeypatch):
    """Import a module of recipes/; the folder is on the path meanwhile."""
    monkeypatch.syspath_prepend(str(ROOT / "recipes"))
    return importlib.import_module


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_is_drawn_from_its_table(recipes, name, tmp_path):
    """Text to the letter; figures by name, as another matplotlib may place ticks elsewhere."""
    text = recipes("pages").draw(name, tmp_path)
    assert text == (ROOT / "docs" / "results" / f"{name}.md").read_text(encoding="utf-8")
    folder = ROOT / "docs" / "results" / name
    figures, tables = ([file for file in tmp_path.iterdir() if file.suffix == ending] for ending in (".svg", ".csv"))
    assert {file.name for file in figures} == {file.name for file in folder.glob("*.svg")}
    assert all(file.read_bytes().startswith(b"<?xml") for file in figures)
    assert all(file.read_bytes() == (folder / file.name).read_bytes() for file in tables)


def test_a_page_that_nobody_draws_is_refused(recipes, capsys):
    assert recipes("pages").main(["adapter"]) == 2
    assert "adapters" in capsys.readouterr().err


def test_what_differs_is_named_and_nothing_is_written(recipes, monkeypatch, capsys):
    pages = recipes("pages")
    page = ROOT / "docs" / "results" / "own-models.md"
    before = page.read_bytes()
    monkeypatch.setattr(pages, "draw", lambda name, figures: "other")
    assert pages.main(["own-models", "--check"]) == 1
    assert capsys.readouterr().out == "differs: docs/results/own-models.md\n"
    assert page.read_bytes() == before


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_has_the_jobs_that_it_says(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    said = re.search(
        r"([\d ]+) jobs?\b", "\n".join((ROOT / "studies" / f"{name}.yaml").read_text(encoding="utf-8").split("\n")[:4])
    )
    code = {} if name == "selection" else {"allow_code": EXAMPLES}
    assert len(read_study(f"studies/{name}.yaml", **code).jobs) == int(said[1])
    assert 1 <= len(read_study(f"studies/{name}.yaml", smoke=True).jobs) <= 4


@pytest.mark.parametrize(
    ("name", "folder", "num_jobs"),
    [("adapters", "adapters", 180), ("repsim", "repsim", 639), ("repsim-weights", "repsim", 108), ("sim", "sim", 35),
     ("sim-regularisers", "sim", 45), ("sim-depth", "sim", 12), ("sim-sweeps", "sim", 38), ("sim-fine-tuning", "sim", 120),
     ("sim-dropout", "sim", 20), ("similarity", "similarity", 60), ("repsim-ablations", "repsim", 66)],
)  # fmt: skip
def test_a_study_names_rows_as_the_committed_table_does(recipes, name, folder, num_jobs, monkeypatch):
    """Every cell has its row, so that what is trained again takes its place."""
    monkeypatch.chdir(ROOT)
    study = read_study(f"studies/{name}.yaml", allow_code=EXAMPLES)
    cells = {(cell["data"], cell["model"], cell["settings"], int(cell.get("seed", 0))) for cell in study.cells}
    rows = recipes("tables").read(ROOT / "docs" / "results" / folder, study.factors["data"])
    known = {*rows[["set", "model", "variant", "seed"]].itertuples(index=False, name=None)}
    assert len(cells) == num_jobs
    assert cells <= known


@pytest.mark.slow
def test_a_small_study_becomes_rows_with_all_numbers(recipes, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    run_study("studies/sim.yaml", out=tmp_path / "study", smoke=True, executor=Here())
    kept = recipes("kept")
    rows = kept.trainings(tmp_path / "study").set_index(["set", "model", "variant", "seed"])
    assert [*rows.index] == [("cifar10", "resnet20", "rho_sim", 0)]
    wanted = ("accuracy", "accuracy_low", "auc", "nll", "num_trained", "roughness", "num_steps", "best_epoch")
    assert rows[[*wanted, "num_own_parameters"]].notna().all(axis=None)
    assert "log_gradient_norms=True method=scratch" in rows["settings"].iloc[0]

    table = tmp_path / "tables" / "cifar10.csv"
    table.parent.mkdir()
    committed = ROOT / "docs" / "results" / "sim" / "cifar10.csv"
    table.write_bytes(committed.read_bytes())
    kept.main([str(tmp_path / "study"), str(table.parent), "--check"])
    assert table.read_bytes() == committed.read_bytes()
    kept.main([str(tmp_path / "study"), str(table.parent)])
    old, new = (file.read_text(encoding="utf-8").splitlines() for file in (committed, table))
    assert [line for line, other in zip(old, new, strict=True) if line != other] == [
        line for line in old if line.startswith("resnet20,rho_sim,0,")
    ]


@pytest.mark.slow
def test_a_replayed_selection_is_the_committed_one(recipes, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    run_study("studies/selection.yaml", out=tmp_path / "study", smoke=True, executor=Here())
    kept = recipes("kept")
    (_, old, new), *_ = kept.tables(tmp_path / "study", ROOT / "docs" / "results" / "selection.csv")
    lines = kept.compared(old, new)
    assert lines[0] == "28 of 28 rows are committed"
    assert all(line.endswith(": equal") for line in lines[1:])


@pytest.mark.slow
def test_a_study_of_domains_becomes_one_row_a_domain(recipes, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    run_study("studies/domains-digits.yaml", out=tmp_path / "study", smoke=True, executor=Here())
    kept = recipes("kept")
    committed = ROOT / "docs" / "results" / "domains"
    place = tmp_path / "tables"
    place.mkdir()
    (place / "digits_by_speaker.csv").write_text(
        (committed / "digits_by_speaker.csv").read_text(encoding="utf-8").split("\n")[0] + "\n"
    )
    (place / "linear.csv").write_bytes((committed / "linear.csv").read_bytes())
    kept.main([str(tmp_path / "study"), str(place)])
    rows = recipes("tables").read_csv(place / "digits_by_speaker.csv")
    assert set(rows["variant"]) == {"erm", "irm + rho_sim", "mixstyle"}
    assert set(rows["domain"]) == {"writer 01"}
    assert rows[["unseen", "unseen_low", "seen", "gap", "val", "best_epoch", "num_unseen", "seconds"]].notna().all(axis=None)
    assert rows.set_index("variant").loc["erm", "learning_rate"] in (0.004, 0.008)
