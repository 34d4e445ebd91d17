"""Files in PEFT's format without PEFT: what is written comes back, what computes something else is refused by name."""

import json
import math
import pickle
from collections import OrderedDict

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from crossgraft.errors import (
    DataError,
    MissingWeightsError,
    RunDirectoryError,
    UnknownNameError,
    UsageError,
    WeightsMismatchError,
)
from crossgraft.models.adapted import add_adapters, read_peft_adapter, write_peft_adapter
from crossgraft.models.adapters import AdapterRecipe, merge_adapters
from crossgraft.models.adapters.peft_format import pattern_of, read_files, targets_of
from crossgraft.models.classifier import rebuild_classifier
from support.peft_networks import adapted, grouped_network, images, plain, vit, with_adapters
from support.small_classifiers import SmallCnn, wrap

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


@pytest.fixture
def folder(tmp_path):
    """An adapter of the small convolutional network."""
    return write_peft_adapter(adapted(SmallCnn(), ["block"], r=2, alpha=3.0), tmp_path / "adapter")


def change_config(folder, **settings):
    path = folder / CONFIG
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


def change_tensors(folder, change):
    state = load_file(folder / WEIGHTS)
    change(state)
    save_file(state, folder / WEIGHTS)


def test_names_rank_and_alpha_are_those_of_peft(folder):
    config, state = json.loads((folder / CONFIG).read_text()), load_file(folder / WEIGHTS)
    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == {
        "base_model.model.block.lora_A.weight": (2, 6, 3, 3),
        "base_model.model.block.lora_B.weight": (8, 2, 1, 1),
        "base_model.model.fc.weight": (3, 8),
        "base_model.model.fc.bias": (3,),
    }
    assert config["peft_type"] == "LORA" and config["bias"] == "none" and config["inference_mode"] is True
    assert (config["r"], config["lora_alpha"], config["rank_pattern"], config["alpha_pattern"]) == (2, 3, {}, {})
    assert (config["target_modules"], config["modules_to_save"]) == (["block"], ["fc"])
    assert config["base_model_name_or_path"] == "own"


def test_factors_and_head_come_back_bit_for_bit(folder):
    before, after = adapted(SmallCnn(), ["block"], r=2, alpha=3.0), plain(SmallCnn())
    found = read_peft_adapter(after, folder)
    assert [(recipe.host, recipe.options) for recipe in found.recipes] == [("body.block", {"r": 2, "alpha": 3.0, "dropout": 0.0})]
    assert found.why_no_head is None
    assert all(torch.equal(tensor, after.state_dict()[name]) for name, tensor in before.state_dict().items())
    assert before.state_dict().keys() == after.state_dict().keys()
    assert torch.equal(before(images()), after(images()))


def test_what_was_read_can_be_rebuilt_from_the_recipe(folder):
    classifier = plain(SmallCnn())
    read_peft_adapter(classifier, folder)
    again = rebuild_classifier(classifier.recipe.to_json(), network=SmallCnn())
    again.load_state_dict(classifier.state_dict())
    assert torch.equal(again.eval()(images()), classifier(images()))


def test_rows_that_a_fused_layer_keeps_stay_zero(tmp_path):
    before = adapted(vit(), ["blocks.0.attn.qkv"], r=2, alpha=3.0, rows=[[0, 16], [32, 48]])
    folder = write_peft_adapter(before, tmp_path / "adapter")
    B = load_file(folder / WEIGHTS)["base_model.model.blocks.0.attn.qkv.lora_B.weight"]
    assert B.shape == (48, 4)
    assert not B[16:32].any() and not B[:16, 2:].any() and not B[32:, :2].any() and B[:16, :2].all()
    config = json.loads((folder / CONFIG).read_text())
    assert (config["r"], config["lora_alpha"]) == (4, 6)
    after = plain(vit())
    read_peft_adapter(after, folder)
    torch.testing.assert_close(after(images()), before(images()), rtol=0, atol=1e-6)


