import numpy as np
import pytest

from crossgraft.demo.best_model import check_zoo
from crossgraft.demo.training import TrainingRecipe
from crossgraft.metrics import accuracy
from crossgraft.models import ModelSpec, load_backbone
from crossgraft.progress import Reporter

SPECS = [
    ModelSpec(
        name=f"{factory} random",
        source=f"crossgraft.demo.toy_models:{factory}",
        weights="random",
        kwargs={"num_classes": 2},
        family=factory,
    )
    for factory in ("toy_cnn", "toy_vit")
]


@pytest.fixture
def check(demo_data, pool):
    def call(**options):
        return check_zoo(
            SPECS,
            demo_data.train,
            demo_data.test,
            pool=pool,
            reporter=Reporter(quiet=True),
            recipe=TrainingRecipe(steps=6, batch_size=25, learning_rate=2e-3),
            num_seeds=2,
            **options,
        )

    return call


def test_rows_hold_accuracy_over_unseen_writers(check, demo_data):
    found = check()
    assert [row.model for row in found.rows] == [spec.name for spec in SPECS]
    for row in found.rows:
        expected = accuracy(found.full_shares[row.model], demo_data.test.groups)
        assert (row.full_accuracy, row.full_low, row.full_high) == expected[:3]
        assert row.linear_low < row.linear_accuracy < row.linear_high
        assert (row.num_test_images, row.seeds) == (len(demo_data.test), 2)
        assert row.linear_accuracy > 0.3, "five classes: chance is 0.2"
    assert found.family == {"toy_cnn random": "toy_cnn", "toy_vit random": "toy_vit"}
    assert found.full_accuracy == {row.model: row.full_accuracy for row in found.rows}
    np.testing.assert_array_equal(found.writers, demo_data.test.groups)


def test_shares_are_means_over_seeds(check):
    shares = check().full_shares["toy_cnn random"]
    assert set(shares.tolist()) == {0.0, 0.5, 1.0}


def test_it_fine_tunes_exactly_the_network_that_is_ranked(check, pool):
    check(seed=3)
    ranked = load_backbone(SPECS[0], seed=3).module.state_dict()
    assert pool.jobs[0].state.keys() == ranked.keys()
    assert all(np.array_equal(pool.jobs[0].state[name], value.numpy()) for name, value in ranked.items())


def test_the_test_images_are_kept_apart_from_training(check, pool, demo_data):
    check()
    task = pool.jobs[0].task
    assert len(task.train_images) == len(demo_data.train)
    assert len(task.test_images) == len(demo_data.test)
    np.testing.assert_array_equal(task.test_labels, demo_data.test.targets)
