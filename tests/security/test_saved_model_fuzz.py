"""Any ``model.json`` and any zoo file is a model or a named error, and starts nothing, whoever wrote it."""

import json
import shutil
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crossgraft.errors import CrossgraftError
from crossgraft.models import load_backbone, read_zoo
from crossgraft.models.classifier import make_classifier
from crossgraft.models.spec import ModelSpec
from crossgraft.tune.saving.save_model import describe_saved_model, save_model
from crossgraft.tune.saving.saved_model import load_saved_model
from support.guard import guarded
from support.tampering import reseal
from support.tuning_records import tuning_record

COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]}

names = st.sampled_from(
    [
        *("os:system", "subprocess:run", "builtins:eval", "pickle:loads", "torch.hub:load", "timm:create_model"),
        *("test_resnet", "torchvision:resnet18", "hf-hub:a/b", "local-dir:.", "../x", "__class__", "forward", "fc.weight"),
        *("http://127.0.0.1/x", "/etc/passwd", "pretrained", "checkpoint_path", "lora", "adaptformer"),
    ]
)
plain = st.one_of(st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.floats(), st.text(max_size=6), names)
trees = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(names, st.sampled_from(["source", "kwargs", "kind", "host", "options", "name"])), inner, max_size=3
        ),
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model"
    backbone = load_backbone(ModelSpec("net", "test_resnet", "random"), image_size=32)
    classifier = make_classifier(backbone, 2, seed=0)
    save_model(folder, classifier, describe_saved_model(tuning_record(), classifier, seed=0))
    return folder


def paths_of(values, before=()):
    """Where every value of a document is."""
    yield before
    items = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, value in items:
        yield from paths_of(value, (*before, key))


def put(values, path, value):
    *before, last = path
    for key in before:
        values = values[key]
    values[last] = value


@settings(max_examples=60, **COMMON)
@given(data=st.data())
def test_any_model_json_is_a_model_or_a_named_error(saved, tmp_path, data):
    """One to three values anywhere in the file are replaced, and sealed again as its author would do it."""
    folder = tmp_path / "model"
    shutil.copytree(saved, folder, dirs_exist_ok=True)
    facts = json.loads((saved / "model.json").read_text())
    facts.pop("checksums")
    places = [path for path in paths_of(facts) if path]
    recipe = [path for path in places if path[0] == "recipe"]
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(data.draw(st.sampled_from([places, recipe]))))
        with suppress(KeyError, IndexError, TypeError):  # what held it was replaced before
            put(facts, path, data.draw(trees))
    facts = json.loads(json.dumps(facts))  # keys are text, as in any file
    (folder / "model.json").write_text(json.dumps(reseal(facts)))
    with guarded(tmp_path), suppress(CrossgraftError):
        load_saved_model(folder)


@settings(max_examples=30, **COMMON)
@given(content=st.one_of(st.binary(max_size=80), trees.map(lambda tree: json.dumps(tree).encode())))
def test_any_bytes_as_model_json_are_a_named_error(saved, tmp_path, content):
    folder = tmp_path / "model"
    shutil.copytree(saved, folder, dirs_exist_ok=True)
    (folder / "model.json").write_bytes(content)
    with guarded(tmp_path), pytest.raises(CrossgraftError):
        load_saved_model(folder)


def load_all(file):
    for spec in read_zoo(file):
        load_backbone(spec, image_size=32)


entries = st.dictionaries(
    st.sampled_from(
        ["name", "source", "weights", "kwargs", "preprocessing", "source_features", "family", "licence", "known_as", "x"]
    ),
    trees,
    max_size=6,
)


@settings(max_examples=60, **COMMON)
@given(content=st.one_of(st.lists(st.one_of(entries, names), max_size=3), trees))
def test_any_zoo_file_is_a_list_of_models_or_a_named_error(tmp_path, content):
    file = tmp_path / "zoo.yaml"
    file.write_text(json.dumps(content), encoding="utf-8")
    with guarded(tmp_path), suppress(CrossgraftError):
        load_all(file)


@settings(max_examples=20, **COMMON)
@given(
    text=st.one_of(
        st.binary(max_size=60), st.sampled_from(["!!python/object/apply:os.system [ls]", "- &a [*a]", "- *a"]).map(str.encode)
    )
)
def test_any_bytes_as_a_zoo_file_are_a_named_error(tmp_path, text):
    file = tmp_path / "zoo.yaml"
    file.write_bytes(text)
    with guarded(tmp_path), pytest.raises(CrossgraftError):
        load_all(file)
