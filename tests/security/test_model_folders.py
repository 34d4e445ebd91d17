"""Folders and repositories of networks: whoever wrote them, they are a network or a named error, and nothing in them runs."""

import json
import os
import pickle
import zipfile
from contextlib import suppress

import pytest
import timm
from huggingface_hub import constants
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from crossgraft.errors import CrossgraftError, MissingWeightsError, UnknownNameError, UsageError
from crossgraft.models import load_backbone
from support.guard import guarded
from support.transformers_folders import write_folder

CODE = "import os; os.system('touch ran')\nraise SystemExit('ran')\n"
OF_TIMM = {
    "architecture": "test_resnet",
    "num_classes": 7,
    "model_args": {"drop_rate": 0.1},
    "pretrained_cfg": {"input_size": [3, 32, 32], "mean": [0.1, 0.2, 0.3], "crop_mode": "squash", "license": "mit"},
}
OF_OPEN_CLIP = {
    "model_cfg": {
        "embed_dim": 12,
        "vision_cfg": {"timm_model_name": "test_vit", "timm_pool": "", "timm_proj": "linear", "image_size": 160},
        "text_cfg": {"width": 16},
    },
    "preprocess_cfg": {"mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6], "resize_mode": "squash"},
}


def write_timm(folder):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(OF_TIMM))
    save_file(timm.create_model("test_resnet", num_classes=7).state_dict(), folder / "model.safetensors")


def write_open_clip(folder):
    folder.mkdir(parents=True)
    (folder / "open_clip_config.json").write_text(json.dumps(OF_OPEN_CLIP))
    state = timm.create_model("test_vit", num_classes=0).state_dict()
    save_file({f"visual.trunk.{name}": tensor for name, tensor in state.items()}, folder / "open_clip_model.safetensors")


FORMS = {
    "local-dir": ("local-dir:{}", write_timm, "config.json"),
    "hf-hub": ("hf-hub:ward/net", write_timm, "config.json"),
    "transformers": ("transformers:{}", lambda folder: write_folder(folder, "ViTModel"), "config.json"),
    "open_clip": ("open_clip:{}", write_open_clip, "open_clip_config.json"),
}
WEIGHTS = ("model.safetensors", "open_clip_model.safetensors")


class Place:
    """A folder of one form, or the cache of the hub."""

    def __init__(self, form, folder):
        name, write, self.description = FORMS[form]
        self.folder = folder / "hub" / "models--ward--net" / "snapshots" / ("0" * 40) if form == "hf-hub" else folder / "net"
        write(self.folder)
        if form == "hf-hub":
            refs = folder / "hub" / "models--ward--net" / "refs"
            refs.mkdir()
            (refs / "main").write_text("0" * 40)
        self.name = name.format(self.folder)
        self.weights = next(self.folder / each for each in WEIGHTS if (self.folder / each).is_file())

    def describe(self, said):
        (self.folder / self.description).write_text(json.dumps(said))

    def said(self):
        return json.loads((self.folder / self.description).read_text())


@pytest.fixture(params=FORMS)
def place(request, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    return Place(request.param, tmp_path)


def test_each_form_loads_what_nobody_has_touched(place, tmp_path):
    with guarded(tmp_path):
        assert load_backbone(place.name).num_parameters > 0


def test_code_beside_the_description_never_runs(place, tmp_path):
    for name in ("__init__", "modeling_vit", "configuration_vit", "image_processing_vit", "test_resnet", "hubconf", "setup"):
        (place.folder / f"{name}.py").write_text(CODE)
    (place.folder / "sitecustomize.py").write_text(CODE)
    with guarded(tmp_path):
        load_backbone(place.name)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "added",
    [
        {"auto_map": {"AutoModel": "modeling_vit.Model"}},
        {"auto_map": {"AutoConfig": "somebody/else--configuration.Config"}},
        {"trust_remote_code": True, "auto_map": {}},
    ],
)
def test_a_description_that_names_code_is_refused(place, added, tmp_path):
    (place.folder / "modeling_vit.py").write_text(CODE)
    place.describe(place.said() | added)
    with guarded(tmp_path), pytest.raises(UsageError, match="auto_map"):
        load_backbone(place.name)


@pytest.mark.parametrize(
    "hostile",
    [
        "os:system",
        "os.system",
        "../../etc/passwd",
        "/etc/passwd",
        "builtins.eval",
        "http://127.0.0.1:9/x",
        "hf-hub:a/b",
        "local-dir:.",
    ],
)
@pytest.mark.parametrize("key", ["architecture", "model_type", "timm_model_name", "hidden_act", "act_layer"])
def test_names_of_other_things_are_no_architecture(place, key, hostile, tmp_path):
    said = place.said()
    inside = {"act_layer": "model_args", "timm_model_name": "model_cfg"}.get(key)
    if key not in said and (inside not in said or key in ("architecture", "model_type")):
        return
    if key == "timm_model_name":
        said["model_cfg"]["vision_cfg"][key] = hostile
    elif inside is not None:
        said[inside][key] = hostile
    else:
        said[key] = hostile
    place.describe(said)
    with guarded(tmp_path), pytest.raises(CrossgraftError):
        load_backbone(place.name)


