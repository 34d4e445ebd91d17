"""A name leads to the file that is called like it, and a folder to all of its checkpoints; nothing is guessed among several."""

import io
import shutil

import pytest
import torch

from crossgraft.errors import MissingWeightsError, UnknownNameError, UsageError
from crossgraft.models import list_available_models, load_backbone, read_zoo
from crossgraft.models.resolve import checkpoint_stem, resolve_spec, source_in_name
from crossgraft.models.sources.libraries import library_of
from crossgraft.progress import Reporter
from crossgraft.tune.planning.fold_networks import find_model

from .conftest import TINY, save_checkpoint, tiny_timm


@pytest.fixture(autouse=True)
def empty_caches(tmp_path, monkeypatch):
    """What happens to be cached on this machine decides nothing here."""
    monkeypatch.setattr("crossgraft.models.sources.timm_models.try_to_load_from_cache", lambda *_: None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))


@pytest.fixture
def reporter():
    return Reporter(io.StringIO())


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "my, weights"
    made.mkdir()
    return made


@pytest.fixture
def put(folder):
    """`put(name, **header)` writes a checkpoint of the tiny network."""
    return lambda name, **header: save_checkpoint(folder / name, tiny_timm(num_classes=2).state_dict(), **header)


def test_a_name_takes_the_only_file_that_is_called_like_it(folder, put, reporter):
    path = put(f"{TINY}.birds.safetensors", architecture=TINY, licence="MIT", mean=[0.1, 0.2, 0.3])
    put("other.safetensors", architecture=TINY)
    (spec,) = read_zoo(TINY, weights_dir=folder, reporter=reporter)
    assert (spec.name, spec.source, spec.weights, spec.licence) == (TINY, TINY, str(path.resolve()), "MIT")
    assert spec.preprocessing == {"mean": [0.1, 0.2, 0.3]} and resolve_spec(spec, weights_dir=folder) == spec
    assert f"{TINY}: the weights are those of {TINY}.birds.safetensors" in reporter.stream.getvalue()
    backbone = load_backbone(TINY, weights_dir=folder)
    assert torch.equal(backbone.module.fc.weight, tiny_timm(num_classes=2).fc.weight) and backbone.source == "checkpoint"
    assert find_model(TINY, folder) == spec


def test_a_file_without_a_header_is_of_the_architecture_in_its_name(folder, put):
    path = put(f"{TINY}.birds.safetensors")
    (spec,) = read_zoo(str(path))
    assert (spec.name, spec.source, load_backbone(spec).module.fc.out_features) == (f"{TINY}.birds", TINY, 2)
    assert read_zoo(f"{TINY}.birds", weights_dir=folder)[0].weights == str(path.resolve())  # a tag of one's own
    with pytest.raises(UnknownNameError, match="Unknown pretrained model"):
        read_zoo(f"{TINY}.bird", weights_dir=folder)


def test_published_weights_of_another_tag_keep_what_the_library_says_of_them(folder, put, reporter):
    put("resnet18.a2_in1k.safetensors")
    (spec,) = read_zoo("resnet18", weights_dir=folder, reporter=reporter)
    assert (spec.name, spec.source, spec.weights) == ("resnet18", "resnet18.a2_in1k", "pretrained")
    assert "resnet18: the weights are those of resnet18.a2_in1k" in reporter.stream.getvalue()
    (folder / "resnet50-0676ba61.pth").touch()  # torchvision's older weights
    (spec,) = read_zoo("torchvision:resnet50", weights_dir=folder)
    assert (spec.source, spec.weights) == ("torchvision:resnet50.IMAGENET1K_V1", "pretrained")
    assert read_zoo("resnet50", weights_dir=folder)[0].source == "resnet50"  # timm has other weights of that name


def test_own_weights_win_and_a_stated_choice_is_kept(folder, put, tmp_path):
    put(f"{TINY}.birds.safetensors")
    put(f"{TINY}.safetensors")
    assert read_zoo(TINY, weights_dir=folder)[0].weights == "pretrained"
    (folder / f"{TINY}.safetensors").unlink()
    (tmp_path / "zoo.yaml").write_text(f"- {{name: a, source: {TINY}, weights: pretrained}}")
    assert read_zoo(tmp_path / "zoo.yaml", weights_dir=folder)[0].weights == "pretrained"
    assert read_zoo(TINY)[0].weights == "pretrained"


def test_among_several_files_none_is_chosen(folder, put):
    for name in ("birds", "insects"):
        put(f"{TINY}.{name}.safetensors")
    put(f"{TINY}.foreign.safetensors", architecture="resnet18")
    put(f"{TINY}_wide.safetensors")
    (spec,) = read_zoo(TINY, weights_dir=folder)
    with pytest.raises(MissingWeightsError) as caught:
        load_backbone(spec, weights_dir=folder)
    assert str(caught.value).startswith(
        f"{TINY} could mean 2 files of {folder}: {TINY}.birds.safetensors, {TINY}.insects.safetensors. Name one of them."
    )


