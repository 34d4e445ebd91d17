"""What is odd about single images: sizes, kinds, damage, files that are none; and those that look least like their class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

from crossgraft.data.checks.record import FindingRecord
from crossgraft.data.checks.survey import Survey, finding
from crossgraft.data.describe import THUMBNAIL_CLASSES, smallest_thumbnail
from crossgraft.data.inspection import describe_dark, summarise_kinds
from crossgraft.records.base import Thumbnail
from crossgraft.words.formatting import count, counted, joined, percent

USUAL_INPUT = 224
"""Pixels a side that most pretrained models were trained on."""
_LONG = 1.3  # longer side / shorter side of the 5 % longest images, from which a square input is worth a thought
_VERY_LONG = 2.0
_ENLARGED = 3.5  # 64 pixels become 224


def check_image_sizes(survey: Survey) -> list[FindingRecord]:
    """Never unsound: what a model will see of images that are long, small, or of several kinds."""
    facts = [survey.facts[row] for row in survey.readable_rows]
    if not facts:
        return []
    heights, widths = np.asarray([fact.height for fact in facts]), np.asarray([fact.width for fact in facts])
    return [_kinds(survey), *_shapes(heights, widths), *_small(np.minimum(heights, widths))]


def _kinds(survey: Survey) -> FindingRecord:
    facts = [survey.facts[row] for row in survey.readable_rows]
    kinds = summarise_kinds(fact.kind for fact in facts)
    depths = {" ".join(kind.split(" ")[1:]) for kind in kinds}
    grey = sum(fact.kind.split(" ")[1] == "RGB" and fact.digest != fact.picture for fact in facts)
    text = "; ".join(f"{kind} ({counted(number, 'image')})" for kind, number in kinds.items()) + "."
    if grey:
        text += f" {counted(grey, 'RGB image')} {'holds' if grey == 1 else 'hold'} a plainer picture (grey, or 8 bits)."
    if len(depths) < 2:
        return finding("image_kinds", "Kinds of images", "passed", text)
    advice = "Where kinds come from different scanners or clinics, a model may learn them instead of the disease."
    return finding("image_kinds", "Several kinds of images", "notice", text, advice=advice)


def _shapes(heights: np.ndarray, widths: np.ndarray) -> list[FindingRecord]:
    """How far from square, for the typical image and for the 5 % that are longest."""
    ratios = np.maximum(heights, widths) / np.minimum(heights, widths)
    typical, longest = float(np.median(ratios)), float(np.quantile(ratios, 0.95))
    if longest < _LONG:
        text = "All images are square."
        if ratios.max() > 1:
            text = f"In 95 % of the images the longer side is at most {longest:.2f} times the shorter one."
        return [finding("image_shapes", "Shapes of images", "passed", text)]
    both = abs(longest - typical) > 0.05
    text = (
        f"The longer side is {typical:.2f} times the shorter one{f' ({longest:.2f} for the longest 5 %)' if both else ''}. "
        f"For a square input, crop cuts off {_shares(typical, longest, both)} of the picture, squash stretches it by that "
        f"factor, and pad fills {_shares(typical, longest, both)} of the input with black."
    )
    advice = "Choose with --resize-policy, and look at what is cut off."
    severity = "warning" if longest >= _VERY_LONG else "notice"
    return [finding("image_shapes", "Images far from square", severity, text, advice=advice)]


def _shares(typical: float, longest: float, both: bool) -> str:
    """The share of a long rectangle that lies outside of its central square; also of a square that it leaves empty."""
    return percent(1 - 1 / typical) + (f" ({percent(1 - 1 / longest)})" if both else "")


def _small(sides: np.ndarray) -> list[FindingRecord]:
    side = float(np.median(sides))
    factor = USUAL_INPUT / side
    if factor < _ENLARGED:
        return []
    text = (
        f"The shorter side has {side:.0f} pixels (median); a model with {USUAL_INPUT}-pixel inputs sees it enlarged "
        f"{factor:.0f} times."
    )
    advice = "Detail that is not there cannot be used; --image-size gives smaller inputs to models that allow it."
    return [finding("image_sizes", "Small images", "notice", text, advice=advice)]


def check_constant_images(survey: Survey) -> list[FindingRecord]:
    """A warning: an empty slice or a failed export, not a picture."""
    rows = [[int(row)] for row in survey.readable_rows if survey.facts[row].is_constant]
    if not rows:
        return [finding("constant_images", "Constant images", "passed", "Every image has more than one value.")]
    text = f"{counted(len(rows), 'image')} {'has' if len(rows) == 1 else 'have'} one value in all pixels."
    advice = "Look at them: an empty slice or a failed export teaches nothing but its label."
    return [finding("constant_images", "Constant images", "warning", text, advice=advice, images=rows)]


_MOST_REASONS = 3


def check_readable_images(survey: Survey) -> list[FindingRecord]:
    """Unreadable images are unsound; 16-bit images that use little of their range are a warning."""
    dark = describe_dark(survey.facts)
    findings = [] if dark is None else [finding("sample_range", "Dark 16-bit images", "warning", dark)]
    if not survey.unreadable:
        text = f"All {count(len(survey))} images can be read."
        return [*findings, finding("readable_images", "Readable images", "passed", text)]
    text = f"{counted(len(survey.unreadable), 'image')} cannot be read: {_in_words(survey.unreadable.values())}."
    advice = "Repair or remove them; --skip-unreadable leaves them out of a run."
    rows = [[row] for row in survey.unreadable]
    reasons = list(survey.unreadable.values())
    title = "Unreadable images"
    return [*findings, finding("readable_images", title, "unsound", text, advice=advice, images=rows, reasons=reasons)]


def _in_words(reasons: Iterable[str]) -> str:
    """The commonest reasons, with their numbers where there is more than one."""
    counts = Counter(reasons).most_common()
    if len(counts) == 1:
        return counts[0][0]
    shown = [f"{reason} ({count(number)})" for reason, number in counts[:_MOST_REASONS]]
    others = sum(number for _, number in counts[_MOST_REASONS:])
    return "; ".join([*shown, f"other reasons ({count(others)})"] if others else shown)


_MOST_SHOWN = 8


def check_files_read(survey: Survey) -> list[FindingRecord]:
    """Files by kind and class: a warning where images lack a reader, else a notice; nothing where all are of one kind."""
    files, passed_over = survey.files, survey.files.passed_over
    kinds = joined([f"{count(number)} {kind}" for kind, number in files.kinds_read.most_common()])
    if not passed_over:
        text = f"{counted(files.total, 'file')}: {kinds}."
        return [finding("files_read", "Files read", "passed", text)] if len(files.kinds_read) > 1 else []
    shown = [
        f"{count(skipped.number)} {skipped.kind}{f' in {skipped.place}' if skipped.place else ''} ({skipped.reason})"
        for skipped in passed_over[:_MOST_SHOWN]
    ]
    if len(passed_over) > _MOST_SHOWN:
        shown.append(f"{count(sum(skipped.number for skipped in passed_over[_MOST_SHOWN:]))} of other kinds")
    text = f"{counted(files.total, 'file')}: {kinds or 'none'} are read; passed over: {', '.join(shown)}."
    lost = any(skipped.is_image for skipped in passed_over)
    advice = "Save them as PNG, or install their reader." if lost else ""
    return [finding("files_read", "Files passed over", "warning" if lost else "notice", text, advice=advice)]


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
