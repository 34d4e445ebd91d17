"""The value of every model comes first; beside an accelerator the next model is looked at while the last is scored."""

import json
import re
import threading
from functools import cached_property

import pytest
import timm
import torch
from safetensors.torch import load_file, save_file
from threadpoolctl import threadpool_info

from crossgraft.features import extract
from crossgraft.models import load_as_asked
from crossgraft.rank import look_ahead, sweep, zoo
from crossgraft.scores import _gradients
from crossgraft.scores._statistics import FeatureStatistics

from .test_rank import FLAGS, numbers


@pytest.fixture
def beside_an_accelerator(monkeypatch):
    """The CPU plays an accelerator that leaves its cores to the scores."""
    monkeypatch.setattr(look_ahead, "helps", lambda device: True)


def titles(err):
    """What was said, without numbers that differ from run to run."""
    return [re.sub(r": [\d.]+ s.*", "", line) for line in err.splitlines() if not line.startswith("About ")]


@pytest.fixture
def ranked(run_once):
    return run_once("rank", "images", *FLAGS, out="run")


def test_values_of_all_models_come_before_any_interval_or_control(ranked, workspace):
    lines = titles(ranked.err)
    place = lines.index("Values of 2 models; intervals and controls follow:")
    assert lines[place - 4 : place] == [
        "Looking at 16 images with narrow (1 of 4)",
        "First values of narrow (1 of 4)",
        "Looking at 16 images with wide (2 of 4)",
        "First values of wide (2 of 4)",
    ]
    assert lines[place + 1].split() == ["Model", "LEEP", "LogME", "k-NN", "probe"]
    cells = {
        cell["model"]: cell["value"]
        for cell in json.loads((workspace / "run/report.json").read_text())["cells"]
        if cell["score"] == "logme"
    }
    best = max(("narrow", "wide"), key=cells.get)
    assert lines[place + 2].split()[0] == best
    assert float(lines[place + 2].split()[2].replace("−", "-")) == pytest.approx(cells[best], rel=1e-2)
    assert lines[place + 4 : place + 8] == [
        "Scoring narrow (1 of 4)",
        "Scoring wide (2 of 4)",
        "Looking at 16 images with tiny · random (3 of 4)",
        "Scoring tiny · random (3 of 4)",
    ]
    assert len([*(workspace / "run/models").iterdir()]) == 4


def test_scores_are_computed_by_one_thread_and_networks_by_all(workspace, crossgraft, monkeypatch):
    threads = []

    def watched(*given, genuine=sweep.evaluate_scores, **settings):
        products = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
        threads.append((products, torch.get_num_threads()))
        return genuine(*given, **settings)

    monkeypatch.setattr(sweep, "evaluate_scores", watched)
    crossgraft("rank", "images", *FLAGS, "--workers", "2", "--out", "by-two")
    assert threads
    assert all(found == ({1}, 2) for found in threads)


@pytest.mark.parametrize(("room", "num_formed"), [(sweep.KEPT_BYTES, 4), (0, 6)])
def test_intervals_start_from_what_the_values_left(ranked, workspace, crossgraft, monkeypatch, room, num_formed):
    formed = []
    original = FeatureStatistics.moments.func

    def counted(statistics):
        formed.append(statistics.origin is None)
        return original(statistics)

    moments = cached_property(counted)
    moments.__set_name__(FeatureStatistics, "moments")
    monkeypatch.setattr(FeatureStatistics, "moments", moments)
    monkeypatch.setattr(sweep, "KEPT_BYTES", room)
    assert crossgraft("rank", "images", *FLAGS, "--quiet", "--out", "again").code == 0
    assert sum(formed) == num_formed  # of 2 candidates and 2 controls
    first, second = ((workspace / run / "report.json").read_text() for run in ("run", "again"))
    assert numbers(first) == numbers(second)


@pytest.mark.parametrize("room", [sweep.KEPT_BYTES, 0])
def test_images_are_passed_once_a_round_for_both_scores_of_gradients(workspace, crossgraft, monkeypatch, room):
    """Also where the inputs of the first round could not be kept: its passes leave nothing for the others to start from."""
    looks, find = [], _gradients.two_layers
    monkeypatch.setattr(_gradients, "two_layers", lambda *given: looks.append(given) or find(*given))
    monkeypatch.setattr(sweep, "KEPT_BYTES", room)
    words = ("--models", "zoo.yaml:narrow", "--code", "tiny_models.py", "--workers", "1", "--interval-seconds", "0")
    assert crossgraft("rank", "images", *words, "--scores", "gradient_ratio,nca_gradient", "--quiet", "--out", "run").code == 0
    assert len(looks) == 2 * (1 + 5)  # of the network and its control: all images, and five shuffles of the labels
    cells = json.loads((workspace / "run" / "report.json").read_text())["cells"]
    assert {cell["no_interval_reason"] for cell in cells if cell["model"] == "narrow"} == {"no interval (--interval-seconds 0)"}
    assert crossgraft("rank", "images", *words, "--scores", "gradient_ratio", "--out", "run", "--interval-seconds", "1").code == 2


@pytest.mark.parametrize("walk", ["Valuing", "Evaluating"])
def test_a_kill_between_values_and_intervals_loses_no_value(ranked, workspace, crossgraft, monkeypatch, walk):
    kind = getattr(sweep, walk)
    original = kind.do

    def killed(self, job):
        if job.spec.position.startswith("2 "):
            raise KeyboardInterrupt
        return original(self, job)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "do", killed)
        assert crossgraft("rank", "images", *FLAGS, "--out", "killed").code == 130
    resumed = crossgraft("rank", "images", *FLAGS, "--out", "killed")
    assert ("First values of narrow" in resumed.err, "First values of wide" in resumed.err) == (False, walk == "Valuing")
    first, second = ((workspace / run / "report.json").read_text() for run in ("run", "killed"))
    assert numbers(first) == numbers(second)
    assert len([*(workspace / "killed/models").iterdir()]) == 4


