"""timm's own weights: found offline, or the message says which file to put where."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from huggingface_hub.errors import LocalEntryNotFoundError

from crossgraft.errors import MissingWeightsError, WeightsMismatchError
from crossgraft.models import ModelSpec, load_backbone
from crossgraft.models.sources import timm_models
from crossgraft.progress import Reporter

from .conftest import TINY, save_checkpoint, tiny_timm

HUB_NAME = "timm/test_resnet.r160_in1k"


@pytest.fixture(autouse=True)
def no_cache_and_no_network(tmp_path, monkeypatch):
    """The machine has nothing, and any use of the network fails the test."""

    def refuse(*_arguments, **_options):
        pytest.fail("the network was used")

    monkeypatch.setattr(timm_models, "try_to_load_from_cache", lambda *_: None)
    for name in ("hf_hub_download", "get_hf_file_metadata"):
        monkeypatch.setattr(timm_models, name, refuse)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))


@pytest.mark.parametrize("file", ["test_resnet.safetensors", "test_resnet.r160_in1k.safetensors", "test_resnet.pth"])
def test_weights_dir(tmp_path, file):
    state = tiny_timm().state_dict()
    if file.endswith("pth"):
        torch.save(state, tmp_path / file)
    else:
        save_checkpoint(tmp_path / file, state)
    backbone = load_backbone(TINY, weights_dir=tmp_path)
    assert (backbone.source, backbone.name, backbone.licence) == ("timm", TINY, "apache-2.0")
    assert torch.equal(backbone.module.fc.weight, state["fc.weight"])
    assert "state_dict" not in backbone.module.pretrained_cfg


def test_hub_cache(tmp_path, monkeypatch):
    path = save_checkpoint(tmp_path / "blob", tiny_timm().state_dict()).rename(tmp_path / "model.safetensors")
    cached = {(HUB_NAME, "model.safetensors"): str(path)}
    monkeypatch.setattr(timm_models, "try_to_load_from_cache", lambda *key: cached.get(key))
    assert torch.equal(load_backbone(TINY).module.fc.weight, tiny_timm().fc.weight)


def test_torch_hub_cache(tmp_path):
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    folder.mkdir(parents=True)
    (folder / "resnet18_a1_0-d63eafa0.pth").touch()
    assert timm_models.TimmLibrary().find_weights("resnet18") == folder / "resnet18_a1_0-d63eafa0.pth"


def test_the_message_says_which_file_to_put_where(tmp_path):
    with pytest.raises(MissingWeightsError) as caught:
        load_backbone(TINY, weights_dir=tmp_path)
    message = str(caught.value)
    assert f"https://huggingface.co/{HUB_NAME}/resolve/main/model.safetensors" in message
    assert f"put it as test_resnet.safetensors into {tmp_path}" in message
    assert "--allow-download" in message
    with pytest.raises(MissingWeightsError, match="a folder that you name with --weights-dir"):
        load_backbone(TINY)


def test_a_network_that_was_never_published():
    with pytest.raises(MissingWeightsError, match="timm publishes no weights for test_mambaout"):
        load_backbone("test_mambaout", allow_download=True)


def test_download_only_when_allowed_and_announced(tmp_path, monkeypatch, capsys):
    path = save_checkpoint(tmp_path / "model.safetensors", tiny_timm().state_dict())
    monkeypatch.setattr(timm_models, "get_hf_file_metadata", lambda _url: SimpleNamespace(size=1_900_000))
    monkeypatch.setattr(timm_models, "hf_hub_download", lambda *_: str(path))
    backbone = load_backbone(TINY, allow_download=True, reporter=Reporter())
    assert torch.equal(backbone.module.fc.weight, tiny_timm().fc.weight)
    said = capsys.readouterr().err
    assert f"2 MB from huggingface.co/{HUB_NAME} to {timm_models.hub_constants.HF_HUB_CACHE}" in said


def test_a_download_that_fails_says_what_to_do(monkeypatch):
    def fail(_url):
        raise LocalEntryNotFoundError("no route\nto host")

    monkeypatch.setattr(timm_models, "get_hf_file_metadata", fail)
    with pytest.raises(MissingWeightsError, match=r"could not be downloaded .*: no route\. On a machine with network"):
        load_backbone(TINY, allow_download=True)


def test_weights_that_do_not_fit_are_listed(tmp_path):
    state = tiny_timm().state_dict()
    state["strange"] = state.pop("bn1.weight")
    save_checkpoint(tmp_path / "test_resnet.safetensors", state)
    with pytest.raises(WeightsMismatchError, match=r"1 missing key: bn1.weight\. 1 unexpected key: strange"):
        load_backbone(TINY, weights_dir=tmp_path)


def test_timm_adapts_its_weights_to_another_head(tmp_path):
    save_checkpoint(tmp_path / "test_resnet.safetensors", tiny_timm().state_dict())
    backbone = load_backbone(ModelSpec("h", TINY, kwargs={"num_classes": 0}), weights_dir=tmp_path)
    assert backbone.num_source_classes is None
    assert torch.equal(backbone.module.bn1.weight, tiny_timm().bn1.weight)
