"""The studies behind pages of docs/results: as many jobs as their committed tables say, entries of zoos that exist, smokes."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

from crossgraft import run_study
from crossgraft.bench.study import read_study
from crossgraft.choice import pieces
from unit.bench.test_rounds import Here

REPOSITORY = Path(__file__).parents[3]
STUDIES, RESULTS = REPOSITORY / "studies", REPOSITORY / "docs" / "results"
PAGES = {
    "ground-truth": 147 * 2 * 3,  # pairs × rates × whole and two cheap ones
    "ground-truth-seeds": 9 * 3 * 2 * 2,
    "sources-pretraining": 15,
    "sources": 61 * 2 * 2,
    "fewshot": 84,
    "fewshot-balanced": 22,
    "fewshot-inside": 24,
    "fewshot-class-weights": 4,
    "fewshot-gap": 14,
    "shortcuts": 3 * 36,
    "shortcut-sources-pretraining": 4,
    "shortcut-sources": 5 * 2,
    "real-scores": 6 * 2,
    "readable": 3,
    "noise-levels": 2,
    "thesis-table-3.3": 2 * 2 * 3,
}


def study(name, **options):
    return read_study(STUDIES / f"{name}.yaml", **options)


@pytest.mark.parametrize("name", PAGES)
def test_a_study_has_the_jobs_of_its_page_and_says_so(name):
    jobs = study(name).jobs
    assert len(jobs) == PAGES[name] == len({job.key for job in jobs})
    assert 1 <= len(study(name, smoke=True).jobs) <= 2
    first_lines = (STUDIES / f"{name}.yaml").read_text(encoding="utf-8").splitlines()[:3]
    assert all(line.startswith("#") for line in first_lines)
    assert any(f"{PAGES[name]} job" in line for line in first_lines)


def models_of(job):
    """What a job names as its model, or models."""
    named = job.keywords.get("model") or job.keywords.get("models") or job.inputs[0]
    return named if isinstance(named, list) else str(named).split(".yaml,") if named.endswith(".yaml") else [named]


@pytest.mark.parametrize("name", PAGES)
def test_every_network_is_an_entry_of_a_zoo(name):
    for model in {model for job in study(name).jobs for model in models_of(job)}:
        file, _, entry = model.removesuffix(".yaml").partition(".yaml:")
        zoo = yaml.safe_load((REPOSITORY / f"{file}.yaml").read_text(encoding="utf-8"))
        assert not entry or entry in {each["name"] for each in zoo}


def committed(folder, name):
    return pd.read_csv(RESULTS / folder / f"{name}.csv")


def test_the_trained_table_has_the_cells_of_its_studies():
    from_study = {
        (cell["model"], Path(str(job.inputs[0])).stem.removeprefix("small_"), cell["settings"], float(cell["learning_rate"]), 0)
        for cell, job in zip(study("ground-truth").cells, study("ground-truth").jobs, strict=True)
    }
    for cell, job in zip(study("ground-truth-seeds").cells, study("ground-truth-seeds").jobs, strict=True):
        name = Path(str(job.inputs[0])).stem.removeprefix("small_")
        from_study.add((cell["pair"].partition("; ")[2], name, "full", float(cell["learning_rate"]), int(cell["seed"])))
    names = {file.stem for file in (RESULTS / "ground_truth").glob("*.csv")}
    names = {name for name in names if not name.startswith("table_") and not name.endswith("-scores")}
    rows = pd.concat(committed("ground_truth", name).assign(set=name) for name in names)
    columns = ["model", "set", "fidelity", "learning_rate", "seed"]
    assert from_study == set(rows[columns].itertuples(index=False, name=None))


def test_the_trained_table_has_the_sides_and_epochs_of_its_study():
    read = study("ground-truth")
    rows = pd.concat(committed("ground_truth", name).assign(set=name) for name in ("busi", "cifar10"))
    known = rows[rows["seed"] == 0].set_index(["model", "set", "fidelity"])
    for cell, job in zip(read.cells, read.jobs, strict=True):
        place = (cell["model"], Path(str(job.inputs[0])).stem.removeprefix("small_"), cell["settings"])
        if place[1] in ("busi", "cifar10"):
            assert {*known.loc[[place], "side"]} == {job.keywords["image_size"]}
            assert {*known.loc[[place], "epochs"]} == {job.keywords["epochs"]}


def test_reliance_is_asked_of_every_artefact_of_the_table():
    rows = committed("shortcuts", "busi")
    assert {*(rows["confounder"] + ":" + rows["options"])} == {*study("shortcuts").factors["confounders"]}


@pytest.mark.parametrize(("name", "kind"), [("fewshot", "heads"), ("fewshot-balanced", "balanced")])
def test_fewshot_heads_are_those_of_the_table(name, kind):
    rows = committed("fewshot", "busi")
    asked = {
        piece.replace("=true", "=True").replace("decay=0", "decay=0.0") for piece in pieces(study(name).jobs[0].keywords["heads"])
    }
    assert {*rows[rows["kind"] == kind]["head"]} == asked


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sources", "fewshot", "shortcuts", "real-scores"])
def test_a_smoke_of_each_kind_gives_the_number_that_is_compared(name, tmp_path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    record = run_study(STUDIES / f"{name}.yaml", out=tmp_path / "out", smoke=True, executor=Here()).record
    assert record.num_done == len(study(name, smoke=True).jobs) and not record.failures
