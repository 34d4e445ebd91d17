"""The thesis' CCA while images pass: what is drawn of the maps of each layer of each network."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from crossgraft.compare.layer_choice import spread
from crossgraft.compare.record import LayerCca
from crossgraft.errors import NotApplicable
from crossgraft.similarity import Similarity
from crossgraft.similarity.thesis_cca import POSITIONS, Draw, channels_last, draws_of, thesis_mean

MOST_LAYERS = 5
"""Layers of a network that are drawn from, as the thesis has them, spread evenly from the first to the last."""

Shape = tuple[int, int, int]


class MapDraws:
    """Keeps the drawn positions and channels of a few layers of each network; layers correspond by their place.

    Args:
        shapes: By network, its layers in order with channels, height and width of their maps; networks with another number of
            layers cannot be compared with each other.
        num_images: Images of the whole pass.
        preset: ``thesis`` or ``released``.
        seed: Random seed.

    Memory: 25 MB per layer and network, at most.
    """

    def __init__(self, shapes: Mapping[str, Mapping[str, Shape]], num_images: int, *, preset: str, seed: int) -> None:
        self._layers = {key: spread(list(layers), MOST_LAYERS) for key, layers in shapes.items()}
        self._preset, self._seed = preset, seed
        places = [(key, place) for key, names in self._layers.items() for place in range(len(names))]
        self._shapes = {(key, place): shapes[key][self._layers[key][place]] for key, place in places}
        self._draws = {where: self._drawn(where, num_images) for where in places}
        self._rows: dict[tuple[str, int], list[list[np.ndarray]]] = {
            where: [[] for _ in draws] for where, draws in self._draws.items()
        }

    def _drawn(self, where: tuple[str, int], num_images: int) -> list[Draw]:
        """The same for all networks with maps of this size at this place: of the channels that all of them have."""
        key, place = where
        _, height, width = self._shapes[where]
        alike = [
            shape[0]
            for (other, its_place), shape in self._shapes.items()
            if its_place == place
            and len(self._layers[other]) == len(self._layers[key])
            and shape[1:] == (height, width)
        ]
        shape = min(alike), height, width
        return draws_of(num_images, shape, shape, preset=self._preset, seed=self._seed, layer=f"{place}")

    def take(self, key: str, layer: str, places: np.ndarray, maps: Tensor) -> None:
        """What a layer gave for the images at ``places``: (b, c, h, w)."""
        if layer not in self._layers.get(key, ()):
            return
        where = key, self._layers[key].index(layer)
        for draw, rows in zip(self._draws[where], self._rows[where], strict=True):
            here = np.flatnonzero(np.isin(places, draw.images))
            if len(here):
                rows.append(channels_last(maps[here.tolist()][:, draw.channels.tolist()].float().cpu().numpy()))

    def values(self, first: str, second: str, untrained: tuple[str, str] | None) -> list[LayerCca]:
        """CCA of each layer of one network with the layer of the other at the same place.

        Raises:
            NotApplicable: The networks have another number of layers, so that none corresponds.
        """
        names = self._layers[first], self._layers[second]
        if len(names[0]) != len(names[1]):
            raise NotApplicable(
                f"Layers correspond by their place, and {len(names[0])} of one model and {len(names[1])} of the other are "
                "compared."
            )
        return [
            self._value(first, second, number, names[0][number], names[1][number], untrained)
            for number in range(len(names[0]))
        ]

    def _value(
        self, first: str, second: str, number: int, layer: str, other: str, untrained: tuple[str, str] | None
    ) -> LayerCca:
        found, reason = self._computed(first, second, number)
        floor = None if untrained is None else self._computed(*untrained, number)[0]
        return LayerCca(
            layer=layer,
            other_layer=other,
            value=None if found is None else float(found),
            spread=None if found is None else found.parts["spread_of_draws"],
            untrained=None if floor is None else float(floor),
            positions=0 if found is None else int(found.parts["positions"]),
            positions_asked_for=POSITIONS[self._preset],
            channels=0 if found is None else int(found.parts["channels"]),
            reason=reason,
        )

    def _computed(self, first: str, second: str, number: int) -> tuple[Similarity | None, str | None]:
        shapes = self._shapes[first, number], self._shapes[second, number]
        if shapes[0][1:] != shapes[1][1:]:
            said = [f"{height} × {width}" for _, height, width in shapes]
            return None, f"maps of {said[0]} and {said[1]} have no positions in common"
        one, other = (self._rows[key, number] for key in (first, second))
        pairs = [(np.concatenate(rows), np.concatenate(others)) for rows, others in zip(one, other, strict=True)]
        try:
            return thesis_mean(pairs, preset=self._preset, seed=self._seed), None
        except NotApplicable as error:
            return None, str(error)
