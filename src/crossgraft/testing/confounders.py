"""What every confounder promises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import numpy as np

from crossgraft import seeding
from crossgraft.choice import option_fields
from crossgraft.edit._image_edit import Leaf, ShamKind
from crossgraft.edit.confounders import Confounder
from crossgraft.errors import UsageError
from crossgraft.testing.promises import Contract, is_written_and_read_again, keep_all, promise, require

_SHAPES = ((40, 48), (48, 40, 1), (40, 48, 3), (3, 40, 48))
_TYPES = (np.uint8, np.uint16, np.float32, np.float64)


@promise
def says_what_it_is(confounder: Confounder) -> None:
    """It has a name in snake_case, a title, a reference, a place in MICCAT, and a unit and a sentence for each option."""
    facts = {name: getattr(confounder, name, "") for name in ("name", "title", "reference", "leaf")}
    missing = [name for name, fact in facts.items() if not str(fact).strip()]
    require(not missing, confounder, f"it has no {', no '.join(missing)}")
    name, documented = confounder.name, type(confounder).__dict__.get("__doc__") or ""
    require(name.isidentifier() and name == name.lower(), confounder, "its name is not in snake_case")
    require(confounder.leaf in get_args(Leaf), confounder, f"its leaf {confounder.leaf} is none of {', '.join(get_args(Leaf))}")
    for each in option_fields(type(confounder)):
        require(bool(each.metadata.get("unit")), confounder, f"its option {each.name} has no unit; measured_in gives it one")
        require(f"{each.name}:" in documented, confounder, f"its docstring does not say what {each.name} is")


@promise
def has_a_sham_or_says_why_not(confounder: Confounder) -> None:
    """``sham`` is a kind of sham, or None and ``why_no_sham`` the reason."""
    kinds = get_args(ShamKind)
    known = confounder.sham in kinds or (confounder.sham is None and bool(confounder.why_no_sham.strip()))
    require(known, confounder, f"its sham is {confounder.sham}; expected {' or '.join(kinds)}, or None with why_no_sham")


@promise
def keeps_shape_type_and_range(confounder: Confounder) -> None:
    """Images of 1 or 3 channels, of 8 and 16 bits and floats, stay such images, and the one that was given stays as it is."""
    for image in _images():
        before = image.copy()
        edited, info = confounder(image, _random(0))
        what = f"{image.dtype} of {image.shape}"
        require(edited.shape == image.shape and edited.dtype == image.dtype, confounder, f"{what} becomes {edited.dtype}")
        top = np.iinfo(image.dtype).max if image.dtype.kind == "u" else 1
        require(bool(edited.min() >= 0 and edited.max() <= top), confounder, f"{what} leaves its range")
        require(np.array_equal(image, before), confounder, f"it writes into the image ({what})")
        require(np.allclose(info.residual, edited.astype(float) - before), confounder, f"the residual of {what} is another one")


@promise
def touches_what_its_mask_shows(confounder: Confounder) -> None:
    """A local edit has a mask and changes nothing outside it; a global one has none."""
    for image in _images():
        _, info = confounder(image, _random(0))
        said = f"its scope is {confounder.scope} and it gives {'no' if info.mask is None else 'a'} mask"
        require((confounder.scope == "local") == (info.mask is not None), confounder, said)
        if info.mask is not None:
            channels = next((axis for axis in (0, 2) if image.ndim == 3 and image.shape[axis] in (1, 3)), None)
            changed = np.abs(info.residual.reshape(image.shape))
            changed = changed if channels is None else changed.sum(axis=channels)
            require(info.mask.shape == changed.shape, confounder, f"the mask of {image.shape} has the shape {info.mask.shape}")
            require(not changed[~info.mask].any(), confounder, "it changes pixels outside its mask")


@promise
def does_nothing_at_strength_0(confounder: Confounder) -> None:
    """Strength 0 leaves every bit."""
    for image in _images():
        edited, info = confounder(image, _random(0), strength=0.0)
        require(np.array_equal(edited, image) and info.rms == 0, confounder, f"strength 0 changes {image.dtype} of {image.shape}")


@promise
def draws_from_its_generator_alone(confounder: Confounder) -> None:
    """The same random numbers give the same edit; others give another one, and are asked for, where ``is_stochastic`` says so."""
    image = _picture((40, 48), np.float64)
    first, again, other = (confounder(image, _random(seed))[0] for seed in (1, 1, 2))
    require(np.array_equal(first, again), confounder, "the same random numbers give two edits")
    differs = not np.array_equal(first, other)
    given = f"other random numbers give {'another' if differs else 'the same'} edit"
    require(differs == confounder.is_stochastic, confounder, f"{given}, and is_stochastic is {confounder.is_stochastic}")
    if confounder.is_stochastic:
        try:
            confounder(image)
        except UsageError:
            return
        require(False, confounder, "it draws without a generator")


@promise
def changes_a_picture(confounder: Confounder) -> None:
    """A picture that has detail is another one afterwards."""
    _, info = confounder(_picture((40, 48), np.float64), _random(0))
    require(info.share_changed > 0, confounder, "it changes nothing")


CONFOUNDER_CONTRACTS: tuple[Contract, ...] = (
    says_what_it_is,
    is_written_and_read_again,
    has_a_sham_or_says_why_not,
    keeps_shape_type_and_range,
    touches_what_its_mask_shows,
    does_nothing_at_strength_0,
    draws_from_its_generator_alone,
    changes_a_picture,
)
"""All promises of a confounder."""


def check_confounder(confounder: Confounder) -> None:
    """Check all promises of one confounder.

    Args:
        confounder: Confounder with its options.

    Raises:
        ContractError: The first promise that is broken, or the kind of plug-in that it is not.
    """
    keep_all(CONFOUNDER_CONTRACTS, confounder, Confounder)


def _random(seed: int) -> np.random.Generator:
    return seeding.generator(seed, "contract of a confounder")


def _images() -> Iterator[np.ndarray]:
    return (_picture(shape, kind) for shape in _SHAPES for kind in _TYPES)


def _picture(shape: tuple[int, ...], kind: Any) -> np.ndarray:
    """Smooth shapes and some noise, not near the ends of the range."""
    side = np.hypot(*np.meshgrid(np.linspace(-1, 1, 48), np.linspace(-1, 1, 48)))
    values = 0.25 + 0.4 * np.exp(-3 * np.resize(side, shape) ** 2) + 0.05 * _random(0).random(shape)
    return (values * np.iinfo(kind).max).astype(kind) if np.issubdtype(kind, np.integer) else values.astype(kind)
