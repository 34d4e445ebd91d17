"""Full mode: what is trained and how often, and that a run that was stopped goes on where it was."""

from dataclasses import replace

import numpy as np
import pytest

import crossgraft.audit.sweep as trainings
from crossgraft.audit.confounded import confound, divide_rows, without_artefact
from crossgraft.audit.detectability import realised_share
from crossgraft.audit.group_metrics import best_threshold
from crossgraft.audit.options import AuditOptions
from crossgraft.audit.record import AuditTrainingRecord
from crossgraft.audit.sweep import FOLDER, AuditTurn, Sweep, audit_turns, fold_scores
from crossgraft.audit.sweep_modes import FullSweep
from crossgraft.choice import spell
from crossgraft.data import dataset_from_arrays
from crossgraft.edit.confounders import Gamma, Tag
from crossgraft.models import ModelSpec, load_backbone
from crossgraft.options._option import from_mapping
from crossgraft.progress import Reporter
from crossgraft.running.run_directory import open_run

SIDE = 20
SHARES = (0.0, 0.5, 1.0)
SPEC = ModelSpec("small", "test_resnet", weights="random")
TAG, GAMMA = Tag(size=0.4, xy=(0.05, 0.05)), Gamma(gamma=1.5)


def audit_rows(num_folds=1):
    """Half of the images are brighter: ill."""
    rng = np.random.default_rng(0)
    labels = np.arange(48) % 2
    pixels = rng.integers(60, 120, (48, SIDE, SIDE, 1)) + (50 * labels)[:, None, None, None]
    found = dataset_from_arrays(pixels.astype(np.uint8), np.array(["healthy", "ill"])[labels], name="some")
    part = np.array(["train", "train", "val", "test"])[np.arange(48) // 2 % 4]
    return divide_rows(replace(found, splits=part), None, num_folds=num_folds, seed=0)


ROWS = audit_rows()


def options(**changes):
    given = {"data": "some", "mode": "full", "epochs": 1, "workers": 1, "device": "cpu", "image_size": 16}
    return from_mapping(AuditOptions, {**given, **changes})


def confounded(edit, absent=()):
    return confound(ROWS, edit, without_artefact(ROWS.dataset, absent, seed=0), strength=1.0, negatives=0.0, seed=0)


def sweep_in(run, given=None):
    given = given or options()
    sweep = Sweep(ROWS, SHARES, [], given, 1, Reporter(quiet=True))
    return FullSweep(sweep, SPEC, load_backbone(SPEC, image_size=16), run)


class Counted:
    """Real trainings, counted; after some of them the machine is switched off."""

    def __init__(self, real):
        self.real, self.done, self.stop_at = real, 0, None

    def __call__(self, *given, **named):
        if self.done == self.stop_at:
            raise KeyboardInterrupt
        self.done += 1
        return self.real(*given, **named)


@pytest.fixture
def counted(monkeypatch):
    found = Counted(trainings.train_and_evaluate)
    monkeypatch.setattr(trainings, "train_and_evaluate", found)
    return found


def run_in(folder):
    return open_run(folder, command="audit", command_line="crossgraft audit", config={"audit": 1}, seed=0)


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on(counted, tmp_path):
    found = [confounded(TAG), confounded(GAMMA)]
    counted.stop_at = 2
    with pytest.raises(KeyboardInterrupt), run_in(tmp_path / "run") as run:
        sweep_in(run).entries(found)
    counted.stop_at = None
    with run_in(tmp_path / "run") as run:
        whole = sweep_in(run).entries(found)
    assert counted.done == 1 + 2 * 2  # one without carriers serves both artefacts
    with run_in(tmp_path / "run") as run:
        again = sweep_in(run).entries(found)
    assert counted.done == 5 and again == whole
    assert len(list((tmp_path / "run" / FOLDER).glob("*.json"))) == 5
    assert [(entry.model, entry.mode) for entry in whole] == [("small", "full")] * 2
    assert [entry.confounder for entry in whole] == [each.name for each in found]
    for entry in whole:
        assert [point.share for point in entry.points] == list(SHARES)
        assert [point.realised for point in entry.points] == [0, 0.5, 1]
        assert entry.points[0].metric("best_epoch").value == 1 and entry.detectability.value > 0.6 and entry.input_rms > 0
        assert entry.input_rms > 0
    assert whole[0].points[0].metric("clean") == whole[1].points[0].metric("clean")
    with run_in(tmp_path / "run") as run:  # what decides the numbers is another
        sweep_in(run, options(learning_rate=0.01)).entries(found[:1])
    assert counted.done == 5 + 3


@pytest.mark.slow
def test_strength_0_is_exactly_0(tmp_path):
    nothing = confound(ROWS, TAG, without_artefact(ROWS.dataset, [], seed=0), strength=0.0, negatives=0.0, seed=0)
    (entry,) = sweep_in(None, options(strength=0.0)).entries([nothing])
    index = entry.metric("shortcut_reliance_index")
    assert index.value == 0 and index.patients_low == -index.patients_high < 0  # others might change, how many is said
    assert entry.outcome in ("passes", "undecided", "untrained") and entry.input_rms == 0
    assert {point.metric("flip_effect").value for point in entry.points} == {0}


class TrainedError(Exception):
    """The images that a training would get."""


@pytest.mark.parametrize(("edit", "absent"), [(TAG, []), (Gamma(gamma=1.5), [Gamma(gamma=0.7)])])
def test_training_images_are_those_that_carry_it(monkeypatch, edit, absent):
    found, seen = confounded(edit, absent), []

    def stop(self, images, parts):
        seen.append((images, parts))
        raise TrainedError

    monkeypatch.setattr(trainings.AuditTrainings, "_tune", stop)
    sweep = sweep_in(None, options(shares="0.5,1,1"))
    monkeypatch.setattr(sweep.sweep.__class__, "carriers", lambda self, fold, share: ROWS.carriers(fold, 0.5, seed=3))
    with pytest.raises(TrainedError):
        sweep.entries([found])
    ((images, parts),) = seen
    carrying = ROWS.carriers(ROWS.folds[0], 0.5, seed=3)
    for row in range(len(images)):
        expected = (found.edited if carrying[row] else found.clean).read(row)
        np.testing.assert_array_equal(images.read(row), expected)
    for part in ("train", "val", "test"):
        np.testing.assert_array_equal(np.flatnonzero(images.splits == part), np.sort(getattr(parts, part)))
        np.testing.assert_array_equal(np.flatnonzero(ROWS.dataset.splits == part), np.sort(getattr(parts, part)))
    np.testing.assert_array_equal(images.targets, ROWS.dataset.targets)


def test_one_training_without_carriers_serves_all_artefacts():
    rows = audit_rows(num_folds=3)
    turns = audit_turns(rows, ["tag", "gamma"], SHARES, lambda fold, share: rows.carriers(fold, share, seed=0))
    assert len(turns) == 3 * (1 + 2 * 2)
    assert [turn.fold.number for turn in turns] == sorted(turn.fold.number for turn in turns)
    assert {(turn.share, turn.confounders) for turn in turns} == {
        (0.0, ("tag", "gamma")), *((share, (name,)) for share in (0.5, 1.0) for name in ("tag", "gamma"))
    }  # fmt: skip
    always = audit_turns(rows, ["tag", "gamma"], SHARES, lambda fold, share: rows.carriers(fold, share, negatives=0.5, seed=0))
    assert len(always) == 3 * 3 * 2 and all(len(turn.confounders) == 1 for turn in always)


def test_levels_have_clean_trainings_of_their_own(monkeypatch):
    """What no image carries is another set of images where all of them have another level."""
    against = confound(
        ROWS, GAMMA, without_artefact(ROWS.dataset, [TAG], seed=0), strength=1.0, negatives=0.0, seed=0, against=TAG
    )
    seen = []

    def do(self, job):
        seen.append((job.name, job.key, self.clean is against.clean))
        ask = [0.4] * len(ROWS.test)
        return AuditTrainingRecord(
            key=job.key, realised=1, threshold=0.5, best_epoch=1, clean=ask, edited=dict.fromkeys(job.spec.confounders, ask)
        )

    monkeypatch.setattr(trainings.AuditTrainings, "do", do)
    entries = sweep_in(None).entries([confounded(GAMMA), against, confounded(TAG)])
    assert [entry.confounder for entry in entries] == ["gamma:gamma=1.5", f"gamma:gamma=1.5 against {spell(TAG)}", spell(TAG)]
    assert len(seen) == len({name for name, _, _ in seen}) == len({key for _, key, _ in seen}) == 5 + 3
    assert [is_own for _, _, is_own in seen] == [False] * 5 + [True] * 3


def test_what_a_training_said_becomes_scores():
    carrying = ROWS.carriers(ROWS.folds[0], 0.5, seed=0)
    turn = AuditTurn(ROWS.folds[0], 0.5, carrying, ("tag", "gamma"), 0.5, "tag")
    record = AuditTrainingRecord(
        key="k",
        realised=realised_share(carrying, ROWS.is_positive, ROWS.folds[0].train),
        threshold=best_threshold(np.array([0.1, 0.5]), np.array([0, 1])),
        best_epoch=3,
        clean=[0.2, 0.4, 0.6],
        edited={"tag": [0.1, 0.35, 0.9], "gamma": [0.0, 0.0, 0.0]},
    )
    found = fold_scores(turn, record, "tag")
    assert (found.fold, found.share, found.realised, found.best_epoch) == (0, 0.5, 0.5, 3)
    assert found.clean.tolist() == [0.2, 0.4, 0.6] and found.edited.tolist() == [0.1, 0.35, 0.9]
    assert found.decided.tolist() == [[False, False, True], [False, False, True]]
    assert found.decided_by_val.tolist() == [[False, True, True], [False, True, True]]  # from 0.3 on


def test_nothing_is_trained_without_an_artefact(counted):
    assert sweep_in(None).entries([]) == [] and counted.done == 0