def test_groups_are_written_as_blocks_and_read_as_groups(tmp_path):
    before = adapted(grouped_network(), ["grouped"], r=4)
    folder = write_peft_adapter(before, tmp_path / "adapter")
    A = load_file(folder / WEIGHTS)["base_model.model.grouped.lora_A.weight"]
    assert A.shape == (4, 6, 3, 3) and not A[:2, 3:].any() and not A[2:, :3].any() and A[:2, :3].all()
    after = plain(grouped_network())
    read_peft_adapter(after, folder)
    assert torch.equal(after(images()), before(images()))


def test_layers_with_ranks_of_their_own_and_names_that_end_alike(tmp_path):
    before = with_adapters(
        plain(grouped_network()),
        [
            AdapterRecipe("lora", "body.last", {"r": 2, "alpha": 3.0}),
            AdapterRecipe("lora", "body.inner.last", {"r": 3, "alpha": 1.5}),
        ],
    )
    folder = write_peft_adapter(before, tmp_path / "adapter")
    config = json.loads((folder / CONFIG).read_text())
    assert list(config["rank_pattern"].items()) == [("inner.last", 3), ("last", 2)]
    assert config["alpha_pattern"] == {"inner.last": 1.5, "last": 3}
    after = plain(grouped_network())
    read_peft_adapter(after, folder)
    assert torch.equal(after(images()), before(images()))


def test_a_name_that_others_end_with_is_written_as_an_expression():
    network = grouped_network()
    assert targets_of(["inner.last"], network) == ["inner.last"]
    assert targets_of(["last"], network) == "last"
    assert targets_of(["last", "inner.last"], network) == ["inner.last", "last"]


def test_longer_names_are_asked_first():
    assert list(pattern_of({"a.b": 1, "x.a.b": 2, "axb": 3})) == ["x.a.b", "axb", "a.b"]
    assert list(pattern_of({"a+b.c": 1})) == [r"a\+b.c"]


def test_names_may_stand_without_the_prefix(folder):
    change_tensors(folder, lambda state: [state.update({k[17:]: state.pop(k)}) for k in list(state)])
    classifier = plain(SmallCnn())
    read_peft_adapter(classifier, folder)
    assert torch.equal(classifier(images()), adapted(SmallCnn(), ["block"], r=2, alpha=3.0)(images()))


def test_rank_stabilised_scaling_becomes_alpha(folder):
    change_config(folder, use_rslora=True)
    classifier = plain(SmallCnn())
    recipe = read_peft_adapter(classifier, folder).recipes[0]
    assert recipe.options["alpha"] == 3 * math.sqrt(2)
    lora = classifier.get_submodule("body.block.lora")
    assert lora.scaling == pytest.approx(3 / math.sqrt(2))


def test_a_head_of_other_classes_stays_out_and_is_said(folder):
    classifier = wrap(SmallCnn(), num_outputs=4)
    before = classifier.head.weight.clone()
    assert read_peft_adapter(classifier, folder).why_no_head == "it has 3 classes, not 4"
    assert torch.equal(classifier.head.weight, before)
    change_tensors(folder, lambda state: [state.pop(k) for k in list(state) if ".fc." in k])
    assert read_peft_adapter(plain(SmallCnn()), folder).why_no_head == "it holds none"


def test_the_fingerprint_is_of_the_content(folder, tmp_path):
    fingerprint = read_files(folder).fingerprint
    moved = folder.rename(tmp_path / "elsewhere")
    assert read_files(moved).fingerprint == fingerprint
    change_tensors(moved, lambda state: state["base_model.model.block.lora_A.weight"].mul_(2))
    assert read_files(moved).fingerprint != fingerprint


