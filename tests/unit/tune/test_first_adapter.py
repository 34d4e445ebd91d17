"""``adapter=``: training goes on from a folder in PEFT's format."""

import pytest
import torch

from crossgraft import compare_fine_tunings, fine_tune
from crossgraft.errors import DataError, OtherRunError, UsageError
from crossgraft.models.adapted import write_peft_adapter
from crossgraft.models.adapters import adapters_of
from crossgraft.tune import load_saved_model
from support.training import build_data

FAST = {"model": "tiny_models:tiny", "epochs": 1, "workers": 1, "device": "cpu", "image_size": 16, "store": False}


def squares():
    return build_data(40)[0].dataset


def test_training_goes_on_from_the_adapter(tiny_models):
    first = fine_tune(squares(), **FAST, method="lora:r=3,alpha=6", learning_rate=0.05)
    folder = write_peft_adapter(first.classifier, tiny_models / "nobody-knows" / "adapter")
    call = {**FAST, "method": "lora", "adapter": folder, "learning_rate": 1e-12, "out": tiny_models / "run"}
    second = fine_tune(squares(), **call)
    start, end = first.classifier.state_dict(), second.classifier.state_dict()
    assert start.keys() == end.keys()
    assert all(torch.allclose(start[name], end[name], rtol=0, atol=1e-6) for name in start)
    assert any(start[name].abs().max() > 1e-4 for name in start if name.endswith("lora.B"))
    assert second.record.similarity["cka"] < 1  # of the pretrained network, and not of the adapter it began with
    saved = load_saved_model(tiny_models / "run", allow_code="tiny_models:tiny")
    assert {part.r for _, part in adapters_of(saved.classifier).values()} == {3}
    plan = second.record.plan
    assert any("goes on from an adapter of rank 3 on 2 layers" in note for note in plan.notes)
    assert any(row.reason == "LoRA of rank 3" for row in plan.rows)
    files = [path for path in (tiny_models / "run").rglob("*") if path.is_file()]
    assert not [path.name for path in files if b"nobody-knows" in path.read_bytes()]
    again = fine_tune(squares(), **call)  # moved or not: the content counts
    assert again.record.metrics == second.record.metrics
    with torch.no_grad():
        first.classifier.head.bias.add_(1)
    write_peft_adapter(first.classifier, folder, overwrite=True)
    with pytest.raises(OtherRunError):
        fine_tune(squares(), **call)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("full", "--method full trains no LoRA"),
        ("lora:r=8", "--method lora:r=8 says some of them"),
        ({"name": "lora", "alpha": 2}, "--method lora:alpha=2 says some of them"),
    ],
)
def test_what_contradicts_an_adapter_is_refused_first(method, words, tiny_models):
    with pytest.raises(UsageError, match=words):
        fine_tune("no such data", **FAST, method=method, adapter="nowhere")


def test_a_missing_adapter_comes_to_light_before_any_image_is_read(tiny_models):
    with pytest.raises(DataError, match="nowhere does not exist"):
        fine_tune("no such data", **FAST, method="lora", adapter="nowhere")


def test_comparisons_start_from_the_pretrained_network(tiny_models):
    with pytest.raises(UsageError, match="--adapter does not go with --compare"):
        compare_fine_tunings(squares(), compare="lora,linear", model="tiny_models:tiny", adapter="nowhere")
