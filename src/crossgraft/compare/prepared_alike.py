"""A pretrained network that is compared with its own fine-tuning takes images as that one does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from crossgraft.compare import ComparedNetwork, network_of_backbone
from crossgraft.compare.compared import Given
from crossgraft.compare.options import CompareModelsOptions
from crossgraft.models import load_as_asked
from crossgraft.progress import Reporter

_FINE_TUNED = {"A": "B", "B": "A", "A before": "A", "B before": "B"}
"""Label of a network → that of its fine-tuning, if it is one; those that others are prepared as come first."""


def prepared_alike(
    given: Mapping[str, Given], options: CompareModelsOptions, *, device: str, reporter: Reporter
) -> tuple[dict[str, Given], list[str]]:
    """The models, with every start prepared as its fine-tuning, and a sentence about each that changed.

    What the options ask for is left as it is, and so is a network that was made in Python.
    """
    if options.image_size is not None or options.resize_policy is not None:
        return dict(given), []
    found, notes = dict(given), list[str]()
    for label, after in _FINE_TUNED.items():
        start, tuned = given.get(label), found.get(after)
        if start is None or tuned is None or start.spec is None or not _is_prepared_otherwise(start, tuned, label):
            continue
        wanted = tuned.network.preprocessing
        side = wanted.height_pixels if wanted.height_pixels == wanted.width_pixels else None
        asked = replace(options, image_size=side, resize_policy=wanted.resize_policy)
        again = load_as_asked(start.spec, asked, device=device, for_training=True, reporter=reporter)
        if again.preprocessing != wanted:
            continue
        found[label] = replace(start, model=network_of_backbone(again))
        own = start.network.preprocessing.describe()
        notes.append(
            f"{label} ({again.name}) takes images as its fine-tuning does ({wanted.describe()}), and not as its weights were "
            f"made for ({own})."
        )
    return found, notes


def _is_prepared_otherwise(start: Given, tuned: Given, label: str) -> bool:
    """Whether the second was fine-tuned from the first, or is the first, on images that were prepared in another way."""
    if not isinstance(start.model, ComparedNetwork) or not isinstance(tuned.model, ComparedNetwork):
        return False
    if tuned.saved is None and not label.endswith("before"):
        return False
    is_its_start = start.model.weights_fingerprint == tuned.network.start_fingerprint
    return is_its_start and start.model.preprocessing != tuned.network.preprocessing
