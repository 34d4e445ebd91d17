"""``crossgraft export`` from a run of the command line to files that somebody else loads."""

import json
import os
import re
from pathlib import Path

import pytest

TUNE = ("tune", "images", "--model", "tiny_models:tiny", "--epochs", "1", "--workers", "1", "--quiet", "--device", "cpu")
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "hand-a-model-on.md"

CODE = ("--code", "tiny_models.py")


@pytest.fixture
def tuned(workspace, run_once):
    run_once(*TUNE, out="tuned")
    return workspace / "tuned"


def test_an_export_is_text_json_or_a_refusal(tuned, crossgraft):
    outcome = crossgraft("export", "tuned", *CODE)
    assert outcome.code == 0, outcome.err
    assert max(map(len, outcome.out.splitlines())) <= 100
    assert "8 generated images, in batches of 1, 2 and 5: logits differ by at most" in " ".join(outcome.out.split())
    assert "timm and torchvision cannot load it" in outcome.out
    assert outcome.out.splitlines()[-1] == "Export: tuned/export/safetensors"
    again = crossgraft("export", "tuned", *CODE)
    assert (again.code, "holds an export already" in again.err) == (2, True)
    replaced = crossgraft("export", "tuned/model", *CODE, "--overwrite", "--json", "--quiet")
    assert (replaced.code, replaced.err) == (0, "")
    assert json.loads(replaced.out)["kind"] == "export"


def test_a_folder_whose_path_is_not_utf_8_gets_no_weights(tuned, crossgraft):
    odd = os.fsdecode(b"odd\xff")
    for words in (TUNE, ("export", "tuned", "--code", "tiny_models.py", "--format", "safetensors")):
        outcome = crossgraft(*words, "--out", odd)
        assert outcome.code == 2
        assert "can hold no weights: the path is not UTF-8. Choose another --out." in outcome.err


@pytest.mark.slow
def test_the_code_of_the_how_to_runs_on_exported_files(tuned, crossgraft, monkeypatch, capsys):
    """Preparation of images included: the probabilities are those of `crossgraft predict`."""
    import numpy as np
    import torch

    for format in ("torch", "onnx"):
        outcome = crossgraft("export", "tuned", *CODE, "--format", format)
        assert outcome.code == 0, outcome.err
        assert "Exporting" in outcome.err and len(outcome.err.splitlines()) <= 4  # nobody else talks
    predicted = crossgraft("predict", "tuned", "images/benign/03.png", *CODE, "--json", "--quiet", "--out", "one")
    expected = json.loads(predicted.out)["rows"][0]["probabilities"]
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    ran = 0
    for code in blocks:
        if "runs/breast" in code and ("onnxruntime" in code or "torch.export" in code):
            names = {}
            exec(code.replace("runs/breast", "tuned").replace("new.png", "images/benign/03.png"), names)
            found = np.asarray(torch.as_tensor(names["probabilities"]).detach())
            assert found[0] == pytest.approx(expected, abs=1e-5)
            ran += 1
    assert ran == 2
