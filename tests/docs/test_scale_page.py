"""docs/explanation/scale.md: its tables are those of its benchmark, and its study runs."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest
import timm
from safetensors.torch import save_file

import crossgraft
from crossgraft import run_study
from support.here import Here

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "explanation" / "scale.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("timm_scale", REPOSITORY / "benchmarks" / "timm_scale.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["timm_scale"] = module
    spec.loader.exec_module(module)
    return module


def test_every_number_of_the_page_is_that_of_what_was_measured(benchmark):
    measured = benchmark.read(benchmark.FOLDER / "measured.csv")
    missing = [line for line in benchmark.tables(measured).splitlines() if line and line not in PAGE]
    assert missing == []


def test_the_picture_is_drawn_from_what_was_measured(benchmark, tmp_path):
    benchmark.draw(tmp_path / "seconds.svg", benchmark.read(benchmark.FOLDER / "measured.csv"))
    drawn, kept = (
        re.findall(r'<use xlink:href="[^"]*" x="([^"]*)"', path.read_text(encoding="utf-8"))
        for path in (tmp_path / "seconds.svg", benchmark.FOLDER / "seconds.svg")
    )
    assert drawn == kept and len(drawn) > 1000


def test_no_job_is_longer_than_all_and_more_cores_do_not_hurt(benchmark):
    assert benchmark.hours_on(1, [3600, 1800, 1800]) == 2
    assert benchmark.hours_on(2, [3600, 1800, 1800]) == benchmark.hours_on(64, [3600, 1800, 1800]) == 1


@pytest.mark.slow
def test_the_printed_study_runs(tmp_path, monkeypatch):
    """With two checkpoints of one architecture, on few small images."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = ["test_resnet.r160_in1k", "test_resnet.other"]
    for name in names:
        save_file(timm.create_model("test_resnet").state_dict(), tmp_path / f"{name}.safetensors")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(timm, "list_pretrained", lambda: names)
    small = {"data": "digits", "limit": 60, "image_size": 32, "scores": "logme", "weights_dir": ".", "cache_dir": "cache"}

    def run_small(study, **options):
        assert study["grid"] == {"models": {"test_resnet": ",".join(names)}}
        return run_study({**study, "fixed": {**study["fixed"], **small}}, executor=Here(), **options)

    monkeypatch.setattr(crossgraft, "run_study", run_small)
    found = {}
    exec(code, found)
    frame = found["result"].to_frame()
    assert {*names} <= {*frame["model"]} and len(found["result"].record.cells) == 1
