"""Where an export goes, what is refused, and that nothing is left behind when it fails."""

import errno
import os
import sys
import types

import pytest
import torch

from crossgraft import export_model
from crossgraft.errors import (
    ExportError,
    MissingError,
    MissingExtraError,
    RunDirectoryError,
    StorageError,
    UnknownNameError,
    UsageError,
)
from crossgraft.export import source_model as checking
from crossgraft.export.record import ExportRecord
from crossgraft.export.source_model import Outputs, check_agreement, example_images, prepare_source
from crossgraft.tune.saving.save_model import save_model
from crossgraft.tune.sim import RhoSim
from crossgraft.types import Preprocessing
from support.exported import library_classifier, own_classifier, saved


@pytest.fixture
def model():
    return saved(own_classifier())


@pytest.fixture
def run(tmp_path):
    """A run directory with a model."""
    model = saved(library_classifier("test_resnet"))
    save_model(tmp_path / "run" / "model", model.classifier, model.facts)
    return tmp_path / "run"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_an_export_lies_in_its_run_whole_and_says_what_it_is(run):
    exported = export_model(run)
    assert exported.out == run / "export" / "safetensors"
    assert names(run / "export") == ["safetensors"]
    assert names(exported.out) == ["README.md", "config.json", "description.json", "export.json", "model.safetensors"]
    assert ExportRecord.model_validate_json((exported.out / "export.json").read_bytes()) == exported.record
    assert ExportRecord.model_validate_json(exported.to_json()) == exported.record
    frame = exported.to_frame()
    sizes = {path.name: path.stat().st_size for path in exported.out.iterdir() if path.name != "export.json"}
    assert dict(zip(frame["file"], frame["bytes"], strict=True)) == sizes
    assert "compared with the model on 8 generated images" in exported._repr_html_()
    assert exported.record.agreement.largest_logit_difference <= 1e-5


def test_the_folder_model_can_be_named_too(run):
    assert export_model(run / "model").out == run / "export" / "safetensors"


def test_an_export_is_replaced_only_when_asked_and_other_files_never(run, tmp_path):
    first = export_model(run)
    (first.out / "more.txt").write_text("mine")
    with pytest.raises(RunDirectoryError, match=r"holds an export already\. Use --overwrite"):
        export_model(run)
    with pytest.raises(RunDirectoryError, match=r"holds more\.txt beside an export"):
        export_model(run, overwrite=True)
    assert "more.txt" in names(first.out)
    (first.out / "more.txt").rename(tmp_path / "more.txt")
    assert names(export_model(run, overwrite=True).out) == names(first.out)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("precious")
    with pytest.raises(RunDirectoryError, match="not an export"):
        export_model(run, out=tmp_path / "thesis", overwrite=True)
    assert names(tmp_path / "thesis") == ["chapter1.tex"]


def test_the_model_and_the_global_random_state_stay_as_they_were(model, tmp_path):
    before, state = ({name: tensor.clone() for name, tensor in model.classifier.state_dict().items()}, torch.get_rng_state())
    gradients = [parameter.requires_grad for parameter in model.classifier.parameters()]
    export_model(model, out=tmp_path / "x")
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.classifier.state_dict().items())
    assert [parameter.requires_grad for parameter in model.classifier.parameters()] == gradients


def test_a_network_with_reconstructors_is_not_exported(model, tmp_path):
    network = model.classifier
    look = network.preprocessing
    example = torch.zeros(2, look.channels, look.height_pixels, look.width_pixels)
    sim = RhoSim(network, blocks=network.blocks[0], example=example)
    with pytest.raises(UsageError, match="come closer to the training images"):
        export_model(model, out=tmp_path / "export")
    assert not (tmp_path / "export").exists()
    sim.detach()
    export_model(model, out=tmp_path / "export")


def test_a_loaded_model_needs_a_place(model):
    with pytest.raises(UsageError, match="out="):
        export_model(model)


def test_an_unknown_format_gives_the_nearest(model, tmp_path):
    with pytest.raises(UnknownNameError, match=r"Unknown format: onx\. Did you mean onnx\?"):
        export_model(model, format="onx", out=tmp_path / "x")


@pytest.mark.parametrize("package", ["onnx", "onnxscript", "onnxruntime"])
def test_a_missing_package_is_named_before_any_work(package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"needs the package {package}, .*crossgraft\[export\]"):
        export_model(tmp_path / "no run", format="onnx", out=tmp_path / "x")


def test_a_run_without_a_model_is_refused(tmp_path):
    with pytest.raises(RunDirectoryError, match="does not exist"):
        export_model(tmp_path / "nowhere")


def test_other_outputs_are_an_error_and_nothing_is_left(run, monkeypatch):
    from crossgraft.export import layouts

    load = layouts._load

    def other_network(folder):
        network = load(folder)
        with torch.no_grad():
            network.fc.bias[0] += 1e-3
        return network

    monkeypatch.setattr(layouts, "_load", other_network)
    with pytest.raises(ExportError, match=r"gives other logits than the model of the run: they differ by 0\.001"):
        export_model(run)
    assert names(run) == ["model"]


