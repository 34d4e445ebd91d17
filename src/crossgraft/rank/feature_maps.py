"""What the features of a network look like: before and after NCA and LDA, and on the way of ITM.

Figure 6.3 of the thesis, and Figures 6 and 7 of ITM; for its Figure 1, how a network is built and how it was pretrained.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from jaxtyping import Float64, Int
from torch import nn

from crossgraft import seeding
from crossgraft.models import ModelSpec
from crossgraft.progress import Reporter
from crossgraft.rank.record import (
    FeatureSpread,
    FeaturesRecord,
    ItmByWeight,
    ItmWay,
    MappedModel,
    MappedPanel,
    NetworkKind,
    Point,
    ProjectedFeatures,
    RankingRecord,
)
from crossgraft.rank.zoo import Zoo
from crossgraft.scores import itm, itm_dispersion
from crossgraft.scores.nca_score import NUM_COMPONENTS, fit_nca, in_proportion, principal_components
from crossgraft.types import ClassIndices, Features, Groups

LOSS_WEIGHTS = (0.0, 0.1, 1.0, 10.0, 100.0)
"""λ of ITM's eq. 8 that are tried."""
MOST_FITTED, MOST_HELD_OUT = 1600, 400
"""NCA looks at so many images; its cost grows with their square."""
MOST_DRAWN = 300
NUM_NEIGHBOURS = 5
_DIGITS = 4
_SPREAD = 0.25
"""Height of the strip of features with one dimension, as a share of its length."""


USUAL_ETA = 0.5
"""η of eq. 7 where the ranking has no ITM, which would choose one for each model."""


def look_at_features(zoo: Zoo, specs: Sequence[ModelSpec], record: RankingRecord, *, num_maps: int) -> FeaturesRecord:
    """Look at the features of every candidate once more, from the cache where they are there.

    Args:
        zoo: What the members are looked at with; each image has one class.
        specs: The candidates.
        record: The ranking, for its order and the η that ITM chose.
        num_maps: Number of the best models that are drawn.

    Cost: ITM five times for each candidate, and NCA and ITM once more for each that is drawn.
    """
    (labels,) = zoo.dataset.task.views(zoo.dataset.targets)
    groups, seed = zoo.dataset.groups, zoo.options.seed
    order = [row.model for row in record.primary_ranking.rows if row.rank is not None]
    etas = {cell.model: cell.parts["eta"] for cell in record.cells if cell.score == "itm" and "eta" in cell.parts}
    spreads: list[FeatureSpread] = []
    kinds: list[NetworkKind] = []
    weighted: list[ItmByWeight] = []
    maps: dict[str, MappedModel] = {}
    names = {model.name for model in record.models if model.role == "candidate"}
    candidates = [spec for spec in specs if spec.name in names]
    with zoo.reporter.stage("Drawing features", total=len(candidates), unit="models") as stage, zoo.threads_of_rounds():
        for number, spec in enumerate(candidates, start=1):
            name, backbone = spec.name, zoo.load(spec)
            features = zoo.extract(backbone, f"{number} of {len(candidates)}", reporter=Reporter(quiet=True)).features
            eta = etas.get(name, USUAL_ETA)
            kinds.append(
                NetworkKind(
                    model=name,
                    architecture=architecture_kind(backbone.module),
                    pretraining=pretraining_kind(spec, backbone.source, backbone.module),
                )
            )
            del backbone
            spreads.append(feature_spread(name, features, labels))
            weighted.append(itm_by_weight(name, features, labels, groups, eta=eta, seed=seed))
            if name in order[:num_maps]:
                arrays = itm(features, labels, groups, eta=eta, embeddings=True, seed=seed).arrays
                held_out = arrays.get("rows", np.zeros(0, dtype=np.int64))
                maps[name] = MappedModel(
                    model=name,
                    projected=projected_features(features, labels, held_out, seed=seed),
                    itm=way_of_itm(features, labels, arrays, eta=eta, seed=seed),
                )
            stage.advance()
    return FeaturesRecord(
        seed=seed,
        spreads=spreads,
        kinds=kinds,
        loss_weights=list(LOSS_WEIGHTS),
        itm_by_weight=weighted,
        maps=[maps[name] for name in order if name in maps],
    )


class _Plane(NamedTuple):
    """The first two principal components of rows; without shares where there is one dimension, spread over a strip."""

    points: Float64[np.ndarray, "num_images 2"]
    shares: tuple[float, float] | None


