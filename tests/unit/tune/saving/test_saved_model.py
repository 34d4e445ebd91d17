"""A saved model is what was evaluated, and everything that is not is refused by name."""

import json
import shutil

import pytest
import safetensors.torch
import torch
from torch import nn

from crossgraft.errors import (
    DataError,
    DeviceLostError,
    MissingWeightsError,
    RunDirectoryError,
    StorageError,
    UsageError,
    WeightsMismatchError,
)
from crossgraft.models.classifier import make_classifier
from crossgraft.models.load import load_backbone
from crossgraft.tune.saving import saved_model
from crossgraft.tune.saving.save_model import describe_saved_model, save_model
from crossgraft.tune.saving.saved_model import load_saved_model
from crossgraft.tune.sim import RhoSim
from support.tampering import change_sealed
from support.tuning_records import kept_record, tuning_record


@pytest.fixture(scope="module")
def classifier():
    """A small network with BatchNorm whose statistics are not those of a fresh one."""
    classifier = make_classifier(load_backbone_of("test_resnet"), 2, seed=0)
    classifier.train()
    with torch.no_grad():
        classifier(torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(0)))
        classifier.head.bias.add_(0.3)
    return classifier.eval()


def load_backbone_of(name):
    from crossgraft.models.spec import ModelSpec

    return load_backbone(ModelSpec(name, name, weights="random"), image_size=32)


@pytest.fixture
def facts(classifier):
    return describe_saved_model(tuning_record(), classifier, seed=3)


