"""Strategies against a shortcut: one file each, a scorer on frozen features that leans less on the artefact.

Other packages add strategies through the entry-point group ``crossgraft.mitigations``.
"""

from __future__ import annotations

from typing import Any

from crossgraft.audit.mitigation._mitigation import ConfounderKind as ConfounderKind
from crossgraft.audit.mitigation._mitigation import FittedScorer as FittedScorer
from crossgraft.audit.mitigation._mitigation import GroupedRows as GroupedRows
from crossgraft.audit.mitigation._mitigation import Mitigation as Mitigation
from crossgraft.audit.mitigation._mitigation import refuse_unidentifiable as refuse_unidentifiable
from crossgraft.audit.mitigation._mitigation import suited as suited
from crossgraft.audit.mitigation.balanced_sampling import BalancedSampling as BalancedSampling
from crossgraft.audit.mitigation.dfr import DeepFeatureReweighting as DeepFeatureReweighting
from crossgraft.audit.mitigation.erm import EmpiricalRisk as EmpiricalRisk
from crossgraft.audit.mitigation.group_dro import GroupDROHead as GroupDROHead
from crossgraft.audit.mitigation.group_thresholds import GroupThresholds as GroupThresholds
from crossgraft.audit.mitigation.group_weights import GroupWeights as GroupWeights
from crossgraft.audit.mitigation.irm import IRMHead as IRMHead
from crossgraft.audit.mitigation.source_editing import SourceEditing as SourceEditing
from crossgraft.audit.mitigation.vrex import VRExHead as VRExHead
from crossgraft.registry import Registry

MITIGATIONS: Registry[type[Any]] = Registry("mitigation", group="crossgraft.mitigations", plugin_type=type)
"""Every strategy that is installed, the baseline first: the classes, whose fields are their options."""
_ON_FEATURES = (EmpiricalRisk, BalancedSampling, GroupWeights, DeepFeatureReweighting, GroupThresholds)
_BY_OBJECTIVES = (GroupDROHead, IRMHead, VRExHead)
for _mitigation in (*_ON_FEATURES, *_BY_OBJECTIVES, SourceEditing):
    MITIGATIONS.add(_mitigation.name, _mitigation)
