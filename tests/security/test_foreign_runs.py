"""A run directory of somebody else is data: what was edited in it ends in a named error, and nothing is written elsewhere."""

import json
import os
import re
import shutil

import pytest
import torch

from crossgraft import export_model
from crossgraft.data import Split
from crossgraft.errors import DataError, RunDirectoryError, UsageError, WeightsMismatchError
from crossgraft.models import ModelSpec, load_backbone
from crossgraft.models.classifier import make_classifier
from crossgraft.report.kinds import read_run
from crossgraft.running.run_directory import open_run
from crossgraft.tune.engine.checkpoint import FILE_NAME, Checkpoint, read_checkpoint, write_checkpoint
from crossgraft.tune.rows_of_run import options_of_run, refuse_join_outside, refuse_root_outside
from crossgraft.tune.saving.record import SavedModelRecord
from crossgraft.tune.saving.save_model import describe_saved_model, model_card, save_model
from crossgraft.tune.saving.saved_model import load_saved_model
from support.tampering import exchange_weights
from support.training import train_one
from support.tuning_records import tuning_record

POSIX = pytest.mark.skipif(os.name != "posix", reason="links and devices of POSIX")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model"
    backbone = load_backbone(ModelSpec("net", "test_resnet", "random"), image_size=32)
    classifier = make_classifier(backbone, 2, seed=0)
    save_model(folder, classifier, describe_saved_model(tuning_record(), classifier, seed=0))
    return folder


@pytest.fixture
def run(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "run" / "model")
    return tmp_path / "run"


@pytest.mark.parametrize("number_type", [torch.int64, torch.uint8, torch.bool, torch.complex64, torch.float8_e5m2])
def test_weights_that_no_network_computes_with(run, number_type):
    exchange_weights(run / "model", lambda _, tensor: tensor.to(number_type))
    with pytest.raises((WeightsMismatchError, DataError), match="fit"):
        load_saved_model(run)


@POSIX
def test_a_file_without_end_is_not_read(run):
    (run / "training_images.json").symlink_to("/dev/zero")
    with pytest.raises(DataError, match=r"training_images\.json is damaged: It is a pipe or a device, not a file"):
        load_saved_model(run)


@POSIX
@pytest.mark.parametrize("name", ["run.json", "report.json"])
def test_a_pipe_is_not_waited_for(tmp_path, name):
    with open_run(tmp_path / "run", command="check", command_line="", config={}, seed=0) as opened:
        opened.write("report.json", opened.record.model_dump_json())
    (tmp_path / "run" / name).unlink()
    os.mkfifo(tmp_path / "run" / name)
    with pytest.raises(DataError, match="It is a pipe or a device"):
        read_run(tmp_path / "run")


@POSIX
@pytest.mark.parametrize("link", ["export", "export/safetensors"])
def test_an_export_stays_in_its_run(run, tmp_path, link):
    (tmp_path / "elsewhere").mkdir()
    (run / link).parent.mkdir(exist_ok=True)
    (run / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunDirectoryError, match=r"leads out of .* by a symbolic link"):
        export_model(run)
    assert list((tmp_path / "elsewhere").iterdir()) == []


HOSTILE = "x\n\n# <script>\x1b[31m\u202e</script>"


def hostile(value):
    """The same JSON with every text exchanged."""
    if isinstance(value, list):
        return [hostile(part) for part in value]
    if isinstance(value, dict):
        return {key: hostile(part) for key, part in value.items()}
    return HOSTILE if isinstance(value, str) else value


def test_no_text_of_a_model_is_markup_in_its_card(saved):
    known = json.loads((saved / "model.json").read_text())
    fixed = {"kind", "task", "checksums", "recipe"}
    facts = {name: value if name in fixed else hostile(value) for name, value in known.items()}
    facts["model"]["preprocessing"] = {**known["model"]["preprocessing"], "description": HOSTILE}
    card = model_card(SavedModelRecord.model_validate(facts))
    assert "<script" not in card.replace(r"\<script", "")
    assert "\x1b" not in card and "\u202e" not in card
    assert len(re.findall(r"^#", card, re.MULTILINE)) == len(
        re.findall(r"^#", model_card(SavedModelRecord.model_validate(known)), re.MULTILINE)
    )


def made_run(folder, **config):
    with open_run(folder / "tuned", command="tune", command_line="", config=config, seed=3):
        pass
    return folder / "tuned"


def test_options_of_a_run_are_taken_over_but_no_consent(tmp_path):
    asked = options_of_run(made_run(tmp_path, limit=20, window="lung", allow_download=True, allow_outside=True, allow_code="x"))
    assert (asked.limit, asked.window, asked.seed) == (20, "lung", 3)
    assert (asked.allow_download, asked.allow_outside, asked.allow_code, asked.weights_dir) == (False, False, None, None)


