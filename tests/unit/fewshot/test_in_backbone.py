"""Heads that train inside a network: forms, layers, memory, and that the network stays as it was."""

import copy
import pickle
import re
from collections import OrderedDict

import numpy as np
import pytest
import timm
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from crossgraft.errors import CrossgraftError, CrossgraftWarning, DataError, DivergedError, UnknownNameError, UsageError
from crossgraft.fewshot import HEADS, CopaTsa, FineTuningHead, NWayKShot, TsaAdapter, evaluate
from crossgraft.fewshot.choice import choose_heads, heads_left_out
from crossgraft.fewshot.heads import _in_backbone
from crossgraft.fewshot.heads._head import NOTABLE_RISE, warn_of_rise
from crossgraft.fewshot.heads._in_backbone import find_layers
from crossgraft.fewshot.parts import EpisodeImages
from crossgraft.models import ModelSpec, load_backbone
from crossgraft.models.adapters import AdapterRecipe, TaskSpecificAdapter
from crossgraft.models.adapters.insertion import insert_adapter, make_adapter
from crossgraft.types import Preprocessing


class Small(nn.Module):
    """Two convolutions and an average."""

    def __init__(self, width=6):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, 2, 1)
        self.norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, 1, 1)

    def forward(self, x):
        return self.second(self.norm(self.first(x)).relu()).relu().mean((2, 3))


@pytest.fixture
def small():
    torch.manual_seed(0)
    return Small().eval()


@pytest.fixture
def task():
    """Twelve images of three classes that differ in colour, and queries."""
    random = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c"], 4)
    colours = random.standard_normal((3, 3, 1, 1))[np.repeat(range(3), 4)]
    images = (colours + 0.5 * random.standard_normal((12, 3, 8, 8))).astype(np.float32)
    return images, labels


IN_BACKBONE = [
    TsaAdapter(steps=3),
    TsaAdapter(steps=3, connection="serial"),
    TsaAdapter(steps=3, form="vector"),
    TsaAdapter(steps=3, trained="adapters"),
    TsaAdapter(steps=3, trained="head"),
    CopaTsa(steps=3, layers="auto"),
    FineTuningHead(steps=3),
]
TESTED = {type(head) for head in IN_BACKBONE}
IN_BACKBONE += [head() for _, head in HEADS if getattr(head, "reads_images", False) and head not in TESTED]


def on(head, network):
    return clone(head).set_params(backbone=network)


@pytest.mark.parametrize("head", IN_BACKBONE, ids=lambda head: type(head).__name__)
def test_the_network_is_bit_for_bit_what_it_was(small, task, head):
    images, labels = task
    small.train()
    small.first.weight.requires_grad_(False)
    before = {name: value.clone() for name, value in small.state_dict().items()}
    fitted = on(head, small).fit(images, labels)
    shares = fitted.predict_proba(images)
    assert shares.shape == (12, 3) and np.allclose(shares.sum(1), 1, atol=1e-5)
    assert small.state_dict().keys() == before.keys()
    assert all(torch.equal(value, before[name]) for name, value in small.state_dict().items())
    assert not any(module._forward_hooks for module in small.modules())
    assert small.training and not small.first.weight.requires_grad and small.second.weight.requires_grad
    again = on(head, small).fit(images, labels)
    np.testing.assert_array_equal(shares, again.predict_proba(images))
    assert len(fitted.loss_curve_) == 3 and fitted.loss_curve_ == again.loss_curve_


@pytest.mark.parametrize("head", IN_BACKBONE, ids=lambda head: type(head).__name__)
def test_a_loaded_backbone_is_bit_for_bit_what_it_was(head):
    """The order of its weights in memory, too, which is another one while it is trained."""
    backbone = load_backbone(ModelSpec("small", "test_resnet", weights="random"), image_size=32)
    state = backbone.module.state_dict()
    before = {name: (value.clone(), value.stride()) for name, value in state.items()}
    random = np.random.default_rng(0)
    images = random.standard_normal((6, 3, 32, 32)).astype(np.float32)
    features = backbone(torch.from_numpy(images)).features
    fitted = on(head, backbone).fit(images, [0, 0, 0, 1, 1, 1])
    assert fitted.predict_proba(images).shape == (6, 2)
    for name, value in backbone.module.state_dict().items():
        assert torch.equal(value, before[name][0]) and value.stride() == before[name][1], name
    assert torch.equal(backbone(torch.from_numpy(images)).features, features)


