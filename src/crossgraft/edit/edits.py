"""Edits of data sets, chosen by name: every confounder, and edits that take cues away."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from jaxtyping import Bool

from crossgraft.choice import choose, option_fields, spell
from crossgraft.data import Dataset
from crossgraft.edit._image_edit import ImageEdit, Painted, Pixels
from crossgraft.edit.confounders import CONFOUNDERS
from crossgraft.edit.injection import draw_carriers
from crossgraft.edit.record import EditRow
from crossgraft.edit.source_editing import HighPass, whiten_spectrum
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.progress import Reporter
from crossgraft.records.base import Reference
from crossgraft.registry import Registry
from crossgraft.seeding import generator

GREY_LEVELS = 255


@dataclass(frozen=True)
class WhitenSpectrum(ImageEdit):
    """A flat spectrum: what is left of an image is its phase. Values that leave the range are clipped."""

    name: ClassVar[str] = "whiten_spectrum"
    title: ClassVar[str] = "Whitened spectrum"
    reference: ClassVar[str] = "Juodelyte, thesis on cross-domain transfer in medical imaging, equation 5.2"

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """Every channel for itself."""
        return Painted(whiten_spectrum(pixels))


SOURCE_EDITS: Registry[type[Any]] = Registry("edit", group="crossgraft.edits", plugin_type=type)
"""Edits that are no confounder: they take cues away."""
SOURCE_EDITS.add(WhitenSpectrum.name, WhitenSpectrum)
SOURCE_EDITS.add(HighPass.name, HighPass)


@dataclass
class Editing:
    """Edits in their order, as what ``Dataset.edited`` takes; remembers what each of them did.

    Args:
        edits: What is done to an image.
        strength: Multiple of every residual.
        seed: Random seed; an image has random numbers of its own, whatever its place.
    """

    edits: Sequence[ImageEdit]
    strength: float = 1.0
    seed: int = 0
    _seen: dict[tuple[int, str], tuple[float, float, int]] = field(
        default_factory=dict[tuple[int, str], tuple[float, float, int]]
    )

    def __call__(self, pixels: np.ndarray, identity: str) -> np.ndarray:
        """Edited pixels of the same shape and type."""
        for place, edit in enumerate(self.edits):
            rng = generator(self.seed, spell(edit), identity)
            edited, info = edit(pixels, rng, strength=self.strength)
            white = float(np.iinfo(pixels.dtype).max) if pixels.dtype.kind == "u" else 1.0
            squares = float(np.square(info.residual * (GREY_LEVELS / white)).sum())
            self._seen[place, identity] = (squares, info.share_changed * pixels.size, pixels.size)
            pixels = edited
        return pixels

    def facts(self) -> list[EditRow]:
        """What each edit did, over the images so far; the ratio in dB is infinite where nothing changed."""
        return [self._row(place, edit) for place, edit in enumerate(self.edits)]

    def _row(self, place: int, edit: ImageEdit) -> EditRow:
        images = [image for (other, _), image in self._seen.items() if other == place]
        squares, changed, samples = (sum(column) for column in zip(*images, strict=True)) if images else (0.0, 0.0, 0)
        rms = math.sqrt(squares / samples) if samples else 0.0
        return EditRow(
            edit=spell(edit),
            title=edit.title,
            leaf=getattr(edit, "leaf", None),
            num_images=len(images),
            rms=rms,
            share_changed=changed / samples if samples else 0.0,
            psnr=20 * math.log10(GREY_LEVELS / rms) if rms else math.inf,
        )

    def references(self) -> list[Reference]:
        """Where the edits come from."""
        return [Reference(key=edit.title, text=f"{edit.reference}.") for edit in self.edits]


def choose_edits(edits: str | ImageEdit | Sequence[Any]) -> list[ImageEdit]:
    """The edits that are asked for, in their order.

    Args:
        edits: Name with options, such as ``low_pass:0.125``, an edit, or several of them.

    Raises:
        UsageError: None was named, or an option has a wrong value.
        UnknownNameError: There is no such edit; the message gives the nearest names.
    """
    several = [edits] if isinstance(edits, str | ImageEdit) else list(edits)
    if not several:
        raise UsageError("No edit was named, for example: --with tag.")
    for each in several:
        if not isinstance(each, str | ImageEdit):
            raise UsageError(f"An edit is a name with options, such as low_pass:0.125, not {each!r}.")
    return [_one(each) for each in several]


def _one(edit: str | ImageEdit) -> ImageEdit:
    if isinstance(edit, ImageEdit):
        return edit
    name = edit.partition(":")[0].strip()
    if name in SOURCE_EDITS.names():
        return choose(SOURCE_EDITS, edit)
    if name not in CONFOUNDERS.names():
        raise UnknownNameError("edit", name, [*CONFOUNDERS.names(), *SOURCE_EDITS.names()])
    return choose(CONFOUNDERS, edit)


ELSEWHERE = "takes cues away"
_LEAVES = ("demographic", "anatomical", "external", "imaging")


class PlacedEdit(NamedTuple):
    """An edit and where it belongs.

    Attributes:
        place: ``environment › external`` and so on.
        scope: What it touches.
        name: Name of the edit.
        edit: Its class.
    """

    place: str
    scope: str
    name: str
    edit: type[Any]


def edits_by_place() -> list[PlacedEdit]:
    """Every edit that is installed, leaf by leaf."""
    confounders = [PlacedEdit(f"{each.level} › {each.leaf}", _scope(each.scope), name, each) for name, each in CONFOUNDERS]
    ordered = sorted(confounders, key=lambda row: _LEAVES.index(row.edit.leaf))
    return [*ordered, *(PlacedEdit(ELSEWHERE, _scope("global"), name, each) for name, each in SOURCE_EDITS)]


def options_with_units(edit: type[Any]) -> str:
    """Options with defaults and units, the first one first: it may stand without its name."""
    options = [
        f"{each.name}={each.default!r} ({each.metadata['unit']})"
        if each.metadata.get("unit")
        else f"{each.name}={each.default!r}"
        for each in option_fields(edit)
    ]
    return ", ".join(options)


def _scope(scope: str) -> str:
    return "a part of the image" if scope == "local" else "the whole image"


Carriers = Bool[np.ndarray, " num_images"]


@dataclass(frozen=True)
class AskedEdits:
    """What is done to which images.

    Attributes:
        edits: In their order.
        share: Share of the images that is edited.
        among: Classes whose images are edited; None: all.
        unit: ``image`` or ``patient``: what is drawn.
        strength: Multiple of what an edit changes.
        seed: Random seed.
        flags: Beginning of the flags, for messages: ``--`` or ``--edit-``.
    """

    edits: Sequence[ImageEdit]
    share: float
    among: tuple[str, ...] | None
    unit: Any
    strength: float
    seed: int
    flags: str = "--"

    @classmethod
    def of(
        cls,
        edits: str | Sequence[Any],
        *,
        share: float,
        among: str | Sequence[str] | None,
        unit: str,
        strength: float,
        seed: int,
        flags: str = "--",
    ) -> AskedEdits:
        """Look every name up; of classes it is not known yet which there are.

        Raises:
            UnknownNameError: There is no such edit; the message gives the nearest names.
            UsageError: No edit is named, a number is out of its range, or a unit is none.
        """
        chosen = choose_edits(edits)
        for name, value, most in (("share", share, 1.0), ("strength", strength, np.inf)):
            _refuse_number(f"{flags}{name}", value, most)
        if unit not in ("image", "patient"):
            raise UsageError(f"{flags}unit must be image or patient, got {unit!r}.")
        classes = None if among is None else names_between_commas(among)
        if classes == ():
            raise UsageError(f"{flags}among names no class. Leave it out to edit images of all classes.")
        return cls(chosen, float(share), classes, unit, float(strength), seed, flags)

    def carriers(self, dataset: Dataset, parts: np.ndarray | None, *, rows: Carriers | None = None) -> Carriers:
        """Which images are edited: the share of each part of the data.

        Args:
            dataset: Images as they came.
            parts: (n,) part of each image; None: one part.
            rows: (n,) images that may be edited; None: all.

        Raises:
            UnknownNameError: There is no such class.
            UsageError: Patients are to be drawn, and the data have no groups.
        """
        candidates = np.full(len(dataset), self.among is None)
        for name in self.among or ():
            if name not in dataset.class_names:
                raise UnknownNameError("class", name, dataset.class_names)
            candidates |= dataset.members(dataset.class_names.index(name))
        if self.unit == "patient" and dataset.groups is None:
            raise UsageError(
                f"{self.flags}unit patient draws patients, and these images have none. Name their column: --group-column."
            )
        return draw_carriers(
            candidates if rows is None else candidates & rows,
            self.share,
            [digest.hex() for digest in dataset.image_digests],
            parts=parts,
            groups=dataset.groups if self.unit == "patient" else None,
            seed=self.seed,
        )

    def apply(self, dataset: Dataset, carriers: Carriers, reporter: Reporter) -> EditedImages:
        """Edit the images of ``carriers``.

        Raises:
            DataError: An edit cannot be done to an image; the message names it.
        """
        editing = Editing(self.edits, strength=self.strength, seed=self.seed)
        shown: set[str] = set()
        with reporter.stage("Editing images", total=int(carriers.sum())) as stage:

            def edit_and_advance(pixels: np.ndarray, identity: str) -> np.ndarray:
                edited = editing(pixels, identity)
                if identity not in shown:
                    shown.add(identity)
                    stage.advance()
                return edited

            changed = dataset.edited(edit_and_advance, carriers) if carriers.any() else dataset
        return EditedImages(changed, editing)


class EditedImages(NamedTuple):
    """What came of it.

    Attributes:
        dataset: All rows, with the pixels that they have now.
        editing: Knows what was done.
    """

    dataset: Dataset
    editing: Editing


def names_between_commas(given: str | Sequence[str]) -> tuple[str, ...]:
    """Names in one text with commas, or in a sequence."""
    several = given.split(",") if isinstance(given, str) else given
    return tuple(name for each in several if (name := str(each).strip()))


def _refuse_number(flag: str, value: object, most: float) -> None:
    try:
        number = float(cast("float", value))
    except (TypeError, ValueError):  # a program may give anything
        number = np.nan
    if not (np.isfinite(number) and 0 <= number <= most):
        bounds = "lie in [0, 1]" if most == 1 else "be a number of at least 0"
        raise UsageError(f"{flag} must {bounds}, got {value!r}.")
