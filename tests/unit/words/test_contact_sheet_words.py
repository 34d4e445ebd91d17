"""What an edit does to a few images, in words."""

import math

import pytest

from crossgraft.edit.words import change_in_words, scale_in_words


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ((None, None, None, None), "Cannot be put into these images."),
        ((0.0, 0.0, math.inf, None), "Changes nothing in these images."),
        ((2.8, 0.0013, 39.2, None), "Changes 2.80 grey levels (rms), 0.13 % of the samples, PSNR 39.2 dB."),
        (
            (0.1, 0.5, 68.0, 0.25),
            "Changes 0.10 grey levels (rms, less than rounding to 8 bits), 50 % of the samples, inside a mask of 25 % of the "
            "image, PSNR 68.0 dB.",
        ),
    ],
)
def test_what_changed(facts, said):
    assert change_in_words(*facts).replace("\N{NO-BREAK SPACE}", " ") == said


def test_both_ends_of_the_scale():
    assert scale_in_words(12.0) == ("−12", "+12") and scale_in_words(0.0) == ("0", "0")
