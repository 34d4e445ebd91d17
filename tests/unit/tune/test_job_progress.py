"""What is said while a training runs."""

import io

import pytest
import torch

from crossgraft.losses import CrossEntropy
from crossgraft.progress import Reporter
from crossgraft.tune.engine.contract import StepReport
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.job_progress import JobProgress
from crossgraft.tune.planning.fold_data import FoldData
from crossgraft.tune.planning.grid import GridTraining
from crossgraft.tune.tracking import open_tracking
from support.training import build_classifier, build_data, networks_of

JOB = GridTraining(None, {})


def report(step, *, phase="all", epoch=0):
    return StepReport(phase, epoch, step, 40, {"loss": 1.0}, 1e-3, images_per_second=9.0, seconds_left=1.0)


def said(*reports):
    stream = io.StringIO()
    progress = JobProgress(Reporter(stream), open_tracking(None, Reporter(stream)), rule=SelectionRule(), num_jobs=1)
    images = build_data(16)[0]
    networks = networks_of(build_classifier, images)
    data = FoldData(None, images, torch.zeros(16, 2), CrossEntropy(), lambda _: {}, networks, "")
    with progress.stage(JOB, data, TrainerSettings(epochs=20, batch_size=8)):
        for each in reports:
            progress.on_step(each)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("first", "words"),
    [(report(13, epoch=6), "epoch 7 of 20, where"), (report(5, phase="head", epoch=2), "epoch 3 of the head, where")],
)
def test_a_resumed_training_says_once_where_it_goes_on(first, words):
    text = said(first, report(14, epoch=6))
    assert text.count("going on at") == 1
    assert f"Training: going on at {words} it was stopped." in text


def test_one_from_the_start_says_nothing_of_it():
    assert "going on" not in said(report(1), report(2), report(3, epoch=1))
    assert "going on" not in said(report(1, phase="head"), report(1), report(2))
