import pytest

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.tune.planning.choices import point_name, read_grid


def test_every_combination_in_the_order_of_writing():
    assert read_grid(["learning_rate=1e-3,1e-4", "weight_decay=0,0.05"]) == [
        {"learning_rate": 1e-3, "weight_decay": 0.0},
        {"learning_rate": 1e-3, "weight_decay": 0.05},
        {"learning_rate": 1e-4, "weight_decay": 0.0},
        {"learning_rate": 1e-4, "weight_decay": 0.05},
    ]


@pytest.mark.parametrize(
    "same",
    [
        "learning-rate=0.1,0.01,batch_size=8",
        ["learning_rate=0.1, 0.01", "batch_size=8"],
        {"learning_rate": [0.1, 0.01], "batch_size": (8,)},
    ],
)
def test_text_list_and_mapping_say_the_same(same):
    points = read_grid(same)
    assert points == [{"learning_rate": 0.1, "batch_size": 8}, {"learning_rate": 0.01, "batch_size": 8}]
    assert [type(value) for value in points[0].values()] == [float, int]


def test_no_grid_is_one_point_without_settings():
    assert read_grid(None) == [{}]
    assert point_name({}) == ""


def test_points_have_names_that_differ():
    names = [point_name(point) for point in read_grid("learning_rate=1e-3,1e-4,batch_size=8,16")]
    assert len(set(names)) == 4
    assert names[0] == "learning_rate=0.001,batch_size=8"


@pytest.mark.parametrize(
    ("grid", "kind", "said"),
    [
        ("learning_rat=1e-3,1e-4", UnknownNameError, "Did you mean learning_rate"),
        ("learning_rate=0.1,0.1", UsageError, "different values"),
        ("learning_rate=", UsageError, "different values"),
        ("learning_rate=fast", UsageError, "fast is no number"),
        ("batch_size=8.5,16", UsageError, "not a whole number"),
        ("0.1,0.2", UsageError, "SETTING=VALUE"),
        (["learning_rate=0.1", "learning_rate=0.2"], UsageError, "twice"),
    ],
)
def test_what_is_wrong_is_said(grid, kind, said):
    with pytest.raises(kind, match=said):
        read_grid(grid)