def test_an_adapter_is_replaced_and_nothing_else(folder):
    before = contents(folder)
    with pytest.raises(RunDirectoryError, match="holds an adapter already"):
        write_peft_adapter(adapted(SmallCnn(), ["stem"], r=1), folder)
    assert contents(folder) == before
    write_peft_adapter(adapted(SmallCnn(), ["stem"], r=1), folder, overwrite=True)
    assert json.loads((folder / CONFIG).read_text())["target_modules"] == ["stem"]
    assert sorted(path.name for path in folder.parent.iterdir()) == ["adapter"]
    (folder / "notes.txt").touch()
    with pytest.raises(RunDirectoryError, match=r"notes\.txt"):
        write_peft_adapter(adapted(SmallCnn(), ["stem"]), folder)
    with pytest.raises(RunDirectoryError, match="is a file"):
        write_peft_adapter(adapted(SmallCnn(), ["stem"]), folder / "notes.txt")


def test_an_adapter_that_peft_has_trained_is_never_replaced(folder):
    save_file(load_file(folder / WEIGHTS), folder / WEIGHTS, metadata={"format": "pt"})
    before = contents(folder)
    with pytest.raises(RunDirectoryError, match="is not an adapter of crossgraft"):
        write_peft_adapter(adapted(SmallCnn(), ["stem"]), folder, overwrite=True)
    assert contents(folder) == before


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


REFUSED_LAYERS = [
    ("transposed", "transposed convolution"),
    ("dilated", "its dilation is 2"),
    ("reflecting", "padded by reflect"),
    ("fancy", "another Fancy"),
]


@pytest.mark.parametrize(("layer", "reason"), REFUSED_LAYERS)
def test_layers_that_peft_would_treat_differently_are_not_written(layer, reason, tmp_path):
    with pytest.raises(UsageError, match=f"{layer}.*({reason})"):
        write_peft_adapter(adapted(grouped_network(), [layer]), tmp_path / "adapter")
    assert not list(tmp_path.iterdir())


class Mistaken(SmallCnn):
    """A layer whose name PEFT takes for that of the head."""

    def __init__(self, place):
        super().__init__()
        if place == "stem":
            self.stem.fc = nn.Identity()
        else:
            self.block = nn.Sequential(OrderedDict(fc=self.block))


def test_other_refusals_of_writing(tmp_path):
    place = tmp_path / "adapter"
    with pytest.raises(UsageError, match="no LoRA adapters"):
        write_peft_adapter(plain(SmallCnn()), place)
    block = AdapterRecipe("adaptformer", "body.blocks.0", {"bottleneck": 2, "scale": 0.1, "dropout": 0.0, "norm": "none"})
    with pytest.raises(UsageError, match="kind adaptformer"):
        write_peft_adapter(with_adapters(plain(vit()), [block]), place)
    merged = adapted(SmallCnn(), ["block"])
    merge_adapters(merged)
    with pytest.raises(UsageError, match="unmerge_adapters"):
        write_peft_adapter(merged, place)
    two = [AdapterRecipe("lora", f"body.{n}", {"r": 1, "alpha": 1.0, "dropout": d}) for n, d in (("stem", 0.0), ("block", 0.5))]
    with pytest.raises(UsageError, match=r"one dropout for all layers; these have 0\.0 and 0\.5"):
        write_peft_adapter(with_adapters(plain(SmallCnn()), two), place)
    for layer, words in (("block.fc", r"take block\.fc for a part of the head"), ("stem", r"take stem\.fc of the Mis")):
        with pytest.raises(UsageError, match=words):
            write_peft_adapter(adapted(Mistaken(layer), [layer]), place)
    assert not list(tmp_path.iterdir())


def test_a_head_with_more_behind_it_is_not_written(tmp_path):
    class Scaled(SmallCnn):
        def forward_features(self, images):
            return torch.relu(self.block(torch.relu(self.norm(self.stem(images)))))

        def forward_head(self, maps, pre_logits=False):
            features = maps.mean((2, 3))
            return features if pre_logits else 2 * self.fc(features)

        def forward(self, images):
            return self.forward_head(self.forward_features(images))

    with pytest.raises(UsageError, match="more than one linear layer"):
        write_peft_adapter(adapted(Scaled(), ["block"]), tmp_path / "adapter")


