import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from crossgraft.demo.toy_models import TOY_MODELS
from crossgraft.demo.training import (
    PROBE_PENALTY,
    FineTuneBoth,
    FineTuneJob,
    TargetTask,
    TrainingRecipe,
    _logistic_regression,
    seeded_initialisation,
)
from crossgraft.running.jobs import Job


def fine_tune_both(job):
    return FineTuneBoth().do(Job("toy", job))


def stripes(count, seed):
    """Class 0 has horizontal bars, class 1 vertical ones; nothing else tells them apart."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    bars = np.sign(np.sin(np.arange(8) * np.pi / 2 + 0.5))
    images = np.stack([np.tile(bars, (8, 1)) if label else np.tile(bars[:, None], (1, 8)) for label in labels])
    return (images[:, None] + 0.3 * rng.normal(size=(count, 1, 8, 8))).astype(np.float32), labels


def make_job(factory="toy_cnn", *, seeds=(0, 1), labels=None):
    train_images, train_labels = stripes(20, 0)
    test_images, test_labels = stripes(30, 1)
    with seeded_initialisation(0, "test"):
        module = TOY_MODELS[factory](num_classes=3)
    return FineTuneJob(
        factory=factory,
        num_source_classes=3,
        state={name: value.numpy() for name, value in module.state_dict().items()},
        task=TargetTask(train_images, train_labels if labels is None else labels, test_images, test_labels),
        recipe=TrainingRecipe(steps=40, batch_size=10, learning_rate=3e-3),
        seeds=seeds,
    )


@pytest.mark.parametrize("factory", sorted(TOY_MODELS))
def test_both_ways_learn_what_can_be_learned(factory):
    found = fine_tune_both(make_job(factory))
    assert found.linear.shape == (30,)
    assert found.full.shape == (2, 30)
    assert found.linear.mean() > 0.9
    assert found.full.mean() > 0.9


def test_wrong_training_labels_give_wrong_answers():
    found = fine_tune_both(make_job(labels=1 - np.arange(20) % 2))
    assert found.linear.mean() < 0.1
    assert found.full.mean() < 0.1


def test_the_same_job_gives_the_same_answers():
    job = make_job("toy_vit")
    before = {name: value.copy() for name, value in job.state.items()}
    first, second = fine_tune_both(job), fine_tune_both(job)
    np.testing.assert_array_equal(first.full, second.full)
    np.testing.assert_array_equal(first.linear, second.linear)
    assert all(np.array_equal(before[name], job.state[name]) for name in before)


def test_it_starts_from_the_given_weights():
    job = make_job()
    silenced = {name: np.zeros_like(value) for name, value in job.state.items()}
    found = fine_tune_both(FineTuneJob(**{**vars(job), "state": silenced}))
    assert found.linear.mean() == pytest.approx(0.5), "without features every image gets the same class"


def test_the_probe_is_the_penalised_logistic_regression_of_scikit_learn():
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(60, 4)), rng.integers(0, 3, size=60)
    layer = _logistic_regression(torch.from_numpy(features.astype(np.float32)), torch.from_numpy(labels), 3)
    # scikit-learn minimises C · Σ loss + ‖w‖²/2, and here it is mean loss + λ‖w‖².
    expected = LogisticRegression(C=1 / (2 * PROBE_PENALTY * 60), tol=1e-8).fit(features, labels)
    np.testing.assert_allclose(layer.weight.detach().numpy(), expected.coef_, atol=2e-3)
