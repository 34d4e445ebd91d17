import pytest

from crossgraft.errors import (
    DataError,
    NotApplicable,
    OtherImagesError,
    UnknownNameError,
    UnreadableImageError,
    UsageError,
    located,
    nearest_names,
)

SCORES = ("gbc", "h_score", "knn_probe", "leep", "linear_probe", "logme", "nleep", "regularized_h_score")


@pytest.mark.parametrize(
    ("typed", "first"),
    [("lineer", "linear_probe"), ("hscore", "h_score"), ("logmee", "logme"), ("KNN", "knn_probe"), ("nlep", "nleep")],
)
def test_one_word_of_a_name_may_be_meant(typed, first):
    assert nearest_names(typed, SCORES)[0] == first


@pytest.mark.parametrize("typed", ["zzz", "x", ""])
def test_nothing_is_near_to_nonsense(typed):
    assert nearest_names(typed, SCORES) == []


def test_whole_names_come_before_words_and_short_before_long():
    known = ["cspresnet18_long_name", "resnet18", "resnet18_wide", "vgg"]
    assert nearest_names("resnet81", known)[:2] == ["resnet18", "resnet18_wide"]
    assert len(nearest_names("probe", ["a_probe", "b_probe", "c_probe", "d_probe"])) == 3


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OtherImagesError("odd"), OtherImagesError),
        (NotApplicable("odd"), NotApplicable),
        (UnknownNameError("head", "odd", []), UsageError),
        (UnreadableImageError("row 3", "odd"), DataError),
    ],
)
def test_an_error_with_its_place_has_the_class_that_a_text_makes(error, kind):
    found = located(error, "Episode 7")
    assert type(found) is kind and found.exit_code == error.exit_code
    assert str(found) == f"Episode 7: {error}"
