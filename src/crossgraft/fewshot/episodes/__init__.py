"""How the tasks of a few-shot evaluation are drawn: one file each, named by the published protocol.

Other packages add samplers through the entry-point group ``crossgraft.samplers``.
"""

from __future__ import annotations

from typing import Any

from crossgraft.fewshot.episodes._sampler import Description as Description
from crossgraft.fewshot.episodes._sampler import Episode as Episode
from crossgraft.fewshot.episodes._sampler import Sampler as Sampler
from crossgraft.fewshot.episodes.episode import describe_episode as describe_episode
from crossgraft.fewshot.episodes.episode import refuse_small_classes as refuse_small_classes
from crossgraft.fewshot.episodes.episode import sample_episode as sample_episode
from crossgraft.fewshot.episodes.meta_dataset import MetaDataset as MetaDataset
from crossgraft.fewshot.episodes.n_way_k_shot import NWayKShot as NWayKShot
from crossgraft.registry import Registry

SAMPLERS: Registry[type[Any]] = Registry("episode sampler", group="crossgraft.samplers", plugin_type=type)
"""Every sampler that is installed: the classes, whose fields are their options."""
for _sampler in (MetaDataset, NWayKShot):
    SAMPLERS.add(_sampler.name, _sampler)
