"""One model is named, and comes with its weights or with random ones."""

from dataclasses import replace

import pytest

from crossgraft.errors import UsageError
from crossgraft.models import ModelSpec
from crossgraft.progress import Reporter
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning import fold_networks as starting_model
from crossgraft.tune.planning.fold_networks import find_model, load_start
from crossgraft.tune.sim import init_SIM

OPTIONS = TuneOptions(model="test_resnet", image_size=32)


def test_exactly_one_is_named():
    assert find_model("test_resnet", None).name == "test_resnet"
    spec = ModelSpec("mine", "test_resnet", weights="random")
    assert find_model(spec, None).name == "mine"
    with pytest.raises(UsageError, match=r"names 2 models \(resnet18, resnet34\); fine-tune one at a time"):
        find_model("resnet18,resnet34", None)


def test_one_entry_of_a_zoo_file_is_one_model_whatever_commas_are_in_its_name(tmp_path):
    (tmp_path / "zoo.yaml").write_text("- {name: 'net, large', source: resnet18, weights: random}\n- resnet34\n")
    assert find_model(f"{tmp_path}/zoo.yaml:net, large", None).name == "net, large"


def test_from_scratch_needs_no_weights_and_follows_the_seed():
    spec = find_model("test_resnet", None)
    starts = [load_start(spec, replace(OPTIONS, seed=seed), scratch=True, reporter=Reporter(quiet=True)) for seed in (0, 0, 1)]
    prints = [start.weights_fingerprint for start in starts]
    assert prints[0] == prints[1] != prints[2]
    assert starts[0].name == "test_resnet"
    assert starts[0].preprocessing.height_pixels == 32


def test_a_network_that_comes_with_reconstructors_is_refused_before_it_is_trained(monkeypatch):
    spec, right = find_model("test_resnet", None), starting_model.load_as_asked

    def decorated(*given, **options):
        backbone = right(*given, **options)
        init_SIM(backbone.module, example=backbone.probe_image(), blocks="layer1.0")
        return backbone

    monkeypatch.setattr(starting_model, "load_as_asked", decorated)
    with pytest.raises(UsageError, match="The network test_resnet carries reconstructors of rho_sim"):
        load_start(spec, OPTIONS, scratch=True, reporter=Reporter(quiet=True))
