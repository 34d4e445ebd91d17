import re
import shutil

import pytest

from crossgraft.demo import steps, write_demo
from crossgraft.demo.record import DemoRecord
from crossgraft.errors import RunDirectoryError
from crossgraft.records.base import RunRecord

from .test_steps import STEPS

OF_BEST_MODEL = {
    "best_model.safetensors",
    "best_model.yaml",
    "digits_5_to_9.npz",
    "unseen_digits",
    "compare",
    "predict",
    "audit",
    "zoo.yaml",
    "zoo",
    "select",
}


def names(folder):
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def read_run(folder):
    return RunRecord.model_validate_json((folder / "run.json").read_bytes())


@pytest.mark.slow
@pytest.mark.xdist_group("test_steps")  # which looks at the same demo
def test_the_run_directory_tells_how_the_demo_was_made(whole, short, tmp_path, monkeypatch):
    out, record, report = whole.folder / "demo", whole.record, whole.result.report
    written = {"run.json", "report.json", "report.html", "fine_tuned.csv"} | OF_BEST_MODEL
    assert names(out) == written | {"thumbnails.json"}
    assert report == out / "report.html"
    assert DemoRecord.model_validate_json((out / "report.json").read_bytes()) == record
    run = read_run(out)
    assert (run.command, run.state) == ("demo", "done")
    assert run.command_line == "crossgraft demo --out demo --seed 0 --fast"
    assert run.data_fingerprint == record.ranking.dataset.fingerprint
    assert run.weights_fingerprints.keys() == {model.name for model in record.ranking.models}
    assert [stage.name for stage in run.stages] == STEPS
    html = report.read_text(encoding="utf-8")
    assert str(whole.folder) not in html
    assert all(row.model in html for row in record.fine_tuned)
    links = re.findall(r'href="([^"#:]+)"', html)
    assert len(links) == 3
    assert all((out / link).is_file() for link in links)

    lines = [line.strip() for line in whole.result.as_text().splitlines()]
    assert {*record.best_model.commands(out), record.selected.command(out)} < set(lines)
    assert max(len(line) for line in lines if str(out) not in line and "my_images" not in line) <= 100

    out = shutil.copytree(out, tmp_path / "demo")
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(whole.folder / "cache"))
    with pytest.raises(RunDirectoryError, match="another configuration"):
        write_demo(out=out, fast=True, seed=1)
    again = write_demo(out=out, fast=True, no_images=True, overwrite=True).record
    assert again.fine_tuned == record.fine_tuned
    assert names(out) == written
    assert "data:image/png" in html
    for page in (out / "report.html", out / record.best_model.tune_folder / "report.html", out / "predict" / "report.html"):
        assert "data:image/png" not in page.read_text(encoding="utf-8")


def test_ctrl_c_is_recorded_and_leaves_no_report(monkeypatch, tmp_path):
    def interrupted(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(steps, "run_demo", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_demo(out=tmp_path / "demo", fast=True)
    assert names(tmp_path / "demo") == {"run.json"}
    assert read_run(tmp_path / "demo").state == "interrupted"
