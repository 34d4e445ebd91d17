"""Geometry of weights of the compared models: distance, first filters, sharpness, and networks between two."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from torch import nn

from crossgraft.compare.geometry_subjects import Later, Say, SeenImages, Subjects
from crossgraft.compare.looking import KeptImages
from crossgraft.compare.networks import ComparedNetwork
from crossgraft.compare.record import WeightsApart
from crossgraft.data import Dataset
from crossgraft.errors import NotApplicable, UsageError
from crossgraft.geometry import Sharpness, first_layer_filters, interpolation_path, parameter_distance, sharpness, with_body_of
from crossgraft.geometry.filters import filter_row
from crossgraft.geometry.interpolation_path import refuse_other_network
from crossgraft.geometry.record import FilterRow, FiltersRecord, InterpolationPathRecord, SharpnessRecord, SharpnessRow
from crossgraft.geometry.sharpness import RHO
from crossgraft.models.classifier import Classifier, make_classifier
from crossgraft.tasks import recorded_task

STEPS = 10
"""Steps of the longer climb."""
_BATCH_SIZE = 64


def distances(subjects: Subjects, say: Say) -> Later:
    """Distance of the weights in front of the head, of each pair of one architecture.

    Raises:
        NotApplicable: There is no such pair.
    """
    networks, apart_by_pair, reasons = subjects.networks, list[WeightsApart](), list[str]()
    for first, second in subjects.links:
        if first not in networks or second not in networks:
            reasons.append(f"{second if first in networks else first} is features on disk, without weights")
            continue
        try:
            apart = parameter_distance(networks[second].measured, networks[first].measured)
        except UsageError as error:
            reasons.append(f"{first} and {second}: {_reason(error)}")
            continue
        apart_by_pair.append(WeightsApart(first=first, second=second, distance=apart, num_weights=apart.num_weights))
    if not apart_by_pair:
        raise NotApplicable(reasons[0])
    _say_all(reasons, say)
    return Later(lambda _: apart_by_pair)


def filters(subjects: Subjects, say: Say) -> Later:
    """Filters of the first convolution of each network.

    Raises:
        NotApplicable: No network has a convolution.
    """
    networks = {
        label: each
        for label, each in subjects.networks.items()
        if any(isinstance(layer, nn.Conv2d) for layer in each.module.modules())
    }
    reasons = [f"{label} has no two-dimensional convolution" for label in subjects.models if label not in networks]
    if not networks:
        raise NotApplicable(reasons[0])
    _say_all(reasons, say)

    def measure(_: SeenImages) -> FiltersRecord:
        title = "Fitting Gabor functions to first filters"
        with subjects.reporter.stage(title, total=len(networks), unit="networks") as stage:
            rows: list[FilterRow] = []
            for label, network in networks.items():
                rows.append(filter_row(label, first_layer_filters(network.body, seed=subjects.seed)))
                stage.advance()
        return FiltersRecord(networks=rows)

    return Later(measure)


def sharpnesses(subjects: Subjects, say: Say) -> Later:
    """Sharpness of each network that has a head for the classes of the images, after one step and after several.

    Raises:
        NotApplicable: No network has one.
    """
    heads: dict[str, Classifier] = {}
    reasons: list[str] = []
    for label in subjects.models:
        try:
            heads[label] = _head(subjects, label)
        except NotApplicable as error:
            reasons.append(error.reason)
    if not heads:
        raise NotApplicable(reasons[0])
    _say_all(reasons, say)
    labels = list(heads)
    others = [each for each in labels[1:] if not subjects.networks[each].has_body_of(subjects.networks[labels[0]])]
    for label in others:
        say(f"{labels[0]} and {label} are not built alike, so their sharpness is not to be compared.")

    def measure(seen: SeenImages) -> SharpnessRecord:
        one, several = (
            {label: _sharpness(subjects, seen, label, each, steps) for label, each in heads.items()} for steps in (1, STEPS)
        )
        images = subjects.images
        return SharpnessRecord(
            rho=RHO,
            steps=STEPS,
            batch_size=_BATCH_SIZE,
            num_images=len(subjects.rows),
            sums_labels=images is not None and not images.task.partitions,
            is_comparable=not others,
            rows=[
                SharpnessRow(
                    network=label,
                    loss=each.loss,
                    one_step=each.value,
                    many_steps=several[label].value,
                    per_batch=None,
                    first_order=each.first_order,
                )
                for label, each in one.items()
            ],
        )

    return Later(measure, frozenset(each.preprocessing for each in heads.values()))


def _sharpness(subjects: Subjects, seen: SeenImages, label: str, head: Classifier, steps: int) -> Sharpness:
    return sharpness(
        head,
        _kept(seen).of(head.preprocessing),
        _targets(subjects, subjects.networks[label]),
        steps=steps,
        batch_size=_BATCH_SIZE,
        reporter=subjects.reporter,
    )


def path(subjects: Subjects, say: Say) -> Later:
    """Loss and similarity between two networks with the same head, or between a start under the head of its fine-tuning and that.

    Raises:
        NotApplicable: There are no two networks of one architecture with heads for the classes.
    """
    reasons: list[str] = []
    for first, second in subjects.links:
        try:
            ends = _ends(subjects, first, second)
        except NotApplicable as error:
            reasons.append(error.reason)
            continue
        _say_all(reasons, say)
        return Later(partial(_path, subjects, ends), frozenset({ends.end.preprocessing}))
    raise NotApplicable(reasons[0])


@dataclass(frozen=True, eq=False)
class _PathEnds:
    """Both ends of a path, the name of the first, and the label of the second."""

    start: Classifier
    end: Classifier
    name: str
    label: str


def _ends(subjects: Subjects, first: str, second: str) -> _PathEnds:
    end = _head(subjects, second)
    network = subjects.networks.get(first)
    is_change = network is not None and network.weights_fingerprint == subjects.networks[second].start_fingerprint
    try:
        if network is not None and network.backbone is not None and is_change:
            alone = make_classifier(network.backbone, end.num_outputs, seed=subjects.seed)
            return _PathEnds(with_body_of(end, alone), end, f"{first} under the head of {second}", second)
        start = _head(subjects, first)
        refuse_other_network(start.state_dict(), end.state_dict())
    except UsageError as error:
        raise NotApplicable(f"{first} and {second}: {_reason(error)}") from error
    names = [subjects.networks[label].class_names for label in (first, second)]
    if names[0] != names[1]:
        raise NotApplicable(f"the heads of {first} and {second} have the classes in another order")
    if start.preprocessing != end.preprocessing:
        raise NotApplicable(f"{first} and {second} take images prepared in other ways")
    return _PathEnds(start, end, first, second)


def _path(subjects: Subjects, ends: _PathEnds, seen: SeenImages) -> InterpolationPathRecord:
    images = subjects.images
    train = None if images is None or len(subjects.train) == 0 else images.take(subjects.train)
    return interpolation_path(
        ends.start,
        ends.end,
        _kept(seen).of(ends.end.preprocessing),
        _targets(subjects, subjects.networks[ends.label]),
        train_images=train,
        batch_norm="mix" if train is None else "estimate",
        names=(ends.name, ends.label),
        reporter=subjects.reporter,
    )


def _head(subjects: Subjects, label: str) -> Classifier:
    """The network of this label, if its head tells the classes of the images apart."""
    network, images = subjects.networks.get(label), subjects.images
    if network is None or images is None:
        raise NotApplicable(f"{label} is features on disk, without a head")
    if network.classifier is None or network.saved is None or network.class_names is None:
        raise NotApplicable(f"{label} ({network.name}) has no head for these classes")
    if set(network.class_names) != set(images.class_names):
        raise NotApplicable(
            f"{label} tells {', '.join(network.class_names)} apart, and these images are {', '.join(images.class_names)}"
        )
    if recorded_task(network.saved.facts).partitions != images.task.partitions:
        raise NotApplicable(f"only one of {label} and these images has several labels per image")
    return network.classifier


def _targets(subjects: Subjects, network: ComparedNetwork) -> np.ndarray:
    """Classes of the rows, in the order of the head."""
    images: Dataset | None = subjects.images
    if images is None or network.class_names is None:
        raise UsageError("A loss needs images and a head for their classes.")
    order = np.array([images.class_names.index(each) for each in network.class_names])
    targets = images.targets[subjects.rows]
    return np.argsort(order)[targets] if targets.ndim == 1 else targets[:, order]


def _kept(seen: SeenImages) -> KeptImages:
    if seen.kept is None:
        raise UsageError("A loss needs images.")
    return seen.kept


def _reason(error: UsageError) -> str:
    """The first sentence of an error, within another one."""
    text = str(error).partition(". ")[0].rstrip(".")
    return text[:1].lower() + text[1:]


def _say_all(reasons: list[str], say: Say) -> None:
    for reason in reasons:
        say(f"Not measured: {reason}.")
