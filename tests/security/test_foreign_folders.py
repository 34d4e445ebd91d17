"""Folders of other programs: what their small files say is checked before it is used, and ends in a named error."""

import json
import re

import pytest
import torch
from safetensors.torch import save_file

from crossgraft.errors import CrossgraftError, DataError
from crossgraft.models.adapters.peft_format import read_files
from crossgraft.models.adapters.peft_patterns import of_pattern

DEEP, LARGE = "[" * 100_000 + "]" * 100_000, "1" * 6000


@pytest.fixture
def adapter(tmp_path):
    """An adapter folder of PEFT; the function changes its settings, or writes them as they are given."""
    folder = tmp_path / "adapter"
    folder.mkdir()
    save_file(
        {f"base_model.model.a.lora_{part}.weight": torch.zeros(2, 2) for part in "AB"},
        folder / "adapter_model.safetensors",
    )

    def written(text=None, **settings):
        content = json.dumps({"peft_type": "LORA", "r": 2, **settings}) if text is None else text
        (folder / "adapter_config.json").write_text(content)
        return folder

    return written


HOSTILE = {
    "nested quantifiers": "(([a-z0-9.]|[a-z0-9._]{1,2})*)*!",
    "many groups": "(" * 5000,
    "many closed groups": "(" * 5000 + "a" + ")" * 5000,
    "a group repeated": "(a.*)*",
    "a group repeated once": "(a)?",
    "a group counted": "(a){2}",
    "a set": "[a-z]+",
    "a letter repeated": "a*",
    "an endless repetition": ".+",
    "a look-ahead": "(?=a)a",
    "a reference": r"(a)\1",
    "an escape": r"\w+",
    "an end": "a\\",
    "closed only": "a)|(b",
    "long": "x" * 5000 + "[",
}


@pytest.mark.parametrize("setting", ["rank_pattern", "alpha_pattern"])
@pytest.mark.parametrize("case", HOSTILE)
def test_a_pattern_that_may_take_forever_is_refused_and_quoted(adapter, case, setting):
    key = HOSTILE[case]
    with pytest.raises(
        DataError, match=rf"{setting} in .*adapter_config\.json holds a pattern that cannot be read"
    ) as caught:
        read_files(adapter(**{setting: {key: 3}}))
    assert key[:200] in str(caught.value) and len(str(caught.value)) < 1000


READ = {
    "fc1": ("fc1", "blocks.0.fc1"),
    "attn.qkv": ("blocks.0.attn.qkv", "attn_qkv"),
    r"attn\.qkv": ("blocks.0.attn.qkv",),
    "blocks.1.fc1|fc2": ("blocks.1.fc1", "fc2"),
    r"layer1\..*conv\d": ("body.layer1.0.conv2", "layer1.conv1"),
    r"blocks\.(?:0|1\d+)\.mlp.(fc1|fc2)": ("blocks.0.mlp.fc2", "a.blocks.123.mlp.fc1"),
    "^blocks.0.fc1$": ("blocks.0.fc1",),
    r"\d+": ("0", "blocks.12"),
    r"a\-b\+c": ("x.a-b+c",),
    ".*": ("", "anything"),
    ".*fc.*": ("fc1", "a.fc.b"),
    "": ("a.", ""),
    "(|a)b": ("b", "ab"),
}


@pytest.mark.parametrize("key", READ)
def test_patterns_that_peft_writes_mean_what_they_do_there(adapter, key):
    assert read_files(adapter(rank_pattern={key: 3}))
    names = {name for each in READ.values() for name in each} | {
        "xfc1",
        "blocks.0.fc12",
        "attn.qkv.x",
        "1",
        "layer12.conv",
    }
    found = {name for name in names if of_pattern({key: 3}, name, 1) == 3}
    assert found >= set(READ[key])
    assert found == {name for name in names if re.match(rf"(.*\.)?({key})$", name)}


def test_many_wildcards_end(adapter):
    config = read_files(adapter(rank_pattern={".*." * 2000 + "!": 3, ".*a" * 30 + "!": 4})).config
    assert config.rank("a" * 60) == 2


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        LARGE,
        f'{{"peft_type": "LORA", "r": {LARGE}}}',
        f'{{"peft_type": "LORA", "r": 1, "x": {DEEP}}}',
        '{"x": 1',
        "\udcff",
    ],
    ids=["deep", "large", "large rank", "deep setting", "cut", "no text"],
)
def test_damaged_settings_of_an_adapter_are_named(adapter, text):
    folder = adapter("{}")
    (folder / "adapter_config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(CrossgraftError, match=r"adapter_config\.json is damaged"):
        read_files(folder)


def test_a_setting_of_any_depth_is_named(adapter):
    for depth in range(800, 1000, 3):
        nested = "[" * depth + "1" + "]" * depth
        with pytest.raises(CrossgraftError, match=r"adapter_config\.json (is damaged|says new=\[…\], which)"):
            read_files(adapter(f'{{"peft_type": "LORA", "r": 1, "new": {nested}}}'))


@pytest.mark.parametrize("settings", [{"r": 10**4000}, {"lora_alpha": 10**4000}, {"r": 10**4000, "use_rslora": True}])
def test_numbers_that_are_too_large_are_named(adapter, settings):
    with pytest.raises(DataError, match=r"adapter_config\.json is damaged: (r|lora_alpha): "):
        read_files(adapter(**settings))
