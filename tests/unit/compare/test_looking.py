"""Networks are only looked at: weights, modes and hooks stay as they are, whatever the architecture, and when a pass raises."""

import numpy as np
import pytest
import timm
import torch
from timm.models.mlp_mixer import MlpMixer

from crossgraft.compare.looking import LayerPairs, Watch, as_maps, choose_layers, look_at, map_shapes
from crossgraft.compare.networks import network_of_backbone, untrained
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.models.backbone import Backbone
from crossgraft.models.recipe import network_recipe
from crossgraft.models.trusted_code import NOTHING
from crossgraft.progress import Reporter
from crossgraft.types import Preprocessing

SMALL = {
    "cnn": ("test_resnet", {}, 32),
    "vit": ("test_vit", {"img_size": 32}, 32),
    "swin": (
        "swin_tiny_patch4_window7_224",
        {"img_size": 56, "embed_dim": 12, "depths": (1, 1, 1, 1), "num_heads": (1, 1, 1, 1)},
        56,
    ),
    "convnext": ("convnext_atto", {"depths": (1, 1, 1, 1), "dims": (8, 8, 16, 16)}, 32),
    "densenet": ("densenet121", {"growth_rate": 4, "block_config": (2, 2, 2, 2)}, 32),
    "mixer": ("MlpMixer", {"img_size": 48, "num_blocks": 2, "embed_dim": 16, "num_classes": 3}, 48),
}
QUIET = Reporter(quiet=True)


def preprocessing(size):
    return Preprocessing(size, size, 3, (0.5,) * 3, (0.5,) * 3, "bilinear", "squash", 1.0)


def network(kind, seed=0):
    name, arguments, size = SMALL[kind]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        is_named = kind != "mixer"  # timm gives its small mixers a fixed depth
        module = timm.create_model(name, pretrained=False, num_classes=3, **arguments) if is_named else MlpMixer(**arguments)
    backbone = Backbone(
        module,
        name=kind,
        architecture=name,
        source="timm",
        preprocessing=preprocessing(size),
        family=kind,
        network=network_recipe(name, {**arguments, "num_classes": 3}) if is_named else None,
    )
    return network_of_backbone(backbone)


def images(count=5):
    pixels = np.random.default_rng(0).integers(0, 256, (count, 24, 24, 3)).astype(np.uint8)
    return dataset_from_arrays(pixels, np.arange(count) % 2, name="some")


def state_of(module):
    hooks = [
        (name, len(each._forward_hooks), len(each._forward_pre_hooks), each.training) for name, each in module.named_modules()
    ]
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}, hooks


class StopError(Exception):
    """Raised in the middle."""


@pytest.mark.parametrize("kind", SMALL)
def test_a_network_is_the_same_afterwards(kind):
    looked = network(kind)
    looked.module.train()
    next(looked.module.parameters()).requires_grad_(False)
    layers = choose_layers(looked, None)
    assert len(layers) >= 2 and looked.head not in layers
    weights, hooks = state_of(looked.module)
    asks = [parameter.requires_grad for parameter in looked.module.parameters()]
    seen = {}

    def take(_key, layer, places, maps):
        seen[layer] = tuple(maps.shape)
        assert len(places) == len(maps)

    def stop(*_):
        raise StopError

    shapes = map_shapes(looked, layers)
    found = look_at({"A": looked}, images(), range(5), watch=Watch({"A": layers}, on_maps=take), reporter=QUIET, title="")
    with pytest.raises(StopError):
        look_at({"A": looked}, images(), range(5), watch=Watch({"A": layers}, on_maps=stop), reporter=QUIET, title="")
    with pytest.raises(StopError):
        look_at({"A": looked}, images(), range(5), watch=Watch({"A": layers}, on_batch=stop), reporter=QUIET, title="")
    after, hooks_after = state_of(looked.module)
    assert hooks_after == hooks and asks == [parameter.requires_grad for parameter in looked.module.parameters()]
    assert after.keys() == weights.keys() and all(torch.equal(after[name], weights[name]) for name in weights)
    assert {name: shape[1:] for name, shape in seen.items()} == shapes
    assert found["A"].features.shape[0] == 5 and np.isfinite(found["A"].features).all()
    if kind == "mixer":
        assert untrained(looked, seed=0, number=1, trusted=NOTHING) is None  # nobody can build it again
        return
    twin = untrained(looked, seed=0, number=1, trusted=NOTHING)
    assert twin.has_body_of(looked) and map_shapes(twin, layers) == shapes
    other = untrained(looked, seed=0, number=2, trusted=NOTHING)
    assert not torch.equal(*(next(each.module.parameters()) for each in (twin, other)))


def test_channels_are_found_wherever_they_stand():
    swin, vit = network("swin"), network("vit")
    layers = choose_layers(swin, None)
    assert map_shapes(swin, layers[:1])[layers[0]] == (12, 14, 14)  # (n, h, w, c) inside
    tokens = torch.rand(2, 5, 64)
    found = as_maps(tokens, vit.body)
    prefix = vit.body.num_prefix_tokens
    assert found.shape == (2, 64, 5 - prefix, 1) and torch.equal(found[0, :, 0, 0], tokens[0, prefix])


def test_each_image_is_decoded_once_and_prepared_for_each_network():
    data = images()
    reads = []

    class Counted:
        def __len__(self):
            return len(data)

        def read(self, row):
            reads.append(row)
            return data.read(row)

    both = {"A": network("cnn"), "B": network("mixer")}
    look_at(both, Counted(), [4, 0, 2], reporter=QUIET, title="")
    assert reads == [4, 0, 2]


def test_unknown_layers_and_bad_weights_are_named():
    looked = network("cnn")
    with pytest.raises(UnknownNameError, match=r"layer of cnn: layer1\.1\. Did you mean layer1\.0"):
        choose_layers(looked, ["layer1.1"])
    with pytest.raises(UsageError, match="each layer once"):
        choose_layers(looked, ["layer1", "layer1"])
    with torch.no_grad():
        next(looked.module.parameters()).fill_(float("nan"))
    with pytest.raises(DataError, match="cnn gives NaN or infinite features for row 3"):
        look_at({"A": looked}, images(), [3, 0], reporter=QUIET, title="")


def test_where_sums_do_not_fit_minibatches_are_used_and_said():
    random = np.random.default_rng(0)
    a, b = ({f"{name}{i}": random.standard_normal((300, 6)).astype(np.float32) for i in range(2)} for name in "ab")
    b["b0"] = a["a0"] @ random.standard_normal((6, 6)).astype(np.float32)
    exact, means = LayerPairs(), LayerPairs(most_bytes=10)
    for rows in np.split(np.arange(300), range(32, 300, 32)):
        for pairs in (exact, means):
            pairs.update(*({name: torch.from_numpy(values[rows]) for name, values in side.items()} for side in (a, b)))
    assert exact.grid().notes == [] and exact.grid().estimator == "debiased linear cka"
    found = means.grid()
    assert found.num_images == 300 and found.notes[0].startswith("From 3 minibatches: exact sums would take")
    np.testing.assert_allclose(found.values, exact.grid().values, atol=0.05)
