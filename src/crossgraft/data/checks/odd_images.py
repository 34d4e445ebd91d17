"""Some images of each class beside those that look least like it, to be looked at."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

from crossgraft.data.checks.survey import Survey
from crossgraft.data.describe import THUMBNAIL_CLASSES
from crossgraft.data.examples import smallest_thumbnail
from crossgraft.records.base import Thumbnail

NUM_USUAL, MOST_ODD = 5, 5
"""Images of a class on each side of its strip."""
_FAR_OUT = 3.0  # interquartile ranges beyond the upper quartile: Tukey, Exploratory data analysis, 1977


class OddImages(NamedTuple):
    """Places of some images of a class, the distance of each image, and from where on one is odd.

    Attributes:
        usual: Places of those in the middle of the distances.
        odd: Places of the farthest, the farthest first.
        distances: (n,) root mean square difference from the mean picture, in grey levels of 255.
        limit: Upper quartile and three interquartile ranges; an image beyond it is marked.
    """

    usual: list[int]
    odd: list[int]
    distances: Float[np.ndarray, " num_images"]
    limit: float


def find_odd_images(pictures: UInt8[np.ndarray, "num_images height width"]) -> OddImages:
    """Images that differ most from the mean picture of all of them, and as many of the usual ones.

    It sees brightness, contrast, framing and what fills much of a picture: an empty slice, an inverted film, another kind of
    image. It does not see what is wrong with a lesion. Of fewer than eight images a third is shown as the farthest.

    Args:
        pictures: Grey images of one class, at least one.

    Cost: O(number of pixels).
    """
    values = pictures.reshape(len(pictures), -1).astype(np.float32)
    distances = np.sqrt(((values - values.mean(axis=0)) ** 2).mean(axis=1, dtype=np.float64))
    order = np.argsort(-distances, kind="stable")
    num_odd = min(MOST_ODD, -(-len(pictures) // 3)) if len(pictures) > 1 else 0
    rest = order[num_odd:]
    middle = len(rest) // 2
    first = max(0, min(middle - NUM_USUAL // 2, len(rest) - NUM_USUAL))
    low, high = np.quantile(distances, (0.25, 0.75))
    usual = rest[first : first + NUM_USUAL]
    return OddImages(sorted(usual.tolist()), order[:num_odd].tolist(), distances, float(high + _FAR_OUT * (high - low)))


def strips_of_classes(survey: Survey) -> list[Thumbnail]:
    """Small images for the strip of each class, the usual ones first; those that are farthest have their distance."""
    shown: list[Thumbnail] = []
    readable = np.zeros(len(survey), dtype=bool)
    readable[survey.readable_rows] = True
    for index, name in enumerate(survey.class_names[:THUMBNAIL_CLASSES]):
        rows = np.flatnonzero(survey.members(index) & readable)
        found = [(int(row), thumbnail) for row in rows if (thumbnail := survey.facts[int(row)].thumbnail) is not None]
        if not found:
            continue
        odd = find_odd_images(np.stack([thumbnail for _, thumbnail in found]))
        for place in [*odd.usual, *odd.odd]:
            distance = float(odd.distances[place])
            shown.append(
                Thumbnail(
                    **smallest_thumbnail(survey.read(found[place][0])),
                    class_name=name,
                    row=found[place][0] + 1,
                    distance=round(distance, 1) if place in odd.odd else None,
                    is_far=place in odd.odd and distance > odd.limit,
                )
            )
    return shown