def test_a_failed_replacement_keeps_the_export_before(run, monkeypatch):
    first = export_model(run)
    before = {path.name: path.read_bytes() for path in first.out.iterdir()}
    monkeypatch.setattr(checking, "TOLERANCE", -1.0)
    with pytest.raises(ExportError):
        export_model(run, overwrite=True)
    assert {path.name: path.read_bytes() for path in first.out.iterdir()} == before
    assert names(run / "export") == ["safetensors"]


def test_a_full_disk_leaves_nothing(run, monkeypatch):
    from crossgraft.storage import atomic

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic, "os", types.SimpleNamespace(**{**vars(os), "fsync": full}))
    with pytest.raises(StorageError, match="No space left on device"):
        export_model(run)
    assert names(run) == ["model"]


def perturbed(source, by):
    answer = checking.logits_of_network(source.classifier, source.classifier.preprocessing)
    return lambda images: Outputs(answer(images).logits + by, None)


def test_the_check_allows_a_share_of_the_largest_logit_and_no_nan(model):
    source = prepare_source(model)
    allowed = check_agreement(source, perturbed(source, 0.0), checked_with="x").allowed_logit_difference
    assert check_agreement(source, perturbed(source, 0.9 * allowed), checked_with="x").largest_logit_difference > 0
    for by in (1.1 * allowed, -1.1 * allowed, float("nan")):
        with pytest.raises(ExportError, match="other logits"):
            check_agreement(source, perturbed(source, by), checked_with="x")
    with pytest.raises(ExportError, match="other logits"):
        check_agreement(source, lambda images: Outputs(images.new_zeros((len(images), 9)).numpy(), None), checked_with="x")


def test_probabilities_are_checked_as_well(model):
    source = prepare_source(model)
    right = checking.logits_of_network(source.classifier, source.classifier.preprocessing)

    def uncalibrated(images):
        logits = right(images).logits
        return Outputs(logits, torch.softmax(torch.from_numpy(logits), 1).numpy())

    with pytest.raises(ExportError, match="other probabilities"):
        check_agreement(source, uncalibrated, checked_with="x")


def test_example_images_are_always_the_same_and_in_range():
    images = example_images(Preprocessing(20, 24), 8)
    assert torch.equal(images, example_images(Preprocessing(20, 24), 8))
    assert images.shape == (8, 3, 20, 24)
    assert 0 <= images.min() < images.max() <= 1
    assert len({float(image.mean()) for image in images}) == 8


class FakeHub:
    """Stands for the client of the hub; remembers what it was asked for."""

    def __init__(self, token="secret", error=None):
        self.token, self.error, self.calls = token, error, []

    def get_token(self):
        return self.token

    def HfApi(self, **_):  # noqa: N802 - the name of the client
        return self

    def create_repo(self, repo_id, **options):
        self.calls.append(("create", repo_id, options))
        return f"https://hub/{repo_id}"

    def upload_folder(self, *, repo_id, folder_path, **_):
        if self.error is not None:
            raise self.error
        self.calls.append(("upload", repo_id, names(folder_path)))


@pytest.fixture
def hub(monkeypatch):
    fake = FakeHub()
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    return fake


def test_a_push_is_private_and_sends_the_whole_folder(model, hub, tmp_path):
    exported = export_model(model, out=tmp_path / "x", push_to="me/net")
    files = ["README.md", "description.json", "export.json", "model.safetensors"]
    assert hub.calls == [("create", "me/net", {"private": True, "exist_ok": True}), ("upload", "me/net", files)]
    assert exported.record.pushed_to == "https://hub/me/net"
    assert ExportRecord.model_validate_json((tmp_path / "x" / "export.json").read_bytes()) == exported.record


def test_nothing_is_sent_without_being_asked(model, hub, tmp_path):
    assert export_model(model, out=tmp_path / "x").record.pushed_to is None
    assert hub.calls == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"push_to": "me/net", "format": "torch"}, UsageError, "--push-to sends the layout of the hub"),
        ({"push_to": "net"}, UsageError, "OWNER/NAME"),
    ],
)
def test_a_push_that_makes_no_sense_is_refused_before_any_work(arguments, error, message, model, hub, tmp_path):
    with pytest.raises(error, match=message):
        export_model(model, out=tmp_path / "x", **arguments)
    assert names(tmp_path) == []


def test_a_push_without_a_token_is_refused_before_any_work(model, hub, tmp_path):
    hub.token = None
    with pytest.raises(MissingError, match="hf auth login"):
        export_model(model, out=tmp_path / "x", push_to="me/net")
    assert names(tmp_path) == []


def test_a_push_that_fails_keeps_the_export(model, hub, tmp_path):
    hub.error = ConnectionError("no route to host\nlong story")
    with pytest.raises(ExportError, match=r"could not be sent to me/net: no route to host\. It is complete in"):
        export_model(model, out=tmp_path / "x", push_to="me/net")
    assert "model.safetensors" in names(tmp_path / "x")
