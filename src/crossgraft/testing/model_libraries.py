"""What every library of models promises."""

from __future__ import annotations

from pathlib import Path

import torch

from crossgraft.errors import CrossgraftError, UnknownNameError
from crossgraft.models.load import load_backbone
from crossgraft.models.random_weights import build_seeded
from crossgraft.models.sources.library import ModelLibrary
from crossgraft.models.spec import RANDOM, ModelSpec, library_name
from crossgraft.testing.promises import Contract, promise, require


@promise
def has_a_word(library: ModelLibrary, *, source: str) -> None:
    """Its name is the word in front of the colon, and it has a title and a form; the source begins with the word."""
    require(bool(library.title and library.form), library, "it has no title or no form")
    require(source.partition(":")[0] == library.name, library, f"{source} does not begin with {library.name}:")


@promise
def knows_its_own_alone(library: ModelLibrary, *, source: str) -> None:
    """It knows the source, and refuses one that nobody has with ``UnknownNameError``."""
    require(library.knows(source), library, f"it does not know {source}")
    library.check(source)
    try:
        library.check(f"{library.name}:no such network")
    except UnknownNameError:
        return
    require(False, library, "it takes a name that no network has")


@promise
def draws_the_same_network(library: ModelLibrary, *, source: str) -> None:
    """Random weights follow the seed alone, and nothing is drawn from elsewhere."""
    first, second = (build_seeded(lambda: library.build(source, {}), 7).state_dict() for _ in range(2))
    same = first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
    require(same, library, f"two networks {source} of one seed differ")


@promise
def refuses_arguments_that_load(library: ModelLibrary, *, source: str) -> None:
    """An argument that loads weights or opens files is refused before anything is built."""
    for name in ("pretrained", "checkpoint_path"):
        try:
            library.build(source, {name: True})
        except CrossgraftError:
            continue
        require(False, library, f"{source} takes the argument {name}")


@promise
def says_where_weights_are(library: ModelLibrary, *, source: str) -> None:
    """``find_weights`` gives the path of a file, or None, and ``where_to_get`` a sentence."""
    path = library.find_weights(source)
    require(path is None or Path(path).is_file(), library, f"{path} is no file")
    require(bool(library.where_to_get(source)), library, "it does not say what to do about missing weights")


@promise
def is_seen_by_crossgraft(library: ModelLibrary, *, source: str) -> None:
    """With random weights the network runs on an image of the size that ``describe`` states, and its features are found."""
    require(library_name(source) == library.name, library, "its entry point is not installed under its name")
    backbone = load_backbone(ModelSpec(name=source, source=source, weights=RANDOM))
    require(backbone.num_features > 0, library, "no features are found")


MODEL_LIBRARY_CONTRACTS: tuple[Contract, ...] = (
    has_a_word,
    knows_its_own_alone,
    draws_the_same_network,
    refuses_arguments_that_load,
    says_where_weights_are,
    is_seen_by_crossgraft,
)
"""One test a promise."""


def check_model_library(library: ModelLibrary, source: str) -> None:
    """Check every promise of a library that is installed.

    Args:
        library: The library.
        source: One of its networks, as a user types it.

    Raises:
        ContractError: The first promise that is broken.
    """
    for contract in MODEL_LIBRARY_CONTRACTS:
        contract(library, source=source)