def test_without_a_file_those_of_similar_names_are_said(folder, put):
    put(f"{TINY}s.safetensors")
    with pytest.raises(MissingWeightsError, match=rf"has files of similar names: {TINY}s\.safetensors\."):
        load_backbone(TINY, weights_dir=folder)
    (folder / f"{TINY}s.safetensors").unlink()
    with pytest.raises(MissingWeightsError, match="--allow-download, which stores it in"):
        load_backbone(TINY, weights_dir=folder)


def test_a_folder_is_a_zoo_of_its_checkpoints(folder, put, reporter):
    put("own.safetensors", architecture=TINY)
    put(f"{TINY}.birds.safetensors")
    torch.save(tiny_timm().state_dict(), folder / f"{TINY}.pth.tar")
    put("foreign.safetensors", architecture="nobody_knows")
    put("mine.safetensors")
    put("yours.safetensors")
    (folder / "broken.safetensors").write_bytes(b"no")
    (folder / "notes.txt").touch()
    (folder / "deeper.pth").mkdir()
    for models in (folder, str(folder), [str(folder)]):
        specs = read_zoo(models, reporter=reporter)
        assert {spec.name: spec.source for spec in specs} == {"own": TINY, f"{TINY}.birds": TINY, TINY: TINY}
    said = reporter.stream.getvalue().splitlines()[0]
    assert "foreign.safetensors (the architecture nobody_knows is not in timm)" in said
    assert "mine.safetensors, yours.safetensors (neither header nor name says a known architecture)" in said
    assert "broken.safetensors (cannot be read as a checkpoint" in said
    assert "notes.txt" not in said and "deeper" not in said
    assert load_backbone(specs[-1]).name == TINY
    with pytest.raises(UsageError, match="--model names 3 models"):
        find_model(str(folder), None)


def test_files_of_one_name_are_told_apart_by_their_extension(folder, put):
    put(f"{TINY}.safetensors")
    torch.save(tiny_timm().state_dict(), folder / f"{TINY}.pth")
    assert [spec.name for spec in read_zoo(folder)] == [f"{TINY}.pth", f"{TINY}.safetensors"]


def test_a_folder_without_models_is_an_error_that_says_what_is_there(folder, put, tmp_path, monkeypatch):
    with pytest.raises(MissingWeightsError, match=r"no checkpoint of a known architecture\. Their names end in \.safetensors"):
        read_zoo(folder)
    put("mine.safetensors")
    with pytest.raises(MissingWeightsError, match=r"It has mine\.safetensors \(neither header nor name"):
        read_zoo(folder)
    shutil.copytree(folder, tmp_path / "resnet18")
    monkeypatch.chdir(tmp_path)
    assert read_zoo("resnet18")[0].source == "resnet18"  # a folder that is called like a network is none


def test_the_list_of_models_knows_the_same_files(folder, put):
    put(f"{TINY}.birds.safetensors")
    put("mine.safetensors")
    rows = {row.name: row for row in list_available_models(folder)}
    assert rows[f"{TINY}.birds.safetensors"].available and not rows["mine.safetensors"].available
    assert rows["mine.safetensors"].where == "neither header nor name says a known architecture: needs a zoo file"


@pytest.mark.parametrize(
    ("name", "stem", "source"),
    [
        ("resnet18.PTH", "resnet18", "resnet18"),
        ("resnet18.a1_in1k.bin", "resnet18.a1_in1k", "resnet18.a1_in1k"),
        ("resnet18-f37072fd.pth", "resnet18-f37072fd", "torchvision:resnet18.IMAGENET1K_V1"),
        ("resnet50.IMAGENET1K_V2.safetensors", "resnet50.IMAGENET1K_V2", "torchvision:resnet50.IMAGENET1K_V2"),
        ("mobilenet_v2.birds.ckpt", "mobilenet_v2.birds", "torchvision:mobilenet_v2"),
        ("resnet18_birds.pth.tar", "resnet18_birds", None),
        (".pth", "", None),
    ],
)
def test_names(tmp_path, name, stem, source):
    assert (checkpoint_stem(tmp_path / name), source_in_name(tmp_path / name)) == (stem, source)


def test_nothing_is_said_without_a_reporter(folder, put, capsys):
    put(f"{TINY}.birds.safetensors")
    put("mine.safetensors")
    read_zoo(folder)
    read_zoo(TINY, weights_dir=folder, reporter=Reporter(quiet=True))
    assert capsys.readouterr() == ("", "")


def test_a_run_that_is_not_there_is_no_repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "first").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"There is no runs/second\. Folders in runs: first\."):
        library_of("runs/second").check("runs/second")


def test_one_checkpoint_of_a_folder_is_called_by_both(folder, put):
    put(f"{TINY}.first.safetensors")
    path = put(f"{TINY}.second.safetensors")
    (spec,) = read_zoo([f"{folder}:{TINY}.second"])
    assert (spec.name, spec.weights) == (f"{TINY}.second", str(path.resolve()))
    with pytest.raises(UnknownNameError, match=rf"^Unknown model in the folder {folder.name}: {TINY}.secnd. Did you mean"):
        read_zoo([f"{folder}:{TINY}.secnd"])
