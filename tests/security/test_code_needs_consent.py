"""Files are data: no function that they name runs unless a person named it, or the place that it is in."""

import json
import sys

import pytest
import torch
import yaml
from safetensors.torch import save_file

from crossgraft.errors import DataError, UnknownNameError, UntrustedCodeError, UsageError
from crossgraft.models import ModelSpec, load_backbone, read_zoo
from crossgraft.models.sources.factory import find_factory
from crossgraft.models.trusted_code import NOTHING, trusted_code
from support.guard import guarded
from support.tampering import change_sealed

TUNE = ("tune", "images", "--model", "tiny_models:tiny", "--epochs", "1", "--workers", "1", "--quiet", "--device", "cpu")
LEAVES_A_MARK = "from pathlib import Path\nPath('mark').write_text('imported')\n\n\ndef net(**kwargs):\n    raise SystemExit\n"
NOT_ASKED_FOR = [
    *("os:system", "posix:system", "builtins:eval", "builtins:exec", "subprocess:run", "subprocess:Popen", "shutil:rmtree"),
    *("pickle:loads", "importlib:import_module", "runpy:run_path", "webbrowser:open", "ctypes:CDLL", "os.path:join"),
    *("torch.hub:load", "torch:load", "numpy:load", "timm:create_model", "torchvision.models:resnet18", "evil:net"),
    *("tiny_models:tiny", "crossgraft.demo.toy_models:toy_cnn", "..evil:net", "a b:c", ":", "x:", ":x", "evil:net.x", "e/v:il"),
]


@pytest.fixture
def tuned(workspace, run_once):
    """A run of one's own network, beside a module that would leave a mark."""
    run_once(*TUNE, out="tuned")
    (workspace / "evil.py").write_text(LEAVES_A_MARK)
    sys.modules.pop("evil", None)
    return workspace / "tuned"


def name_another(run, source, **kwargs):
    file = run / "model" / "model.json"
    recipe = json.loads(file.read_text())["recipe"]
    recipe["network"] = {"source": source, "kwargs": kwargs}
    change_sealed(file, recipe=recipe)


@pytest.mark.parametrize("command", ["predict", "export"])
def test_a_saved_model_calls_nothing_by_name(tuned, crossgraft, command):
    arguments = (command, tuned, *(["images"] if command == "predict" else []), "--quiet")
    for source in NOT_ASKED_FOR:
        name_another(tuned, source, command="touch mark")
        with guarded(tuned.parent):
            outcome = crossgraft(*arguments)
        assert outcome.code == 2, (source, outcome)
        assert repr(source)[1:-1] in outcome.err or "function" in outcome.err, (source, outcome.err)
    assert not (tuned.parent / "mark").exists()
    assert "evil" not in sys.modules


def test_the_message_says_what_to_type_and_that_works(tuned, crossgraft):
    refused = crossgraft("predict", "tuned", "images", "--quiet")
    assert refused.code == 2
    assert "add --code tiny_models.py (allow_code= in Python)" in refused.err
    for place in ("tiny_models.py", ".", "tiny_models:tiny", "evil.py,tiny_models.py"):
        assert crossgraft("predict", "tuned", "images", "--quiet", "--code", place).code == 0
    assert not (tuned.parent / "mark").exists()
    for place in ("evil.py", "tiny_models:broken", "images"):
        assert crossgraft("predict", "tuned", "images", "--quiet", "--code", place).code == 2
    assert "does not exist" in crossgraft("predict", "tuned", "images", "--code", "nowhere.py").err
    assert "is no Python file" in crossgraft("predict", "tuned", "images", "--code", "zoo.yaml").err


def test_a_function_must_be_defined_in_the_place_that_was_named(tmp_path):
    (tmp_path / "borrowed.py").write_text("from os import system\nfrom timm import create_model\nimport functools\n")
    (tmp_path / "wrapped.py").write_text("import functools, os\nrun = functools.partial(os.system, 'touch mark')\nlist_ = list\n")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("from pack.inner import net\n")
    (tmp_path / "pack" / "inner.py").write_text("def net():\n    pass\n")
    code = trusted_code(tmp_path)
    for source in ("borrowed:system", "borrowed:create_model", "wrapped:run", "wrapped:list_", "borrowed:functools"):
        with pytest.raises(UsageError):
            find_factory(source, trusted=code)
    assert find_factory("pack:net", trusted=code).__name__ == "net"
    assert find_factory("pack.inner:net", trusted=trusted_code(tmp_path / "pack")).__name__ == "net"
    with pytest.raises(UntrustedCodeError):
        find_factory("pack:net", trusted=trusted_code(tmp_path / "borrowed.py"))
    for name in ("borrowed", "wrapped", "pack", "pack.inner"):
        sys.modules.pop(name, None)


def test_a_link_out_of_the_place_is_not_in_it(tmp_path):
    outside = tmp_path / "outside.py"
    outside.write_text(LEAVES_A_MARK)
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "linked.py").symlink_to(outside)
    with pytest.raises(UntrustedCodeError):
        find_factory("linked:net", trusted=trusted_code(tmp_path / "place"))
    assert "linked" not in sys.modules


