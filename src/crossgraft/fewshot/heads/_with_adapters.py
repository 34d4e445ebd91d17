"""Heads that put task-specific adapters into the backbone while they work, and take them out again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from crossgraft.errors import UsageError
from crossgraft.fewshot.heads._head import Rows
from crossgraft.fewshot.heads._in_backbone import Images, InBackbone
from crossgraft.models.adapters import Adapter, AdapterRecipe
from crossgraft.models.adapters.insertion import insert_adapter, make_adapter, take_out_adapter
from crossgraft.models.adapters.tsa import TaskSpecificAdapter
from crossgraft.models.taps import watch


@dataclass(eq=False, repr=False)
class WithAdapters(InBackbone):
    """Base of TSA and CoPA + TSA.

    Attributes:
        adapters_: Layer → weights of its adapter.
    """

    @property
    def adapter_options(self) -> Mapping[str, str]:
        """Options of ``TaskSpecificAdapter``."""
        return {}

    @contextmanager
    def trained_adapters(
        self, hosts: Sequence[str], look: Callable[[], Tensor], generator: torch.Generator
    ) -> Generator[list[nn.Parameter]]:
        """Parameters of new adapters in the network; what they are at the end of the block becomes ``adapters_``.

        Raises:
            UsageError: A forward pass takes a layer's weight without calling it.
        """
        with with_adapters(self.network, hosts, self.adapter_options, generator) as put:
            refuse_uncalled(self.network, hosts, look)
            yield [parameter for adapter in put.values() for parameter in adapter.parameters()]
            self.adapters_: dict[str, dict[str, Any]] = {
                host: {name: value.clone() for name, value in adapter.state_dict().items()}
                for host, adapter in put.items()
            }

    def adapted_features(self, images: Images) -> Rows:
        """(n, d) of the network with the adapters of the last ``fit``, on the CPU; the network is as before afterwards."""
        random = torch.Generator()
        with self.frozen(), with_adapters(self.network, list(self.adapters_), self.adapter_options, random) as put:
            for host, adapter in put.items():
                adapter.load_state_dict(self.adapters_[host])
            return self.features_in_chunks(images).cpu()


@contextmanager
def with_adapters(
    network: nn.Module, hosts: Sequence[str], options: Mapping[str, str], generator: torch.Generator
) -> Generator[dict[str, Adapter]]:
    """Inside the block the layers have adapters with their first weights; after it the network is what it was, bit for bit."""
    put: dict[str, Adapter] = {}
    try:
        for host in hosts:
            adapter = make_adapter(network, AdapterRecipe(TaskSpecificAdapter.kind, host, options))
            adapter.draw(generator)
            insert_adapter(network.get_submodule(host), adapter)
            put[host] = adapter
        yield put
    finally:
        for host in put:
            take_out_adapter(network.get_submodule(host), TaskSpecificAdapter.kind)


@torch.no_grad()
def refuse_uncalled(network: nn.Module, hosts: Sequence[str], look: Callable[[], Tensor]) -> None:
    """Raise where a forward pass takes a layer's weight without calling it, so that an adapter there would be lost.

    Raises:
        UsageError: The message names the layer.
    """
    called: set[str] = set()
    with watch({name: network.get_submodule(name) for name in hosts}, lambda name, _: called.add(name), of="input"):
        look()
    for name in hosts:
        if name not in called:
            raise UsageError(
                f"TSA cannot adapt {name}: the network takes its weight without calling the layer. Name other layers: layers=."
            )
