"""What a method is: which parameters of a classifier are trained, which are frozen, and why."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from crossgraft.models.classifier import Classifier


@dataclass(frozen=True)
class Selection:
    """What a method trains.

    Attributes:
        trained: Name of each trained parameter → why it is trained.
        frozen: Name of each frozen parameter → why it is frozen. Together with ``trained``: every parameter, once.
        train_mode: Names of the modules that run in train mode, with all that is inside them (``""``: the whole
            network). Everything else stays in eval mode, so that the statistics of a frozen BatchNorm do not move and
            a frozen Dropout drops nothing.
        eval_mode: Names of modules inside those that stay in eval mode all the same, though their parameters are trained.
    """

    trained: Mapping[str, str]
    frozen: Mapping[str, str]
    train_mode: tuple[str, ...]
    eval_mode: tuple[str, ...] = ()


@runtime_checkable
class Method(Protocol):
    """One way to choose what is trained; a frozen dataclass whose fields are its options.

    A class that inherits from this one needs no more than its name, title, citation, options and ``select``.

    A method that trains small parts beside the network's layers puts them there first; see ``AddsAdapters``.

    Attributes:
        name: Name on the command line and in tables.
        title: Title in print.
        citation: The paper that defines it.
        starts_from_scratch: Whether the pretrained weights are replaced by random ones first.
        features_are_fixed: Whether the features of an image never change, so that they may be computed once.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    starts_from_scratch: ClassVar[bool] = False
    features_are_fixed: ClassVar[bool] = False

    @abstractmethod
    def select(self, classifier: Classifier) -> Selection:
        """Sort every parameter of ``classifier`` into trained and frozen; nothing is changed.

        Raises:
            UsageError: The network has no such part; the message names the parts it has.
        """
        ...


@runtime_checkable
class AddsAdapters(Protocol):
    """A method that trains adapters, and nothing else of the body.

    So the pretrained network is always there: it is this one with its adapters off, which is what regularisers compare with.
    """

    def add_adapters(self, classifier: Classifier, *, seed: int) -> None:
        """Put adapters into ``classifier``, which gives what it gave before; called once, before ``select``.

        Raises:
            UsageError: The network has no place for them; the message says why.
        """
        ...


def put_adapters_in(method: Method, classifier: Classifier, *, seed: int) -> None:
    """Put the method's adapters into ``classifier``; nothing for a method without.

    Raises:
        UsageError: The network has no place for them.
    """
    if isinstance(method, AddsAdapters):
        method.add_adapters(classifier, seed=seed)
