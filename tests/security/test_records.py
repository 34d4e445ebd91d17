"""Values inside a record that is well-formed JSON: what has no meaning is refused by its name, wherever it is read."""

import json
import shutil

import numpy as np
import pytest
import torch

from crossgraft.data.sources._hf_tables import SavedState, read_description
from crossgraft.errors import CrossgraftError, DataError, RunDirectoryError, UsageError
from crossgraft.features.store import map_tensors, write_tensors
from crossgraft.models import load_backbone
from crossgraft.models.adapters.peft_format import CONFIG_FILE, _check_config
from crossgraft.models.classifier import make_classifier
from crossgraft.models.preprocessing import resolve_preprocessing
from crossgraft.models.spec import ModelSpec
from crossgraft.report.kinds import read_run
from crossgraft.tune.engine.checkpoint import FILE_NAME, Checkpoint, _digest, read_checkpoint, write_checkpoint
from crossgraft.tune.saving.save_model import describe_saved_model, save_model
from crossgraft.tune.saving.saved_model import load_saved_model
from crossgraft.types import Preprocessing
from support.tampering import change_sealed
from support.tuning_records import tuning_record


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model"
    backbone = load_backbone(ModelSpec("net", "test_vit", "random"), image_size=160)
    classifier = make_classifier(backbone, 2, seed=0)
    save_model(folder, classifier, describe_saved_model(tuning_record(), classifier, seed=0))
    return folder


@pytest.fixture
def copy(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "model")


def change_recipe(folder, place, value):
    """Change one value of the recipe, named by its path, and seal the file again."""
    recipe = json.loads((folder / "model.json").read_text())["recipe"]
    *before, last = place.split(".")
    inner = recipe
    for key in before:
        inner = inner[int(key) if key.isdigit() else key]
    inner[int(last) if last.isdigit() else last] = value
    change_sealed(folder / "model.json", recipe=recipe)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("num_outputs", -1),
        ("num_outputs", 0),
        ("num_outputs", 1e30),
        ("num_features", -5),
        ("num_features", 1e9),
        ("preprocessing.height_pixels", 1e30),
        ("preprocessing.height_pixels", 0),
        ("preprocessing.width_pixels", -1),
        ("preprocessing.width_pixels", 16385),
        ("preprocessing.channels", 2),
        ("preprocessing.crop_fraction", 1e-300),
        ("preprocessing.crop_fraction", 0),
        ("preprocessing.crop_fraction", float("nan")),
        ("preprocessing.mean", [float("inf"), 0, 0]),
        ("preprocessing.mean", [0.5]),
        ("preprocessing.std", [1, 0, 1]),
        ("preprocessing.std", [1, 1e-300, 1]),
        ("preprocessing.std", [1, float("nan"), 1]),
        ("cut.route.layout.0", 0),
        ("cut.route.layout.0", 4),
        ("cut.route.layout.1", -1),
    ],
)
def test_a_saved_model_with_a_value_out_of_range_is_refused_by_its_name(copy, place, value):
    change_recipe(copy, place, value)
    field = place.rstrip(".0123456789").removeprefix("preprocessing.")
    with pytest.raises(DataError, match=rf"{field}.*found ") as refused:
        load_saved_model(copy)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("num_features", 999_999, r"head\.weight is \(2, 64\) in the file and \(2, 999999\) in model\.json"),
        ("num_outputs", 1_000_000, "2 class names for 1000000 outputs"),
    ],
)
def test_a_head_larger_than_the_file_is_refused_before_anything_is_built(copy, place, value, said, monkeypatch):
    def built(*_, **__):
        pytest.fail("a network was built")

    monkeypatch.setattr("crossgraft.models.classifier.build_network", built)
    change_recipe(copy, place, value)
    with pytest.raises(CrossgraftError, match=said):
        load_saved_model(copy)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("cut.route.layout.0", 1),
        ("cut.route.layout.0", 3),
        ("cut.route", {"kind": "forward_features", "head": "", "takes_pre_logits": False, "layout": [1, 0]}),
    ],
)
def test_a_route_that_does_not_fit_its_network_is_refused_where_the_model_is_read(copy, place, value):
    change_recipe(copy, "cut.route.kind", "forward_features")
    change_recipe(copy, "cut.route.takes_pre_logits", False)
    change_recipe(copy, place, value)
    with pytest.raises(DataError, match=r"model\.json.*does not fit its network"):
        load_saved_model(copy)


def test_looking_at_an_image_leaves_the_model_and_the_random_numbers_as_they_were(copy):
    state = torch.random.get_rng_state()
    model = load_saved_model(copy)
    assert torch.equal(torch.random.get_rng_state(), state)
    images = torch.linspace(-1, 1, 3 * 160 * 160).reshape(1, 3, 160, 160)
    with torch.no_grad():
        assert torch.equal(model.logits(images), model.classifier(images))
    assert not model.classifier.training


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("crop_pct", 1e-300),
        ("crop_pct", float("nan")),
        ("input_size", [3, 10**9, 8]),
        ("input_size", 10**400),
        ("mean", float("nan")),
        ("mean", 10**400),
        ("std", float("inf")),
        ("std", 1e-300),
    ],
)
def test_a_header_with_a_value_out_of_range_is_refused_with_the_model_and_the_field(field, value):
    with pytest.raises(UsageError, match=rf"(?s)(?=.*{field}).*model m") as refused:
        resolve_preprocessing({}, {"input_size": 8, field: value}, model="m")
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    "changes", [{"height_pixels": 16384, "crop_fraction": 0.01}, {"mean": (0.0,) * 3, "std": (-1.0,) * 3}, {"width_pixels": 1}]
)
def test_values_at_the_ends_of_their_ranges_are_allowed(changes):
    Preprocessing(**{"height_pixels": 8, "width_pixels": 8, **changes})


