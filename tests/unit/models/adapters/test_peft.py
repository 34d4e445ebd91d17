"""With the package peft: it loads what we write and we load what it saves, and the outputs are the same."""

import warnings

import pytest
import timm
import torch

from crossgraft.errors import UsageError
from crossgraft.models.adapted import read_peft_adapter, write_peft_adapter
from crossgraft.models.adapters import AdapterRecipe, adapters_of
from crossgraft.models.adapters.lora import find_targets
from support.peft_networks import drawn, grouped_network, images, plain, vit, with_adapters
from support.small_classifiers import SmallCnn

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    peft = pytest.importorskip("peft")

pytestmark = pytest.mark.filterwarnings("ignore")

OURS = {
    "fused qkv": (
        vit,
        {"blocks.0.attn.qkv": [[0, 16], [32, 48]], "blocks.2.attn.qkv": [[0, 16], [32, 48]], "blocks.1.mlp.fc1": []},
    ),
    "BatchNorm": (lambda: drawn(lambda: timm.create_model("mobilenetv2_035")), None),
    "groups": (grouped_network, {"grouped": [], "last": [], "back": []}),
    "padding that follows the image": (lambda: drawn(lambda: timm.create_model("test_efficientnet", pad_type="same")), None),
}


def with_head_like(classifier, network):
    """The pretrained network with a new head of its own, as timm builds it for other classes."""
    place = classifier.recipe.cut.route.head
    network.set_submodule(place, torch.nn.Linear(classifier.num_features, classifier.num_outputs))
    return network


def same(left, right):
    return float((left - right).abs().max()) <= 1e-6 * float(left.abs().max())


@pytest.mark.parametrize("kind", OURS)
def test_peft_loads_ours(kind, tmp_path):
    build, layers = OURS[kind]
    network = build()
    classifier = plain(network, 32)
    if layers is None:
        rows = find_targets(classifier, {name for name, _ in classifier.named_modules()}, "auto", fused="q+v", model="m")
        layers = {name.removeprefix("body."): [] for name in rows}
    options = {name: {"r": 2, "alpha": 3.0, **({"rows": rows} if rows else {})} for name, rows in layers.items()}
    untouched = classifier(images()).clone()
    with_adapters(classifier, [AdapterRecipe("lora", f"body.{name}", each) for name, each in options.items()])
    folder = write_peft_adapter(classifier, tmp_path / "adapter")
    loaded = peft.PeftModel.from_pretrained(with_head_like(classifier, network), folder).eval()
    with torch.no_grad():
        assert same(classifier(images()), loaded(images()))
        assert not same(classifier(images()), untouched)
        with loaded.disable_adapter():
            assert not same(classifier(images()), loaded(images()))
    wrapped = {name for name, module in loaded.base_model.model.named_modules() if hasattr(module, "lora_A")}
    assert wrapped == set(layers)


THEIRS = {
    "fused qkv": (vit, {"target_modules": ["attn.qkv", "fc1"], "modules_to_save": ["head"], "rank_pattern": {"fc1": 3}}),
    "BatchNorm": (
        lambda: drawn(lambda: timm.create_model("test_resnet")),
        {"target_modules": r"layer1\..*conv\d", "modules_to_save": ["fc"]},
    ),
    "rank-stabilised": (SmallCnn, {"target_modules": ["stem", "block"], "use_rslora": True}),
    "alphas": (SmallCnn, {"target_modules": ["stem", "block"], "alpha_pattern": {"stem": 1, "block": 9}}),
}


def saved_by_peft(network, folder, **settings):
    config = peft.LoraConfig(r=4, lora_alpha=6, init_lora_weights=False, **settings)
    wrapped = peft.get_peft_model(network, config).eval()
    wrapped.save_pretrained(folder)
    return wrapped


@pytest.mark.parametrize("kind", THEIRS)
def test_we_load_theirs(kind, tmp_path):
    build, settings = THEIRS[kind]
    network = build()
    classifier = plain(network, 32)
    network = with_head_like(classifier, network)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        wrapped = saved_by_peft(network, tmp_path / "adapter", **settings)
    found = read_peft_adapter(classifier, tmp_path / "adapter")
    assert (found.why_no_head is None) == ("modules_to_save" in settings)
    if found.why_no_head is not None:
        classifier.head.load_state_dict(network.get_submodule(classifier.recipe.cut.route.head).state_dict())
    with torch.no_grad():
        assert same(wrapped(images()), classifier(images()))
        for _, adapter in adapters_of(classifier).values():
            adapter.enabled = False
        assert not same(wrapped(images()), classifier(images()))


def test_an_a_that_mixes_groups_is_refused(tmp_path):
    network = grouped_network()
    classifier = plain(network)
    saved_by_peft(network, tmp_path / "adapter", target_modules=["grouped"])
    with pytest.raises(UsageError, match="mixes its 2 groups"):
        read_peft_adapter(classifier, tmp_path / "adapter")


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"use_dora": True}, "lora_magnitude_vector|use_dora"), ({"lora_bias": True}, "lora_bias"), ({"bias": "all"}, "bias=all")],
)
def test_what_we_do_not_compute_is_refused(settings, words, tmp_path):
    network = SmallCnn()
    classifier = plain(network)
    saved_by_peft(network, tmp_path / "adapter", target_modules=["block"], **settings)
    with pytest.raises(UsageError, match=words):
        read_peft_adapter(classifier, tmp_path / "adapter")