DRAWING = '''
import torch
from tiny_models import Tiny, tiny


class Drawing(Tiny):
    """Draws in evaluation, as networks that mask patches do."""

    def forward_features(self, images):
        return torch.nn.functional.dropout(super().forward_features(images), 0.3)


def drawing():
    model = tiny()
    model.__class__ = Drawing
    return model
'''


def test_a_network_that_draws_gives_the_same_numbers_when_it_goes_on(workspace, crossgraft, monkeypatch):
    (workspace / "drawn_features.py").write_text(DRAWING)
    (workspace / "two.yaml").write_text(
        "".join(f'- {{name: {name}, source: "drawn_features:drawing"}}\n' for name in ("one", "two"))
    )
    flags = ["--models", "two.yaml", "--code", "drawn_features.py", "--scores", "logme", "--device", "cpu", "--quiet"]
    assert crossgraft("rank", "images", *flags, "--cache-dir", "cache", "--out", "whole").code == 0
    original = sweep.Valuing.do

    def killed(self, job):
        if job.spec.position.startswith("2 "):
            raise KeyboardInterrupt
        return original(self, job)

    with monkeypatch.context() as patch:
        patch.setattr(sweep.Valuing, "do", killed)
        assert crossgraft("rank", "images", *flags, "--cache-dir", "other", "--out", "killed").code == 130
    assert crossgraft("rank", "images", *flags, "--cache-dir", "other", "--out", "killed").code == 0
    first, second = ((workspace / run / "report.json").read_text() for run in ("whole", "killed"))
    assert numbers(first) == numbers(second)


def test_looking_ahead_changes_neither_numbers_nor_what_is_said(
    ranked, workspace, crossgraft, monkeypatch, beside_an_accelerator
):
    threads = []
    original = extract.extract_features

    def noted(*given, **how):
        threads.append(threading.current_thread().name)
        return original(*given, **how)

    monkeypatch.setattr("crossgraft.rank.zoo.extract_features", noted)
    ahead = crossgraft("rank", "images", *FLAGS, "--out", "ahead", "--cache-dir", "fresh")
    assert [name.startswith("look-ahead") for name in threads] == [False, True, True, True]
    assert titles(ahead.err)[2:] == titles(ranked.err)[2:]
    first, second = ((workspace / run / "report.json").read_text() for run in ("run", "ahead"))
    assert numbers(first) == numbers(second)


@pytest.fixture
def loaded(workspace, monkeypatch):
    """Names of the networks that ``rank`` loads, of a checkpoint of a library's architecture and its control."""
    state = timm.create_model("test_resnet", num_classes=3).state_dict()
    save_file(state, workspace / "own.safetensors", {"architecture": "test_resnet"})
    names = []

    def counted(spec, *given, **how):
        names.append(spec.name)
        return load_as_asked(spec, *given, **how)

    monkeypatch.setattr(zoo, "load_as_asked", counted)
    return names


OWN = ("rank", "images", "--models", "own.safetensors", "--workers", "1", "--scores")


@pytest.mark.parametrize(("room", "num_loaded"), [(zoo.KEPT_PARAMETERS, 3), (0, 4)])
def test_a_network_waits_from_the_check_of_its_weights_to_its_turn(loaded, crossgraft, monkeypatch, room, num_loaded):
    monkeypatch.setattr(zoo, "KEPT_PARAMETERS", room)
    assert crossgraft(*OWN, "logme", "--out", "waiting").code == 0
    assert len(loaded) == num_loaded  # before images are read, then, and its control


def test_networks_are_checked_once_however_many_run_directories_are_taken(loaded, crossgraft, workspace):
    for scores in ("logme", "leep", "nce"):
        loaded.clear()
        assert crossgraft(*OWN, scores).code == 0
    assert (workspace / "runs/rank-images-3/report.json").exists()
    assert len(loaded) == 3


def test_what_fails_ahead_is_reported_as_that_model(workspace, crossgraft, monkeypatch, beside_an_accelerator):
    state = load_file(workspace / "wide.safetensors")
    save_file({name: values * float("inf") for name, values in state.items()}, workspace / "wide.safetensors")
    outcome = crossgraft("rank", "images", *FLAGS, "--out", "broken")
    assert outcome.code == 3 and "wide gives NaN or infinite values for row 0" in outcome.err
    assert "First values of narrow (1 of 4)" in outcome.err


def test_an_interrupt_ends_what_is_under_way_ahead(workspace, crossgraft, monkeypatch, beside_an_accelerator):
    begun, reads = threading.Event(), []
    original = look_ahead._Stoppable.advance

    def slow(self, amount=1):
        begun.set()
        reads.append(amount)
        self._stopped.wait(20)
        original(self, amount)

    def interrupted(self, turn):
        _, _ = self.inputs(turn, self.zoo.scores)
        begun.wait(20)
        raise KeyboardInterrupt

    monkeypatch.setattr(look_ahead._Stoppable, "advance", slow)
    monkeypatch.setattr(sweep.Valuing, "_look", interrupted)
    assert crossgraft("rank", "images", *FLAGS, "--batch-size", "4", "--out", "stopped", "--cache-dir", "fresh").code == 130
    assert len(reads) == 1
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("look-ahead")]