@pytest.mark.parametrize("wrong", [{"limit": "abc"}, {"threshold_rule": [5]}, {"image_size": {}}, {"class_names": 5}])
def test_options_of_another_type_are_named(tmp_path, wrong):
    (name,) = wrong
    with pytest.raises(DataError, match=rf"run\.json is damaged: {name}"):
        options_of_run(made_run(tmp_path, **wrong))


def test_a_run_lets_no_table_read_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for inside in (None, "scans", "scans/../more"):
        refuse_root_outside(inside, "run")
    for outside in ("/", "..", "scans/../.."):
        with pytest.raises(UsageError, match="A file cannot allow that"):
            refuse_root_outside(outside, "run")


def test_a_run_joins_nothing_from_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for inside in (None, "scans", ["scans", "more/table.csv", "hf:owner/name"]):
        refuse_join_outside(inside, "run")
    for outside in ("/", ["scans", "../other.csv"]):
        with pytest.raises(UsageError, match="A file cannot allow that"):
            refuse_join_outside(outside, "run")


@pytest.mark.parametrize("content", [{"num_images": 10**30, "train": [10**29]}, {"num_images": -1}])
def test_a_split_of_impossible_rows_is_named(tmp_path, content):
    record = {"data_fingerprint": "", "num_images": 4, "method": "", "seed": None, "train": [], **content}
    (tmp_path / "split.json").write_text(json.dumps(record))
    with pytest.raises(DataError, match="is not a split that crossgraft saved"):
        Split.load(tmp_path / "split.json")


def test_a_list_of_files_that_is_no_text_is_named_when_a_run_goes_on(tmp_path):
    folder = made_run(tmp_path)
    (folder / "more").write_text("")  # else there is nothing to go on with
    (folder / ".files").write_bytes(b"\xff\xfe")
    with (
        pytest.raises(DataError, match=r"Cannot read .*\.files"),
        open_run(folder, command="tune", command_line="", config={}, seed=3),
    ):
        pass


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint")
    train_one("plain", epochs=1, checkpoint_folder=folder)
    return folder


POSITIONS = {
    "a phase that there is not": lambda position: {**position, "phase": 7},
    "a phase before the first": lambda position: {**position, "phase": -1},
    "no number": lambda position: {**position, "phase": "x"},
    "no history": lambda position: {"phase": 0, "progress": position["progress"]},
    "empty rows": lambda position: {**position, "history": [{}]},
    "sums in a list": lambda position: {**position, "progress": {**position["progress"], "sums": [1]}},
    "an epoch before the first": lambda position: {**position, "progress": {**position["progress"], "epoch": -5}},
    "a step after the last": lambda position: {**position, "progress": {**position["progress"], "step": 10**9}},
}
WEIGHT, MOMENT = "weights/head.bias", "optimizer/head.bias|exp_avg"
TENSORS = {
    "none": lambda tensors: {},
    "weights of another shape": lambda tensors: {**tensors, WEIGHT: torch.zeros(99)},
    "best weights of another network": lambda tensors: {**tensors, "best/x": torch.zeros(1)},
    "moments of another shape": lambda tensors: {**tensors, MOMENT: torch.zeros(99)},
    "no moments": lambda tensors: {name: tensor for name, tensor in tensors.items() if name != MOMENT},
    "moments of nothing": lambda tensors: {**tensors, "optimizer/x|exp_avg": torch.zeros(1)},
}


@pytest.mark.parametrize("case", [*POSITIONS, *TENSORS])
def test_a_checkpoint_that_is_no_state_of_this_training(checkpoint, tmp_path, case):
    text = (checkpoint / FILE_NAME).read_bytes()
    header = json.loads(text[8 : 8 + int.from_bytes(text[:8], "little")])
    configuration = json.loads(header["__metadata__"]["state"])["configuration"]
    found = read_checkpoint(checkpoint, configuration)
    assert WEIGHT in found.tensors and MOMENT in found.tensors
    position = POSITIONS.get(case, dict)(found.position)
    tensors = TENSORS.get(case, dict)(found.tensors)
    write_checkpoint(tmp_path, Checkpoint(configuration, position, tensors))
    with pytest.raises(RunDirectoryError, match=r"checkpoint\.safetensors is damaged \(.+\)\. Start again"):
        train_one("plain", epochs=1, checkpoint_folder=tmp_path)


def test_the_checkpoint_itself_is_gone_on_with(checkpoint, tmp_path):
    shutil.copytree(checkpoint, tmp_path, dirs_exist_ok=True)
    assert train_one("plain", epochs=1, checkpoint_folder=tmp_path)[1].resumed
