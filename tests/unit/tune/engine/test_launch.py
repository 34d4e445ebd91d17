"""Several processes train what one process trains; what they cannot do is refused before they start."""

import os
import pickle
import subprocess
import sys
from multiprocessing import Pipe
from pathlib import Path

import pytest
import torch

from crossgraft.errors import CrossgraftError, DivergedError, UsageError
from crossgraft.models.sources.factory import find_factory
from crossgraft.models.trusted_code import trusted_code
from crossgraft.tune.engine.contract import TrainingJob
from crossgraft.tune.engine.launch import check_processes, listen, make_fabric, packed, sendable, unpacked
from crossgraft.tune.engine.selection_rule import Keep, SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.regularizers import L2SP, RepSim
from support import forked
from support.jobs import jobs_around
from support.training import (
    BrokenInOneProcess,
    DoubleFeed,
    PullToStart,
    SpreadOfAll,
    VanishingProcess,
    arguments,
    build_classifier,
    build_feed,
    everything,
    largest_difference,
    only_head,
    similarity_evaluation,
    train_one,
    with_kept_statistics,
)

SOME = {"num_processes": 2, "regularizers": [PullToStart()], "epochs": 2}


def job(name="plain", *, selection=everything, **changes):
    classifier = build_classifier(name)
    return TrainingJob(classifier, build_feed(), selection(classifier), **{**arguments(**changes), "regularizers": ()})


@pytest.mark.slow
@pytest.mark.usefixtures("forked_processes")
@pytest.mark.xdist_group(forked.GROUP)
@pytest.mark.parametrize(("precision", "tolerance"), [("64-true", 1e-10), ("32-true", 1e-5)])
def test_two_processes_with_uneven_shares_are_one_with_the_whole_batch(precision, tolerance, tmp_path):
    rows, feed = [], DoubleFeed(7) if precision == "64-true" else build_feed(batch_size=7)
    common = {"feed": feed, "precision": precision, "regularizers": [PullToStart()]}
    one, alone = train_one("plain", **common)
    parted = {**common, "accumulate": 2, "checkpoint_folder": tmp_path}
    two, together = train_one("plain", num_processes=2, on_epoch=rows.append, **parted)
    assert largest_difference(one, two) < tolerance < largest_difference(one, build_classifier("plain").to(one.head.weight.dtype))
    for first, second in zip(alone.history, together.history, strict=True):
        assert first.terms == pytest.approx(second.terms, abs=tolerance)
        assert first.metrics == pytest.approx(second.metrics, abs=tolerance)
    assert tuple(rows) == together.history and not two.training
    resumed, again = train_one("plain", **parted)
    assert again.resumed and largest_difference(two, resumed) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("forked_processes")
@pytest.mark.xdist_group(forked.GROUP)
def test_two_processes_keep_statistics_of_batch_norm_and_a_similarity_as_one_does():
    """``--batch-norm frozen`` and ``--keep``: the same factor, and the same epoch in spite of a rule that wants another."""
    common = {"feed": DoubleFeed(7), "precision": "64-true", "selection": with_kept_statistics, "epochs": 3}
    common |= {"evaluate": similarity_evaluation("cnn"), "learning_rate": 0.3, "rule": SelectionRule("cka_debiased", "max")}
    regularizers = [RepSim(0.1, mode="cka"), L2SP(0.1, decoupled=True)]

    def trained(processes, *, keep_factor=3.0, keep=0.54):
        asked = {"num_processes": processes, "keep_factor": keep_factor, "keep": keep and Keep(keep)}
        return train_one("cnn", **asked, regularizers=regularizers, **common)

    (one, alone), (two, together), (_, weak), (_, free) = (
        trained(1), trained(2), trained(1, keep_factor=1.0), trained(1, keep=None)
    )  # fmt: skip
    assert (alone.best_epoch, together.best_epoch, free.best_epoch) == (1, 1, 0)
    assert largest_difference(one, two) < 1e-10 < 1e-6 < largest_difference(one, build_classifier().double())
    assert torch.equal(two.body.norm.running_mean, build_classifier("cnn").body.norm.running_mean)
    for first, second, third in zip(alone.history, together.history, weak.history, strict=True):
        assert first.terms == pytest.approx(second.terms, abs=1e-8) != third.terms