@pytest.mark.parametrize("head", IN_BACKBONE, ids=lambda head: type(head).__name__)
def test_an_interrupted_fit_leaves_the_network_as_it_was(small, task, head, monkeypatch):
    before = {name: value.clone() for name, value in small.state_dict().items()}

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("torch.optim.Optimizer.zero_grad", stop)
    with pytest.raises(KeyboardInterrupt):
        on(head, small).fit(*task)
    assert all(torch.equal(value, before[name]) for name, value in small.state_dict().items())
    assert not any(module._forward_hooks for module in small.modules())
    assert all(parameter.requires_grad for parameter in small.parameters())


@pytest.mark.parametrize("head", IN_BACKBONE, ids=lambda head: type(head).__name__)
def test_many_images_are_looked_at_in_chunks(small, task, head, monkeypatch):
    """The same gradient: what is trained is the same up to rounding."""
    images, labels = task
    small.double()
    whole = on(head, small).fit(images, labels)
    monkeypatch.setattr(_in_backbone, "PIXELS_AT_ONCE", 5 * 8 * 8)
    parts = on(head, small).fit(images, labels)
    np.testing.assert_allclose(whole.loss_curve_, parts.loss_curve_, rtol=1e-12)
    np.testing.assert_allclose(whole.predict_proba(images), parts.predict_proba(images), atol=1e-9)


