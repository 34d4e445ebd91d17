"""Files are read safely, and what does not fit is listed at once."""

import argparse
import pickle

import pytest
import torch
from safetensors.torch import save_file

from crossgraft.errors import DataError, WeightsMismatchError
from crossgraft.models import ModelSpec, load_backbone
from crossgraft.models.sources.local_checkpoint import infer_num_classes, load_weights, read_header, read_state_dict

from .conftest import TINY, save_checkpoint, tiny_timm


def load(path, **kwargs):
    return load_backbone(ModelSpec("mine", TINY, str(path), kwargs=kwargs), image_size=32)


@pytest.mark.parametrize("suffix", [".safetensors", ".pth", ".pt", ".bin"])
def test_every_format_gives_the_same_weights(tmp_path, suffix):
    state = tiny_timm(num_classes=7).state_dict()
    path = tmp_path / f"weights{suffix}"
    if suffix == ".safetensors":
        save_file(state, path)
    else:
        torch.save(state, path)
    backbone = load(path)
    assert backbone.source == "checkpoint"
    assert backbone.num_source_classes == 7  # inferred from the rows of the head
    for name, tensor in backbone.module.state_dict().items():
        assert torch.equal(tensor, state[name])


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"model": {"state_dict": state}},
        lambda state: {f"module.{name}": tensor for name, tensor in state.items()},
        lambda state: {"state_dict": {f"module.{name}": tensor for name, tensor in state.items()}},
    ],
)
def test_wrappings_of_training_scripts_come_off(tmp_path, wrapped):
    state = tiny_timm().state_dict()
    torch.save(wrapped(state), tmp_path / "w.pth")
    found = read_state_dict(tmp_path / "w.pth")
    assert list(found) == list(state)


def test_float16_weights_become_float32(tmp_path):
    state = {k: v.half() if v.is_floating_point() else v for k, v in tiny_timm().state_dict().items()}
    backbone = load(save_checkpoint(tmp_path / "half.safetensors", state))
    assert backbone.module.fc.weight.dtype == torch.float32
    assert torch.equal(backbone.module.fc.weight, state["fc.weight"].float())


def test_a_checkpoint_without_a_head(tmp_path):
    state = tiny_timm(num_classes=0).state_dict()
    assert load(save_checkpoint(tmp_path / "b.safetensors", state)).num_source_classes is None


def test_classes_are_inferred_only_from_a_named_head():
    state = {"head.fc.weight": torch.zeros(5, 3)}
    assert infer_num_classes(state, "head.fc") == 5
    assert infer_num_classes(state, "fc") == 0
    assert infer_num_classes({"model.head.weight": torch.zeros(7, 3)}, ("head", "head_dist")) == 7
    assert infer_num_classes(state, None) is None


def test_every_key_that_does_not_fit_is_in_one_message(tmp_path):
    state = tiny_timm().state_dict()
    state["fc.weight"] = torch.zeros(1000, 7)
    state["strange.bias"] = state.pop("bn1.weight")
    del state["conv1.0.weight"]
    path = save_checkpoint(tmp_path / "wrong.safetensors", state)
    with pytest.raises(WeightsMismatchError) as caught:
        load(path)
    message = str(caught.value)
    assert "wrong.safetensors do not fit mine (test_resnet)" in message
    assert "2 missing keys: conv1.0.weight, bn1.weight." in message
    assert "1 unexpected key: strange.bias." in message
    assert "1 mis-shaped key: fc.weight is (1000, 7) in the file and (1000, 96) in the model." in message


def test_long_lists_are_shortened_with_their_count(tmp_path):
    path = save_checkpoint(tmp_path / "other.safetensors", {f"layer{i}": torch.zeros(1) for i in range(30)})
    with pytest.raises(WeightsMismatchError, match=r"30 unexpected keys: .*, and 22 more\."):
        load(path)


def test_old_checkpoints_lack_only_a_counter():
    module = tiny_timm()
    state = {k: v for k, v in module.state_dict().items() if not k.endswith("num_batches_tracked")}
    load_weights(module, state, file="f", model="m")


