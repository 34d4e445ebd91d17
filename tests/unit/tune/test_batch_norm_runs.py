"""``--batch-norm`` from the first step to the exported file, on a tiny network with two BatchNorm layers."""

import io
import sys
import textwrap

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from crossgraft import export_model, fine_tune
from crossgraft.data import dataset_from_arrays
from crossgraft.errors import OtherRunError, UsageError
from crossgraft.geometry.batch_norm import with_estimated_statistics
from crossgraft.models.adapted import write_peft_adapter
from crossgraft.progress import Reporter
from crossgraft.tune import jobs
from crossgraft.tune.engine import trainer
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.planning import fold_networks
from crossgraft.tune.record import PlanRecord, TuningRecord
from crossgraft.tune.saving.saved_model import load_saved_model
from support import forked
from support.rows import rows_of
from support.tiny import NORMED_MODELS

OWN = {"allow_code": "normed_models:normed"}
FAST = {"model": "normed_models:normed", "epochs": 2, "batch_size": 8, "workers": 1, "device": "cpu", "store": False}
FAST |= {"learning_rate": 0.01}
CALLS = {
    "plain": {},
    "train": {"batch_norm": "train"},
    "default": {"regularizer": "repsim", "epochs": 25},
    "frozen": {"batch_norm": "frozen", "augmentation": "none"},
    "adapt": {"batch_norm": "adapt", "regularizer": "repsim"},
    "linear": {"batch_norm": "adapt", "method": "linear"},
    "partial": {"batch_norm": "adapt", "method": "partial:names=block*"},
}


def squares(n=60):
    """Noise that is brighter in the second class."""
    labels = np.arange(n) % 2
    pixels = np.random.default_rng(0).integers(0, 90, (n, 16, 16, 3)) + 80 * labels[:, None, None, None]
    return dataset_from_arrays(pixels.astype(np.uint8), labels)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run directory of each call."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "normed_models.py").write_text(textwrap.dedent(NORMED_MODELS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSGRAFT_CACHE", str(folder / "cache"))
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        patch.delitem(sys.modules, "normed_models", raising=False)
        for name, call in CALLS.items():
            fine_tune(squares(), **{**FAST, **call}, out=folder / name)
        yield folder
    sys.modules.pop("normed_models", None)


def record_of(folder, name):
    return TuningRecord.model_validate_json((folder / name / "report.json").read_bytes())


def pretrained():
    return sys.modules["normed_models"].normed()


def differing(network, other):
    state = other.state_dict()
    return {name for name, value in network.state_dict().items() if not torch.equal(value, state[name])}


STATISTICS = {f"{part}.1.{kind}" for part in ("stem", "block") for kind in ("running_mean", "running_var", "num_batches_tracked")}
WEIGHTS = {f"{part}.{layer}.{kind}" for part in ("stem", "block") for layer in (0, 1) for kind in ("weight", "bias")}


def moved(folder, name):
    """What differs in front of the head from the network as it came."""
    body = load_saved_model(folder / name, **OWN).classifier.body
    return {each for each in differing(body, pretrained()) if not each.startswith("head.")}


def test_training_moves_statistics_and_weights_unless_it_is_told_otherwise(folder):
    assert moved(folder, "plain") == STATISTICS | WEIGHTS
    assert moved(folder, "frozen") == moved(folder, "default") == WEIGHTS
    assert moved(folder, "adapt") == STATISTICS | WEIGHTS


def test_train_is_what_was_always_done(folder):
    first, second = (load_file(folder / name / "model" / "weights.safetensors") for name in ("plain", "train"))
    assert first.keys() == second.keys()
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    assert record_of(folder, "plain").history[1].terms == record_of(folder, "train").history[1].terms
    for name in ("plain", "train"):
        decided = record_of(folder, name).batch_norm
        assert (decided.mode, decided.reason, decided.num_layers) == ("train", "", 2)
        assert record_of(folder, name).plan.settings["batch norm"] == "train"


def test_the_plan_and_the_record_say_what_was_decided_and_why(folder):
    record = record_of(folder, "default")
    assert record.batch_norm.mode == "frozen" and record.batch_norm.reason
    assert record.plan.settings["batch norm"] == f"frozen ({record.batch_norm.reason})"
    record = record_of(folder, "adapt")
    assert record.plan.settings["batch norm"] == record.batch_norm.mode == "adapt"
    (note,) = [note for note in record.notes if "BatchNorm" in note]
    assert "2 BatchNorm layers" in note and "one batch of" in note


