"""What a section is made of. Each kind of block has one template, ``templates/block_<kind>.html``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol

from markupsafe import Markup

from crossgraft.records.base import CheckRecord, Reference
from crossgraft.report.explorer import Explorer
from crossgraft.report.tables import Table

Part = Literal["verdict", "evidence", "checks", "how it was made", "references"]


@dataclass(frozen=True)
class Verdict:
    """The answer, the biggest caveat, and what to type next; made by ``report.verdict``.

    Args:
        answer: In one or two sentences.
        caveat: What most limits it.
        following: The next command (a line of Python after an export), to be copied.
        purpose: What that is for: ``to fine-tune it``.
    """

    template: ClassVar[str] = "block_verdict.html"
    answer: str
    caveat: str | None = None
    following: str | None = None
    purpose: str = ""


@dataclass(frozen=True)
class Paragraph:
    """One paragraph; ``lead`` is the answer itself, ``quiet`` a side remark. The terminal leaves out what is ``page_only``."""

    template: ClassVar[str] = "block_paragraph.html"
    text: str
    tone: Literal["plain", "lead", "quiet"] = "plain"
    page_only: bool = False


@dataclass(frozen=True)
class Items:
    """Sentences as a list."""

    template: ClassVar[str] = "block_items.html"
    items: Sequence[str]


@dataclass(frozen=True)
class Facts:
    """Names and values, one pair a line; the terminal shows those in ``essential``, or all where it is None."""

    template: ClassVar[str] = "block_facts.html"
    rows: Sequence[tuple[str, str]]
    essential: Collection[str] | None = None


@dataclass(frozen=True)
class Code:
    """Text to copy, in a fixed-width face."""

    template: ClassVar[str] = "block_code.html"
    text: str


@dataclass(frozen=True)
class Figure:
    """One or several drawings under one caption that says what to see.

    ``narrow`` holds the same drawings for screens of phones; without it the wide ones shrink.
    """

    template: ClassVar[str] = "block_figure.html"
    drawings: Sequence[Markup]
    caption: str
    narrow: Sequence[Markup] = ()


class DrawnForScreens(Protocol):
    """Makes a drawing, for a wide screen or for that of a phone."""

    def __call__(self, *, identifier: str, is_wide: bool) -> Markup:
        """Ids of the drawing begin with ``identifier``."""
        ...


def figure_for_screens(draw: DrawnForScreens, *, identifier: str, caption: str) -> Figure:
    """One drawing, made for wide screens and for phones."""
    wide, narrow = draw(identifier=identifier, is_wide=True), draw(identifier=f"{identifier}-narrow", is_wide=False)
    return Figure([wide], caption=caption, narrow=[narrow])


@dataclass(frozen=True)
class Gallery:
    """Small images under a name each: of a class, or another ``noun``; name → PNG files in base64.

    ``in_columns`` lines up many names with one image each, ``in_rows`` the images of every name below one another; an empty text
    is an image that is not there.
    """

    template: ClassVar[str] = "block_gallery.html"
    images: Mapping[str, Sequence[str]]
    noun: str = "class"
    in_columns: bool = False
    in_rows: bool = False


class Strip(NamedTuple):
    """One image of a strip.

    Attributes:
        uri: The image as a ``data:`` address.
        label: All about it, for a screen reader.
        mark: Short text below it.
        is_apart: Whether it stands behind the line of its strip.
        is_marked: Whether it has a frame.
    """

    uri: str
    label: str
    mark: str
    is_apart: bool
    is_marked: bool


@dataclass(frozen=True)
class Strips:
    """A strip of images under each name, in two halves, and what to see in them."""

    template: ClassVar[str] = "block_strips.html"
    strips: Mapping[str, Sequence[Strip]]
    caption: str


@dataclass(frozen=True)
class Subheading:
    """A heading inside of a section, that links lead to.

    Args:
        anchor: Unique on the page, so it begins with ``source.prefix``.
        text: The heading.
        href: Where it leads, if anywhere.
    """

    template: ClassVar[str] = "block_subheading.html"
    anchor: str
    text: str
    href: str | None = None


@dataclass(frozen=True)
class Checks:
    """What was looked at, and what was found."""

    template: ClassVar[str] = "block_checks.html"
    checks: Sequence[CheckRecord]


@dataclass(frozen=True)
class Literature:
    """Papers, each with the key that the text uses for it."""

    template: ClassVar[str] = "block_literature.html"
    references: Sequence[Reference]


@dataclass(frozen=True)
class Folded:
    """Blocks that open on a click, and in print; the terminal shows them only where they are not ``page_only``."""

    template: ClassVar[str] = "block_folded.html"
    summary: str
    blocks: Sequence[Block]
    page_only: bool = True


Block = (
    Verdict
    | Paragraph
    | Items
    | Facts
    | Code
    | Figure
    | Gallery
    | Explorer
    | Strips
    | Subheading
    | Checks
    | Literature
    | Folded
    | Table
)


@dataclass(frozen=True)
class Section:
    """One headed part of the page.

    Args:
        name: Anchor, unique within a run.
        title: The heading, in the reader's words.
        part: Its place in the fixed order of the report.
        blocks: The contents.
        is_first: Whether a page shows it unfolded, as it does the verdict.
    """

    name: str
    title: str
    part: Part
    blocks: Sequence[Block]
    is_first: bool = False

    @property
    def is_open(self) -> bool:
        """Whether a page shows it unfolded."""
        return self.is_first or self.part == "verdict"


@dataclass(frozen=True)
class Heading:
    """What a page says about one run before its sections, and in the table of several runs.

    Args:
        title: Name of what was looked at.
        summary: One line of facts: images, classes, groups, models.
        advice: The verdict in words.
    """

    title: str
    summary: str
    advice: str