class Payload:
    """Unpickling this calls a function of the attacker's choice."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("content", ["payload", "plain pickle"])
def test_code_in_a_checkpoint_never_runs(tmp_path, content):
    mark = tmp_path / "mark"
    evil = tmp_path / "evil.pth"
    if content == "payload":
        torch.save({"state_dict": Payload(mark)}, evil)
    else:
        evil.write_bytes(pickle.dumps(Payload(mark)))
    with pytest.raises(DataError, match=r"evil\.pth holds more than tensors.*save_file"):
        read_state_dict(evil)
    assert not mark.exists()


@pytest.mark.parametrize("content", [{}, {"epoch": 3}, [1, 2]])
def test_files_that_are_no_state_dict(tmp_path, content):
    torch.save(content, tmp_path / "odd.pth")
    with pytest.raises(DataError, match=r"odd\.pth is no state dict"):
        read_state_dict(tmp_path / "odd.pth")


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_a_truncated_file_is_named(tmp_path, suffix):
    path = tmp_path / f"cut{suffix}"
    if suffix == ".safetensors":
        save_checkpoint(path, tiny_timm().state_dict(), architecture=TINY)
    else:
        torch.save(tiny_timm().state_dict(), path)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(DataError, match=r"cut\.(safetensors|pth) cannot be read as a checkpoint"):
        read_state_dict(path)
    if suffix == ".safetensors":
        with pytest.raises(DataError, match="cannot be read as a checkpoint"):
            read_header(path)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"kwargs": "{pad_type: same}"}, "not JSON"),
        ({"kwargs": [1]}, "kwargs as a mapping"),
        ({"num_classes": "[2]"}, "whole number"),
    ],
)
def test_header_values_that_make_no_sense(tmp_path, metadata, message):
    path = save_checkpoint(tmp_path / "h.safetensors", tiny_timm().state_dict(), **metadata)
    with pytest.raises(DataError, match=message):
        read_header(path)


def test_other_formats_have_no_header(tmp_path):
    assert read_header(tmp_path / "a.pth").architecture is None


@pytest.mark.parametrize("prefix", ["model.", "backbone.", "net.", "_orig_mod.", "module.model.", "model._orig_mod."])
def test_prefixes_come_off_when_the_network_has_none(tmp_path, prefix):
    state = tiny_timm(num_classes=7).state_dict()
    torch.save({"state_dict": {prefix + name: tensor for name, tensor in state.items()}}, tmp_path / "w.ckpt")
    backbone = load(tmp_path / "w.ckpt")
    assert backbone.num_source_classes == 7
    assert torch.equal(backbone.module.fc.weight, state["fc.weight"])


def test_a_prefix_that_the_network_has_itself_stays():
    class Wrapper(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = tiny_timm()

    state = Wrapper().state_dict()
    load_weights(Wrapper(), state, file="f", model="m")


@pytest.mark.parametrize("key", ["state_dict_ema", "model_ema"])
def test_the_average_of_the_weights_is_taken_where_there_is_one(tmp_path, key):
    state, average = tiny_timm().state_dict(), {k: v + 1 for k, v in tiny_timm().state_dict().items()}
    torch.save({"state_dict": state, key: average, "epoch": 3}, tmp_path / "last.pth.tar")
    assert torch.equal(load(tmp_path / "last.pth.tar").module.fc.weight, average["fc.weight"])
    torch.save({"state_dict": state, key: None}, tmp_path / "none.pth")
    assert torch.equal(load(tmp_path / "none.pth").module.fc.weight, state["fc.weight"])


def test_averages_of_torch_bring_a_counter(tmp_path):
    averaged = torch.optim.swa_utils.AveragedModel(tiny_timm())
    torch.save(averaged.state_dict(), tmp_path / "swa.pth")
    assert torch.equal(load(tmp_path / "swa.pth").module.fc.weight, tiny_timm().fc.weight)


def test_lightning_checkpoints(tmp_path):
    state = {f"model.{name}": tensor for name, tensor in tiny_timm().state_dict().items()}
    content = {"state_dict": state, "pytorch-lightning_version": "2.5", "hyper_parameters": {"lr": 0.1}, "epoch": 1}
    torch.save(content, tmp_path / "epoch=1.ckpt")
    assert load(tmp_path / "epoch=1.ckpt").num_source_classes == 1000
    content["hyper_parameters"] = argparse.Namespace(lr=0.1)  # would need code to be read
    torch.save(content, tmp_path / "args.ckpt")
    with pytest.raises(DataError, match=r"args\.ckpt holds more than tensors.*\['state_dict'\]"):
        load(tmp_path / "args.ckpt")
