"""What an Apple accelerator would refuse, simulated on the CPU: float64 tensors and missing operations."""

from contextlib import nullcontext

import numpy as np
import pytest
import timm
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from crossgraft import compute
from crossgraft.compute import is_out_of_memory, resolve_device
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import DeviceLostError, UnknownNameError, UsageError
from crossgraft.models.backbone import Backbone
from crossgraft.models.device import choose_precision, explain_missing_operations, move_to_device
from crossgraft.types import Preprocessing


class NoFloat64(TorchDispatchMode):
    """Refuses every operation that gives or takes a float64 tensor, as the framework of Apple does."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        output = func(*args, **(kwargs or {}))
        for leaf in tree_leaves((args, kwargs, output)):
            if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float64:
                raise TypeError(f"Cannot convert a MPS Tensor to float64 dtype ({func})")
        return output


def backbone(module, **more):
    size = Preprocessing(height_pixels=32, width_pixels=32, mean=(0.5,) * 3, std=(0.25,) * 3)
    return Backbone(module, name="net", architecture="net", source="factory", preprocessing=size, family="net", **more)


@pytest.mark.parametrize("name", ["test_resnet", "test_vit", "test_efficientnet"])
def test_no_step_from_pixels_to_features_makes_float64(name):
    kwargs = {"img_size": 32} if name == "test_vit" else {}
    images = [np.full((20, 24, 3), 7, np.uint8), np.full((9, 9, 1), 0.5, np.float32), np.full((8, 8, 1), 900, np.uint16)]
    with NoFloat64():
        network = backbone(timm.create_model(name, num_classes=5, **kwargs))
        output = network(prepare_batch(images, network.preprocessing))
        layer = network.activations(prepare_batch(images, network.preprocessing), network.layer_names[:1])
    assert output.features.dtype == torch.float32
    assert output.source_logits is not None
    assert layer


def test_the_simulation_would_notice():
    with NoFloat64(), pytest.raises(TypeError, match="float64"):
        torch.zeros(2).double()


class WithFloat64Buffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.register_buffer("scale", torch.ones(3, dtype=torch.float64))
        self.register_buffer("steps", torch.zeros(1, dtype=torch.int64))


def test_weights_of_float64_become_float32_for_apple_only(monkeypatch):
    moved = []
    monkeypatch.setattr(nn.Module, "to", lambda self, device: moved.append(device) or self)
    kept = move_to_device(WithFloat64Buffer(), "cuda:1")
    narrowed = move_to_device(WithFloat64Buffer(), "mps")
    assert kept.scale.dtype == torch.float64
    assert narrowed.scale.dtype == torch.float32
    assert narrowed.steps.dtype == torch.int64
    assert moved == ["cuda:1", "mps"]


def test_an_operation_that_a_device_lacks_is_explained():
    words = "The operator 'aten::x' is not currently implemented for the MPS device. If you want this op to be added …"
    with (
        pytest.raises(UsageError, match=r"net does not run on mps: The operator 'aten::x' .* device\. Use .*FALLBACK=1"),
        explain_missing_operations("net", "mps"),
    ):
        raise NotImplementedError(words)
    with pytest.raises(NotImplementedError), explain_missing_operations("net", "cpu"):
        raise NotImplementedError(words)


class Card(nn.Module):
    """A network on a card that fails."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, images):
        raise RuntimeError("CUDA error: unspecified launch failure\nCUDA kernel errors might be reported later.")


def test_a_card_that_fails_before_the_first_image_is_no_fault_of_the_network(monkeypatch):
    with pytest.raises(DeviceLostError, match=r"^The device meta failed in mid-run: CUDA error: unspecified launch failure\. "):
        backbone(Card(), device="meta")  # any device but the CPU
    monkeypatch.setattr(nn.Module, "to", lambda self, device: self.forward(None))
    with pytest.raises(DeviceLostError, match="The device cuda:1 failed"):
        move_to_device(Card(), "cuda:1")


def test_apples_accelerator_is_taken_where_it_is(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto") == "mps"
    assert resolve_device("mps") == "mps"


def test_apples_words_for_too_little_memory_are_understood():
    assert is_out_of_memory(RuntimeError("MPS backend out of memory (MPS allocated: 17.9 GB, max allowed: 18.1 GB)"))


def test_systems_without_affinity_count_their_cores(monkeypatch):
    monkeypatch.delattr(compute.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(compute.os, "cpu_count", lambda: 6)
    assert compute.available_cores() == 6


def test_a_notebook_shows_a_backbone_as_a_table():
    html = backbone(timm.create_model("test_resnet", num_classes=5), licence="<b>mit</b>")._repr_html_()
    assert "<table><caption>Backbone net</caption>" in html
    assert "&lt;b&gt;mit&lt;/b&gt;" in html


@pytest.mark.parametrize(("name", "device", "expected"), [("auto", "cpu", "32"), ("32", "cuda", "32"), ("bf16", "cpu", "bf16")])
def test_auto_is_32_and_a_cpu_has_both(name, device, expected):
    assert choose_precision(name, device) == expected


def test_a_card_without_bf16_and_an_unknown_precision_are_refused_with_advice(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla T4")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *, including_emulation: False)
    with pytest.raises(
        UsageError, match=r"^The GPU cuda:1 \(Tesla T4\) has no bf16. Leave --precision out, or use --precision 32.$"
    ):
        choose_precision("bf16", "cuda:1")
    assert choose_precision("auto", "cuda:1") == "32"
    with pytest.raises(UnknownNameError, match="bf16"):
        choose_precision("bf61", "cpu")
