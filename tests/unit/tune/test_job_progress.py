"""What is said while a training runs."""

import io

import pytest
import torch

from crossgraft.losses import CrossEntropy
from crossgraft.progress import Reporter
from crossgraft.tune.engine.contract import StepReport, TrainedEpoch
from crossgraft.tune.engine.selection_rule import Keep, SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.planning.choices import GridTraining
from crossgraft.tune.planning.rows import FoldData
from crossgraft.tune.tracking import JobProgress, open_tracking
from support.training import build_classifier, build_data, networks_of

JOB = GridTraining(None, {})


def report(step, *, phase="all", epoch=0):
    return StepReport(phase, epoch, step, 40, {"loss": 1.0}, 1e-3, images_per_second=9.0, seconds_left=1.0)


def said(*reports, epochs=(), rule=None, **options):
    stream = io.StringIO()
    tracking = open_tracking(None, Reporter(stream))
    progress = JobProgress(Reporter(stream), tracking, rule=rule or SelectionRule(), num_jobs=1, **options)
    images = build_data(16)[0]
    networks = networks_of(build_classifier, images)
    data = FoldData(None, images, torch.zeros(16, 2), CrossEntropy(), lambda _: {}, networks, "")
    with progress.stage(JOB, data, TrainerSettings(epochs=20, batch_size=8)):
        for each in reports:
            progress.on_step(each)
        for each in epochs:
            progress.on_epoch(each)
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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "loss 1, auc on val 0.900 (best), debiased CKA 0.75, 1 s"),
        ({"adapts": True}, "loss 1, auc on val 0.900 (best), debiased CKA 0.62, 1 s"),
        ({"keep": Keep(0.8)}, "loss 1, auc on val 0.900, debiased CKA 0.75, to be 0.8 (best), 1 s"),
        ({"keep": Keep.of(0.8, adapted=True), "adapts": True}, "debiased CKA 0.62, to be 0.8 (best), 1 s"),
    ],
)
def test_an_epoch_shows_the_similarity_that_counts_and_what_made_it_the_best(options, words):
    similarity = {"cka": 0.9, "cka_debiased": 0.75, "cka_adapted": 0.7, "cka_debiased_adapted": 0.62}
    row = TrainedEpoch("all", 0, 0.1, {"loss": 1.0}, {"auc": 0.9, **similarity}, 1.0, True)
    text = said(epochs=[row], rule=SelectionRule("auc", "max"), **options)
    assert words in text
    assert ("to be" in text) == ("keep" in options)
