"""Names, paths and YAML files become specs; every mistake is named."""

import json

import numpy as np
import pytest
import yaml

from crossgraft.errors import DataError, MissingWeightsError, UnknownNameError, UntrustedCodeError, UsageError
from crossgraft.models import DEFAULT_ZOO, ModelSpec, random_weights_control, read_zoo
from crossgraft.models.sources.libraries import library_of
from crossgraft.models.zoo import named_in_a_file

from .conftest import TINY, save_checkpoint, tiny_timm


@pytest.fixture(autouse=True)
def empty_hub_cache(tmp_path, monkeypatch):
    """What happens to be cached on this machine decides nothing here."""
    monkeypatch.setattr("crossgraft.models.sources.timm_models.try_to_load_from_cache", lambda *_: None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))


def write_zoo(folder, entries):
    path = folder / "zoo.yaml"
    path.write_text(yaml.safe_dump(entries, allow_unicode=True))
    return path


def test_a_file_is_one_whatever_commas_are_in_its_path(tmp_path):
    folder = tmp_path / "runs, old"
    folder.mkdir()
    path = write_zoo(folder, ["resnet18", "resnet34"])
    for models in (path, str(path)):
        assert [spec.name for spec in read_zoo(models)] == ["resnet18", "resnet34"]
    with pytest.raises(UsageError, match=r"No such zoo file: .*runs, old.gone\.yaml"):
        read_zoo(folder / "gone.yaml")


def test_one_entry_of_a_file_is_named_behind_it(tmp_path):
    own = {"name": "my, net · b", "source": "resnet18", "weights": "random"}
    path = write_zoo(tmp_path, [own, "torchvision:resnet18", "resnet34"])
    assert [spec.name for spec in read_zoo(f"{path}:resnet34,vit_tiny_patch16_224")] == ["resnet34", "vit_tiny_patch16_224"]
    assert read_zoo([f"{path}:my, net · b"])[0].weights == "random"
    assert read_zoo(f"{path}:torchvision:resnet18")[0].architecture == "torchvision:resnet18"
    with pytest.raises(UnknownNameError, match=r"Unknown entry of zoo\.yaml: resnet43\. Did you mean resnet34"):
        read_zoo(f"{path}:resnet43")
    with pytest.raises(UsageError, match=r"No such zoo file: .*gone\.yml"):
        read_zoo(f"{tmp_path}/gone.yml:a")
    with pytest.raises(UsageError, match="found twice: resnet34"):
        read_zoo(f"{write_zoo(tmp_path, ['resnet34', 'resnet34'])}:resnet34")


def test_a_function_of_one_entry_needs_the_consent_that_the_whole_file_does(tmp_path, monkeypatch):
    (tmp_path / "nets_of_a_zoo.py").write_text("def small():\n    raise AssertionError\n")
    monkeypatch.chdir(tmp_path)
    write_zoo(tmp_path, [{"name": "own", "source": "nets_of_a_zoo:small"}])
    for named in (["zoo.yaml:own"], named_in_a_file("zoo.yaml:own", None)):
        with pytest.raises(UntrustedCodeError, match=r"add --code nets_of_a_zoo\.py"):
            read_zoo(named)
    assert read_zoo("zoo.yaml:own", allow_code="nets_of_a_zoo.py")[0].is_factory


def test_names_separated_by_commas():
    specs = read_zoo("resnet18, vit_tiny_patch16_224")
    assert [(spec.name, spec.source, spec.weights) for spec in specs] == [
        ("resnet18", "resnet18", "pretrained"),
        ("vit_tiny_patch16_224", "vit_tiny_patch16_224", "pretrained"),
    ]
    assert [spec.family for spec in specs] == ["resnet", "vit"]
    assert read_zoo(["resnet18.a1_in1k"])[0].architecture == "resnet18"


def test_a_list_may_mix_specs_and_names():
    own = ModelSpec("mine", "resnet18", "random")
    assert [spec.name for spec in read_zoo([own, "resnet34"])] == ["mine", "resnet34"]


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("resnet19", "Did you mean resnet18"),
        ("resnet18.a1_in2k", r"Unknown pretrained model: resnet18.a1_in2k. Did you mean resnet18.a1_in1k"),
    ],
)
def test_a_typo_gets_the_nearest_names(models, message):
    with pytest.raises(UnknownNameError, match=message):
        read_zoo(models)


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([], "empty"),
        ("resnet18,resnet18", "found twice: resnet18"),
        ("zoo_that_is_not_there.yaml", "No such zoo file"),
        ("model.h5", "Keras"),
        ("model.onnx", "ONNX graph"),
    ],
)
def test_lists_that_make_no_sense(models, message):
    with pytest.raises(UsageError, match=message):
        read_zoo(models)


