"""The header of a checkpoint is data: it shapes a network of timm or torchvision, and does nothing else."""

import json

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save, save_file

from crossgraft.errors import CrossgraftError, UnknownNameError, UsageError
from crossgraft.models import load_backbone, read_zoo
from crossgraft.models.sources import architecture_arguments
from crossgraft.models.sources.architecture_arguments import ARCHITECTURE_ARGUMENTS
from support.guard import guarded

LOADS = {
    "pretrained": True,
    "pretrained_cfg": {"url": "http://127.0.0.1:9/x.pth", "architecture": "test_resnet"},
    "pretrained_cfg_overlay": {"file": "evil.pth"},
    "checkpoint_path": "evil.pth",
    "cache_dir": "/tmp/x",
    "pretrained_strict": False,
    "weights": "DEFAULT",
}
DOES_SOMETHING_ELSE = {
    "features_only": True,
    "feature_cls": "hook",
    "scriptable": True,
    "pruned": True,
    "device": "meta",
    "cfg": {},
}


@pytest.fixture(scope="module")
def state():
    import timm

    return timm.create_model("test_resnet", num_classes=3).state_dict()


def write(path, state, **metadata):
    save_file(state, path, metadata={key: v if isinstance(v, str) else json.dumps(v) for key, v in metadata.items()})
    return str(path)


@pytest.mark.parametrize("name", [*LOADS, *DOES_SOMETHING_ELSE])
def test_an_argument_that_shapes_nothing_is_refused_by_its_name(tmp_path, state, name):
    kwargs = {name: {**LOADS, **DOES_SOMETHING_ELSE}[name]}
    path = write(tmp_path / "m.safetensors", state, architecture="test_resnet", kwargs=kwargs)
    with (
        guarded(tmp_path),
        pytest.raises(UsageError, match=rf"argument.* in the header of m\.safetensors|argument {name} in the header"),
    ):
        load_backbone(path)
    zoo = tmp_path / "zoo.yaml"
    zoo.write_text(json.dumps([{"name": "m", "source": "test_resnet", "weights": "random", "kwargs": kwargs}]))
    with guarded(tmp_path), pytest.raises(UsageError, match=name):
        load_backbone(read_zoo(zoo)[0])
    torchvision = [{"name": "m", "source": "torchvision:resnet18", "weights": "random", "kwargs": kwargs}]
    zoo.write_text(json.dumps(torchvision))
    with guarded(tmp_path), pytest.raises(UsageError, match=name):
        load_backbone(read_zoo(zoo)[0])


def test_the_list_holds_no_argument_that_loads():
    loading = set(architecture_arguments._LOADING_ARGUMENTS)
    assert ARCHITECTURE_ARGUMENTS.isdisjoint({*LOADS, *DOES_SOMETHING_ELSE, *loading})
    suspicious = ("pretrain", "checkpoint", "url", "path", "file", "hub", "cache", "download", "load")
    named = {name for name in ARCHITECTURE_ARGUMENTS if any(word in name for word in suspicious)}
    # a number of pixels of Swin V2, and rates of stochastic depth
    assert named == {"pretrained_window_sizes", "drop_path_rate", "transformer_drop_path"}


def test_an_argument_that_shapes_the_network_is_passed_on(tmp_path):
    import timm

    state = timm.create_model("test_resnet", num_classes=3, in_chans=1).state_dict()
    path = write(tmp_path / "m.safetensors", state, architecture="test_resnet", kwargs={"in_chans": 1}, num_classes=3)
    backbone = load_backbone(path)
    assert (backbone.num_source_classes, backbone.preprocessing.channels) == (3, 1)


def test_an_unknown_argument_gets_the_nearest_name(tmp_path, state):
    path = write(tmp_path / "m.safetensors", state, architecture="test_resnet", kwargs={"in_chan": 1})
    with pytest.raises(UnknownNameError, match=r"in_chan\. Did you mean in_chans"):
        load_backbone(path)


@pytest.mark.parametrize("architecture", ["os:system", "hf-hub:timm/resnet18", "local-dir:/tmp", "torchvision:../x", "evil:net"])
def test_an_architecture_that_is_none_is_refused(tmp_path, state, architecture, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("raise SystemExit")
    path = write(tmp_path / "m.safetensors", state, architecture=architecture)
    with guarded(tmp_path), pytest.raises(CrossgraftError):
        load_backbone(path)


def test_a_header_does_not_load_through_a_function_of_ones_own(tmp_path, state):
    (tmp_path / "header_nets.py").write_text(
        "import timm\ndef net(pretrained=False, num_classes=3):\n    assert not pretrained\n"
        "    return timm.create_model('test_resnet', num_classes=num_classes)\n"
    )
    write(tmp_path / "m.safetensors", state, architecture="header_nets:net", kwargs={"pretrained": True})
    (tmp_path / "zoo.yaml").write_text('- {name: m, source: "header_nets:net", weights: m.safetensors}')
    with guarded(tmp_path), pytest.raises(UsageError, match="The argument pretrained in the header of"):
        read_zoo(tmp_path / "zoo.yaml", allow_code=tmp_path)


plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(), max_size=3),
)
keys = st.sampled_from(
    ["num_classes", "in_chans", "global_pool", "act_layer", "norm_layer", "drop_rate", "output_stride", "layers"]
)
headers = st.dictionaries(
    st.sampled_from(
        ["architecture", "kwargs", "num_classes", "input_size", "mean", "std", "crop_pct", "interpolation", "licence"]
    ),
    st.one_of(
        plain.map(json.dumps),
        st.text(max_size=12),
        st.sampled_from(["test_resnet", "resnet18.a1_in1k", "torchvision:resnet18", "os:system", "hf-hub:a/b"]),
        st.dictionaries(st.one_of(keys, st.text(max_size=6), st.sampled_from(sorted(LOADS))), plain, max_size=3).map(json.dumps),
    ),
    max_size=6,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(headers=headers)
def test_any_header_is_a_network_or_a_named_error(tmp_path, state, headers):
    path = tmp_path / "fuzzed.safetensors"
    path.write_bytes(save(state, metadata={"architecture": "test_resnet", **headers}))
    with guarded(tmp_path):
        try:
            backbone = load_backbone(str(path))
        except CrossgraftError:
            return
    assert isinstance(backbone.module, torch.nn.Module)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, 400), noise=st.binary(max_size=40), place=st.integers(0, 400))
def test_any_damage_is_a_named_error(tmp_path, state, cut, noise, place):
    whole = save(state, metadata={"architecture": "test_resnet", "num_classes": "3"})
    path = tmp_path / "damaged.safetensors"
    path.write_bytes((whole[:place] + noise + whole[place + len(noise) :])[: len(whole) - cut])
    with guarded(tmp_path):
        try:
            load_backbone(str(path))
        except CrossgraftError:
            return


@pytest.mark.parametrize("kwargs", [{"global_pool": "nope"}, {"act_layer": "nope"}, {"output_stride": 7}])
def test_a_value_that_a_constructor_cannot_use_is_named(tmp_path, state, kwargs):
    path = write(tmp_path / "m.safetensors", state, architecture="test_resnet", kwargs=kwargs)
    with pytest.raises(UsageError, match="timm cannot build test_resnet with"):
        load_backbone(path)