@pytest.fixture
def images():
    return torch.rand(5, 3, 32, 32, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def folder(tmp_path, classifier, facts):
    save_model(tmp_path / "run" / "model", classifier, facts)
    return tmp_path / "run" / "model"


def test_logits_are_bit_for_bit_those_before_saving(folder, classifier, images):
    with torch.no_grad():
        expected = classifier(images)
    for place in (folder, folder.parent):
        loaded = load_saved_model(place)
        assert torch.equal(loaded.logits(images), expected)
        assert not loaded.classifier.training
    assert not torch.equal(loaded.logits(images[:, :, :16]), expected)


def test_a_network_with_reconstructors_is_not_saved(tmp_path, classifier, facts, images):
    sim = RhoSim(classifier, blocks=classifier.blocks[0], example=images)
    with pytest.raises(UsageError, match="come closer to the training images"):
        save_model(tmp_path / "model", classifier, facts)
    assert not (tmp_path / "model").exists()
    sim.detach()
    save_model(tmp_path / "model", classifier, facts)


def test_a_folder_can_be_moved_and_needs_neither_weights_nor_the_global_random_state(folder, tmp_path, images):
    expected = load_saved_model(folder).logits(images)
    shutil.move(folder, tmp_path / "elsewhere")
    state = torch.get_rng_state()
    assert torch.equal(load_saved_model(tmp_path / "elsewhere").logits(images), expected)
    assert torch.equal(torch.get_rng_state(), state)


def test_float64_weights_come_back_as_they_were(tmp_path, classifier, facts):
    import copy

    double = copy.deepcopy(classifier).double()
    with torch.no_grad():
        double.head.weight.add_(1e-12)
    save_model(tmp_path / "model", double, facts)
    assert torch.equal(load_saved_model(tmp_path / "model").classifier.head.weight, double.head.weight)


def test_the_facts_say_what_the_model_is_and_nothing_about_this_machine(folder, tmp_path):
    facts = load_saved_model(folder).facts
    assert (facts.class_names, facts.temperature, facts.seed) == (["benign", "malignant"], 1.83, 3)
    assert facts.thresholds[0].rule == "Youden's J"
    assert facts.trained_on.group_column == "patient"
    assert {row.split for row in facts.metrics} == {"test", "val"}
    assert all(row.class_name is None for row in facts.metrics)
    text = (folder / "model.json").read_text() + (folder / "MODEL_CARD.md").read_text()
    assert str(tmp_path) not in text
    assert sorted(path.name for path in folder.iterdir()) == ["MODEL_CARD.md", "model.json", "weights.safetensors"]
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_weights_that_were_edited_damaged_or_swapped_are_refused(folder, classifier, facts):
    weights = folder / "weights.safetensors"
    whole = weights.read_bytes()
    flipped = bytearray(whole)
    flipped[-1] ^= 1
    for content in (bytes(flipped), whole[:-8], b""):
        weights.write_bytes(content)
        with pytest.raises(WeightsMismatchError, match=r"not the file that model\.json describes"):
            load_saved_model(folder)
    weights.unlink()
    with pytest.raises(MissingWeightsError, match="weights of the model are missing"):
        load_saved_model(folder)


def test_weights_of_another_network_are_refused_key_by_key(folder):
    import hashlib

    state = safetensors.torch.load_file(folder / "weights.safetensors")
    state["head.weight"] = torch.zeros(3, state["head.weight"].shape[1])
    state["stranger"] = state.pop("head.bias")
    content = safetensors.torch.save(state)
    (folder / "weights.safetensors").write_bytes(content)
    change_sealed(folder / "model.json", weights_sha256=hashlib.sha256(content).hexdigest())
    with pytest.raises(WeightsMismatchError) as caught:
        load_saved_model(folder)
    assert all(part in str(caught.value) for part in ("stranger", "head.bias", "head.weight is (3,"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class_names": ["benign"]}, "1 class names for 2 outputs"),
        ({"class_names": ["same", "same"]}, "contradicts itself"),
        ({"temperature": 0.0}, "must be positive"),
        ({"temperature": "hot"}, r"damaged.*temperature"),
        ({"schema_version": 99}, "Upgrade"),
        ({"recipe": {}}, "description of the fine-tuned network is damaged"),
    ],
)
def test_facts_that_contradict_themselves_are_refused(folder, changes, message):
    change_sealed(folder / "model.json", **changes)
    with pytest.raises(DataError, match=message):
        load_saved_model(folder)


def test_a_threshold_of_a_class_that_is_not_there_is_refused(folder):
    facts = json.loads((folder / "model.json").read_text())
    facts["thresholds"][0]["class_name"] = "stranger"
    change_sealed(folder / "model.json", **facts)
    with pytest.raises(DataError, match="stranger"):
        load_saved_model(folder)


def test_what_holds_no_model_is_named(tmp_path, folder):
    with pytest.raises(RunDirectoryError, match="does not exist"):
        load_saved_model(tmp_path / "nowhere")
    with pytest.raises(RunDirectoryError, match="is a file"):
        load_saved_model(folder / "model.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunDirectoryError, match="no saved model"):
        load_saved_model(tmp_path / "empty")
    with pytest.raises(UsageError, match="not available"):
        load_saved_model(folder, device="cuda:7")


def test_a_run_without_a_model_says_why(tmp_path):
    run = {"command": "rank", "command_line": "", "crossgraft_version": "0", "config": {}, "config_hash": "", "seed": 0,
           "versions": {}, "machine": {}, "started_at": ""}  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps(run))
    with pytest.raises(RunDirectoryError, match="a run of crossgraft rank"):
        load_saved_model(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({**run, "command": "tune", "state": "interrupted"}))
    with pytest.raises(RunDirectoryError, match="interrupted"):
        load_saved_model(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({**run, "command": "tune", "state": "done"}))
    record = tuning_record(saved_model=None, saved_model_reason="Folds give one model each")
    (tmp_path / "report.json").write_text(record.model_dump_json())
    with pytest.raises(RunDirectoryError, match="Folds give one model each"):
        load_saved_model(tmp_path)


def test_a_disk_that_fills_up_leaves_the_older_model(folder, classifier, facts, monkeypatch, images):
    expected = load_saved_model(folder).logits(images)

    def full(path, content):
        raise StorageError("disk full")

    monkeypatch.setattr("crossgraft.storage.atomic.write_atomically", full)
    with pytest.raises(StorageError, match="disk full"):
        save_model(folder, classifier, facts, overwrite=True)
    assert torch.equal(load_saved_model(folder).logits(images), expected)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_newer_model_takes_the_place_of_the_older_one(folder, classifier, facts, images):
    import copy

    other = copy.deepcopy(classifier)
    nn.init.zeros_(other.head.weight)
    with pytest.raises(RunDirectoryError, match="holds a saved model already"):
        save_model(folder, other, facts)
    save_model(folder, other, facts, overwrite=True)
    assert torch.equal(load_saved_model(folder).logits(images), other.head.bias.detach().expand(5, 2))


@pytest.mark.parametrize("name", ["notes.txt", "weights.safetensors", "model.json"])
def test_what_is_no_saved_model_is_never_replaced(name, tmp_path, classifier, facts):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text("{}")
    with pytest.raises(RunDirectoryError, match="mine"):
        save_model(tmp_path / "mine", classifier, facts, overwrite=True)
    assert (tmp_path / "mine" / name).read_text() == "{}"


def test_a_model_of_a_version_that_knew_fewer_fields_is_read_and_one_that_lost_them_is_not(tmp_path, classifier):
    save_model(tmp_path / "model", classifier, describe_saved_model(kept_record(), classifier, seed=3))
    path, later = tmp_path / "model" / "model.json", ("batch_norm", "keep")
    whole = json.loads(path.read_text())
    fewer = {name: value for name, value in whole.items() if name not in later}
    path.write_text(json.dumps(fewer))
    with pytest.raises(DataError, match=r"was changed after it was written: batch_norm\.\S+, .*keep"):
        load_saved_model(tmp_path / "model")
    known = {key: digest for key, digest in whole["checksums"].items() if key.partition(".")[0] not in later}
    path.write_text(json.dumps({**fewer, "checksums": known}))
    assert load_saved_model(tmp_path / "model").facts.keep is None
    path.write_text(json.dumps({**whole, "checksums": known}))
    with pytest.raises(DataError, match="was changed after it was written: batch_norm"):
        load_saved_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("words", "device", "error", "said"),
    [
        ("CUDA error: unspecified launch failure", "meta", DeviceLostError, "The device meta failed"),  # any but the CPU
        ("DefaultCPUAllocator: can't allocate memory", "cpu", RuntimeError, "^DefaultCPUAllocator"),
    ],
)
def test_a_card_or_a_memory_that_fails_says_nothing_of_the_files(classifier, tmp_path, monkeypatch, words, device, error, said):
    def fails(_):
        raise RuntimeError(words)

    monkeypatch.setattr(saved_model, "look", fails)
    with pytest.raises(error, match=said):
        saved_model._refuse_misfit(classifier, device, tmp_path)