def rates(**call):
    """What the plan says of the learning rate, and its notes about few steps; of ten steps where nothing else is said."""
    call = {**{name: value for name, value in FAST.items() if name != "learning_rate"}, **call}
    record = fine_tune(squares(), **call, plan=True).plan.record
    return record.settings["learning rate"], [note for note in record.notes if "fewer than 100 steps" in note]


def test_few_steps_beside_statistics_that_stay_are_smaller_and_the_plan_says_so(folder):
    rate, (note,) = rates(regularizer="repsim")
    assert rate == "0.0001 (head 0.001)" and "the head is trained alone first" in note and "0.001 × steps / 100" in note
    assert rates(regularizer="repsim", batch_norm="frozen") == (rate, [note])  # as where the default is typed
    assert rates(regularizer="hcs") == (rate, [note])
    assert rates(regularizer="repsim", epochs=8) == ("0.0004 (head 0.001)", [note])
    assert rates(regularizer="repsim", epochs=20) == ("0.001", [])
    assert rates(regularizer="repsim", batch_size=None, grid="batch_size=8,16")[1] == [note]


def test_learning_rates_are_the_usual_ones_where_statistics_move_and_those_that_were_asked_for_count(folder):
    for call in ({}, {"batch_norm": "frozen"}, {"regularizer": "l2_sp"}, {"regularizer": "repsim", "batch_norm": "train"}):
        assert rates(**call) == ("0.001", []), call
    assert rates(regularizer="repsim", learning_rate=0.001) == ("0.001", [])
    assert rates(regularizer="repsim", head_learning_rate=0.02)[0] == "0.0001 (head 0.02)"
    assert rates(regularizer="repsim", grid="learning_rate=0.1,0.01")[1] == []


def test_each_training_of_a_grid_follows_its_own_length(folder, monkeypatch):
    seen = []
    real = jobs.train
    monkeypatch.setattr(jobs, "train", lambda *given, **named: seen.append(named["settings"]) or real(*given, **named))
    call = {name: value for name, value in FAST.items() if name not in ("learning_rate", "epochs")}
    tuned = fine_tune(squares(), **call, regularizer="repsim", grid="epochs=1,20", patience=1, head_first=False)
    assert [(each.learning_rate, each.head_learning_rate, each.head_first) for each in seen] == [
        (pytest.approx(5e-5), 1e-3, True),
        (1e-3, None, False),
    ]
    assert {row.job for row in tuned.record.history if row.stage == "head"} == {"epochs=1"}


@pytest.mark.parametrize(("setting", "before"), [("batch norm", "train (the default of then)"), ("learning rate", "0.001")])
def test_a_run_that_was_planned_with_other_defaults_is_not_gone_on_with(folder, tmp_path, setting, before):
    call = {name: value for name, value in FAST.items() if name != "learning_rate"} | {"regularizer": "repsim"}
    fine_tune(squares(), **call, out=tmp_path)
    fine_tune(squares(), **call, out=tmp_path)
    path = tmp_path / "plan.json"
    plan = PlanRecord.model_validate_json(path.read_bytes())
    assert plan.settings[setting] != before
    path.write_text(plan.model_copy(update={"settings": {**plan.settings, setting: before}}).model_dump_json())
    said = rf"{setting} was {before.partition(' ')[0]} and is now .*--overwrite.*--batch-norm and --learning-rate bring"
    with pytest.raises(OtherRunError, match=said):
        fine_tune(squares(), **call, out=tmp_path)
    fine_tune(squares(), **call, out=tmp_path, overwrite=True)


def estimated():
    """The pretrained network with statistics of the training rows."""
    data, classifier = squares(), load_saved_model("linear", **OWN).classifier
    classifier.body.load_state_dict(pretrained().state_dict(), strict=False)
    rows = rows_of(data).parts[0].train
    return with_estimated_statistics(classifier, TrainingImages(data.take(rows), classifier.preprocessing), device="cpu")


