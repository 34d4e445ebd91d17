"""``crossgraft compare A B C --geometry centre``."""

import pytest
import torch

from crossgraft.centre.record import CentreRecord
from crossgraft.models.adapted import merged_copy
from crossgraft.tune.saving.saved_model import load_saved_model

CODE = ("--code", "tiny_models.py")
TUNED = (
    "tune",
    "images",
    "--model",
    "zoo.yaml:narrow",
    *CODE,
    "--workers",
    "1",
    "--epochs",
    "1",
    "--no-store",
    "--val-fraction",
    "0",
)


@pytest.fixture
def runs(workspace, run_once):
    for seed in "012":
        run_once(*TUNED, "--seed", seed, out=f"task{seed}")
    return workspace


def test_several_runs_lie_around_their_centre_and_the_same_command_gives_it_again(runs, crossgraft):
    asked = ("compare", "task0", "task1", "task2", "--geometry", "centre", *CODE)
    done = crossgraft(*asked, "--before", "zoo.yaml:narrow", "--out", "around")
    assert done.code == 0, done.err
    record = CentreRecord.model_validate_json((runs / "around" / "report.json").read_bytes())
    assert [(row.label, row.task, row.ways) for row in record.networks] == [
        (f"task{seed}", "images", ["Full fine-tuning"]) for seed in range(3)
    ]
    assert record.start == "narrow" and record.notes == []
    assert "Around the centre" in done.out and "3 networks lie" in done.out
    again = crossgraft(*asked, "--before", "zoo.yaml:narrow", "--out", "around")
    assert again.code == 0, again.err


def test_lora_counts_as_what_it_adds_to_the_weights(runs, run_once, crossgraft):
    for seed in "01":
        run_once(*TUNED, "--method", "lora", "--learning-rate", "0.05", "--seed", seed, out=f"lora{seed}")
    done = crossgraft(
        "compare", "lora0", "lora1", "task2", "--geometry", "centre", *CODE, "--before", "zoo.yaml:narrow", "--out", "of"
    )
    assert done.code == 0, done.err
    found = CentreRecord.model_validate_json((runs / "of" / "report.json").read_bytes())
    code = "tiny_models.py"
    models = [load_saved_model(runs / name, allow_code=code).classifier for name in ("lora0", "lora1", "task2")]
    bodies = [dict((merged_copy(each) if each.recipe.adapters else each).body.named_parameters()) for each in models]
    weights = [torch.cat([body[name].detach().double().flatten() for name in bodies[2]]) for body in bodies]
    centre = torch.stack(weights).mean(0)
    assert [each.to_centre.l2 for each in found.networks] == pytest.approx([float((one - centre).norm()) for one in weights])
    assert found.networks[0].to_start.l2 < 1  # and not the length of the factors


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("task0", "task1", "task2"), "there are 3. Name two; or add --geometry centre"),
        (("task0", "task1", "--geometry", "centre,filters"), "Ask for one after the other"),
        (("task0", "task1", "--geometry", "centre", "--data", "images"), "--data is about images or two networks"),
        (("task0", "task1", "--geometry", "centre", "--linear-probe"), "--linear-probe is about images or two networks"),
        (("task0", "./task0", "--geometry", "centre", *CODE), "have the same weights"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_measured(runs, crossgraft, words, said):
    done = crossgraft("compare", *words)
    assert done.code == 2 and said in " ".join(done.err.split())
