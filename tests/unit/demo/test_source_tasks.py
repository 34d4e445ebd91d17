import numpy as np
import pytest

from crossgraft.data import prepare_batch
from crossgraft.demo.toy_models import PREPROCESSING
from crossgraft.demo.toy_zoo import PATCHES_PER_PHOTO, make_source_tasks


@pytest.fixture
def by_name(source_tasks):
    return {task.name: task for task in source_tasks}


def test_names_sizes_and_classes(source_tasks, demo_data):
    found = {task.name: (len(task.images), len(task.labels), task.num_classes) for task in source_tasks}
    n, m = len(demo_data.source), 2 * PATCHES_PER_PHOTO
    assert found == {
        "digits 0–4": (n, n, 5),
        "rotated digits 0–4": (4 * n, 4 * n, 4),
        "photo patches": (m, m, 2),
        "rotated photo patches": (4 * m, 4 * m, 4),
        "shuffled labels": (n, n, 5),
    }


def test_digits_are_prepared_as_the_ranking_will_prepare_them(by_name, demo_data):
    expected = prepare_batch([demo_data.source.read(3)], PREPROCESSING).numpy()
    np.testing.assert_array_equal(by_name["digits 0–4"].images[3:4], expected)
    assert by_name["digits 0–4"].labels[3] == demo_data.source.labels[3]


@pytest.mark.parametrize(
    ("turned", "upright"), [("rotated digits 0–4", "digits 0–4"), ("rotated photo patches", "photo patches")]
)
def test_turning_back_by_the_label_gives_the_upright_image(by_name, turned, upright):
    originals, task = by_name[upright].images, by_name[turned]
    for row in range(0, len(task.images), 97):
        back = np.rot90(task.images[row], -task.labels[row], axes=(1, 2))
        np.testing.assert_array_equal(back, originals[row % len(originals)])


def test_the_control_has_the_same_labels_in_another_order(by_name):
    real, control = by_name["digits 0–4"], by_name["shuffled labels"]
    np.testing.assert_array_equal(np.bincount(real.labels), np.bincount(control.labels))
    # Chance agreement of five balanced classes is 0.2; 0.3 is five standard errors above it.
    assert np.mean(real.labels == control.labels) < 0.3
    np.testing.assert_array_equal(real.images, control.images)


def test_the_two_photographs_differ(by_name):
    task = by_name["photo patches"]
    first, second = (task.images[task.labels == photo].mean(axis=(1, 2, 3)) for photo in (0, 1))
    assert abs(first.mean() - second.mean()) > 0.3
    assert np.std(first) > 0.05, "patches of one photograph are cut at different places"


def test_the_seed_decides(demo_data, source_tasks):
    again, other = (make_source_tasks(demo_data.source, seed=seed) for seed in (0, 1))
    for before, same in zip(source_tasks, again, strict=True):
        np.testing.assert_array_equal(before.images, same.images)
        np.testing.assert_array_equal(before.labels, same.labels)
    assert not np.array_equal(source_tasks[2].images, other[2].images)
    assert not np.array_equal(source_tasks[4].labels, other[4].labels)