def test_the_head_alone_is_trained_on_features_of_the_adapted_network(folder):
    body = load_saved_model(folder / "linear", **OWN).classifier.body
    assert differing(body, estimated().body) <= {"head.weight", "head.bias"}
    assert moved(folder, "linear") == {name for name in STATISTICS if "num_batches" not in name}
    record = record_of(folder, "linear")
    assert record.similarity["cka_adapted"] == pytest.approx(1, abs=1e-9)
    assert record.similarity["cka"] == pytest.approx(record.similarity["cka_untouched"], abs=1e-9)
    assert record.similarity["cka"] < 0.9999
    assert [row.val_cka for row in record.history] == [None, None]


def test_blocks_that_are_frozen_keep_the_adapted_statistics_and_those_that_are_trained_move(folder):
    body = load_saved_model(folder / "partial", **OWN).classifier.body
    parts = {name.partition(".")[0] for name in differing(body, estimated().body)}
    assert parts - {"head"} == {"block"}
    assert any("running_mean" in name for name in differing(body, estimated().body))


@pytest.mark.parametrize("name", ["plain", "default", "adapt"])
def test_every_similarity_stands_beside_that_to_the_adapted_network_and_of_weights_untouched(folder, name):
    record = record_of(folder, name)
    kinds = {f"{kind}{ending}" for kind in ("cka", "cka_debiased") for ending in ("", "_adapted", "_untouched")}
    assert record.similarity.keys() == kinds
    assert record.similarity["cka_untouched"] == record_of(folder, "linear").similarity["cka_untouched"]
    assert len({round(record.similarity[f"cka{ending}"], 6) for ending in ("", "_adapted", "_untouched")}) == 3
    for row in record.history:
        assert None not in (row.val_cka, row.val_cka_debiased, row.val_cka_adapted, row.val_cka_debiased_adapted)


@pytest.mark.parametrize("format", ["safetensors", "torch", "onnx"])
@pytest.mark.parametrize("name", ["default", "adapt"])
def test_what_is_exported_says_what_the_model_says(folder, name, format):
    if format == "onnx":
        pytest.importorskip("onnxscript")
        pytest.importorskip("onnxruntime")
    exported = export_model(folder / name, format=format, **OWN)
    assert exported.record.agreement.largest_logit_difference <= 1e-5
    if format == "safetensors":
        (weights,) = exported.out.glob("*.safetensors")
        state = load_saved_model(folder / name, **OWN).classifier.body.state_dict()
        kept = {each: value for each, value in load_file(weights).items() if each in STATISTICS}
        assert kept.keys() >= {each for each in STATISTICS if "num_batches" not in each}
        assert all(torch.equal(value, state[each]) for each, value in kept.items())


def test_what_contradicts_it_is_refused_and_what_it_is_not_about_is_said(folder):
    for mode in ("frozen", "adapt"):
        with pytest.raises(UsageError, match=f"--batch-norm {mode} is about .* --method scratch"):
            fine_tune(squares(), **FAST, batch_norm=mode, method="scratch", plan=True)
    plan = fine_tune(squares(), **FAST, batch_norm="frozen", method="linear", plan=True).plan
    assert any("as they are anyway" in note for note in plan.record.notes)


@pytest.mark.parametrize("mode", ["train", "adapt"])
def test_processes_on_the_cpu_need_statistics_that_stay(folder, mode):
    call = {"regularizer": "repsim", "devices": 2, "plan": True}
    with pytest.raises(UsageError, match=r"--devices 2: the network has BatchNorm .*--batch-norm frozen"):
        fine_tune(squares(), **FAST, **call, batch_norm=mode)
    frozen = fine_tune(squares(), **FAST, **call, batch_norm="frozen")
    assert frozen.plan.record.settings["device"] == "cpu × 2"


@pytest.mark.slow
@pytest.mark.usefixtures("forked_processes")
@pytest.mark.xdist_group(forked.GROUP)
def test_two_processes_train_what_one_does_where_statistics_stay(folder):
    call = {**FAST, "precision": "64", "batch_norm": "frozen", "regularizer": "repsim,l2_sp"}
    one, two = (fine_tune(squares(), **call, devices=number) for number in (1, 2))
    pairs = zip(one.classifier.state_dict().items(), two.classifier.state_dict().values(), strict=True)
    assert all(torch.allclose(first, second, rtol=0, atol=1e-10) for (_, first), second in pairs)
    assert two.record.num_processes == 2