def feature_spread(model: str, features: Features, labels: ClassIndices) -> FeatureSpread:
    """Mean and standard deviation over all images and features, and the dispersion of eq. 12."""
    return FeatureSpread(
        model=model,
        mean=float(features.mean(dtype=np.float64)),
        standard_deviation=float(features.std(dtype=np.float64)),
        dispersion=itm_dispersion(features, labels),
    )


def itm_by_weight(
    model: str, features: Features, labels: ClassIndices, groups: Groups | None, *, eta: float, seed: int
) -> ItmByWeight:
    """ITM with the pull to the pseudo-centres in its loss, λ L_pc of eq. 8, for each of ``LOSS_WEIGHTS``."""
    values = [float(itm(features, labels, groups, eta=eta, lambda_pc=weight, seed=seed)) for weight in LOSS_WEIGHTS]
    return ItmByWeight(model=model, values=values)


def projected_features(
    features: Features, labels: ClassIndices, held_out: Int[np.ndarray, " num_held_out"], *, seed: int
) -> ProjectedFeatures:
    """Features as they are, after NCA and after LDA, which are both fitted to the images that are not held out.

    Principal components (at most 256), which need no label, are those of all images. LDA is the regularised one of SFDA, which
    the thesis draws.

    Args:
        features: (n, d).
        labels: (n,).
        held_out: Places of images to which nothing is fitted; every class has others.
        seed: Random seed of the images, where there are more than 1600 or 400 held out.

    Cost: of NCA on 2000 images: a few seconds.
    """
    rng = seeding.generator(seed, "mapped images")
    learned = np.setdiff1d(np.arange(len(labels)), held_out)
    if len(learned) > MOST_FITTED:
        learned = learned[in_proportion(labels[learned], MOST_FITTED, rng)]
    if len(held_out) > MOST_HELD_OUT:
        held_out = held_out[_some(labels[held_out], MOST_HELD_OUT, rng)]
    features, labels = features[[*learned, *held_out]], labels[[*learned, *held_out]]
    fitted, held_out = np.arange(len(learned)), np.arange(len(learned), len(labels))
    points, _ = principal_components(features)
    if not points.shape[1]:
        return ProjectedFeatures(reason="All features are constant.", num_images=len(labels), num_fitted=len(fitted))
    nca = fit_nca(points[fitted], labels[fitted], num_components=min(NUM_COMPONENTS, points.shape[1]))
    embeddings = {"Features": points, "After NCA": points @ nca.transformation.T.astype(np.float64)}
    axes = _discriminant_axes(points[fitted], labels[fitted])
    reason = None if axes is not None else "LDA needs classes with different images."
    if axes is not None:
        embeddings["After LDA"] = points @ axes
    drawn = _drawn(labels, seed)
    panels = [
        _panel(
            title,
            embedded,
            drawn,
            fitted_share=_share_of_neighbours(embedded, labels, fitted, fitted),
            held_out_share=_share_of_neighbours(embedded, labels, fitted, held_out) if len(held_out) else None,
        )
        for title, embedded in embeddings.items()
    ]
    return ProjectedFeatures(
        num_images=len(labels),
        num_fitted=len(fitted),
        classes=labels[drawn].tolist(),
        held_out=np.flatnonzero(drawn >= len(fitted)).tolist(),
        panels=panels,
        reason=reason,
    )


def _discriminant_axes(
    points: Float64[np.ndarray, "num_fitted q"], labels: ClassIndices
) -> Float64[np.ndarray, "q num_axes"] | None:
    """The C − 1 axes of A⁻¹ S_b, A = (1 − s) S_w + s tr(S_w)/q I with s = max(exp(−5 λ₁(S_w)), 1e-10) (SFDA, eqs. 4 and 5).

    None where every class is one point.
    """
    counts = np.bincount(labels)
    means = np.stack([points[labels == label].mean(axis=0) for label in range(len(counts))])
    within = points - means[labels]
    values, vectors = np.linalg.eigh(within.T @ within / len(points))
    if values[-1] <= 0:
        return None
    shrinkage = max(float(np.exp(-5 * values[-1])), 1e-10)
    shrunk = (1 - shrinkage) * np.maximum(values, 0) + shrinkage * values.sum() / len(values)
    whitened = vectors / np.sqrt(shrunk)
    between = np.sqrt(counts / len(points))[:, None] * (means - points.mean(axis=0)) @ whitened
    axes = np.linalg.svd(between, full_matrices=False)[2][: min(len(counts) - 1, points.shape[1])]
    return whitened @ axes.T


