"""A few bytes that ask for all memory, or for hours, are a named error."""

import json

import pytest
import torch
from safetensors.torch import save_file

from crossgraft.choice import choose
from crossgraft.config import parse_yaml
from crossgraft.errors import CrossgraftError, OutOfMemoryError, UsageError
from crossgraft.models import ModelSpec, load_backbone, read_zoo
from crossgraft.models.sources import architecture_arguments
from crossgraft.tune.regularizers import REGULARIZERS

HALVES = "\n".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
ALIASES = f"a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]\n{HALVES}\n"
BAD_YAML = {
    "aliases": (ALIASES, "unfold into more than 100,000 values"),
    "itself": ("- &a [*a]", "contains itself"),
    "deep": ("[" * 20_000, "nested too deeply"),
    "date": ("- 2024-99-99", "must be in"),
    "digits": (f"- {'9' * 5000}", "a number has 5000 digits"),
    "hex": ("- 0x_", "invalid literal"),
    "half of a pair": ('- {name: "\\ud800a", source: resnet18}', "surrogates"),
}


@pytest.mark.parametrize("case", BAD_YAML)
@pytest.mark.parametrize("flag", ["zoo", "config", "compare"])
def test_yaml_that_is_no_list_of_plain_values_is_named(workspace, crossgraft, flag, case):
    text, message = BAD_YAML[case]
    (workspace / "bad.yaml").write_text(text)
    command = {
        "zoo": ("rank", "images", "--models", "bad.yaml"),
        "config": ("rank", "images", "--config", "bad.yaml"),
        "compare": ("tune", "images", "--model", "tiny_models:tiny", "--compare", "bad.yaml"),
    }[flag]
    outcome = crossgraft(*command)
    assert outcome.code == 2, outcome.err
    assert message in outcome.err
    assert len(outcome.err) < 2000


WRONG_VALUES = {
    "empty int": "a: !!int ''",
    "empty float": "a: !!float ''",
    "sign alone": "a: !!int '+'",
    "bool": "a: !!bool perhaps",
    "timestamp": "a: !!timestamp soon",
}


@pytest.mark.parametrize("case", WRONG_VALUES)
def test_a_value_that_is_not_of_its_type_is_named_with_its_place(case):
    with pytest.raises(ValueError, match=r"a value is not of the type \w+ \(line 1, column 4\)"):
        parse_yaml(WRONG_VALUES[case])


def test_hours_without_end_are_no_number():
    with pytest.raises(ValueError, match=r"to the base of 60; .* \(line 1, column 4\)"):
        parse_yaml(f"a: 1{':59' * 300}.5")


def test_a_number_that_takes_hours_to_add_up_is_refused_before():
    with pytest.raises(ValueError, match=r"type int has 1,500,001 characters \(line 1, column 4\)"):
        parse_yaml(f"a: 1{':59' * 500_000}")


def test_a_long_text_is_no_number():
    assert parse_yaml(f"a: {'x' * 20_000}") == {"a": "x" * 20_000}


def test_aliases_and_merge_keys_of_an_honest_file_are_read(tmp_path):
    (tmp_path / "zoo.yaml").write_text("- &base {name: a, source: test_resnet, weights: random}\n- {<<: *base, name: b}\n")
    assert [spec.name for spec in read_zoo(tmp_path / "zoo.yaml")] == ["a", "b"]


def test_an_option_of_five_thousand_digits_is_named():
    with pytest.raises(UsageError):
        choose(REGULARIZERS, f"l2_sp:alpha={'9' * 5000}")


@pytest.mark.parametrize(
    ("architecture", "kwargs"),
    [
        ("vit_tiny_patch16_224", {"depth": 3_000_000}),
        ("resnet10t", {"layers": [100_000_000, 1, 1, 1]}),
        ("test_resnet", {"num_classes": 10**9}),
        ("test_resnet", {"num_classes": -(10**9)}),
        ("test_resnet", {"in_chans": 999_999_999}),
        ("test_resnet", {"num_classes": 10**400}),
    ],
)
def test_a_header_cannot_ask_for_a_network_that_fills_the_memory(tmp_path, architecture, kwargs):
    path = tmp_path / "bomb.safetensors"
    save_file({"x": torch.zeros(1)}, path, metadata={"architecture": architecture, "kwargs": json.dumps(kwargs)})
    with pytest.raises(CrossgraftError):
        load_backbone(str(path))


def test_a_network_of_very_many_layers_is_refused_while_it_is_built(monkeypatch):
    monkeypatch.setattr(architecture_arguments, "MOST_TENSORS", 1000)
    with pytest.raises(UsageError, match="more than 1,000 tensors"):
        load_backbone(
            ModelSpec("m", "vit_tiny_patch16_224", "random", kwargs={"depth": 900_000, "embed_dim": 12, "num_heads": 1})
        )


def test_the_size_of_a_network_is_compared_with_the_memory_before_it_is_filled(monkeypatch):
    monkeypatch.setattr(architecture_arguments, "available_memory", lambda: 10_000)
    with pytest.raises(OutOfMemoryError, match=r"needs more than .* of memory, but only 10 kB is available"):
        load_backbone(ModelSpec("m", "test_resnet", "random"))


@pytest.mark.parametrize("key", ["kwargs", "num_classes", "mean"])
@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 6000, '{"a":' * 50_000])
def test_json_of_a_header_that_cannot_be_read_is_named(tmp_path, key, text):
    path = tmp_path / "m.safetensors"
    save_file({"x": torch.zeros(1)}, path, metadata={"architecture": "test_resnet", key: text})
    with pytest.raises(CrossgraftError) as caught:
        load_backbone(str(path))
    assert len(str(caught.value)) < 1000
