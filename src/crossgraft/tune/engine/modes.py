"""Exactly the declared parameters move: gradients, and train or eval mode of each module."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from torch import nn

from crossgraft.errors import UsageError
from crossgraft.geometry.batch_norm import batch_norms_of
from crossgraft.tune.protocols.method import Selection

HEAD_ALONE = "the head is trained alone first"


def apply_selection(classifier: nn.Module, selection: Selection) -> None:
    """Let only the trained parameters require a gradient.

    Raises:
        UsageError: The selection does not sort every parameter exactly once, or trains none.
    """
    names = {name for name, _ in classifier.named_parameters()}
    trained, frozen = set(selection.trained), set(selection.frozen)
    astray = sorted((trained & frozen) | (names ^ (trained | frozen)))
    if astray:
        raise UsageError(
            f"The method must name every parameter once, as trained or as frozen; see {', '.join(astray[:5])}"
            f"{' …' if len(astray) > 5 else ''} ({len(astray)} in all)."
        )
    if not trained:
        raise UsageError("The method trains no parameter. Choose another one, for example --method linear.")
    for name, parameter in classifier.named_parameters():
        parameter.requires_grad_(name in trained)


@contextmanager
def selection_applied(classifier: nn.Module, selection: Selection) -> Generator[None]:
    """Inside the block only the trained parameters require a gradient; after it, those that did before.

    Raises:
        UsageError: As ``apply_selection``.
    """
    before = [(parameter, parameter.requires_grad) for parameter in classifier.parameters()]
    try:
        apply_selection(classifier, selection)
        yield
    finally:
        for parameter, required in before:
            parameter.requires_grad_(required)


def apply_modes(classifier: nn.Module, selection: Selection) -> None:
    """Train mode where the selection says so, eval mode everywhere else (frozen BatchNorm, frozen Dropout).

    Inside a named module, a part whose parameters are all frozen (by the network's author) goes back to eval mode, and so
    does what the selection names.
    """
    classifier.eval()
    for name in selection.train_mode:
        classifier.get_submodule(name).train()
    for name in (*_frozen_parts(selection), *selection.eval_mode):
        classifier.get_submodule(name).eval()


def _frozen_parts(selection: Selection) -> set[str]:
    """Names of the modules that hold parameters, and none that is trained."""
    holders = {name[:end] for name in selection.frozen for end in _dots(name)}
    return holders - {name[:end] for name in selection.trained for end in _dots(name)}


def _dots(name: str) -> list[int]:
    return [place for place, letter in enumerate(name) if letter == "."]


def head_alone(selection: Selection) -> Selection:
    """The head of ``selection`` with everything else frozen.

    Raises:
        UsageError: The method trains nothing but the head, or not even the head.
    """
    head = {name: why for name, why in selection.trained.items() if name.startswith("head.")}
    if not head or len(head) == len(selection.trained):
        raise UsageError(
            "--head-first trains the head alone and then everything that the method trains; this method trains "
            f"{'only' if head else 'no'} head. Leave out --head-first, or choose another method."
        )
    others = {name: HEAD_ALONE for name in selection.trained if name not in head}
    return Selection(trained=head, frozen={**selection.frozen, **others}, train_mode=("head",))


def training_batch_norms(classifier: nn.Module, selection: Selection) -> list[str]:
    """Names of the BatchNorm layers whose statistics move under ``selection``; modes are left as they were."""
    prefixes = tuple(f"{name}." if name else "" for name in selection.train_mode)
    in_eval_mode = _frozen_parts(selection).union(selection.eval_mode)
    return [
        name
        for name, module in classifier.named_modules()
        if isinstance(module, nn.modules.batchnorm._BatchNorm)
        and f"{name}.".startswith(prefixes)
        and name not in in_eval_mode
    ]


def without_moving_statistics(classifier: nn.Module, selection: Selection) -> Selection:
    """The same parameters are trained, but BatchNorm normalises with the statistics that it has, as in evaluation.

    Layers without kept statistics have no others than those of the batch, and stay as they are.
    """
    kept = set(batch_norms_of(classifier))
    moving = [name for name in training_batch_norms(classifier, selection) if name in kept]
    return replace(selection, eval_mode=(*selection.eval_mode, *moving))