def test_training_lowers_the_loss(small, task):
    for head in (TsaAdapter(learning_rate="unseen"), CopaTsa(layers="auto"), FineTuningHead(learning_rate=1e-3)):
        curve = on(head, small).fit(*task).loss_curve_
        assert curve[-1] < curve[0], type(head).__name__


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(["residual", "serial"]),
    st.sampled_from(["matrix", "vector"]),
    st.sampled_from([1, 2]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([3, 5]),
    st.booleans(),
)
def test_the_map_is_the_equation(connection, form, stride, groups, kernel, is_square):
    """Beside a convolution: at each output position, α times the input there, or times the output."""
    outputs = 4 if is_square else 8
    host = nn.Conv2d(4, outputs, kernel, stride, kernel // 2, groups=groups)
    plain, x = host(torch.ones(1, 4, 6, 6)), torch.ones(1, 4, 6, 6)
    network = nn.Sequential(host)
    adapter = make_adapter(network, AdapterRecipe("tsa", "0", {"connection": connection, "form": form}))
    adapter.draw(torch.Generator())
    insert_adapter(host, adapter)
    start = 1e-4 * torch.eye(outputs, 4) @ torch.ones(4) if connection == "residual" else torch.zeros(outputs)
    torch.testing.assert_close(host(x), plain + start[None, :, None, None])
    with torch.no_grad():
        for parameter in adapter.parameters():
            parameter.copy_(torch.randn(parameter.shape))
    x = torch.randn(2, 4, 6, 6)
    adapter.enabled = False
    h = host(x)
    adapter.enabled = True
    inner = h if connection == "serial" else x[:, :, ::stride, ::stride]
    alpha = adapter.alpha.reshape(-1) if adapter.is_vector else adapter.alpha[:, :, 0, 0]
    mapped = inner * alpha[:, None, None] if adapter.is_vector else torch.einsum("oc,nchw->nohw", alpha, inner)
    expected = h + mapped if connection == "residual" else mapped + adapter.bias
    torch.testing.assert_close(host(x), expected, atol=1e-5, rtol=1e-5)
    assert adapter.is_vector == (form == "vector" and (connection == "serial" or (is_square and stride == 1)))


def test_beside_a_linear_layer():
    host = nn.Linear(5, 5)
    network = nn.Sequential(host)
    x = torch.randn(3, 5)
    plain = host(x)
    for form in ("matrix", "vector"):
        adapter = make_adapter(network, AdapterRecipe("tsa", "0", {"form": form}))
        adapter.draw(torch.Generator())
        insert_adapter(host, adapter)
        torch.testing.assert_close(host(x), plain + 1e-4 * x)
        delattr(host, "tsa")
        host._forward_hooks.clear()


def test_copa_tsa_with_one_image_per_class_warns_and_keeps_both_heads_equal(small, task):
    images, labels = task
    few = np.unique(labels, return_index=True)[1]
    with pytest.warns(CrossgraftWarning, match="one image per class"):
        head = on(CopaTsa(steps=3), small).fit(images[few], labels[few])
    np.testing.assert_allclose(head.instance_weights_, head.prototype_weights_, atol=1e-6)  # float32


def test_random_starts_differ_by_seed(small, task):
    heads = [on(TsaAdapter(steps=1, init="random", seed=seed), small).fit(*task) for seed in (0, 0, 1)]
    losses = [head.loss_curve_[0] for head in heads]
    assert losses[0] == losses[1] != losses[2]


def three_stages():
    """The layout of a ResNet for CIFAR, three blocks each."""
    stage = timm.create_model("resnet34").layer1
    return nn.Sequential(OrderedDict((f"layer{number}", copy.deepcopy(stage)) for number in (1, 2, 3)))


def test_layers_of_known_networks():
    resnet = timm.create_model("resnet18")
    assert len(find_layers(resnet, "auto", "residual")) == 16
    deep, convnext = (timm.create_model(name) for name in ("resnet34", "convnext_atto"))
    for network in (resnet, deep, three_stages()):  # what they have of two stages, and no other
        convolutions = [name for name in find_layers(network, "auto", "residual") if name[:6] in ("layer2", "layer3")]
        assert find_layers(network, "middle", "residual") == convolutions
    assert {name[:8] for name in find_layers(convnext, "middle", "residual")} == {"stages.1", "stages.2"}
    vgg = find_layers(timm.create_model("vgg11"), "middle", "residual")
    assert vgg and all(name.startswith("features.") for name in vgg)
    assert not any("downsample" in name or name == "conv1" for name in find_layers(resnet, "auto", "residual"))
    mobile = timm.create_model("mobilenetv2_035")
    assert all(mobile.get_submodule(name).groups > 1 for name in find_layers(mobile, "auto", "residual"))
    vit = timm.create_model("vit_tiny_patch16_224", depth=2)
    assert find_layers(vit, "proj", "residual") == ["patch_embed.proj", "blocks.0.attn.proj", "blocks.1.attn.proj"][1:]
    assert find_layers(vit, "auto", "residual")[0] == "blocks.0.attn.qkv"
    assert find_layers(resnet, lambda name, layer: name.endswith("0.conv2"), "residual")[0] == "layer1.0.conv2"
    with pytest.raises(UnknownNameError, match="layr1"):
        find_layers(resnet, "layr1", "residual")
    with pytest.raises(UsageError, match="no layer to adapt"):
        find_layers(nn.Sequential(nn.BatchNorm2d(3)), "auto", "residual")


def test_a_convolution_that_does_not_pad_takes_the_middles():
    host = nn.Conv2d(2, 2, 3)
    network, x = nn.Sequential(host), torch.randn(1, 2, 7, 8)
    plain = host(x)
    adapter = make_adapter(network, AdapterRecipe("tsa", "0", {}))
    adapter.draw(torch.Generator())
    insert_adapter(host, adapter)
    torch.testing.assert_close(host(x), plain + 1e-4 * x[:, :, 1:-1, 1:-1])


def test_a_layer_without_a_place_for_it_is_refused():
    with pytest.raises(UsageError, match="TSA cannot adapt 0: its kernel has no middle"):
        TaskSpecificAdapter.make(nn.Conv2d(3, 3, 2), {}, name="0")
    with pytest.raises(UsageError, match="its output is larger"):
        TaskSpecificAdapter.make(nn.Conv2d(3, 3, 3, padding=2), {}, name="0")
    with pytest.raises(UsageError, match="a LayerNorm"):
        TaskSpecificAdapter.make(nn.LayerNorm(3), {}, name="0")
    with pytest.raises(UnknownNameError, match="connection of tsa"):
        TaskSpecificAdapter.make(nn.Linear(3, 3), {"connection": "sideways"}, name="0")


class OfRows(nn.Module):
    """A network for rows of any width, as scikit-learn's checks have them."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(1, 1, 3, padding=1)
        with torch.no_grad():  # nearly the identity
            self.layer.weight.zero_()
            self.layer.weight[0, 0, 1, 1] = 1.0
            self.layer.bias.zero_()

    def forward(self, x):
        return self.layer(x[:, None, None, :])[:, 0, 0]


def fails_on_modules(_):
    """That nothing is changed is tested above, bit for bit."""
    return {"check_estimators_overwrite_params": "a deep copy of a module has another hash, trained or not"}


@parametrize_with_checks(
    [head.set_params(backbone=OfRows()) for head in (TsaAdapter(), CopaTsa(), FineTuningHead())],
    expected_failed_checks=fails_on_modules,
)
@pytest.mark.filterwarnings(r"ignore:CoPA \+ TSA with one image per class")
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)


class Maps(Small):
    def forward(self, x):
        return self.second(self.first(x))


class Pairs(Small):
    def forward(self, x):
        return super().forward(x), x


class TakesWeights(Small):
    def forward(self, x):
        return nn.functional.conv2d(self.first(x), self.second.weight, padding=1).mean((2, 3))


def test_bad_input(small, task):
    images, labels = task
    wrong = [
        (TsaAdapter(), task, UsageError, "Give it one: backbone="),
        (TsaAdapter(backbone="resnet18"), task, UsageError, "must be a Backbone or a module, got str"),
        (TsaAdapter(backbone=small), (images.mean((2, 3)), labels), DataError, "reads images"),
        (TsaAdapter(backbone=small), (images, np.repeat("a", 12)), DataError, "at least two classes"),
        (TsaAdapter(backbone=small, learning_rate="soon"), task, UsageError, "seen or unseen"),
        (TsaAdapter(backbone=small, trained="nothing"), task, UsageError, "both, adapters or head"),
        (TsaAdapter(backbone=small, form="tensor"), task, UnknownNameError, "form of tsa"),
        (CopaTsa(backbone=small, adapter_learning_rate=-1), task, UsageError, "adapter_learning_rate of copa_tsa"),
        (FineTuningHead(backbone=small, steps=-1), task, UsageError, "steps of fine_tuning"),
        (TsaAdapter(backbone=Small().half()), task, UsageError, "backbone of tsa has weights in float16"),
        (FineTuningHead(backbone=Small().bfloat16()), task, UsageError, "has weights in bfloat16"),
        (CopaTsa(backbone=Maps()), task, DataError, "gives shape (1, 6, 4, 4) for one image"),
        (FineTuningHead(backbone=Pairs()), task, DataError, "gives type tuple for one image"),
        (TsaAdapter(backbone=TakesWeights(), layers="second"), task, UsageError, "without calling the layer"),
    ]
    for head, (X, y), error, message in wrong:
        with pytest.raises(error, match=re.escape(message)):
            head.fit(X, y)
    fitted = FineTuningHead(backbone=small, steps=1).fit(images, labels)
    with pytest.raises(DataError, match=r"does not run on one of shape \(3,\)"):
        fitted.predict(images.mean((2, 3)))
    assert len(fitted.predict(images[:, :, 1:])) == 12
    with pytest.raises(DataError, match="Image 5 holds NaN"):
        TsaAdapter(backbone=small).fit(np.where(images == images[5, 1, 2, 3], np.nan, images), labels)


def test_on_episodes_with_images(small):
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (30, 8, 8, 3), dtype=np.uint8)
    labels = np.repeat(range(3), 10)
    preprocessing = Preprocessing(width_pixels=8, height_pixels=8)
    images = EpisodeImages(lambda row: pixels[row], preprocessing)
    features = small(images(range(30))).detach().numpy()
    heads = {"head": TsaAdapter(backbone=small, steps=2), **choose_heads("ncc")}
    sampler = NWayKShot(ways=2, shots=2, queries=2)
    table = evaluate(features, labels, heads, sampler=sampler, num_episodes=2, images=images)
    assert table.accuracies.shape == (2, 2)
    sent = pickle.loads(pickle.dumps(images.of([3, 1])))
    torch.testing.assert_close(sent([1, 3]), images([1, 3]))
    with pytest.raises(KeyError):
        sent([2])
    with pytest.raises(UsageError, match="reads images"):
        evaluate(features, labels, heads, sampler=sampler, num_episodes=2)


def test_options_in_text_leave_the_backbone_out():
    heads = choose_heads("tsa:unseen,steps=3,copa_tsa")
    assert list(heads) == ["tsa:learning_rate=unseen,steps=3", "copa_tsa"]
    inside = {name for name, head in HEADS if getattr(head, "reads_images", False)}
    for base_classes, without in (((), {*inside, "meta_adapter", "zero_shot"}), (["a"], {*inside, "zero_shot"})):
        left_out = heads_left_out(" all", base_classes=base_classes)
        assert set(left_out) == without == set(HEADS.names()) - set(choose_heads("all", base_classes=base_classes))
        assert all(("inside the network" in why) == (name in inside) for name, why in left_out.items())
    assert heads_left_out("ncc") == heads_left_out(["ncc"]) == {}
    with pytest.raises(CrossgraftError, match="backbone"):
        choose_heads("tsa:backbone=3")


@pytest.mark.parametrize("layers", [None, ["c1"]])
def test_layers_are_text_or_a_function(small, task, layers):
    images, labels = task[:2]
    with pytest.raises(UsageError, match=r"layers of TSA must be text \(NAME\+NAME\) or a function"):
        TsaAdapter(backbone=small, layers=layers, steps=1).fit(images, labels)


@pytest.mark.parametrize("head", IN_BACKBONE, ids=lambda head: type(head).__name__)
def test_a_training_that_diverges_is_an_error(small, task, head):
    rate = {} if isinstance(head, FineTuningHead) else {"adapter_learning_rate": 1e35}
    with pytest.raises(DivergedError, match=f"training of {head.name} diverged"):
        on(head, small).set_params(learning_rate=1e35, **rate).fit(*task)
    with pytest.raises(DivergedError, match="before anything was learned: the features are too large"):
        on(head, small).fit(task[0] * np.float32(1e30), task[1])


@pytest.mark.parametrize(
    "head",
    [
        FineTuningHead(steps=2, learning_rate=5.0),
        TsaAdapter(steps=3, connection="serial", learning_rate=100.0, adapter_learning_rate=50.0),
    ],
    ids=lambda head: type(head).__name__,
)
def test_a_loss_that_rises_is_a_warning(small, task, head):
    said = f"The loss of {head.name} on the support set ended above where it began.*Lower learning_rate"
    with pytest.warns(CrossgraftWarning, match=said):
        on(head, small).fit(*task)


@pytest.mark.parametrize("losses", [[], [1.0], [1.0, 3.0, 0.9], [1.0, 1.0 + 0.9 * NOTABLE_RISE]])
def test_a_loss_that_falls_or_hardly_rises_is_none(losses):
    warn_of_rise("tsa", losses)  # warnings are errors in tests
    with pytest.warns(CrossgraftWarning):
        warn_of_rise("tsa", [1.0, 0.5, 1.0 + 1.1 * NOTABLE_RISE])


class Drawing(Small):
    """Draws in evaluation, as networks that mask patches do."""

    def forward(self, x):
        return super().forward(x * (torch.rand(len(x), 1, 1, 1) > 0.2))


@pytest.mark.parametrize("head", [TsaAdapter(steps=2), CopaTsa(steps=2), FineTuningHead(steps=2)], ids=lambda head: head.name)
def test_what_the_network_draws_depends_on_no_task_before(task, head):
    images, labels = task
    torch.manual_seed(0)
    head = clone(head).set_params(backbone=Drawing())
    first, second = (clone(head).fit(images, labels).predict_proba(images) for _ in range(2))
    assert np.array_equal(first, second)