def test_a_folder_of_weights_must_exist(tmp_path):
    with pytest.raises(UsageError, match="No such folder of weights"):
        read_zoo("resnet18", weights_dir=tmp_path / "none")


def test_yaml_entries(tmp_path):
    save_checkpoint(tmp_path / "a.safetensors", tiny_timm(num_classes=2).state_dict())
    np.save(tmp_path / "source.npy", np.ones((4, 3)))
    path = write_zoo(
        tmp_path,
        [
            {
                "name": "mine",
                "source": TINY,
                "weights": "a.safetensors",
                "kwargs": {"num_classes": 2},
                "family": "Tiny",
                "licence": "MIT",
                "preprocessing": {"input_size": [3, 32, 32], "resize_policy": "squash"},
                "source_features": "source.npy",
            },
            "resnet18",
        ],
    )
    mine, plain = read_zoo(path)
    assert (mine.family, mine.licence, mine.kwargs) == ("Tiny", "MIT", {"num_classes": 2})
    assert mine.weights == str((tmp_path / "a.safetensors").resolve())
    assert mine.load_source_features().dtype == np.float32
    assert mine.load_source_features().shape == (4, 3)
    assert plain.name == "resnet18"
    assert plain.load_source_features() is None


def test_describe_shows_no_folder(tmp_path):
    save_checkpoint(tmp_path / "a.safetensors", tiny_timm().state_dict())
    (spec,) = read_zoo(write_zoo(tmp_path, [{"name": "mine", "source": TINY, "weights": "a.safetensors"}]))
    assert str(tmp_path) not in json.dumps(spec.describe())
    assert spec.describe()["weights"] == "a.safetensors"


def test_weights_dir_is_searched_before_the_folder_of_the_zoo(tmp_path):
    folder = tmp_path / "weights"
    folder.mkdir()
    for place in (folder, tmp_path):
        save_checkpoint(place / "a.safetensors", tiny_timm().state_dict())
    path = write_zoo(tmp_path, [{"name": "mine", "source": TINY, "weights": "a.safetensors"}])
    assert read_zoo(path, weights_dir=folder)[0].weights == str((folder / "a.safetensors").resolve())
    assert read_zoo(path)[0].weights == str((tmp_path / "a.safetensors").resolve())


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([{"name": "a", "sauce": "resnet18"}], r"key in zoo.yaml, entry 1: sauce. Did you mean source"),
        ([{"name": "a", "source": "resnet18", "preprocessing": {"men": 1}}], "Did you mean mean"),
    ],
)
def test_unknown_keys_get_the_nearest(tmp_path, entries, message):
    with pytest.raises(UnknownNameError, match=message):
        read_zoo(write_zoo(tmp_path, entries))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"name": "a"}, "must be a list"),
        ([3], r"entry 1 must be a model name or a mapping"),
        ([{"source": "resnet18"}], "entry 1 has no name"),
        ([{"name": "a"}], "neither source nor weights"),
        ([{"name": 5, "source": "resnet18"}], "name must be text, found 5"),
        ([{"name": "a", "source": "resnet18", "kwargs": [1]}], "kwargs must be a mapping"),
        ([{"name": "a", "source": "my.module:net", "weights": "pretrained"}], "is a function"),
    ],
)
def test_entries_that_make_no_sense(tmp_path, entries, message):
    with pytest.raises(UsageError, match=message):
        read_zoo(write_zoo(tmp_path, entries), allow_code="my.module:net")


def test_broken_yaml(tmp_path):
    (tmp_path / "zoo.yaml").write_text("- name: [")
    with pytest.raises(UsageError, match=r"not valid YAML: [^\n]*line \d+, column \d+"):
        read_zoo(tmp_path / "zoo.yaml")


def test_a_missing_checkpoint_names_folder_and_neighbours(tmp_path):
    save_checkpoint(tmp_path / "mobilenet_a.safetensors", tiny_timm().state_dict())
    with pytest.raises(MissingWeightsError, match=r"Did you mean mobilenet_a\.safetensors") as caught:
        read_zoo("mobilenet_b.safetensors", weights_dir=tmp_path)
    assert str(tmp_path) in str(caught.value)
    with pytest.raises(MissingWeightsError, match="--weights-dir"):
        read_zoo("elsewhere/zzz.safetensors")


def test_missing_source_features(tmp_path):
    path = write_zoo(tmp_path, [{"name": "a", "source": TINY, "source_features": "none.npy"}])
    with pytest.raises(DataError, match="source_features of the model a are missing"):
        read_zoo(path)