@pytest.mark.parametrize(
    "arguments",
    [
        {"pretrained": True},
        {"pretrained_cfg": {"url": "http://127.0.0.1:9/x.pth"}},
        {"checkpoint_path": "/etc/passwd"},
        {"pretrained_cfg_overlay": {"file": "/etc/passwd"}},
        {"weights": "/etc/passwd"},
        {"surprise": 1},
    ],
)
def test_arguments_that_do_more_than_shape_a_network(arguments, tmp_path):
    place = Place("local-dir", tmp_path)
    place.describe(OF_TIMM | {"model_args": arguments})
    with guarded(tmp_path), pytest.raises((UsageError, UnknownNameError)):
        load_backbone(place.name)


@pytest.mark.parametrize("key", ["url", "file", "hf_hub_id", "hf_hub_filename", "custom_load", "state_dict", "source"])
def test_places_of_other_weights_in_a_description_have_no_effect(key, tmp_path):
    place = Place("local-dir", tmp_path)
    expected = load_backbone(place.name).weights_fingerprint
    place.describe(OF_TIMM | {"pretrained_cfg": OF_TIMM["pretrained_cfg"] | {key: "../../../../etc/passwd"}})
    with guarded(tmp_path):
        assert load_backbone(place.name).weights_fingerprint == expected


class Attack:
    def __reduce__(self):
        return os.system, ("touch ran",)


@pytest.mark.parametrize("kind", ["pickle", "archive"])
def test_weights_that_are_a_pickle_run_nothing(place, kind, tmp_path):
    place.weights.unlink()
    file = place.folder / ("open_clip_pytorch_model.bin" if "open_clip" in place.weights.name else "pytorch_model.bin")
    content = pickle.dumps({"conv1.weight": Attack()})
    if kind == "pickle":
        file.write_bytes(content)
    else:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("net/data.pkl", content)
            archive.writestr("net/version", "3\n")
    with guarded(tmp_path), pytest.raises(CrossgraftError):
        load_backbone(place.name)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("part", ["../../../../etc/passwd", "/etc/passwd", "model-00001-of-00001.safetensors"])
def test_an_index_of_parts_opens_no_file(place, part, tmp_path):
    """Names of files in an index could lead anywhere: it is not read at all."""
    place.weights.rename(place.folder / "model-00001-of-00001.safetensors")
    index = place.folder / f"{place.weights.name}.index.json"
    index.write_text(json.dumps({"weight_map": {"conv1.weight": part}}))
    with guarded(tmp_path), pytest.raises(UsageError, match=r"in several files \(.*index\.json\).* Save them in one"):
        load_backbone(place.name)


@pytest.mark.parametrize(
    "name", ["../net", "..", "ward/../../net", "ward/net/../../..", "ward--net", "~", "a\x00b", "ward/net@../../x"]
)
@pytest.mark.parametrize("library", FORMS)
def test_names_that_lead_elsewhere(library, name, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with guarded(tmp_path), pytest.raises(CrossgraftError):
        load_backbone(f"{library}:{name}")


strange = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.integers(-2, 40),
    st.floats(),
    st.sampled_from(
        ["", "os:system", "../x", "relu", [], [1], [0], ["a"], [[1]], [None], [3, 32, 32], [1] * 70, {}, {"a": 1}, "9" * 5000]
    ),
)


def paths_of(values, before=()):
    """Where every value of a document is."""
    if before:
        yield before
    items = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, value in items:
        yield from paths_of(value, (*before, key))


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return {form: Place(form, tmp_path_factory.mktemp(form)) for form in FORMS if form != "hf-hub"}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_description_is_a_network_or_a_named_error(places, data):
    """One or two values anywhere in a description are replaced."""
    place = places[data.draw(st.sampled_from(sorted(places)))]
    files = [place.description, *(("preprocessor_config.json",) if "transformers" in place.name else ())]
    file = place.folder / data.draw(st.sampled_from(files))
    before = file.read_text()
    said = json.loads(before)
    for _ in range(data.draw(st.integers(1, 2))):
        *way, last = data.draw(st.sampled_from(list(paths_of(said))))
        inside = said
        for step in way:
            inside = inside[step]
        inside[last] = data.draw(strange)
    file.write_text(json.dumps(said))
    try:
        with guarded(place.folder), suppress(CrossgraftError):
            load_backbone(place.name)
    finally:
        file.write_text(before)


def test_a_repository_that_is_not_here_says_which_form_to_type(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(MissingWeightsError, match=r"no network of timm: write transformers:microsoft/rad-dino\."):
        load_backbone("hf-hub:microsoft/rad-dino")
    with pytest.raises(
        MissingWeightsError, match=r"model_type, it is of transformers: write transformers:ward/net; .*open_clip:ward/net\."
    ):
        load_backbone("hf-hub:ward/net")
    with pytest.raises(MissingWeightsError) as error:
        load_backbone("hf-hub:MahmoodLab/UNI")
    assert "transformers:" not in str(error.value)
