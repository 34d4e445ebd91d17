"""A process that does one job after the other keeps what it has loaded, and nothing of that is seen in a number."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from crossgraft import write_report
from crossgraft.bench.job import do_jobs
from crossgraft.bench.lease import Limits
from crossgraft.bench.study import read_study
from crossgraft.models import ModelSpec, load, load_backbone
from crossgraft.models.classifier import make_classifier
from crossgraft.running.unattended import unattended

FIXED = {"data": "scans", "model": "test_vit", "method": "scratch", "image_size": 16, "epochs": 1, "batch_size": 8}


@pytest.fixture
def scans(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("yes", "no"):
        (tmp_path / "scans" / name).mkdir(parents=True)
        for number in range(12):
            Image.fromarray(rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)).save(tmp_path / "scans" / name / f"{number}.png")


def forget():
    load._KEPT.clear()


def done(out, jobs):
    """Numbers and weights of each job, in one process."""
    folder = Path(out)
    ended = do_jobs(folder, jobs, place=str(Path.cwd()), driver=None, seconds=60, limits=Limits())
    assert ended == ["done"] * len(jobs), [file.read_text() for file in folder.glob("jobs/*/failed.json")]
    runs = [folder / "jobs" / job.key / "1" for job in jobs]
    numbers = [json.loads((run.parent / "done.json").read_text())["numbers"] for run in runs]
    return numbers, [next((run / "model").rglob("*.safetensors")).read_bytes() for run in runs]


@pytest.mark.slow
def test_a_warm_process_gives_the_same_to_the_last_bit_and_pages_come_when_they_are_asked_for(scans):
    jobs = read_study({"command": "tune", "fixed": FIXED, "grid": {"weight_decay": [0.1, 0.2]}}).jobs
    forget()
    warm = done("warm", jobs)
    assert len(load._KEPT) == 1
    forget()
    cold = done("cold", jobs[1:])
    assert (warm[0][1:], warm[1][1:]) == cold
    run = Path("warm", "jobs", jobs[0].key, "1")
    assert not (run / "report.html").exists()
    assert write_report(run).read_text().count("<svg") > 2


def test_a_kept_network_is_not_that_of_whoever_changes_a_copy():
    spec = ModelSpec("r", "test_resnet", weights="random")
    forget()
    with unattended():
        first = load_backbone(spec, image_size=32)
        before = copy.deepcopy(first.module.state_dict())
        with torch.no_grad():
            for parameter in first.module.parameters():
                parameter.zero_()
        second = load_backbone(spec, image_size=32)
        other = load_backbone(spec, image_size=32, seed=1)
    assert all(torch.equal(tensor, second.module.state_dict()[name]) for name, tensor in before.items())
    assert other.weights_fingerprint != second.weights_fingerprint
    assert load_backbone(spec, image_size=32) is not load_backbone(spec, image_size=32)
    assert len(load._KEPT) == 2


def test_other_weights_under_the_same_path_are_read(tmp_path):
    forget()
    prints = []
    for seed in (0, 1):
        state = load_backbone(ModelSpec("r", "test_resnet", weights="random"), image_size=32, seed=seed).module.state_dict()
        torch.save(state, tmp_path / f"net{seed}.pt")
    with unattended():
        for seed in (0, 1):
            (tmp_path / f"net{seed}.pt").rename(tmp_path / "net.pt")
            prints.append(load_backbone(ModelSpec("r", "test_resnet", weights=str(tmp_path / "net.pt")), image_size=32))
    assert prints[0].weights_fingerprint != prints[1].weights_fingerprint


def test_only_so_many_networks_are_kept(monkeypatch):
    forget()
    size = load_backbone(ModelSpec("r", "test_resnet", weights="random"), image_size=32).num_parameters
    monkeypatch.setattr(load, "_MOST_PARAMETERS", 2 * size)
    with unattended():
        for seed in range(4):
            load_backbone(ModelSpec("r", "test_resnet", weights="random"), image_size=32, seed=seed)
    assert len(load._KEPT) == 2


@pytest.mark.parametrize("name", ["test_vit", "test_resnet", "test_convnext"])
def test_a_head_that_was_taken_out_before_is_taken_out_alike(name, monkeypatch):
    """The second classifier of a backbone repeats the first one's cut; one whose layers are held is another."""
    backbone = load_backbone(ModelSpec("r", name, weights="random"), image_size=32)
    first, second = (make_classifier(backbone, 3, seed=0) for _ in range(2))
    assert first.recipe == second.recipe
    assert all(torch.equal(one, other) for one, other in zip(first.parameters(), second.parameters(), strict=True))
    next(backbone.module.parameters()).requires_grad_(False)
    assert len(make_classifier(backbone, 3, seed=0).untrainable) == len(first.untrainable) + 1