@pytest.mark.parametrize("content", [np.ones(3), np.array([["a"]])])
def test_source_features_of_the_wrong_shape_or_type(tmp_path, content):
    np.save(tmp_path / "source.npy", content)
    spec = ModelSpec("a", TINY, source_features=str(tmp_path / "source.npy"))
    with pytest.raises(DataError, match="one array of numbers"):
        spec.load_source_features()


def test_source_features_that_are_no_array(tmp_path):
    (tmp_path / "source.npy").write_text("nothing")
    with pytest.raises(DataError, match=r"numpy\.save"):
        ModelSpec("a", TINY, source_features=str(tmp_path / "source.npy")).load_source_features()


def test_a_checkpoint_describes_itself(tmp_path):
    path = save_checkpoint(
        tmp_path / "mine.v1.safetensors",
        tiny_timm(num_classes=2).state_dict(),
        architecture=TINY,
        kwargs={"output_stride": 16},
        num_classes=2,
        input_size=[3, 48, 48],
        mean=[0.5, 0.5, 0.5],
        interpolation="bilinear",
        licence="MIT",
    )
    (spec,) = read_zoo(str(path))
    assert (spec.name, spec.source, spec.licence) == ("mine.v1", TINY, "MIT")
    assert spec.kwargs == {"output_stride": 16, "num_classes": 2}
    assert spec.preprocessing == {"input_size": [3, 48, 48], "mean": [0.5] * 3, "interpolation": "bilinear"}
    # the entry wins over the header
    entry = {"name": "b", "weights": path.name, "kwargs": {"output_stride": 8}, "preprocessing": {"mean": 0.1}}
    (spec,) = read_zoo(write_zoo(tmp_path, [entry]))
    assert spec.kwargs["output_stride"] == 8
    assert spec.preprocessing["mean"] == 0.1
    assert spec.preprocessing["interpolation"] == "bilinear"


def test_a_checkpoint_without_or_with_a_foreign_architecture(tmp_path):
    silent = save_checkpoint(tmp_path / "silent.safetensors", tiny_timm().state_dict())
    with pytest.raises(UsageError, match="does not say its architecture"):
        read_zoo(str(silent))
    foreign = save_checkpoint(tmp_path / "f.safetensors", tiny_timm().state_dict(), architecture="mobilenetv1_025")
    with pytest.raises(UsageError, match=r"mobilenetv1_025, which timm does not have.*package\.module:factory"):
        read_zoo(str(foreign))


def test_the_control_keeps_architecture_and_preprocessing(tmp_path):
    path = save_checkpoint(
        tmp_path / "m.safetensors", tiny_timm(num_classes=2).state_dict(), architecture=TINY, input_size=[3, 48, 48]
    )
    (spec,) = read_zoo(str(path))
    control = random_weights_control(spec)
    assert control.name == f"{TINY} · random"
    assert control.weights == "random"
    assert control.preprocessing == spec.preprocessing
    assert control.architecture_key == spec.architecture_key


def test_the_control_gets_a_name_of_its_own():
    spec = ModelSpec("m", TINY, kwargs={"output_stride": 16, "num_classes": 2})
    plain = random_weights_control(spec)
    assert plain.name == f"{TINY} · random"
    assert random_weights_control(spec, taken=[plain.name]).name == f"{TINY} (output_stride=16) · random"


def test_one_architecture_whatever_the_weights_and_classes():
    birds = ModelSpec("birds", "mobilenetv2_100", "a.safetensors", kwargs={"num_classes": 965, "pad_type": "same"})
    insects = ModelSpec("insects", "mobilenetv2_100.ra_in1k", kwargs={"pad_type": "same", "num_classes": 1022})
    other = ModelSpec("other", "mobilenetv2_100", kwargs={"num_classes": 965})
    assert birds.architecture_key == insects.architecture_key != other.architecture_key
    assert birds.architecture == "mobilenetv2_100 (pad_type=same)"


def test_default_zoo_takes_what_is_here(tmp_path):
    with pytest.raises(MissingWeightsError, match="--weights-dir") as caught:
        read_zoo(None, weights_dir=tmp_path)
    assert DEFAULT_ZOO[0] in str(caught.value)
    save_checkpoint(tmp_path / "resnet18.safetensors", {"anything": tiny_timm().fc.weight})
    save_checkpoint(tmp_path / "own.safetensors", tiny_timm().state_dict(), architecture=TINY)
    save_checkpoint(tmp_path / "unknown.safetensors", tiny_timm().state_dict(), architecture="nobody_knows")
    assert [spec.name for spec in read_zoo(None, weights_dir=tmp_path)] == ["resnet18", "own"]


def test_every_name_of_the_default_zoo_exists():
    assert 10 <= len(DEFAULT_ZOO) == len(set(DEFAULT_ZOO))
    assert all(library_of(name).knows(name) for name in DEFAULT_ZOO)
