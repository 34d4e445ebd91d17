"""A user's own function builds the network."""

import sys

import pytest
import torch
import yaml
from torch import nn

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models import ModelSpec, load_backbone, random_weights_control, read_zoo
from crossgraft.models.random_weights import build_random
from crossgraft.models.sources.factory import factory_config

from .conftest import save_checkpoint


def write_zoo(folder, **entry):
    path = folder / "zoo.yaml"
    path.write_text(yaml.safe_dump([{"name": "mine", "preprocessing": {"input_size": 16}, **entry}]))
    return path


def test_beside_the_zoo_file(tmp_path, write_networks):
    write_networks("nets_a")
    torch.manual_seed(3)
    state = {"conv.weight": torch.rand(4, 3, 3, 3), "conv.bias": torch.rand(4)}
    state |= {"fc.weight": torch.rand(5, 4), "fc.bias": torch.rand(5)}
    save_checkpoint(tmp_path / "mine.safetensors", state, mean=[0.5] * 3, licence="MIT")
    path = write_zoo(tmp_path, source="nets_a:tiny", kwargs={"num_classes": 5}, weights="mine.safetensors")
    before = list(sys.path)
    backbone = load_backbone(read_zoo(path, allow_code=tmp_path / "nets_a.py")[0])
    assert sys.path == before
    assert (backbone.source, backbone.architecture, backbone.family) == ("factory", "tiny", "tiny")
    assert (backbone.preprocessing.mean, backbone.licence) == ((0.5,) * 3, "MIT")
    images = torch.rand(2, 3, 16, 16)
    with torch.no_grad():
        expected = nn.functional.conv2d(images, state["conv.weight"], state["conv.bias"], padding=1).relu().mean((2, 3))
    torch.testing.assert_close(backbone(images).features, expected)
    assert backbone.num_source_classes == 5


def test_the_current_folder_and_a_bare_name(tmp_path, write_networks, monkeypatch):
    write_networks("nets_b")
    monkeypatch.chdir(tmp_path)
    assert load_backbone("nets_b:tiny", image_size=16).num_features == 4


def test_each_mistake_is_named(tmp_path, write_networks):
    write_networks("nets_c")

    def load(source, **kwargs):
        return load_backbone(ModelSpec("m", source, kwargs=kwargs, folder=tmp_path), image_size=16)

    with pytest.raises(UsageError, match=r"Cannot import nets_zzz .*Looked among installed packages and in"):
        load("nets_zzz:tiny")
    with pytest.raises(UnknownNameError, match=r"function in nets_c: tini\. Did you mean tiny"):
        load("nets_c:tini")
    with pytest.raises(UsageError, match="is a int, not a function"):
        load("nets_c:answer")
    with pytest.raises(UsageError, match=r"must return a torch\.nn\.Module"):
        load("nets_c:not_a_module")
    with pytest.raises(UsageError, match=r"does not take the kwargs \{'depth': 3\}"):
        load("nets_c:tiny", depth=3)
    with pytest.raises(UsageError, match="does not say which image size"):
        load_backbone(ModelSpec("m", "nets_c:tiny", folder=tmp_path))


def test_two_modules_of_one_name_are_refused(tmp_path, write_networks):
    write_networks("nets_d")
    load_backbone(ModelSpec("m", "nets_d:tiny", folder=tmp_path), image_size=16)
    other = tmp_path / "other"
    other.mkdir()
    (other / "nets_d.py").write_text("tiny = None")
    with pytest.raises(UsageError, match="Two modules are called nets_d"):
        load_backbone(ModelSpec("m", "nets_d:tiny", folder=other), image_size=16)


def test_the_code_of_a_factory_is_part_of_its_structure(tmp_path, write_networks):
    file = write_networks("nets_e")
    spec = ModelSpec("m", "nets_e:tiny", folder=tmp_path)
    before = load_backbone(spec, image_size=16).structure_fingerprint
    file.write_text(file.read_text().replace(".relu()", ".tanh()"))
    assert load_backbone(spec, image_size=16).structure_fingerprint != before


@pytest.mark.parametrize("attribute", ["pretrained_cfg", "default_cfg"])
def test_the_network_may_state_its_own_input(attribute):
    module = nn.Identity()
    assert factory_config(module) == {}
    setattr(module, attribute, {"input_size": (3, 8, 8)})
    assert factory_config(module) == {"input_size": (3, 8, 8)}


def test_random_control_of_a_plain_factory(tmp_path, write_networks):
    write_networks("nets_f")
    control = random_weights_control(ModelSpec("m", "nets_f:tiny", folder=tmp_path))
    first, again, other = (load_backbone(control, seed=seed, image_size=16) for seed in (0, 0, 1))
    assert first.weights_fingerprint == again.weights_fingerprint != other.weights_fingerprint


def test_a_factory_with_the_argument_pretrained_is_asked_not_to_load(tmp_path, write_networks):
    source = """
import torch
from nets_h import Tiny

def net(pretrained=True):
    module = Tiny()
    if pretrained:
        torch.nn.init.constant_(module.fc.weight, 7)
    return module
"""
    write_networks("nets_h")
    write_networks("nets_g", source)
    spec = ModelSpec("m", "nets_g:net", folder=tmp_path)
    assert bool((load_backbone(spec, image_size=16).module.fc.weight == 7).all())
    control = load_backbone(random_weights_control(spec), image_size=16)
    assert not bool((control.module.fc.weight == 7).any())


def test_loaded_weights_are_drawn_anew():
    loaded = torch.arange(12.0).reshape(4, 3)

    def build():
        module = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
        module[0].weight.data.copy_(loaded)
        return module

    first, again = (build_random(build, 0, source="s") for _ in range(2))
    assert not torch.equal(first[0].weight, loaded)
    assert torch.equal(first[0].weight, again[0].weight)


def test_loaded_weights_that_nobody_can_draw_anew():
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.values = nn.Parameter(torch.arange(3.0))

    with pytest.raises(UsageError, match="Give the function an argument pretrained"):
        build_random(lambda: nn.Sequential(Table()), 0, source="s")