@pytest.mark.parametrize("source", [source for source in NOT_ASKED_FOR if source not in (":", "x:", ":x")])
def test_a_zoo_file_calls_nothing_by_name(workspace, source):
    (workspace / "evil.py").write_text(LEAVES_A_MARK)
    for entry in ({"name": "a", "source": source, "kwargs": {"command": "touch mark"}}, source):
        (workspace / "zoo.yaml").write_text(yaml.safe_dump([entry]))
        with guarded(workspace), pytest.raises(UsageError):
            load_backbone(read_zoo("zoo.yaml")[0])
    assert not (workspace / "mark").exists()


@pytest.mark.parametrize("verb", [("rank", "images"), ("tune", "images"), ("tune", "images", "--plan")])
def test_commands_refuse_a_zoo_file_before_they_read_an_image(workspace, crossgraft, verb):
    (workspace / "one.yaml").write_text('- {name: a, source: "os:system", kwargs: {command: touch mark}}')
    flag = "--models" if verb[0] == "rank" else "--model"
    with guarded(workspace):
        assert crossgraft(*verb, flag, "one.yaml").code == 2
        assert crossgraft("rank", "no such folder", "--models", "zoo.yaml").code == 2
    assert not (workspace / "runs").exists()
    assert crossgraft("rank", "images", "--models", "zoo.yaml", "--code", "tiny_models.py", "--scores", "logme").code == 0


def test_a_file_of_flags_is_no_consent(workspace, crossgraft):
    (workspace / "evil.py").write_text(LEAVES_A_MARK)
    for text in ("model: evil:net", "allow_code: evil.py\nmodel: evil:net", "allow-code: evil.py\nmodel: evil:net"):
        (workspace / "c.yaml").write_text(text)
        with guarded(workspace):
            assert crossgraft("tune", "images", "--config", "c.yaml").code == 2
    (workspace / "c.yaml").write_text("models: [evil:net, tiny_models:tiny]")
    with guarded(workspace):
        assert crossgraft("rank", "images", "--config", "c.yaml", "--code", "tiny_models.py").code == 2
    assert not (workspace / "mark").exists()


def test_pythons_own_functions_are_refused_even_when_typed(workspace, crossgraft):
    with guarded(workspace):
        outcome = crossgraft("tune", "images", "--model", "os:system")
        assert outcome.code == 2
        assert "belongs to Python itself" in outcome.err
        for code in ("os:system", "tiny_models.py"):
            assert crossgraft("tune", "images", "--model", "subprocess:run", "--code", code).code == 2


def test_naming_a_function_allows_that_one():
    spec = ModelSpec("f", "torchvision.models:resnet18", "random", preprocessing={"input_size": 32})
    assert load_backbone(spec).source == "factory"
    with pytest.raises(UntrustedCodeError):
        load_backbone(ModelSpec("f", "torchvision.models:resnet18", "random", trusted=NOTHING))


def test_what_a_function_passes_on_unseen_shapes_the_network_only(tmp_path):
    (tmp_path / "passing_nets.py").write_text(
        "import timm\ndef net(**kwargs):\n    return timm.create_model('test_resnet', **kwargs)\n"
    )
    for name, value in {"pretrained": True, "checkpoint_path": "evil.pth", "pretrained_cfg": {"url": "http://x/y"}}.items():
        spec = ModelSpec("m", "passing_nets:net", kwargs={name: value}, folder=tmp_path)
        with guarded(), pytest.raises(UsageError, match=name):
            load_backbone(spec, image_size=32)
    good = ModelSpec("m", "passing_nets:net", kwargs={"num_classes": 3}, folder=tmp_path)
    assert load_backbone(good, image_size=32).num_source_classes == 3


EDITS = {
    "class_names": lambda names: names[::-1],
    "temperature": lambda value: (value or 1.0) * 2,
    "thresholds": lambda rows: [{"class_name": "benign", "threshold": 0.99, "rule": "mine", "fitted_on": "val"}, *rows][:1],
    "task": lambda _: "multi-label",
    "weights_sha256": lambda _: "0" * 64,
    "seed": lambda seed: seed + 1,
    "unsound": lambda texts: [*texts, "nothing"],
    "metrics": lambda rows: rows[1:],
    "recipe.preprocessing": lambda values: {**values, "mean": [0.1, 0.2, 0.3]},
    "recipe.network": lambda values: {**values, "source": "tiny_models:broken"},
    "recipe.cut": lambda values: {**values, "removed": []},
    "recipe.num_features": lambda number: number + 1,
    "model.licence": lambda _: "CC0",
    "trained_on.window": lambda _: "full",
}


