"""From a spec to a backbone: preprocessing, sizes, random weights, devices, global state."""

import pytest
import torch

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models import ModelSpec, load_backbone, random_weights_control, read_zoo
from crossgraft.models.random_weights import open_branches

from .conftest import TINY, save_checkpoint, tiny_timm


def test_random_weights_depend_on_the_seed_alone():
    spec = ModelSpec("r", TINY, "random")
    first, again, other = (load_backbone(spec, seed=seed) for seed in (0, 0, 1))
    assert first.weights_fingerprint == again.weights_fingerprint != other.weights_fingerprint
    assert first.source == "timm"
    assert first.licence is None


class OpenOnly(torch.nn.Module):
    """A block of each kind that begins as its shortcut, and what is 0 without closing anything."""

    def __init__(self):
        super().__init__()
        self.norm, self.group, self.gain = (
            torch.nn.BatchNorm2d(3),
            torch.nn.GroupNorm(1, 3),
            torch.nn.Parameter(torch.zeros(())),
        )
        self.conv, self.token = torch.nn.Conv2d(3, 3, 1), torch.nn.Parameter(torch.zeros(1, 1, 3))
        self.frozen = torch.nn.LayerNorm(3)
        for layer in (self.norm, self.group, self.conv, self.frozen):
            torch.nn.init.zeros_(layer.weight)
            torch.nn.init.constant_(layer.bias, 0.25)
        self.frozen.requires_grad_(False)


def test_what_closes_the_branches_of_a_random_network_is_drawn():
    drawn = []
    for seed in (0, 0, 1):
        module = OpenOnly()
        torch.manual_seed(5)
        open_branches(module, seed, source="m")
        assert torch.equal(torch.rand(3), torch.rand(3, generator=torch.Generator().manual_seed(5)))
        drawn.append(module.conv.weight)
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2]) and drawn[0].all()
    assert (module.norm.weight == 1).all() and (module.group.weight == 1).all() and module.gain == 1
    assert not module.token.any() and not module.frozen.weight.any()
    assert all((layer.bias == 0.25).all() for layer in (module.norm, module.group, module.conv))


@pytest.mark.parametrize("name", ["test_resnet", "test_byobnet", "test_nfnet"])
def test_a_random_control_has_no_closed_branch_and_a_start_of_a_training_may(name):
    """In networks of timm as they come; weights that are not 0 are those of the start."""
    spec = ModelSpec("r", name, "random")
    start, control = (load_backbone(spec, image_size=32, for_training=value).module for value in (True, False))
    closed = {key for key, value in start.named_parameters() if not value.any() and not key.endswith("bias")}
    assert closed and all(value.any() for key, value in control.named_parameters() if key in closed)
    others = {key: value for key, value in start.named_parameters() if key not in closed}
    assert all(torch.equal(value, control.get_parameter(key)) for key, value in others.items())


def test_the_global_random_state_is_untouched(tmp_path):
    path = save_checkpoint(tmp_path / "a.safetensors", tiny_timm().state_dict())
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load_backbone(ModelSpec("r", TINY, "random"))
    load_backbone(ModelSpec("c", TINY, str(path)))
    assert torch.equal(torch.rand(3), expected)


def test_header_entry_and_argument_decide_the_preprocessing(tmp_path):
    path = save_checkpoint(
        tmp_path / "a.safetensors", tiny_timm().state_dict(), architecture=TINY, input_size=[3, 48, 48], mean=[0.5] * 3
    )
    header = load_backbone(str(path))
    assert (header.preprocessing.height_pixels, header.preprocessing.mean) == (48, (0.5,) * 3)
    assert header.preprocessing.interpolation == "bilinear"  # what timm says for the architecture
    entry = ModelSpec("e", "", str(path), preprocessing={"mean": 0.1, "resize_policy": "squash"})
    asked = load_backbone(entry, image_size=32)
    assert asked.preprocessing.describe() == "32×32 px, 3 channels, bilinear, squash, mean 0.1 0.1 0.1, std 0.5 0.5 0.5"
    assert load_backbone(entry, resize_policy="pad").preprocessing.resize_policy == "pad"


def test_the_control_of_a_checkpoint_differs_only_in_its_weights(tmp_path):
    path = save_checkpoint(
        tmp_path / "a.safetensors", tiny_timm().state_dict(), architecture=TINY, input_size=[3, 48, 48], licence="MIT"
    )
    (spec,) = read_zoo(str(path))
    original, control = load_backbone(spec), load_backbone(random_weights_control(spec))
    assert control.preprocessing == original.preprocessing
    assert control.structure_fingerprint == original.structure_fingerprint
    assert control.weights_fingerprint != original.weights_fingerprint
    assert (original.licence, control.licence) == ("MIT", None)


def test_grey_networks_and_classes_by_argument():
    backbone = load_backbone(ModelSpec("g", TINY, "random", kwargs={"in_chans": 1, "num_classes": 4}), image_size=32)
    assert backbone.preprocessing.channels == 1
    assert backbone(torch.zeros(1, 1, 32, 32)).source_logits.shape == (1, 4)


def test_a_vit_takes_another_image_size(tmp_path):
    kwargs = {"embed_dim": 12, "depth": 1, "num_heads": 1}
    spec = ModelSpec("v", "vit_tiny_patch16_224", "random", kwargs=kwargs)
    assert load_backbone(spec, image_size=64)(torch.zeros(1, 3, 64, 64)).features.shape == (1, 12)


def test_a_network_of_one_size_says_so():
    spec = ModelSpec("m", "coat_lite_tiny", "random")
    with pytest.raises(UsageError, match=r"images of 224×224 pixels only"):
        load_backbone(spec, image_size=64)


def test_arguments_that_the_architecture_does_not_take():
    with pytest.raises(UsageError, match=r"timm cannot build test_resnet with num_classes='red'"):
        load_backbone(ModelSpec("a", TINY, "random", kwargs={"num_classes": "red"}))
    with pytest.raises(UnknownNameError, match=r"Unknown argument in the kwargs of test_resnet: colour"):
        load_backbone(ModelSpec("a", TINY, "random", kwargs={"colour": "red"}))


def test_an_unknown_device_is_never_replaced_silently():
    with pytest.raises(UsageError, match="Unknown device"):
        load_backbone(ModelSpec("a", TINY, "random"), device="tpu9")
