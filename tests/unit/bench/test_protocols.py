"""The studies that ship: as many jobs as the papers' tables have cells, options that exist, and a smoke of each kind."""

from importlib import import_module
from pathlib import Path

import pytest
import timm
import yaml
from torchvision.models import list_models

from crossgraft import run_study
from crossgraft.bench.study import read_study
from crossgraft.choice import choose, pieces
from crossgraft.fewshot import HEADS, SAMPLERS
from crossgraft.options._values import checked
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.choices import read_grid
from crossgraft.tune.presets import settings_of
from support.studies import Here

STUDIES = Path(__file__).parents[3] / "studies"
JOBS = {
    "itm-table-3-ground-truth": 10 * 10,
    "thesis-table-6.5-architectures": 9 * 11,
    "thesis-table-6.4-sources": 15 * 11 - 11,  # no target is its own source; four sources are no targets
    "thesis-leave-target-out": 11,
    "repsim-table-1": 5,  # each with 5 variants × 3 seeds
    "repsim-table-4-peft": 1,  # 6 variants
    "repsim-table-5-ablations": 1,  # 5 variants × 3 seeds
    "copa-table-1": 13 * 5,  # sets × seeds, 4 heads each
    "copa-table-2": 13 * 5,
    "sim-table-2": 7 * 2 * 3 * 3,  # networks × with and without × sets × seeds
    "sim-table-3": 4 * 2,
    "sim-table-4": 7,  # three heads each
    "smoke": 3 * 3,  # of no paper
}
POINTS = {
    "itm-table-3-ground-truth": 3 * 2,
    "thesis-table-6.5-architectures": 6 * 5 * 2 * 2,
    "thesis-table-6.4-sources": 6 * 5 * 2 * 2,
}


def grid_of(job):
    return read_grid(checked(TuneOptions, job.keywords).grid)


def study(name, **options):
    return read_study(STUDIES / f"{name}.yaml", **options)


def test_every_file_is_counted():
    """Those behind pages of docs/results are counted in tests/examples/test_pages.py."""
    published = {file.stem for file in STUDIES.glob("*.yaml") if "docs/results/" not in file.read_text(encoding="utf-8")}
    assert published == {*JOBS}


@pytest.mark.parametrize("name", JOBS)
def test_a_study_has_the_jobs_of_its_table_and_says_so(name):
    jobs = study(name).jobs
    assert len(jobs) == JOBS[name] == len({job.key for job in jobs})
    assert 1 <= len(study(name, smoke=True).jobs) <= 4
    first_lines = (STUDIES / f"{name}.yaml").read_text(encoding="utf-8").splitlines()[:4]
    assert all(line.startswith("#") for line in first_lines[:2])
    assert name == "smoke" or any(f"{JOBS[name]} job" in line for line in first_lines)


@pytest.mark.parametrize("name", POINTS)
def test_a_grid_has_the_points_of_the_paper(name):
    assert {len(grid_of(job)) for job in study(name).jobs} == {POINTS[name]}


def test_each_target_has_its_own_batch_sizes_and_the_network_that_has_not_seen_it():
    sources = study("thesis-table-6.4-sources")
    by_cell = {(cell["source"], cell["data"]): job for cell, job in zip(sources.cells, sources.jobs, strict=True)}
    assert by_cell["MedMNIST", "Breast"].keywords["model"] == "studies/zoo/thesis_sources.yaml:without Breast"
    assert len({by_cell["MedMNIST", target].keywords["model"] for target in sources.factors["data"]}) == 11
    assert {point["batch_size"] for point in grid_of(by_cell["ImageNet", "Breast"])} == {32, 64}
    assert ("Breast", "Breast") not in by_cell and ("Chest", "Breast") in by_cell


@pytest.mark.parametrize("name", JOBS)
def test_models_are_known_or_files_of_the_user(name):
    known = {*timm.list_models(), *timm.list_pretrained(), *(f"torchvision:{each}" for each in list_models())}
    for smoke in (False, True):
        for model in {str(job.keywords["model"]) for job in study(name, smoke=smoke).jobs}:
            file, _, entry = model.partition(".yaml:")
            if file.startswith("studies/"):
                zoo = yaml.safe_load((STUDIES.parent / f"{file}.yaml").read_text(encoding="utf-8"))
                assert entry in {each["name"] for each in zoo}
            else:
                assert model in known or (model.startswith("data/") and not smoke)


@pytest.mark.parametrize("name", [name for name in JOBS if name.startswith("copa")])
def test_heads_and_samplers_are_known(name):
    read = study(name)
    for heads in {job.keywords["heads"] for job in read.jobs}:
        assert [choose(HEADS, head).title for head in pieces(heads)] == read.rows["title"]
    choose(SAMPLERS, read.jobs[0].keywords["sampler"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "trainings"), [("itm-table-3-ground-truth", 6), ("thesis-table-6.4-sources", 120), ("sim-table-3", 1)]
)
def test_nothing_contradicts_itself_in_the_settings_of_the_paper(name, trainings, monkeypatch):
    monkeypatch.chdir(STUDIES.parent)
    job = study(name).jobs[-1]
    values = {key: value for key, value in job.keywords.items() if key not in ("allow_download", "weights_key")}
    if (preset := values.pop("preset", None)) is not None:  # whose numbers cannot be made smaller beside its name
        values = {**settings_of(preset), **values}
    small = {"model": "studies/zoo/random.yaml:test_vit", "image_size": 16}
    small |= {name: 10 for name in ("per_class", "val_per_class") if name in values}
    module, _, function = job.verb.partition(":")
    result = getattr(import_module(module), function)("digits", **{**values, **small}, plan=True)
    plan = result.shown
    assert getattr(plan, "num_trainings", None) == trainings or plan.num_jobs == trainings


@pytest.mark.slow
def test_a_smoke_has_a_row_for_each_head(tmp_path, monkeypatch):
    monkeypatch.chdir(STUDIES.parent)
    record = run_study(STUDIES / "copa-table-1.yaml", out=tmp_path / "out", smoke=True, executor=Here()).record
    assert (record.num_done, record.compare) == (1, "title")
    assert {cell.levels["title"]: cell.value is not None for cell in record.cells} == {"URL": True, "CoPA": True}


@pytest.mark.slow
def test_a_smoke_has_a_row_for_each_variant(tmp_path, monkeypatch):
    monkeypatch.chdir(STUDIES.parent)
    result = run_study(STUDIES / "repsim-table-4-peft.yaml", out=tmp_path / "out", smoke=True, executor=Here())
    assert [cell.levels["variant"] for cell in result.record.cells if cell.value is not None] == ["LoRA", "LoRA + RepSim"]
    assert {"cka", "metric"} <= {*result.to_frame()["metric"]}
