"""Every registered confounder keeps every promise, and every promise can be broken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest

from crossgraft.edit.confounders import CONFOUNDERS, Confounder, Painted, measured_in
from crossgraft.testing import CONFOUNDER_CONTRACTS, ContractError, check_confounder, confounders


@pytest.mark.parametrize("contract", CONFOUNDER_CONTRACTS, ids=lambda contract: contract.__name__)
@pytest.mark.parametrize("name", CONFOUNDERS.names())
def test_registered_confounder_keeps_promise(name, contract):
    contract(CONFOUNDERS.get(name)())


@dataclass(frozen=True)
class Darker(Confounder):
    """Darker.

    Args:
        share: Of the light that is left.
    """

    name: ClassVar[str] = "darker"
    title: ClassVar[str] = "Darker"
    leaf: ClassVar[str] = "imaging"
    reference: ClassVar[str] = "These tests"

    share: float = field(default=0.5, metadata=measured_in("share", low=0, high=1))

    def edit(self, pixels, rng):
        return Painted(self.share * pixels)


def broken(**changes):
    """A confounder in which something else is said or done."""
    kind = type("Broken", (Darker,), {"__doc__": Darker.__doc__, "__annotations__": {}, **changes})
    return dataclass(frozen=True)(kind)()


def half(pixels):
    """The left half, where it is made darker, and its mask."""
    mask = np.zeros(pixels.shape[:2], dtype=bool)
    mask[:, : pixels.shape[1] // 2] = True
    return np.where(mask[..., None], 0.5 * pixels, pixels), mask


def test_a_simple_one_keeps_all():
    check_confounder(Darker())
    check_confounder(broken(scope="local", edit=lambda self, pixels, rng: Painted(*half(pixels))))


class Later(Darker):
    """Changes by itself: no edit is like the one before it."""

    made: ClassVar[list[int]] = []

    def edit(self, pixels, rng):
        self.made.append(1)
        return Painted(pixels / (1 + len(self.made)))


def write_into(self, image, rng=None, **more):
    made = Darker.__call__(self, image, rng, **more)
    image[0] = 0
    return made


def in_double(self, image, rng=None, **more):
    edited, info = Darker.__call__(self, image, rng, **more)
    return edited.astype(np.float64), info


def always_the_same(self, image, rng=None, **more):
    return Darker.__call__(self, image, rng)


@pytest.mark.parametrize(
    ("contract", "make"),
    [
        (confounders.says_what_it_is, lambda: broken(title=" ")),
        (confounders.says_what_it_is, lambda: broken(leaf="weather")),
        (confounders.says_what_it_is, lambda: broken(__doc__="Darker, and no word of its option.")),
        (confounders.says_what_it_is, lambda: broken(__annotations__={"share": float}, share=0.5)),
        (confounders.has_a_sham_or_says_why_not, lambda: broken(sham=None)),
        (confounders.has_a_sham_or_says_why_not, lambda: broken(sham="mirrored")),
        (confounders.keeps_shape_type_and_range, lambda: broken(__call__=write_into)),
        (confounders.keeps_shape_type_and_range, lambda: broken(__call__=in_double)),
        (confounders.touches_what_its_mask_shows, lambda: broken(scope="local")),
        (confounders.touches_what_its_mask_shows, lambda: broken(edit=lambda self, pixels, rng: Painted(*half(pixels)))),
        (
            confounders.touches_what_its_mask_shows,
            lambda: broken(scope="local", edit=lambda self, pixels, rng: Painted(0.5 * pixels, half(pixels)[1])),
        ),
        (confounders.does_nothing_at_strength_0, lambda: broken(__call__=always_the_same)),
        (confounders.draws_from_its_generator_alone, Later),
        (confounders.draws_from_its_generator_alone, lambda: broken(is_stochastic=True)),
        (confounders.draws_from_its_generator_alone, lambda: broken(edit=lambda _, pixels, rng: Painted(pixels * rng.random()))),
        (confounders.changes_a_picture, lambda: broken(edit=lambda self, pixels, rng: Painted(pixels))),
    ],
)
def test_contract_finds_the_broken_confounder(contract, make):
    with pytest.raises(ContractError):
        contract(make())


def test_each_contract_is_in_the_tuple():
    own = {value for value in vars(confounders).values() if getattr(value, "__module__", "") == confounders.__name__}
    assert {*CONFOUNDER_CONTRACTS} - own == {confounders.is_written_and_read_again}