TOO_MUCH = {"deep": "[" * 100_000 + "]" * 100_000, "long": "1" * 6000}


@pytest.fixture
def run(crossgraft, workspace):
    """A run directory of a fine-tuning, as somebody passes it on."""
    assert crossgraft("check", "images", "--out", "run").code == 0
    folder = workspace / "run"
    record = tuning_record()
    (folder / "report.json").write_text(record.model_dump_json())
    return folder


@pytest.mark.parametrize("content", [*TOO_MUCH.values(), *(f'{{"kind": {text}}}' for text in TOO_MUCH.values())])
@pytest.mark.parametrize("name", ["report.json", "run.json"])
def test_json_that_cannot_be_parsed_is_a_damaged_file_to_report(crossgraft, run, name, content):
    (run / name).write_text(content)
    outcome = crossgraft("report", run)
    assert (outcome.code, outcome.out) == (3, "")
    assert f"{name} is damaged" in outcome.err
    assert "Internal error" not in outcome.err and len(outcome.err) < 600


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("confusion.counts.0.0", -1),
        ("confusion.counts.0", [1]),
        ("confusion.counts", []),
        ("confusion.class_names", []),
        ("roc.0.false_positive_rates", []),
        ("roc.0.true_positive_rates.0", 1e300),
        ("roc.0.false_positive_rates.0", "NaN"),
        ("dataset.class_counts", [10**30, 1]),
        ("dataset.class_counts.0", 1e30),
        ("dataset.class_names", []),
        ("dataset.num_images", -1),
        ("splits.0.class_counts.0", 10**30),
        ("splits.0.class_counts", [1]),
    ],
)
def test_a_report_that_cannot_be_drawn_is_refused_by_the_field(run, place, value):
    document = json.loads((run / "report.json").read_text())
    *before, last = [int(key) if key.isdigit() else key for key in place.split(".")]
    inner = document
    for key in before:
        inner = inner[key]
    inner[last] = value
    (run / "report.json").write_text(json.dumps(document))
    field = place.rstrip(".0123456789").rpartition(".")[2]
    with pytest.raises(DataError, match=rf"report\.json is damaged: .*({field}|{before[0] if before else field})"):
        read_run(run)


def test_the_counts_of_a_check_fit_its_classes_and_splits(crossgraft, workspace):
    assert crossgraft("check", "images", "--holdout", "0.5", "--out", "run").code == 0
    file = workspace / "run" / "report.json"
    document = json.loads(file.read_text())
    for counts in ([], [[1, 2]] * 5, [[1]] * len(document["split_names"]), [[10**30, 1]] * len(document["split_names"])):
        file.write_text(json.dumps({**document, "split_counts": counts}))
        outcome = crossgraft("report", "run")
        assert outcome.code == 3 and "split_counts" in outcome.err


@pytest.mark.parametrize("text", TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_cached_file_with_such_a_header_is_computed_anew(tmp_path, text):
    path = tmp_path / "features.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text.encode())
    assert map_tensors(path) is None


@pytest.mark.parametrize("shape", [[10**30], [-4], [2, 10**18], ["a"], 7])
def test_a_cached_file_with_an_impossible_shape_is_computed_anew(tmp_path, shape):
    path = tmp_path / "features.safetensors"
    with path.open("wb") as file:
        write_tensors(file, {"x": (2, 2)}, [np.zeros((2, 2), np.float32)], {})
    assert map_tensors(path) is not None
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["x"]["shape"] = shape
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    assert map_tensors(path) is None


@pytest.mark.parametrize(
    "text", [*TOO_MUCH.values(), "[]", "{}", '{"format_version": 1, "configuration": 1, "position": {}}'],
    ids=[*TOO_MUCH, "list", "empty", "no mapping"],
)  # fmt: skip
def test_a_checkpoint_with_such_a_header_is_damaged(tmp_path, text):
    from safetensors.torch import save_file

    tensors = {"x": torch.zeros(2)}
    write_checkpoint(tmp_path, Checkpoint({"a": 1}, {}, tensors))
    assert read_checkpoint(tmp_path, {"a": 1}) is not None
    save_file(tensors, tmp_path / FILE_NAME, metadata={"state": text, "sha256": _digest(text, tensors)})
    with pytest.raises(RunDirectoryError, match="is damaged"):
        read_checkpoint(tmp_path, {"a": 1})


@pytest.mark.parametrize("text", TOO_MUCH.values(), ids=TOO_MUCH)
def test_files_of_peft_and_of_datasets_with_such_json_are_damaged(tmp_path, text):
    path = tmp_path / CONFIG_FILE
    path.write_text(text)
    with pytest.raises(DataError, match="is damaged"):
        _check_config(text.encode(), path)
    with pytest.raises(DataError, match="is damaged"):
        read_description(path, SavedState)
