"""Images that were answered, and the table of what was taken for what: one filter for both, and for the images one by one.

Everything stands in the page. The script only hides what a filter leaves out, counts anew, and enlarges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from crossgraft.records.base import ImageAnswer, Thumbnail
from crossgraft.report.tables import Column, Table, number, whole, words
from crossgraft.words.formatting import NumberFormat

_CERTAINTY = NumberFormat(decimals=3)
_BANDS = ((0.9, "0.9 and above"), (0.7, "0.7 to 0.9"), (0.5, "0.5 to 0.7"), (0.0, "below 0.5"))
"""Certainty by which images are filtered: lowest value, and what is chosen."""
DIAGONAL_IS_RIGHT = "The diagonal is right; the stronger the colour of a cell, the larger its share of its row."
MOST_LISTED_GROUPS = 25
"""Where there are more groups (patients), one is typed, not chosen from a list."""
_TRUE, _ANSWER, _NOT_KNOWN = "True class", "Answer", "not known"


class Facet(NamedTuple):
    """One way to divide images: a title, and what an image can be; typed, with suggestions, where a list would be too long."""

    title: str
    values: Sequence[str]
    is_typed: bool = False


class Picture(NamedTuple):
    """One image.

    Attributes:
        uri: The image as a ``data:`` address.
        row: Number of the image, from 1.
        label: All about it, for a screen reader.
        mark: Short text below it; empty: none.
        places: Place of its value in each facet.
        certainties: How sure each model was.
        is_wrong: Whether some answer is wrong.
        is_hidden: Whether the filter leaves it out at first.
    """

    uri: str
    row: int
    label: str
    mark: str
    places: Sequence[int]
    certainties: Sequence[float]
    is_wrong: bool
    is_hidden: bool


class Crossed(NamedTuple):
    """How many images of each true class (rows) got each answer (columns).

    Attributes:
        rows: Its names of the rows, with a small image of each, or an empty text.
        columns: Names of the columns.
        counts: One list a row.
        row_facet: Place of the facet of the rows.
        column_facet: That of the columns.
        row_name: What the names of the rows are, in a word.
        column_name: What those of the columns are.
        caption: What to see.
        csv: The same as a table, for its CSV file.
    """

    rows: Sequence[tuple[str, str]]
    columns: Sequence[str]
    counts: Sequence[Sequence[int]]
    row_facet: int
    column_facet: int
    row_name: str
    column_name: str
    caption: str
    csv: Table

    def share(self, row: int, column: int) -> str:
        """Share of a row that is in a cell, as a style sheet takes it."""
        return f"{self.counts[row][column] / max(1, sum(self.counts[row])):.3f}"


@dataclass(frozen=True)
class Explorer:
    """Answered images with a filter, the table of true classes and answers beside them, and the same images as a table.

    Args:
        identifier: Unique on the page.
        pictures: In the order in which they are first shown; none: only ``crossed`` is shown.
        facets: What they are filtered by.
        chosen: Facet → value that is chosen at first.
        crossed: True classes and answers; None: not asked for.
        is_whole: Whether ``pictures`` are all images that ``crossed`` counts, so that a filter can count anew.
        answer_facets: Places of the facets that are answers, one per model.
        table: One row per picture.
        caption: What to see.
    """

    template: ClassVar[str] = "block_explorer.html"
    identifier: str
    pictures: Sequence[Picture] = ()
    facets: Sequence[Facet] = ()
    chosen: tuple[tuple[int, int], ...] = ()
    crossed: Crossed | None = None
    is_whole: bool = False
    answer_facets: Sequence[int] = ()
    table: Table | None = None
    caption: str = ""

    def places_of_cell(self, row: str, column: str) -> str:
        """What a click on a cell of ``crossed`` filters by; empty where no picture can be in it."""
        if self.crossed is None or not self.pictures:
            return ""
        rows, columns = (self.facets[facet].values for facet in (self.crossed.row_facet, self.crossed.column_facet))
        return f"{rows.index(row)} {columns.index(column)}" if row in rows and column in columns else ""

    @property
    def first_order(self) -> str:
        """In what order the pictures stand, in words."""
        return "wrong first" if any(picture.is_wrong for picture in self.pictures) else "least sure first"

    @property
    def offered(self) -> list[tuple[int, Facet]]:
        """Facets that divide the pictures, with their places."""
        return [(place, facet) for place, facet in enumerate(self.facets) if len(facet.values) > 1]


def explorer_of(
    thumbnails: Sequence[Thumbnail],
    class_names: Sequence[str],
    *,
    identifier: str,
    caption: str,
    confusion: tuple[Sequence[Sequence[int]], str] | None = None,
    without: str = "val",
) -> Explorer:
    """The block of images with answers; wrong ones first, the surest of them first.

    Args:
        thumbnails: Those without answers are examples of classes.
        class_names: Names of the classes, in their order.
        identifier: Unique on the page.
        caption: Sentence below the images.
        confusion: Images of each true class and answer, and what to see in it; None: of several models the answers of the first
            two are crossed instead.
        without: Part of the data that is not shown at first.
    """
    shown = sorted((each for each in thumbnails if each.answers), key=_first_looked_at)
    facets = _facets(shown, class_names)
    places = [dict(zip(facet.values, range(len(facet.values)), strict=True)) for facet in facets]
    others = [name for name in facets[0].values if name != without] if shown else []
    chosen = ((0, facets[0].values.index(others[0])),) if len(others) == 1 and len(facets[0].values) > 1 else ()
    pictures = [
        Picture(
            uri=each.uri,
            row=each.row or 0,
            label=_label(each),
            mark=_mark(each),
            places=[place[value] for place, value in zip(places, _values(each), strict=True)],
            certainties=[answer.certainty for answer in each.answers],
            is_wrong=_num_wrong(each) > 0,
            is_hidden=bool(chosen) and each.split == without,
        )
        for each in shown
    ]
    num_models = len(shown[0].answers) if shown else 0
    if confusion is not None:
        crossed = _crossed(confusion, class_names, thumbnails)
    else:
        crossed = _of_two_models(shown, class_names, thumbnails) if num_models > 1 else None
    counted = sum(not picture.is_hidden for picture in pictures)
    return Explorer(
        identifier=identifier,
        pictures=pictures,
        facets=facets if shown else (),
        chosen=chosen,
        crossed=crossed,
        is_whole=crossed is not None and counted == sum(map(sum, crossed.counts)),
        answer_facets=range(2, 2 + num_models),
        table=_table(shown, f"{identifier}-images") if shown else None,
        caption=caption,
    )


def _first_looked_at(thumbnail: Thumbnail) -> tuple[bool, bool, float, int]:
    """Answers of test before those of val, wrong ones first and these the surest first, right ones the least sure first."""
    certainty = thumbnail.answers[0].certainty
    is_wrong = _num_wrong(thumbnail) > 0
    return thumbnail.split == "val", not is_wrong, -certainty if is_wrong else certainty, thumbnail.row or 0


def _num_wrong(thumbnail: Thumbnail) -> int:
    return sum(answer.is_right is False for answer in thumbnail.answers)


def _values(thumbnail: Thumbnail) -> list[str]:
    """One per facet."""
    return [
        thumbnail.split,
        _NOT_KNOWN if thumbnail.target is None else thumbnail.target,
        *(answer.decision for answer in thumbnail.answers),
        _outcome(thumbnail.answers),
        _band(min(answer.certainty for answer in thumbnail.answers)),
        "" if thumbnail.group is None else str(thumbnail.group),
    ]


def _facets(shown: Sequence[Thumbnail], class_names: Sequence[str]) -> list[Facet]:
    if not shown:
        return []
    models = [answer.model or _ANSWER for answer in shown[0].answers]
    titles = ["Part of the data", _TRUE, *models, "Right or wrong", "Certainty", "Group"]
    columns = list(zip(*map(_values, shown), strict=True))
    outcomes = _outcomes([answer.model for answer in shown[0].answers])
    orders: list[Sequence[str]] = [[], class_names, *([class_names] * len(models)), outcomes, [name for _, name in _BANDS]]
    groups = sorted(set(columns[-1]), key=lambda name: (len(name), name))
    orders.append(groups)
    facets: list[Facet] = []
    for title, column, order in zip(titles, columns, orders, strict=True):
        there = dict.fromkeys(column)
        facets.append(Facet(title, [*(name for name in order if name in there), *(name for name in there if name not in order)]))
    facets[-1] = facets[-1]._replace(is_typed=len(groups) > MOST_LISTED_GROUPS)
    return facets


def _outcome(answers: Sequence[ImageAnswer]) -> str:
    right = [answer.is_right for answer in answers]
    if None in right:
        return _NOT_KNOWN
    if len(right) == 1:
        return "right" if right[0] else "wrong"
    if len(right) > 2:
        return f"{sum(map(bool, right))} of {len(right)} right"
    if right[0] == right[1]:
        return "both right" if right[0] else "both wrong"
    return f"only {next(answer.model for answer in answers if answer.is_right)} right"


def _outcomes(models: Sequence[str]) -> list[str]:
    if len(models) > 2:
        return [f"{number} of {len(models)} right" for number in range(len(models) + 1)]
    return ["wrong", "right"] if len(models) == 1 else ["both wrong", *(f"only {name} right" for name in models), "both right"]


def _band(certainty: float) -> str:
    return next(name for lowest, name in _BANDS if certainty >= lowest)


def _label(thumbnail: Thumbnail) -> str:
    truth = "" if thumbnail.target is None else f", true {thumbnail.target}"
    said = "; ".join(
        f"{f'{answer.model}: ' if answer.model else ''}{answer.decision} ({_CERTAINTY(answer.certainty)})"
        for answer in thumbnail.answers
    )
    return f"Row {thumbnail.row}: {said}{truth}"


def _mark(thumbnail: Thumbnail) -> str:
    """What was said of it, unless it is known to be right."""
    return " / ".join(dict.fromkeys(answer.decision for answer in thumbnail.answers if answer.is_right is not True))


def _crossed(
    confusion: tuple[Sequence[Sequence[int]], str], class_names: Sequence[str], thumbnails: Sequence[Thumbnail]
) -> Crossed:
    counts, caption = confusion
    examples = {each.class_name: each.uri for each in reversed(thumbnails) if each.row is None}
    csv = Table(
        caption="Images by true class (rows) and answer (columns)",
        columns=[Column(_TRUE), *(Column(name, numeric=True) for name in class_names)],
        rows=[[words(name), *map(whole, row)] for name, row in zip(class_names, counts, strict=True)],
        file_name="confusion",
    )
    return Crossed(
        rows=[(name, examples.get(name, "")) for name in class_names],
        columns=class_names,
        counts=counts,
        row_facet=1,
        column_facet=2,
        row_name="true",
        column_name="answer",
        caption=caption,
        csv=csv,
    )


def _of_two_models(shown: Sequence[Thumbnail], class_names: Sequence[str], thumbnails: Sequence[Thumbnail]) -> Crossed | None:
    """Answers of the first model (rows) and of the second; None where images have several labels."""
    pairs = Counter((each.answers[0].decision, each.answers[1].decision) for each in shown)
    if not {name for pair in pairs for name in pair} <= set(class_names):
        return None
    first, second = (answer.model for answer in shown[0].answers[:2])
    counts = [[pairs[one, other] for other in class_names] for one in class_names]
    crossed = _crossed((counts, "On the diagonal both say the same, right or wrong."), class_names, thumbnails)
    csv = replace(crossed.csv, caption=f"Images by the answers of {first} (rows) and {second} (columns)", file_name="answers")
    return crossed._replace(row_facet=2, column_facet=3, row_name=first, column_name=second, csv=csv)


def _table(shown: Sequence[Thumbnail], file_name: str) -> Table:
    models = [answer.model for answer in shown[0].answers]
    columns = [Column("Row", numeric=True), Column(_TRUE)]
    for model in models:
        columns += [Column(model or _ANSWER), Column(f"Certainty of {model}" if model else "Certainty", numeric=True)]
    in_parts = any(each.split for each in shown)
    columns += [
        Column("Outcome"),
        *([Column("Part")] if in_parts else []),
        *([Column("Group", numeric=True)] if shown[0].group is not None else []),
    ]
    rows = [
        [
            whole(each.row),
            words(each.target),
            *(cell for a in each.answers for cell in (words(a.decision), number(a.certainty, _CERTAINTY))),
            words(_outcome(each.answers)),
            *([words(each.split)] if in_parts else []),
            *([whole(each.group)] if each.group is not None else []),
        ]
        for each in shown
    ]
    return Table(caption="The same images", columns=columns, rows=rows, file_name=file_name)
