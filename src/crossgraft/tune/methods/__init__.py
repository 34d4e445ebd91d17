"""What is trained: one file each, named by the method's published name.

Other packages add methods through the entry-point group ``crossgraft.methods``.
"""

from __future__ import annotations

from typing import Any

from crossgraft.registry import Registry
from crossgraft.tune.methods.adaptformer import AdaptFormer as AdaptFormer
from crossgraft.tune.methods.full import Full as Full
from crossgraft.tune.methods.linear import Linear as Linear
from crossgraft.tune.methods.lora import LoRA as LoRA
from crossgraft.tune.methods.partial import Partial as Partial
from crossgraft.tune.methods.scratch import Scratch as Scratch
from crossgraft.tune.protocols import AddsAdapters as AddsAdapters
from crossgraft.tune.protocols import Method as Method
from crossgraft.tune.protocols import Selection as Selection
from crossgraft.tune.protocols import put_adapters_in as put_adapters_in

METHODS: Registry[type[Any]] = Registry("method", group="crossgraft.methods", plugin_type=type)
"""Every method that is installed: the classes, whose fields are their options."""
for _method in (Full, Linear, Scratch, Partial, LoRA, AdaptFormer):
    METHODS.add(_method.name, _method)
