"""Every form of a name goes all the way: ranked, tuned in every way, compared, exported and read back; without network."""

import json

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save_file

from crossgraft.geometry import filters
from support.few_pages import leave_out_pages
from support.text_towers import TRUNK, write_open_clip
from support.transformers_folders import write_folder

QUIET = ("--workers", "1", "--quiet")
METHODS = ("full", "linear", "lora:2", "adaptformer:4")


def write_timm(folder):
    """A vision transformer as timm and its hub keep it."""
    folder.mkdir(parents=True)
    said = {"architecture": "test_vit", "num_classes": 7, "pretrained_cfg": {"input_size": [3, 160, 160], "mean": [0.5] * 3}}
    (folder / "config.json").write_text(json.dumps(said))
    save_file(timm.create_model("test_vit", num_classes=7).state_dict(), folder / "model.safetensors")


FORMS = {
    "local-dir:weights/chest": lambda here: write_timm(here / "weights" / "chest"),
    "hf-hub:ward/lesions": lambda here: write_timm(here / "weights" / "ward--lesions"),
    "open_clip:ward/clip": lambda here: (
        (here / "weights").mkdir(exist_ok=True),
        write_open_clip(here / "weights" / "ward--clip", vision=TRUNK, custom=True),
    ),
    "transformers:ward/chest": lambda here: (
        (here / "weights").mkdir(exist_ok=True),
        write_folder(here / "weights" / "ward--chest", "SiglipVisionModel"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_a_form_goes_all_the_way(name, workspace, crossgraft, monkeypatch):
    leave_out_pages(monkeypatch, of_comparisons=True)  # nobody reads them
    monkeypatch.setattr(
        filters, "_BEST_STARTS", 0
    )  # 5 s of least squares for the filters of a transformer; its own tests have it
    FORMS[name](workspace)

    def run(*arguments):
        outcome = crossgraft(*arguments)
        assert outcome.code == 0, outcome.err

    here = ("--weights-dir", "weights", *(() if name.startswith("transformers") else ("--image-size", "64")))
    run("rank", "images", "--models", name, *here, "--scores", "logme", *QUIET, "--out", "ranked")
    tune = ("tune", "images", "--model", name, *here, "--epochs", "1", "--device", "cpu", *QUIET)
    for method in METHODS:
        run(*tune, "--method", method, "--out", f"tuned-{method[:4]}")
    run(*tune, "--regularizer", "repsim,rho_sim:0.5", "--out", "held")
    run("compare", "tuned-full", name, *here, "--data", "images", *QUIET, "--out", "compared")
    run("export", "tuned-lora", "--format", "torch", "--quiet")
    run("predict", "tuned-lora", "images", *QUIET, "--out", "predicted")
    file = workspace / "tuned-lora" / "export" / "torch" / "model.pt2"
    inside = {"description.json": ""}
    module = torch.export.load(file, extra_files=inside).module()
    prepared = json.loads(inside["description.json"])["preprocessing"]
    size = (prepared["height_pixels"], prepared["width_pixels"])
    _, probabilities = module(torch.zeros(2, 3, *size))
    np.testing.assert_allclose(probabilities.detach().sum(dim=1), 1, atol=1e-5)
