"""``crossgraft compare A B C --geometry centre``."""

import pytest

from crossgraft.centre.record import CentreRecord

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
