"""What ``edit`` wrote is read back by every command as it stands: the folder alone, without a word about its columns."""

import json

import pytest

from support.tiny import make_images

ONE = ("--device", "cpu", "--workers", "1", "--no-images")
MODEL = ("--code", "tiny_models.py", *ONE)
TUNE = ("--model", "zoo.yaml:narrow", *MODEL, "--method", "linear", "--epochs", "1")
SHARES = ("--shares", "0,0.5,1", "--folds", "2")
COMMANDS = {
    "check": ("check", "out", "--workers", "1", "--no-images"),
    "rank": ("rank", "out", "--models", "zoo.yaml", *MODEL, "--scores", "logme"),
    "tune": ("tune", "out", *TUNE),
    "select": ("select", "out", "--models", "zoo.yaml", *MODEL, "--method", "linear", "--epochs", "1"),
    "fewshot": ("fewshot", "out", "--model", "zoo.yaml:narrow", *MODEL, "--heads", "ncc", "--episodes", "2", "--sampler",
                "n_way_k_shot:ways=2,shots=1", "--baseline", "ncc"),
    "predict": ("predict", "before", "out", *MODEL),
    "audit": ("audit", "zoo.yaml:narrow", "--data", "out", "--confounder", "tag", *SHARES, *MODEL),
    "compare": ("compare", "zoo.yaml:narrow", "zoo.yaml:wide", "--data", "out", *MODEL, "--geometry", "none"),
    "edit": ("edit", "out", "--with", "low_pass:0.3", "--no-images"),
}  # fmt: skip


@pytest.fixture
def edited(workspace, crossgraft):
    """A table of patients with a split, edited: the folder `out`."""
    make_images(workspace / "scans", {"cat": 12, "dog": 12})
    rows = ["image,kind,patient,split"]
    for number, file in enumerate(sorted((workspace / "scans").rglob("*.png"))):
        split = ("test", "val", "train")[min(number // 2 % 6, 2)]
        rows.append(f"{file.relative_to(workspace)},{file.parent.name},Smith{number // 2},{split}")
    (workspace / "study.csv").write_text("\n".join(rows))
    columns = ("--label-column", "kind", "--group-column", "patient")
    done = crossgraft("edit", "study.csv", *columns, "out", "--with", "tag", "--no-images")
    assert done.code == 0, done.err
    return workspace


@pytest.mark.parametrize("name", COMMANDS)
def test_the_folder_that_edit_wrote(name, edited, crossgraft):
    if name == "predict":
        columns = ("--label-column", "kind", "--group-column", "patient")
        assert crossgraft("tune", "study.csv", *columns, *TUNE, "--out", "before").code == 0
    done = crossgraft(*COMMANDS[name], "--out", "again")
    assert done.code == 0, done.err
    record = json.loads((edited / "again" / "report.json").read_text())
    if name == "predict":
        assert (record["class_names"], record["num_images"]) == (["cat", "dog"], 24)
        assert {row["target"] for row in record["rows"]} == {"cat", "dog"}
        assert max(row["num_groups"] for row in record["metrics"]) == 12  # patients, not images
        return
    assert (record["dataset"]["class_names"], record["dataset"]["group_column"]) == (["cat", "dog"], "group")