@pytest.mark.slow
@pytest.mark.usefixtures("forked_processes")
@pytest.mark.xdist_group(forked.GROUP)
@pytest.mark.parametrize("accumulate", [1, 2])
def test_statistics_of_all_that_go_through_the_network_together_have_the_gradient_of_one_process(accumulate):
    common = {
        "feed": DoubleFeed(7), "precision": "64-true", "regularizers": [SpreadOfAll()], "accumulate": accumulate
    }  # fmt: skip
    one, alone = train_one("plain", **common)
    two, together = train_one("plain", num_processes=2, **common)
    plain, _ = train_one("plain", **{**common, "regularizers": []})
    assert largest_difference(one, two) < 1e-12 < 1e-6 < largest_difference(one, plain)
    for first, second in zip(alone.history, together.history, strict=True):
        assert first.terms == pytest.approx(second.terms, abs=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("forked_processes")
@pytest.mark.xdist_group(forked.GROUP)
@pytest.mark.parametrize(
    ("regularizer", "error", "message"),
    [(BrokenInOneProcess(), DivergedError, "pull/broken is nan"), (VanishingProcess(), CrossgraftError, "ended without a word")],
)
def test_what_goes_wrong_in_a_process_is_raised_here(regularizer, error, message):
    with pytest.raises(error, match=message):
        train_one("plain", num_processes=2, regularizers=[regularizer])


@pytest.mark.parametrize("first", [0, 1])
def test_a_killed_process_is_named_though_another_one_is_heard_first_that_lost_its_partner(first):
    (here, there), (gone, end) = Pipe(), Pipe()
    there.send(("error", RuntimeError("Connection reset by peer")))
    end.send(("step", None))
    end.close()
    lines = [here, gone] if first == 0 else [gone, here]
    with pytest.raises(CrossgraftError, match=f"Training process {1 - first} ended without a word"):
        listen(lines, None, None)


def test_an_error_of_torch_is_raised_when_all_processes_are_there_or_said_why_they_ended():
    (here, there), (other, end) = Pipe(), Pipe()
    for said in (lambda: None, lambda: end.send(("error", RuntimeError("second")))):
        there.send(("error", RuntimeError("first")))
        said()
        with pytest.raises(RuntimeError, match="first"):
            listen([here, other], None, None)


@pytest.mark.slow
def test_a_script_without_main_guard_is_not_run_again_and_starts_its_own_processes_in_any_job(tmp_path):
    """Inside a job of SLURM, among processes of torchrun, with the words of Lightning's own command."""
    script = tmp_path / "script.py"
    script.write_text(
        "print('begins')\n"
        "from support.training import train_one\n"
        "_, result = train_one('plain', num_processes=2, epochs=1)\n"
        "print('trained', len(result.history))\n"
    )
    root = Path(__file__).parents[2]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    for variables in jobs_around(tmp_path).values():
        environment |= variables
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=200)
    assert (done.stdout.splitlines(), done.stderr) == (["begins", "trained 1"], "")


def test_batch_norm_in_train_mode_is_refused_on_the_cpu_and_frozen_is_not():
    with pytest.raises(UsageError, match=r"body\.norm is a BatchNorm layer in train mode.*with --batch-norm frozen, or"):
        check_processes(job("cnn", num_processes=2))
    check_processes(job("cnn", num_processes=2, selection=only_head))
    check_processes(job("cnn", num_processes=2, selection=with_kept_statistics))
    check_processes(job("cnn"))


def test_batches_smaller_than_the_processes_are_refused():
    with pytest.raises(UsageError, match="batch of 2 cannot be shared by 3"):
        check_processes(job(num_processes=3, batch_size=2))


@pytest.mark.skipif(torch.cuda.device_count() > 7, reason="has as many")
def test_missing_gpus_are_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(UsageError, match=r"8 processes need as many GPUs; 2 are here\. Ask for --devices 2"):
        check_processes(job(num_processes=8, batch_size=8, device="cuda"))


def test_a_card_without_bf16_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 5))
    with pytest.raises(UsageError, match=r"This GPU has no bf16\. Use --precision 32"):
        make_fabric(TrainerSettings(device="cuda", precision="bf16-mixed"))


def test_what_can_not_be_sent_is_refused_by_name():
    with pytest.raises(UsageError, match=r"cannot be sent: .*lambda"):
        train_one("plain", num_processes=2, evaluate=lambda classifier: {"loss": 0.0})


def test_errors_that_can_not_be_sent_are_told():
    class LocalError(Exception):
        pass

    assert "LocalError: lost" in str(sendable(LocalError("lost")))
    assert isinstance(sendable(DivergedError("x")), DivergedError)
    assert pickle.loads(pickle.dumps(DivergedError("x"))).args == ("x",)


def test_another_process_imports_modules_of_own_networks_from_their_folder(tmp_path, monkeypatch):
    source = "from torch import nn\n\n\nclass Own(nn.Linear):\n    pass\n\n\ndef net():\n    return Own(2, 2)\n"
    for name in ("own_networks_of_a_test", "others_that_are_not_needed"):
        (tmp_path / f"{name}.py").write_text(source)
        find_factory(f"{name}:net", trusted=trusted_code(tmp_path))
    made = find_factory("own_networks_of_a_test:net", trusted=trusted_code(tmp_path))()
    content = packed(print, job(configuration={"network": made}))
    sent = pickle.loads(content)[0]
    assert sent["own_networks_of_a_test"] == (tmp_path.resolve(),)
    assert "others_that_are_not_needed" not in sent
    monkeypatch.delitem(sys.modules, "own_networks_of_a_test")
    before = list(sys.path)
    run, again = unpacked(content)
    assert run is print
    assert torch.equal(again.configuration["network"].weight, made.weight)
    assert sys.path == before
    monkeypatch.delitem(sys.modules, "own_networks_of_a_test")
    (tmp_path / "own_networks_of_a_test.py").unlink()
    with pytest.raises(UsageError, match="cannot find what it was sent: No module named 'own_networks_of_a_test'"):
        unpacked(content)