REFUSED_SETTINGS = [
    ({"use_dora": True}, UsageError, "use_dora=true"),
    ({"lora_bias": True}, UsageError, "lora_bias=true"),
    ({"layer_replication": [[0, 2], [1, 2]]}, UsageError, "layer_replication="),
    ({"megatron_config": {"a": 1}}, UsageError, "megatron_config="),
    ({"fan_in_fan_out": True}, UsageError, "fan_in_fan_out=true"),
    ({"trainable_token_indices": [1]}, UsageError, "trainable_token_indices="),
    ({"something_of_next_year": 0.5}, UsageError, "something_of_next_year=0.5"),
    ({"bias": "all"}, UsageError, "bias=all"),
    ({"init_lora_weights": "pissa_niter_4"}, UsageError, "init_lora_weights=pissa_niter_4"),
    ({"peft_type": "IA3"}, UsageError, "peft_type is IA3"),
    ({"peft_type": None}, UsageError, "no peft_type"),
    ({"r": 0}, DataError, "r: "),
    ({"lora_alpha": "much"}, DataError, "lora_alpha: "),
    ({"lora_alpha": math.inf}, DataError, "lora_alpha: "),
    ({"rank_pattern": {"(": 3}}, DataError, "a group is not closed"),
    ({"r": 3}, WeightsMismatchError, r"block\.lora_A\.weight is \(2, 6, 3, 3\) in the file and \(3, 6, 3, 3\)"),
]


@pytest.mark.parametrize(("settings", "error", "words"), REFUSED_SETTINGS, ids=lambda value: str(value)[:40])
def test_settings_that_are_not_computed_are_refused_by_name(settings, error, words, folder):
    change_config(folder, **settings)
    classifier = plain(SmallCnn())
    with pytest.raises(error, match=words):
        read_peft_adapter(classifier, folder)
    assert not classifier.recipe.adapters and not hasattr(classifier.body.block, "lora")


def test_settings_that_are_off_or_of_the_past_are_no_reason(folder):
    harmless = {"use_dora": False, "lora_bias": False, "megatron_core": "megatron.core", "loftq_config": {}, "revision": None}
    change_config(folder, **harmless, init_lora_weights="gaussian", peft_version="9", qalora_group_size=16)
    read_peft_adapter(plain(SmallCnn()), folder)


A, B = "base_model.model.block.lora_A.weight", "base_model.model.block.lora_B.weight"
REFUSED_TENSORS = [
    (lambda s: s.update({A.replace("block", "blok"): s.pop(A)}), UnknownNameError, "blok. Did you mean block"),
    (lambda s: s.pop(B), WeightsMismatchError, r"no block\.lora_B\.weight"),
    (lambda s: s.update({B: torch.zeros(7, 2, 1, 1)}), WeightsMismatchError, r"\(7, 2, 1, 1\).*\(8, 2, 1, 1\)"),
    (lambda s: s.update({A: torch.full((2, 6, 3, 3), math.nan)}), WeightsMismatchError, "NaN"),
    (lambda s: s.update({A.replace("weight", "bias"): torch.zeros(2)}), UsageError, r"block\.lora_A\.bias"),
    (lambda s: s.update({"base_model.model.norm.weight": torch.zeros(6)}), UsageError, "replaces norm"),
    (lambda s: s.update({"base_model.model.fc.bias": torch.zeros(4)}), WeightsMismatchError, r"head fc .*bias \(4,\)"),
    (lambda s: s.update({A[17:]: torch.zeros(2)}), DataError, "twice"),
    (lambda s: [s.pop(A), s.pop(B)], WeightsMismatchError, "no matrices of LoRA"),
    (lambda s: [s.update({n.replace("block", "fc"): s[n].clone()}) for n in (A, B)], UsageError, "LoRA on fc, the head"),
    (lambda s: [s.update({n.replace("block", "norm"): s[n].clone()}) for n in (A, B)], UsageError, "norm.*BatchNorm2d"),
]


