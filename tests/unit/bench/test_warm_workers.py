"""A process that does one job after the other keeps what it has loaded, and nothing of that is seen in a number."""

import copy
import json
import mmap
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from crossgraft import run_study, write_report
from crossgraft.bench import files
from crossgraft.bench.files import FilePrints
from crossgraft.bench.job import begin_peak, do_jobs, peak_bytes
from crossgraft.bench.lease import Limits
from crossgraft.bench.study import read_study
from crossgraft.data import listing, open_dataset
from crossgraft.models import ModelSpec, load, load_backbone
from crossgraft.models.classifier import make_classifier
from crossgraft.running.unattended import unattended
from crossgraft.tune.feed import images
from support.studies import Here
from support.toy_jobs import registered

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
    for kept in (load.KEPT, listing.KEPT, images.KEPT):
        kept.clear()


def done(out, jobs):
    """Numbers and weights of each job, in one process."""
    folder = Path(out)
    ended = do_jobs(folder, jobs, place=str(Path.cwd()), driver=None, seconds=60, limits=Limits())
    assert ended == ["done"] * len(jobs), [file.read_text() for file in folder.glob("jobs/*/failed.json")]
    runs = [folder / "jobs" / job.key / "1" for job in jobs]
    numbers = [json.loads((run.parent / "done.json").read_text())["numbers"] for run in runs]
    weights = [next((run / "model").rglob("*.safetensors")).read_bytes() for run in runs]
    return numbers, weights, [untimed(json.loads((run / "report.json").read_text())) for run in runs]


def untimed(record):
    """Without what a clock says, and the place among the looks at the test images."""
    if isinstance(record, list):
        return list(map(untimed, record))
    if not isinstance(record, dict):
        return record
    return {key: untimed(value) for key, value in record.items() if "seconds" not in key and key != "looks"}


@pytest.mark.slow
def test_a_warm_process_gives_the_same_to_the_last_bit_and_pages_come_when_they_are_asked_for(scans):
    jobs = read_study({"command": "tune", "fixed": FIXED, "grid": {"weight_decay": [0.1, 0.2]}}).jobs
    forget()
    warm = done("warm", jobs)
    assert (len(load.KEPT), len(listing.KEPT), len(images.KEPT)) == (1, 1, 3)  # rows that train, that select, and that test
    forget()
    cold = done("cold", jobs[1:])
    assert tuple(each[1:] for each in warm) == cold
    run = Path("warm", "jobs", jobs[0].key, "1")
    assert not (run / "report.html").exists()
    assert write_report(run).read_text().count("<svg") > 2


def test_kept_images_are_those_of_files_that_are_still_there(scans):
    forget()
    attended = open_dataset("scans")
    assert not len(listing.KEPT)
    with unattended():
        first, again = open_dataset("scans"), open_dataset("scans")
        assert first._images is again._images
        assert first.fingerprint == attended.fingerprint
        other = np.asarray(Image.open("scans/yes/3.png")) ^ 1
        status = Path("scans/yes/3.png").stat()
        Image.fromarray(other).save("scans/new.png")
        os.utime("scans/new.png", ns=(status.st_atime_ns, status.st_mtime_ns))
        Path("scans/new.png").rename("scans/yes/3.png")  # another file, of the same time
        assert open_dataset("scans").fingerprint != first.fingerprint


def test_resized_images_are_shared_by_rows_of_one_content_and_size(scans):
    forget()
    small, large = (load_backbone(ModelSpec("r", "test_resnet", weights="random"), image_size=size) for size in (16, 24))
    with unattended():
        whole = open_dataset("scans")
        one, other = (images.TrainingImages(whole, small.preprocessing) for _ in range(2))
        rows = torch.arange(len(whole))
        before = one.read(rows)
        other.dataset = None  # nothing is decoded again
        assert torch.equal(other.read(rows), before)
        for different in (
            images.TrainingImages(whole, large.preprocessing),
            images.TrainingImages(whole.take([1, 0]), small.preprocessing),
        ):
            assert not different._is_kept.any()
    assert torch.equal(images.TrainingImages(whole, small.preprocessing).read(rows), before)


def test_one_process_of_a_study_reads_a_file_whole_for_all(scans, monkeypatch):
    study, reads = Path("study"), []
    study.mkdir()
    hashed = files._content
    monkeypatch.setattr(files, "_content", lambda *file: reads.append(file) or hashed(*file))
    first = FilePrints(study).of(["scans"])
    assert len(reads) == 24
    assert FilePrints(study).of(["scans"]) == first and len(reads) == 24
    assert "scans" not in "".join(path.read_text() for path in (study / "prints").iterdir())
    Path("scans/yes/0.png").write_bytes(Path("scans/yes/1.png").read_bytes())
    assert FilePrints(study).of(["scans"]) != first and len(reads) == 48
    for note in (study / "prints").iterdir():
        note.write_text("damaged")
    assert FilePrints(study).of(["scans"]) == FilePrints(Path("nowhere")).of(["scans"])


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
    assert len(load.KEPT) == 2


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
    monkeypatch.setattr(load.KEPT, "most", 2 * size)
    with unattended():
        for seed in range(4):
            load_backbone(ModelSpec("r", "test_resnet", weights="random"), image_size=32, seed=seed)
    assert len(load.KEPT) == 2


@pytest.mark.parametrize("name", ["test_vit", "test_resnet", "test_convnext"])
def test_a_head_that_was_taken_out_before_is_taken_out_alike(name, monkeypatch):
    """The second classifier of a backbone repeats the first one's cut; one whose layers are held is another."""
    backbone = load_backbone(ModelSpec("r", name, weights="random"), image_size=32)
    first, second = (make_classifier(backbone, 3, seed=0) for _ in range(2))
    assert first.recipe == second.recipe
    assert all(torch.equal(one, other) for one, other in zip(first.parameters(), second.parameters(), strict=True))
    next(backbone.module.parameters()).requires_grad_(False)
    assert len(make_classifier(backbone, 3, seed=0).untrainable) == len(first.untrainable) + 1


@pytest.mark.skipif(not begin_peak(), reason="only Linux counts so")
def test_the_peak_of_a_job_is_not_that_of_an_earlier_one():
    def use(num_megabytes):
        """Memory that goes back at once, as that of arrays need not: allocators may keep it."""
        with mmap.mmap(-1, num_megabytes << 20) as memory:
            for _ in range(num_megabytes):
                memory.write(bytes(1 << 20))

    use(320)
    before = peak_bytes()
    begin_peak()
    between = peak_bytes()
    assert before - between > 200e6
    use(160)
    assert peak_bytes() - between > 100e6


def test_rows_have_the_peak_of_a_process_that_is_there_for_jobs_alone(tmp_path, monkeypatch):
    registered(monkeypatch)
    study = {"command": "toil", "grid": {"data": ["a", "b"]}}
    parsed = read_study(study)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("crossgraft.bench.job._STATUS", tmp_path / "status")
        (tmp_path / "status").write_text("Name:\tpython\nVmHWM:\t  250000 kB\n")
        do_jobs(tmp_path, parsed.jobs[:1], place=str(Path.cwd()), driver=None, seconds=60, limits=Limits())
    result = run_study(study, out=tmp_path, executor=Here())  # the other one in this process, which has more to do
    assert result.to_frame().groupby("data")["peak_mb"].max().to_dict() == pytest.approx(
        {"a": 256.0 if begin_peak() else np.nan, "b": np.nan}, nan_ok=True
    )
    assert result.record.peak_mb == (256.0 if begin_peak() else None)
