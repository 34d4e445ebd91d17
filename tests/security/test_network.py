"""No command goes to the network unless it is asked to, whatever it is given."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save_file

from crossgraft.options.command import COMMANDS
from support.text_towers import TRUNK, write_open_clip
from support.tiny import make_images
from support.transformers_folders import write_folder

TESTS = Path(__file__).parents[1]
SUPPORT = TESTS / "support" / "no_network"
SRC = Path(__file__).parents[2] / "src"
RUN_ALL = """
import json, sys
from types import SimpleNamespace
from crossgraft.cli.main import main
from support.few_figures import leave_out_figures_for_good
from support.few_looks import leave_out_looks_for_good
from support.here import Here
from support.short_demo import shorten

leave_out_figures_for_good()
leave_out_looks_for_good()
shorten(SimpleNamespace(setattr=setattr), Here())
print([main(arguments) for arguments in json.loads(sys.argv[1])])
"""
QUIET = ("--quiet", "--workers", "1")
TUNED = ("--model", "tiny_models:tiny", "--epochs", "1", "--device", "cpu")
OWN = ("--code", "tiny_models.py")
TINY_TASKS = ("--sampler", "n_way_k_shot:ways=2,shots=2,queries=2", "--episodes", "2")
STUDENT = ("--model", "tiny_models:tiny", "--steps", "2", "--batch-size", "4", "--device", "cpu")
NOT_HERE = (
    *("transformers:ward/rays", "hf-hub:ward/lesions", "hf-hub:microsoft/rad-dino", "open_clip:ward/clip"),
    *("open_clip:ViT-B-16/openai", "local-dir:nowhere", "uni2", "rad-dino", "biomedclip", "dinov3-small"),
)
SMALL_AUDIT = ("--confounder", "tag:0.4", "--folds", "2", "--shares", "0,0.5,1", "--device", "cpu")


def run_offline(folder, *python):
    log = folder / "network.log"
    path = os.pathsep.join([str(SUPPORT), str(SRC), str(folder), str(TESTS)])
    environment = {**os.environ, "PYTHONPATH": path, "NETWORK_LOG": str(log), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *python], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done, log.read_text() if log.exists() else ""


def test_a_process_that_goes_out_is_seen(tmp_path):
    done, log = run_offline(tmp_path, "-c", "import socket; socket.create_connection(('127.0.0.1', 9))")
    assert done.returncode == 97
    assert "127.0.0.1" in log


def fill_of_timm(folder):
    """A network as timm keeps it, whose description names other places."""
    folder.mkdir()
    elsewhere = {"url": "http://127.0.0.1:9/x.pth", "hf_hub_id": "timm/resnet18.a1_in1k", "input_size": [3, 32, 32]}
    (folder / "config.json").write_text(
        json.dumps({"architecture": "test_resnet", "num_classes": 7, "pretrained_cfg": elsewhere})
    )
    save_file(timm.create_model("test_resnet", num_classes=7).state_dict(), folder / "model.safetensors")


@pytest.mark.slow
def test_every_command_stays_at_home(workspace):
    """Also with models whose weights are elsewhere, and with headers that ask for them."""
    state = {"conv1.0.weight": torch.zeros(1)}
    for name, kwargs in {
        "url": {"pretrained": True, "pretrained_cfg": {"url": "http://127.0.0.1:9/x.pth"}},
        "hub": {"pretrained": True, "pretrained_cfg": {"hf_hub_id": "timm/resnet18.a1_in1k"}},
    }.items():
        metadata = {"architecture": "resnet18", "kwargs": json.dumps(kwargs)}
        save_file(state, workspace / f"{name}.safetensors", metadata=metadata)
    (workspace / "study.yaml").write_text("command: check\ngrid: {data: [images]}\n")
    make_images(workspace / "many", {"benign": 30, "malignant": 30})
    write_folder(workspace / "chest", "Dinov2Model")
    (workspace / "chest" / "modeling_dinov2.py").write_text("import socket; socket.create_connection(('127.0.0.1', 9))")
    fill_of_timm(workspace / "lesions")
    write_open_clip(workspace / "clip", vision=TRUNK, custom=True)
    commands = {
        0: [
            *(
                ("rank", "images", "--models", name, "--scores", "logme", *QUIET, "--out", f"o{place}")
                for place, name in enumerate(("local-dir:lesions", "open_clip:clip"))
            ),
            ("check", "images", *QUIET, "--out", "c"),
            ("rank", "images", "--models", "zoo.yaml", *OWN, "--scores", "logme,leep", *QUIET, "--out", "r"),
            ("rank", "images", "--models", "transformers:chest", "--scores", "logme", *QUIET, "--out", "x"),
            ("rank", "--published", "thesis", "--out", "p"),
            ("tune", "images", *TUNED, *QUIET, "--out", "t"),
            ("tune", "images", *TUNED, "--compare", "full,linear", *QUIET, "--out", "f"),
            ("predict", "t", "images", *OWN, *QUIET, "--out", "q"),
            *(("export", "t", "--format", format, *OWN, "--quiet") for format in ("safetensors", "torch")),
            ("split", "images", "--out", "split.json"),
            ("tune", "images", *TUNED, "--method", "linear", *QUIET, "--out", "l"),
            ("interpolate", "t", "images", "--linear", "l", "--alphas", "0,1", *OWN, *QUIET, "--out", "i"),
            ("fewshot", "images", *TUNED[:2], *OWN, "--heads", "ncc", *TINY_TASKS, *QUIET, "--out", "e"),
            ("distil", "t", "l", "--data", "images,images", "--names", "a,b", *STUDENT, *OWN, *QUIET, "--out", "s"),
            ("compare", "t", "l", "--data", "images", *OWN, *QUIET, "--out", "n"),
            ("audit", "t", "--data", "many", "--confounder", "tag:0.4", *OWN, *QUIET, "--out", "a"),
            ("audit", "tiny_models:tiny", "--data", "images", *SMALL_AUDIT, *OWN, *QUIET, "--out", "m"),
            ("edit", "images", "w", "--with", "low_pass:0.1", "--quiet"),
            ("select", "images", "--models", "zoo.yaml", *OWN, "--budget", "100%", "--epochs", "1", *QUIET, "--out", "h"),
            ("report", "r"),
            *(("list", kind) for kind in ("scores", "models", "methods", "results")),
            ("demo", "--toy", "--fast", "--quiet", "--out", "d"),
            ("completion", "bash"),
            ("bench", "study.yaml", *QUIET, "--out", "b"),
        ],
        4: [
            ("rank", "images", "--models", "resnet18", *QUIET),
            ("rank", "images", "--models", "torchvision:resnet18", *QUIET),
            *(("rank", "images", "--models", name, *QUIET) for name in NOT_HERE),
            ("tune", "images", "--model", "hf-hub:timm/resnet18.a1_in1k", *QUIET),
            ("tune", "images", "--model", "resnet18", *QUIET),
            ("audit", "resnet18", "--data", "images", *QUIET),
            ("compare", "resnet18", "t", "--data", "images", *QUIET),
        ],
        2: [("rank", "images", "--models", "url.safetensors", *QUIET), ("tune", "images", "--model", "hub.safetensors", *QUIET)],
    }
    expected = [code for code, listed in commands.items() for _ in listed]
    assert {command[0] for listed in commands.values() for command in listed} == set(COMMANDS.names())
    done, log = run_offline(workspace, "-c", RUN_ALL, json.dumps([c for listed in commands.values() for c in listed]))
    assert log == ""
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == expected, done.stderr