@pytest.mark.parametrize(("change", "error", "words"), REFUSED_TENSORS, ids=[row[2] for row in REFUSED_TENSORS])
def test_tensors_that_do_not_fit_are_refused_by_name(change, error, words, folder):
    change_tensors(folder, change)
    classifier = plain(SmallCnn())
    before = {name: tensor.clone() for name, tensor in classifier.state_dict().items()}
    with pytest.raises(error, match=words):
        read_peft_adapter(classifier, folder)
    assert before.keys() == classifier.state_dict().keys() and not classifier.recipe.adapters
    assert all(torch.equal(tensor, classifier.state_dict()[name]) for name, tensor in before.items())


def test_files_that_are_not_there_or_damaged(folder, tmp_path):
    classifier = plain(SmallCnn())
    with pytest.raises(DataError, match="does not exist"):
        read_peft_adapter(classifier, tmp_path / "nowhere")
    with pytest.raises(DataError, match="is a file"):
        read_peft_adapter(classifier, folder / CONFIG)
    whole = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(whole[:-9])
    with pytest.raises(DataError, match="as safetensors"):
        read_peft_adapter(classifier, folder)
    (folder / WEIGHTS).unlink()
    with pytest.raises(MissingWeightsError, match=WEIGHTS):
        read_peft_adapter(classifier, folder)
    (folder / "adapter_model.bin").write_bytes(pickle.dumps({}))
    with pytest.raises(UsageError, match=r"adapter_model\.bin, a pickle.*safe_serialization"):
        read_peft_adapter(classifier, folder)
    (folder / WEIGHTS).write_bytes(whole)
    for text in ("{", "[1]", '"LORA"'):
        (folder / CONFIG).write_text(text)
        with pytest.raises((DataError, UsageError), match=r"damaged|no peft_type"):
            read_peft_adapter(classifier, folder)
    (folder / CONFIG).unlink()
    with pytest.raises(DataError, match=f"no {CONFIG}"):
        read_peft_adapter(classifier, folder)


def test_layers_that_can_not_hold_it_are_refused(tmp_path):
    write_peft_adapter(adapted(grouped_network(), ["grouped"], r=4), folder := tmp_path / "adapter")
    change_tensors(folder, lambda s: s["base_model.model.grouped.lora_A.weight"][0, 5].fill_(1))
    with pytest.raises(UsageError, match="A of grouped mixes its 2 groups"):
        read_peft_adapter(plain(grouped_network()), folder)
    shape = {"base_model.model.dilated.lora_A.weight": torch.zeros(1, 6, 3, 3)}
    save_file({**shape, "base_model.model.dilated.lora_B.weight": torch.zeros(6, 1, 1, 1)}, folder / WEIGHTS)
    with pytest.raises(UsageError, match=r"dilated.*dilation"):
        read_peft_adapter(plain(grouped_network()), folder)
    uncalled = {"unused.lora_A.weight": torch.zeros(4, 6), "unused.lora_B.weight": torch.zeros(6, 4)}
    save_file(uncalled, folder / WEIGHTS)
    with pytest.raises(UsageError, match=r"unused.*do not go through"):
        read_peft_adapter(plain(grouped_network()), folder)


def test_a_network_that_has_adapters_already_is_refused(folder):
    with pytest.raises(UsageError, match="already"):
        read_peft_adapter(adapted(SmallCnn(), ["block"]), folder)


def test_a_linear_layer_is_written_as_it_is(tmp_path):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.fc = nn.Linear(3 * 32 * 32, 6), nn.Linear(6, 5)

        def forward(self, images):
            return self.fc(self.first(images.flatten(1)))

    torch.manual_seed(0)
    network = Two()
    classifier = wrap(network)
    add_adapters(classifier, [AdapterRecipe("lora", "body.first", {"r": 2, "alpha": 2.0})], seed=3)
    state = load_file(write_peft_adapter(classifier, tmp_path / "adapter") / WEIGHTS)
    assert torch.equal(state["base_model.model.first.lora_A.weight"], classifier.get_parameter("body.first.lora.A"))
    assert not state["base_model.model.first.lora_B.weight"].any()