class Killed:
    """``write_checkpoint`` that is stopped after a number of writes, over and over."""

    def __init__(self, *numbers):
        self.write, self.numbers, self.written = trainer.write_checkpoint, list(numbers), 0

    def __call__(self, *arguments):
        self.write(*arguments)
        self.written += 1
        if self.numbers and self.written == self.numbers[0]:
            self.written = 0
            self.numbers.pop(0)
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    "call",
    [
        {"batch_norm": "frozen", "regularizer": "repsim"},
        {"batch_norm": "adapt", "regularizer": "repsim", "keep": 0.9, "augmentation": "none"},
        {"batch_norm": "adapt", "regularizer": "repsim", "keep": 0.9},
        {"regularizer": "l2_sp:decoupled=true", "keep": 0.95},
    ],
    ids=["frozen", "adapt and keep, looked up", "adapt and keep", "keep by weights"],
)
def test_a_run_that_was_killed_inside_and_between_epochs_ends_like_a_whole_one(folder, tmp_path, monkeypatch, call):
    call = {**FAST, "epochs": 3, **call, "checkpoint_every": 1}
    whole = fine_tune(squares(), **call, out=tmp_path / "whole")
    steps = whole.record.plan.steps_per_epoch
    killed = Killed(steps + 1, steps - 1)  # in the second epoch, and after it
    monkeypatch.setattr(trainer, "write_checkpoint", killed)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            fine_tune(squares(), **call, out=tmp_path / "killed")
    resumed = fine_tune(squares(), **call, out=tmp_path / "killed")
    assert killed.numbers == [] and resumed.to_frame().equals(whole.to_frame())
    same = [(tmp_path / name / "model" / "weights.safetensors").read_bytes() for name in ("whole", "killed")]
    assert same[0] == same[1]
    history = [
        [row.model_dump(exclude={"seconds", "images_per_second"}) for row in run.record.history] for run in (whole, resumed)
    ]
    assert history[0] == history[1]
    assert resumed.record.keep == whole.record.keep


def test_statistics_that_another_machine_rounds_otherwise_do_not_refuse_its_checkpoint(folder, tmp_path, monkeypatch):
    """A sum over images depends on the number of threads, in its last digit."""
    call = {**FAST, "batch_norm": "adapt", "out": tmp_path / "run"}
    with monkeypatch.context() as patch:
        patch.setattr(trainer, "write_checkpoint", Killed(1))
        with pytest.raises(KeyboardInterrupt):
            fine_tune(squares(), **call)
    estimate = fold_networks.with_estimated_statistics

    def rounded_otherwise(*arguments, **options):
        found = estimate(*arguments, **options)
        found.body.stem[1].running_mean.mul_(1 + 1e-6)
        return found

    monkeypatch.setattr(fold_networks, "with_estimated_statistics", rounded_otherwise)
    said = io.StringIO()
    fine_tune(squares(), **call, reporter=Reporter(said))
    assert "going on at" in said.getvalue()


def test_statistics_are_not_those_of_a_network_with_an_adapter_in_it(folder, tmp_path):
    first = fine_tune(squares(), **FAST, method="lora:r=2")
    call = {**FAST, "method": "lora", "adapter": write_peft_adapter(first.classifier, tmp_path / "adapter"), "plan": True}
    with pytest.raises(UsageError, match=r"--batch-norm adapt estimates the statistics of the pretrained network.*--adapter"):
        fine_tune(squares(), **call, batch_norm="adapt")
    with pytest.raises(UsageError, match=r"--keep 0\.8 is a similarity to the pretrained network.*--adapter"):
        fine_tune(squares(), **call, regularizer="repsim", keep=0.8)
    assert fine_tune(squares(), **call, batch_norm="frozen").plan.record.settings["batch norm"] == "frozen"


@pytest.mark.parametrize("mode", ["Frozen", "train ", True, 0])
def test_a_mode_that_does_not_exist_is_refused(folder, mode):
    with pytest.raises(UsageError, match="batch_norm"):
        fine_tune(squares(), **FAST, batch_norm=mode, plan=True)