def way_of_itm(features: Features, labels: ClassIndices, arrays: Mapping[str, np.ndarray], *, eta: float, seed: int) -> ItmWay:
    """Validation images of ITM: their features E, E⁽ⁿ⁾ before training and at three validations, and their pseudo-centres Ê.

    E has a plane of its own; E⁽ⁿ⁾ and Ê share one.

    Args:
        features: (n, d).
        labels: (n,).
        arrays: Those of ``itm`` with ``embeddings``.
        eta: η that they were made with.
        seed: Random seed of the images that are drawn, where there are more than 300.
    """
    if not arrays:
        return ItmWay(eta=eta, num_images=0, reason="All images are needed to show every class once, so none is held out.")
    rows, steps, accuracies = arrays["rows"], arrays["steps"], arrays["accuracy"]
    of_rows = labels[rows]
    drawn = _drawn(of_rows, seed)
    standard = _standardised(features)
    shown = np.unique([0, 1, len(steps) // 2, len(steps) - 1])
    evolved = [arrays["evolved"][place].astype(np.float64) for place in shown]
    together = _plane(np.concatenate([*evolved, arrays["centres"].astype(np.float64)]))
    *on_the_way, centres = np.split(together.points, len(shown) + 1)
    titles = ["E⁽ⁿ⁾ before training", *(f"E⁽ⁿ⁾ after {steps[place]} steps" for place in shown[1:])]
    known = np.setdiff1d(np.arange(len(labels)), rows)
    first = _panel("E, the features", standard[rows], drawn, accuracy=_nearest_mean(standard, labels, known, rows))
    return ItmWay(
        eta=eta,
        num_images=len(rows),
        classes=of_rows[drawn].tolist(),
        panels=[
            first,
            *(
                MappedPanel(
                    title=title, points=_rounded(points[drawn]), shares=together.shares, accuracy=float(accuracies[place])
                )
                for title, points, place in zip(titles, on_the_way, shown, strict=True)
            ),
            MappedPanel(title="Ê, the pseudo-centres", points=_rounded(centres[drawn]), shares=together.shares),
        ],
    )


def _standardised(features: Features) -> Float64[np.ndarray, "num_images num_features"]:
    """Columns of mean 0 and variance 1; constant ones are 0."""
    centred = features - features.mean(axis=0, dtype=np.float64)
    deviations = centred.std(axis=0, ddof=1)
    deviations[deviations <= 1e-6 * np.abs(features).max(axis=0)] = np.inf
    return centred / deviations


def _drawn(labels: ClassIndices, seed: int) -> np.ndarray:
    """Places of the images that are drawn, the classes in proportion."""
    if len(labels) <= MOST_DRAWN:
        return np.arange(len(labels))
    return _some(labels, MOST_DRAWN, seeding.generator(seed, "drawn images"))


def _some(labels: ClassIndices, wanted: int, rng: np.random.Generator) -> np.ndarray:
    """So many places, the classes in proportion; not every class needs to be there."""
    return in_proportion(np.unique(labels, return_inverse=True)[1], wanted, rng)


def _panel(
    title: str,
    embedded: np.ndarray,
    drawn: np.ndarray,
    *,
    fitted_share: float | None = None,
    held_out_share: float | None = None,
    accuracy: float | None = None,
) -> MappedPanel:
    plane = _plane(embedded)
    return MappedPanel(
        title=title,
        points=_rounded(plane.points[drawn]),
        shares=plane.shares,
        fitted_share=fitted_share,
        held_out_share=held_out_share,
        accuracy=accuracy,
    )


def _plane(rows: Float64[np.ndarray, "num_images d"]) -> _Plane:
    centred = rows - rows.mean(axis=0)
    total = float(np.square(centred).sum())
    if centred.shape[1] < 2:
        length = float(np.ptp(centred)) or 1.0
        heights = _SPREAD * length * (np.arange(len(rows)) * (np.sqrt(5) - 1) / 2 % 1 - 0.5)
        return _Plane(np.column_stack([centred[:, 0], heights]), None)
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, :-3:-1]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    points = centred @ axes
    first, second = (float(np.square(points[:, axis]).sum() / total) if total > 0 else 0.0 for axis in (0, 1))
    return _Plane(points, (min(first, 1.0), min(second, 1.0)))


def _rounded(points: np.ndarray) -> list[Point]:
    scale = float(np.abs(points).max(initial=0.0)) or 1.0
    decimals = _DIGITS - 1 - int(np.floor(np.log10(scale)))
    return [(round(float(x), decimals), round(float(y), decimals)) for x, y in points]


def _share_of_neighbours(embedded: np.ndarray, labels: ClassIndices, fitted: Sequence[int] | np.ndarray, of: np.ndarray) -> float:
    """Mean share of the own class among the nearest images that were fitted to, the image itself left out."""
    known, asked = embedded[fitted], embedded[of]
    distances = np.square(asked).sum(axis=1)[:, None] + np.square(known).sum(axis=1) - 2 * (asked @ known.T)
    distances[of[:, None] == np.asarray(fitted)] = np.inf
    number = min(NUM_NEIGHBOURS, len(known) - 1)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :number]
    return float(np.mean(labels[fitted][nearest] == labels[of][:, None]))


