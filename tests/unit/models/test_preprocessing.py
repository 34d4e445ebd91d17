"""Three voices, one preprocessing."""

import pytest

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models.preprocessing import resolve_preprocessing
from crossgraft.types import Preprocessing

TIMM = {
    "input_size": (3, 224, 224),
    "mean": (0.485, 0.456, 0.406),
    "std": (0.229, 0.224, 0.225),
    "interpolation": "bicubic",
    "crop_pct": 0.875,
    "crop_mode": "center",
}


def test_timm_says_everything():
    assert resolve_preprocessing(TIMM, {}, model="m") == Preprocessing(
        224, 224, 3, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), "bicubic", "crop", 0.875
    )


def test_the_more_specific_voice_wins():
    said = {"input_size": [1, 96, 64], "mean": 0.5, "std": [0.25], "interpolation": "bilinear", "crop_pct": 1.0}
    found = resolve_preprocessing(TIMM, said, model="m", image_size=32, resize_policy="pad")
    assert found == Preprocessing(32, 32, 1, (0.5,), (0.25,), "bilinear", "pad", 1.0)
    assert resolve_preprocessing(TIMM, said, model="m").width_pixels == 64


@pytest.mark.parametrize(
    ("said", "policy"), [({"crop_mode": "squash"}, "squash"), ({"crop_mode": "border"}, "pad"), ({}, "crop")]
)
def test_crop_mode_of_timm_becomes_a_policy(said, policy):
    assert resolve_preprocessing({"input_size": (3, 8, 8), **said}, {}, model="m").resize_policy == policy


def test_one_number_is_a_square_and_a_grey_network_averages_colour_statistics():
    assert resolve_preprocessing({}, {"input_size": 28}, model="m").height_pixels == 28
    one_channel = {"input_size": (1, 28, 28), "mean": (0.4,), "std": (0.2,)}
    larger = resolve_preprocessing(one_channel, {"input_size": 64}, model="m")
    assert (larger.channels, larger.height_pixels, larger.mean) == (1, 64, (0.4,))
    grey = resolve_preprocessing({"mean": (0.3, 0.5, 0.7)}, {"input_size": [1, 8, 8], "std": 1}, model="m")
    assert grey.mean == (0.5,)
    assert resolve_preprocessing({"interpolation": "random"}, {"input_size": 8}, model="m").interpolation == "bilinear"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({}, "does not say which image size"),
        ({"input_size": [2, 8, 8]}, "1 or 3 channels"),
        ({"input_size": "8"}, "input_size of the model m"),
        ({"input_size": 8, "mean": [0.5, 0.5]}, "mean of the model m must be 3"),
        ({"input_size": 8, "std": 0}, "positive"),
        ({"input_size": 8, "crop_pct": 1.5}, r"in \[0\.01, 1\]"),
        ({"input_size": 8, "crop_pct": "all"}, "crop_pct"),
    ],
)
def test_values_without_meaning(said, message):
    with pytest.raises(UsageError, match=message):
        resolve_preprocessing({}, said, model="m")


def test_unknown_words_get_the_nearest_name():
    with pytest.raises(UnknownNameError, match="bilinear"):
        resolve_preprocessing({}, {"input_size": 8, "interpolation": "bilinar"}, model="m")
    with pytest.raises(UnknownNameError, match="squash"):
        resolve_preprocessing({}, {"input_size": 8, "resize_policy": "squish"}, model="m")
    with pytest.raises(UsageError, match="at least 1 pixel"):
        resolve_preprocessing({}, {"input_size": 8}, model="m", image_size=0)
