"""What an author of a plug-in reads when a promise is broken, and what the base classes spare them."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from crossgraft.errors import ContractError, CrossgraftError, UsageError
from crossgraft.losses import Loss
from crossgraft.scores import score
from crossgraft.testing import check_augmentation, check_batch_transform, check_loss, check_method, check_regularizer, check_score
from crossgraft.tune.augmentations import Augmentation
from crossgraft.tune.batch_transforms import BatchTransform
from crossgraft.tune.methods import Method, Selection
from crossgraft.tune.regularizers import Regularizer


class Facts:
    title: ClassVar[str] = "Smallest"
    citation: ClassVar[str] = "These tests"


@dataclass
class Quiet(Facts, Regularizer):
    """Nothing but its loss."""

    name: ClassVar[str] = "quiet"

    def loss(self, context):
        return {"logits": context.logits.square().mean()}


@dataclass(frozen=True)
class HeadAlone(Facts, Method):
    """Nothing but what it trains."""

    name: ClassVar[str] = "head_alone"

    def select(self, classifier):
        names = [name for name, _ in classifier.named_parameters()]
        head = {name: "the head" for name in names if name.startswith("head.")}
        return Selection(head, {name: "no head" for name in names if name not in head}, ("head",))


@dataclass(frozen=True)
class Inverted(Facts, BatchTransform):
    """Nothing but the change."""

    name: ClassVar[str] = "inverted"

    def __call__(self, images, targets, generator):
        return -images, targets


@dataclass(frozen=True)
class Darker(Facts, Augmentation):
    """Nothing but the change."""

    name: ClassVar[str] = "darker"
    flip: bool = True

    def __call__(self, images, generator):
        return images / 2


@dataclass(frozen=True)
class Squared(Facts, Loss):
    """Nothing but the formula."""

    name: ClassVar[str] = "squared"
    tasks: ClassVar[tuple[str, ...]] = ("multi-class", "binary")

    def __call__(self, logits, targets):
        return (logits - targets).square().sum(dim=1)


CHECKS = [
    (check_regularizer, Quiet),
    (check_method, HeadAlone),
    (check_batch_transform, Inverted),
    (check_augmentation, Darker),
    (check_loss, Squared),
]


@pytest.mark.parametrize(("check", "kind"), CHECKS, ids=lambda value: value.__name__)
def test_the_smallest_plugin_keeps_all_promises(check, kind):
    check(kind())


def test_the_defaults_do_nothing():
    quiet = Quiet()
    assert (quiet.task_weight, quiet.parameter_groups(), quiet.modules(), quiet.state_dict()) == (1, [], [], {})
    assert not (HeadAlone.starts_from_scratch or HeadAlone.features_are_fixed or Inverted.accepts_multi_label)
    with pytest.raises(UsageError):
        Squared().resolve(torch.zeros(2, 3), task="multi-label")
    with pytest.raises(TypeError, match="loss"):
        type("Nothing", (Facts, Regularizer), {"name": "nothing"})()


def test_the_promise_and_what_it_asks_for_are_named():
    @dataclass
    class Untitled(Quiet):
        """Has no title."""

        title: ClassVar[str] = ""

    with pytest.raises(ContractError) as caught:
        check_regularizer(Untitled())
    assert str(caught.value) == (
        "quiet: it has no title. Promise declares_its_facts: It has a name in snake_case, a title, a citation and a docstring of "
        "its own."
    )
    assert isinstance(caught.value, CrossgraftError) and isinstance(caught.value, AssertionError)


def test_an_error_of_the_plugin_is_a_broken_promise():
    @dataclass
    class Forgetful(Quiet):
        """Uses what it never set."""

        def loss(self, context):
            return {"distance": self.start.square().sum()}

    message = r"^quiet: it raises AttributeError: .*start.* Promise gives_finite_terms: The terms"
    with pytest.raises(ContractError, match=message) as caught:
        check_regularizer(Forgetful())
    assert isinstance(caught.value.__cause__, AttributeError)


@pytest.mark.parametrize(("check", "kind"), CHECKS, ids=lambda value: value.__name__)
def test_what_is_no_plugin_of_the_slot_is_named(check, kind):
    with pytest.raises(ContractError, match=rf"{kind.__name__} is a class. Check one with its options: {kind.__name__}\(\)"):
        check(kind)
    base = kind.__mro__[2].__name__
    with pytest.raises(ContractError, match=rf"int is no {base}: it has no .*name.*inherit from crossgraft\.[a-z_.]+\.{base}\."):
        check(3)


def test_a_function_without_the_decorator_is_no_score():
    def spread(features):
        return 0.0

    with pytest.raises(ContractError, match=r"spread is no score. Put the decorator"):
        check_score(spread)

    @score(title="Spread", reference="These tests")
    def raises(features):
        """Divides by nothing."""
        return 1 / 0

    with pytest.raises(ContractError, match=r"raises: it raises ZeroDivisionError: .* Promise gives_a_finite_value: On harmless"):
        check_score(raises)