def test_every_field_of_a_saved_model_is_sealed(tuned, crossgraft):
    file = tuned / "model" / "model.json"
    whole = file.read_text()
    command = ("predict", "tuned", "images", "--code", "tiny_models.py", "--quiet")
    for place, edit in EDITS.items():
        changed = json.loads(whole)
        field, _, key = place.partition(".")
        holder, name = (changed[field], key) if key else (changed, field)
        before = json.dumps(holder[name])
        holder[name] = edit(holder[name])
        assert json.dumps(holder[name]) != before, place
        file.write_text(json.dumps(changed))
        outcome = crossgraft(*command)
        assert outcome.code == 3, place
        assert f"was changed after it was written: {place}." in outcome.err
    file.write_text(json.dumps({**json.loads(whole), "checksums": {}}))
    assert "has no checksums" in crossgraft(*command).err
    file.write_text(json.dumps(json.loads(whole), indent=7, sort_keys=True))  # the layout of the file is free
    assert crossgraft(*command).code == 0


def test_a_saved_model_of_timm_needs_no_consent(tmp_path, workspace, crossgraft):
    torch.manual_seed(0)
    (workspace / "one.yaml").write_text("- {name: net, source: test_resnet, weights: random, preprocessing: {input_size: 32}}")
    tuned = crossgraft("tune", "images", "--model", "one.yaml", "--epochs", "1", "--workers", "1", "--quiet", "--out", "t")
    assert tuned.code == 0, tuned.err
    with guarded(workspace, tmp_path):
        assert crossgraft("predict", "t", "images", "--quiet", "--no-ledger").code == 0
    file = workspace / "t" / "model" / "model.json"
    recipe = json.loads(file.read_text())["recipe"]
    for name, value in {"pretrained": True, "checkpoint_path": "evil.pth", "cache_dir": "x", "features_only": True}.items():
        hostile = {**recipe, "network": {"source": "test_resnet", "kwargs": {name: value}}}
        change_sealed(file, recipe=hostile)
        with guarded(workspace):
            outcome = crossgraft("predict", "t", "images", "--quiet")
        assert outcome.code == 2
        assert name in outcome.err
    for source in ("hf-hub:timm/resnet18", "local-dir:/tmp", "test_resnet.no_such_tag", "torchvision:../x", "torchvision:"):
        change_sealed(file, recipe={**recipe, "network": {"source": source, "kwargs": {}}})
        with guarded(workspace):
            assert crossgraft("predict", "t", "images", "--quiet").code == 2


def test_a_pickle_behind_the_name_of_weights_is_never_opened(tmp_path):
    (tmp_path / "evil.pth").write_bytes(b"\x80\x04cos\nsystem\n(S'touch mark'\ntR.")
    with guarded(tmp_path), pytest.raises(DataError, match="more than tensors"):
        load_backbone(ModelSpec("m", "test_resnet", str(tmp_path / "evil.pth")))


def test_allowing_a_function_searches_no_folder_of_a_file_and_installed_packages_first(tmp_path, monkeypatch):
    """A module of the same name beside the zoo file, or in the current folder, does not stand in for the one that was meant."""
    installed, downloaded = tmp_path / "installed", tmp_path / "downloaded"
    for folder, text in ((installed, "def net():\n    return 'good'\n"), (downloaded, LEAVES_A_MARK)):
        folder.mkdir()
        (folder / "twin_nets.py").write_text(text)
    (downloaded / "zoo.yaml").write_text('- {name: a, source: "twin_nets:net"}')
    monkeypatch.chdir(downloaded)
    monkeypatch.syspath_prepend(str(installed))
    (spec,) = read_zoo("zoo.yaml", allow_code="twin_nets:net")
    with pytest.raises(UsageError, match="returned a str"):
        load_backbone(spec, image_size=16)
    assert not (downloaded / "mark").exists()
    sys.modules.pop("twin_nets")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(installed)])
    with pytest.raises(UsageError, match="Cannot import twin_nets"):
        load_backbone(spec, image_size=16)
    assert not (downloaded / "mark").exists()


@pytest.fixture
def named_in_a_header(workspace):
    """Weights whose header says which function builds the network."""
    sys.modules.pop("evil", None)
    (workspace / "evil.py").write_text(LEAVES_A_MARK)

    def write(source):
        path = workspace / "weights.safetensors"
        save_file({"x": torch.zeros(1)}, path, metadata={"architecture": source, "kwargs": "{}"})
        return path

    return write


@pytest.mark.parametrize("source", NOT_ASKED_FOR)
def test_no_header_of_weights_runs_code(named_in_a_header, workspace, source):
    path = named_in_a_header(source)
    allowed = None if source == "tiny_models:tiny" else "tiny_models.py"
    for load in (
        lambda: load_backbone(*read_zoo(str(path), allow_code=allowed)),
        lambda: load_backbone(ModelSpec("mine", "", weights=str(path))),
    ):
        with pytest.raises((UsageError, UnknownNameError)), guarded():
            load()
    assert not (workspace / "mark").exists() and "evil" not in sys.modules


def test_a_header_names_code_that_the_user_named_too(named_in_a_header, workspace):
    path = named_in_a_header("tiny_models:tiny")
    (spec,) = read_zoo(str(path), allow_code="tiny_models.py")
    network = load_backbone(ModelSpec("one", "tiny_models:tiny"))
    save_file(network.module.state_dict(), path, metadata={"architecture": "tiny_models:tiny", "kwargs": '{"width": 8}'})
    assert load_backbone(spec).weights_fingerprint == network.weights_fingerprint
