"""The adapters that a saved model can name; other packages add theirs through the entry-point group ``crossgraft.adapters``."""

from __future__ import annotations

from typing import Any

from crossgraft.models.adapters.adaptformer import AdaptFormerAdapter
from crossgraft.models.adapters.lora import LoraAdapter
from crossgraft.models.adapters.tsa import TaskSpecificAdapter
from crossgraft.registry import Registry

ADAPTERS: Registry[type[Any]] = Registry("adapter", group="crossgraft.adapters", plugin_type=type)
"""Every adapter that is installed: classes with ``make``."""
for _adapter in (LoraAdapter, AdaptFormerAdapter, TaskSpecificAdapter):
    ADAPTERS.add(_adapter.kind, _adapter)
