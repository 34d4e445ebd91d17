"""Folders of other programs: what their small files say is checked before it is used, and ends in a named error."""

import json
import re

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from crossgraft.data import open_dataset
from crossgraft.errors import CrossgraftError, DataError
from crossgraft.models.adapters.peft_format import of_pattern, read_files

DEEP, LARGE = "[" * 100_000 + "]" * 100_000, "1" * 6000


@pytest.fixture
def adapter(tmp_path):
    """An adapter folder of PEFT; the function changes its settings, or writes them as they are given."""
    folder = tmp_path / "adapter"
    folder.mkdir()
    save_file(
        {f"base_model.model.a.lora_{part}.weight": torch.zeros(2, 2) for part in "AB"}, folder / "adapter_model.safetensors"
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
    with pytest.raises(DataError, match=rf"{setting} in .*adapter_config\.json holds a pattern that cannot be read") as caught:
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
    names = {name for each in READ.values() for name in each} | {"xfc1", "blocks.0.fc12", "attn.qkv.x", "1", "layer12.conv"}
    found = {name for name in names if of_pattern({key: 3}, name, 1) == 3}
    assert found >= set(READ[key])
    assert found == {name for name in names if re.match(rf"(.*\.)?({key})$", name)}


def test_many_wildcards_end(adapter):
    config = read_files(adapter(rank_pattern={".*." * 2000 + "!": 3, ".*a" * 30 + "!": 4})).config
    assert config.rank("a" * 60) == 2


@pytest.mark.parametrize(
    "text",
    [DEEP, LARGE, f'{{"peft_type": "LORA", "r": {LARGE}}}', f'{{"peft_type": "LORA", "r": 1, "x": {DEEP}}}', '{"x": 1', "\udcff"],
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


@pytest.fixture(scope="module")
def arrow(tmp_path_factory):
    """The Arrow file of a saved dataset of six images."""
    datasets = pytest.importorskip("datasets")
    folder = tmp_path_factory.mktemp("arrow") / "saved"
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])})
    images = [np.full((8, 8, 3), i, dtype=np.uint8) for i in range(6)]
    datasets.Dataset.from_dict({"image": images, "label": [0, 1] * 3}, features=features).save_to_disk(folder)
    return (folder / "data-00000-of-00001.arrow").read_bytes()


@pytest.fixture
def saved(tmp_path, arrow):
    """A folder of `save_to_disk`; a copy of its Arrow file lies elsewhere."""
    for folder in (tmp_path / "saved", tmp_path / "elsewhere"):
        folder.mkdir()
        (folder / "data.arrow").write_bytes(arrow)
    (tmp_path / "saved" / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}], "_split": null}')
    (tmp_path / "saved" / "dataset_info.json").write_text("{}")
    return tmp_path / "saved"


def state(folder, **content):
    (folder / "state.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize("name", ["{}/elsewhere/data.arrow", "../elsewhere/data.arrow", "..", "", ".", "a\\b", "C:data.arrow"])
def test_a_saved_dataset_names_its_own_files_only(saved, name):
    assert len(open_dataset(saved)) == 6
    name = name.format(saved.parent)
    for allow_outside in (False, True):
        with pytest.raises(DataError, match=r"state\.json names ") as caught:
            open_dataset(state(saved, _data_files=[{"filename": name}]), allow_outside=allow_outside)
        assert (name or "(empty)") in str(caught.value)
    (saved / "state.json").unlink()
    (saved / "dataset_dict.json").write_text(json.dumps({"splits": [name]}))
    with pytest.raises(DataError, match=r"dataset_dict\.json names "):
        open_dataset(saved)


def test_a_linked_file_of_a_saved_dataset_needs_permission(saved):
    (saved / "data.arrow").unlink()
    (saved / "data.arrow").symlink_to(saved.parent / "elsewhere" / "data.arrow")
    with pytest.raises(DataError, match=r"data\.arrow in .*saved is a link that leads out .*--allow-outside"):
        open_dataset(saved)
    assert len(open_dataset(saved, allow_outside=True)) == 6
    (saved / "data.arrow").unlink()
    (saved / "train").symlink_to(saved.parent / "elsewhere")
    (saved / "state.json").rename(saved.parent / "elsewhere" / "state.json")
    (saved / "dataset_dict.json").write_text('{"splits": ["train"]}')
    with pytest.raises(DataError, match=r"data\.arrow in .*train is a link that leads out .*--allow-outside"):
        open_dataset(saved)


WRONG_STATES = {
    **{f"files {value}": f'{{"_data_files": {value}}}' for value in ('"abc"', "null", "5", '[{"x": 1}]', "[5]", "[[]]")},
    "file that is a list": '{"_data_files": [{"filename": ["a"]}]}',
    "split": '{"_data_files": [{"filename": "data.arrow"}], "_split": ["a"]}',
    "list": "[]",
    "deep": DEEP,
    "deep entry": f'{{"_data_files": {DEEP}}}',
    "large": f'{{"_data_files": {LARGE}}}',
    "cut": "{",
}


@pytest.mark.parametrize("case", WRONG_STATES)
def test_a_damaged_state_is_named(saved, case):
    (saved / "state.json").write_text(WRONG_STATES[case])
    with pytest.raises(DataError, match=r"state\.json is damaged: "):
        open_dataset(saved)


@pytest.mark.parametrize("text", ['{"splits": "abc"}', '{"splits": [1]}', '{"splits": null}', "5", DEEP])
def test_a_damaged_list_of_splits_is_named(saved, text):
    (saved / "state.json").unlink()
    (saved / "dataset_dict.json").write_text(text)
    with pytest.raises(DataError, match=r"dataset_dict\.json is damaged: "):
        open_dataset(saved)
    (saved / "dataset_dict.json").write_text(json.dumps({"splits": ["x" * 5000]}))
    with pytest.raises(DataError, match="Cannot read "):
        open_dataset(saved)


@pytest.mark.parametrize("text", [DEEP, LARGE, "[]", '{"splits": 5}', '{"splits": [1]}', '{"config_name": []}'])
def test_a_damaged_description_in_the_cache_is_named(tmp_path, monkeypatch, text):
    datasets = pytest.importorskip("datasets")
    folder = tmp_path / "owner___chest" / "default" / "0.0.0" / "abc"
    folder.mkdir(parents=True)
    (folder / "dataset_info.json").write_text(text)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    with pytest.raises(DataError, match=r"dataset_info\.json is damaged: "):
        open_dataset("hf:owner/chest")


def test_cells_outside_of_an_arrow_file_are_refused_before_they_are_read(saved, arrow):
    """Reading them ended the whole process, without a message."""
    import pyarrow as pa

    with pa.ipc.open_stream(arrow) as stream:
        table = stream.read_all()
    content = table.column("image").chunk(0).field("bytes")
    offsets = content.buffers()[1].to_pybytes()[:28]
    place = arrow.index(offsets)
    for wrong in (2**31 - 1, -5):
        changed = offsets[:8] + wrong.to_bytes(4, "little", signed=True) + offsets[12:]
        (saved / "data.arrow").write_bytes(arrow[:place] + changed + arrow[place + 28 :])
        with pytest.raises(DataError, match="The dataset saved is damaged: "):
            open_dataset(saved)


def test_descriptions_of_columns_that_are_none_are_refused(saved, arrow):
    (saved / "data.arrow").write_bytes(arrow.replace(b'"_type": "ClassLabel"', b'"_type": {}          '))
    with pytest.raises(DataError, match="The dataset saved is damaged: "):
        open_dataset(saved)