def _nearest_mean(points: np.ndarray, labels: ClassIndices, known: np.ndarray, of: np.ndarray) -> float:
    """Share of the images ``of`` whose nearest mean of a class, of the ``known`` images, is that of their own."""
    means = np.stack([points[known][labels[known] == label].mean(axis=0) for label in range(int(labels.max()) + 1)])
    distances = np.square(means).sum(axis=1) - 2 * points[of] @ means.T
    return float(np.mean(distances.argmin(axis=1) == labels[of]))


_ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)
_OF_CHANNELS = re.compile(r"channel|spatial|eca|cbam|squeeze|pool", re.IGNORECASE)
"""Attention of other kinds: it weights channels or a whole map, as in convolutional networks."""
_FEWEST_CONVOLUTIONS = 4
"""A stem of a transformer has fewer that look at neighbours."""

_WAYS = (  # the first that fits; \b and _ part the words of a tag
    ("masked images", r"mae|simmim|beit|beitv2|mim|ijepa|eva|eva02"),
    ("instance discrimination", r"dino|dinov2|dinov3|moco|mocov3|simclr|swav|byol|ssl|swsl|barlow"),
    ("images and text", r"clip|openai|laion\w*|siglip\w*|webli|datacomp\w*|dfn\w*|metaclip\w*"),
)
UNKNOWN = "not said"


def architecture_kind(module: nn.Module) -> str:
    """Whether places of an image meet by attention, by convolutions, or by both, as the layers tell.

    >>> architecture_kind(nn.Sequential(*(nn.Conv2d(3, 3, 3) for _ in range(4))))
    'convolutional'
    """
    classes = {type(layer).__name__ for layer in module.modules()}
    attends = any(_ATTENTION.search(name) and not _OF_CHANNELS.search(name) for name in classes)
    convolutions = [layer for layer in module.modules() if isinstance(layer, nn.Conv2d) and max(layer.kernel_size) > 1]
    convolves = len(convolutions) >= _FEWEST_CONVOLUTIONS
    if attends:
        return "attention and convolutions" if convolves else "transformer"
    return "convolutional" if convolutions else "other"


def pretraining_kind(spec: ModelSpec, source: str, module: nn.Module) -> str:
    """What the zoo says, else what the tag of timm's weights tells; ``not said`` for other files and functions."""
    if spec.pretraining is not None:
        return spec.pretraining
    if spec.has_checkpoint or source not in ("timm", "torchvision"):
        return UNKNOWN
    config = cast("Mapping[str, Any]", getattr(module, "pretrained_cfg", {}))
    return pretraining_of_tag(str(config.get("tag") or ""))


def pretraining_of_tag(tag: str) -> str:
    """The way of pretraining that the tag of weights names; labels alone where it names none.

    >>> [pretraining_of_tag(tag) for tag in ("mae", "lvd142m.dinov2", "openai_ft_in1k", "a1_in1k", "")]
    ['masked images', 'instance discrimination', 'images and text', 'labels', 'labels']
    """
    words = re.split(r"[._-]", tag.lower())
    return next((way for way, names in _WAYS if any(re.fullmatch(names, word) for word in words)), "labels")
